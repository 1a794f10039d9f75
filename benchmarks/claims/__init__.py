"""The paper's claims, checked on synthetic streams: ``python -m benchmarks.claims``."""
