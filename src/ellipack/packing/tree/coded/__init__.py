"""Leaves in small whole numbers."""
