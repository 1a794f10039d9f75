"""Which measures got worse since a base revision: ``python -m benchmarks.guard``."""
