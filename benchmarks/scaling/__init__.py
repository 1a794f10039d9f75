"""How cost and memory grow with rounds, dimension, rank and centres. Run as ``python -m benchmarks.scaling``."""
