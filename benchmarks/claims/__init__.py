"""The paper's own claims, on made-up streams. Run as ``python -m benchmarks.claims``."""
