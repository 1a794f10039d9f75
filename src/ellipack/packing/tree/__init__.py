"""A bucket kd-tree in flat arrays."""
