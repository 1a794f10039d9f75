"""Boxes of leaves in single precision."""
