"""The rates of the paper's theorems on streams that attain them: ``python -m benchmarks.rates``."""
