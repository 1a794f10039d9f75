"""Four numbers at a time."""
