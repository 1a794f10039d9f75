"""MetricRegressor, the paper's learners and peers on the same rows: ``python -m benchmarks.comparison``."""
