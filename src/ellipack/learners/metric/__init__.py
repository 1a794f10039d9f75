"""The learner of `MetricRegressor`: the phases and metrics of the paper, with local models as experts."""
