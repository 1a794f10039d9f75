"""Positive definite systems, four at once."""
