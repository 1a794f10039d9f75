"""Arrays that kernels are handed all at once, by one pointer."""
