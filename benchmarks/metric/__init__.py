"""Error, cost and memory limit of MetricRegressor: ``python -m benchmarks.metric``."""
