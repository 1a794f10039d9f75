"""Growth of cost and memory with rounds, dimension, rank and centers: ``python -m benchmarks.scaling``."""
