"""The practical learner: its error, what a round costs, and its memory. Run as ``python -m benchmarks.metric``."""
