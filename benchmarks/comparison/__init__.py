"""Learners beside their peers, on the same rows in the same run: ``python -m benchmarks.comparison``."""
