"""What got worse since a base revision. Run as ``python -m benchmarks.guard``."""
