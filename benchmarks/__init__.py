"""Benchmarks of ellipack. Each prints its figures next to those of a peer from the same run."""
