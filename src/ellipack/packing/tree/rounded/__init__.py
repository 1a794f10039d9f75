"""Leaves in single precision."""
