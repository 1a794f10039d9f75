"""MetricRegressor's engine: the paper's frame, made practical."""
