"""Several numbers at a time."""
