"""Features that are constant for a long time and then vary, such as a month or a switch."""

import numpy as np
import pytest

from ellipack import MetricRegressor
from ellipack.validation import Floats


def stream(rows: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 5))
    return X, np.sin(X[:, 0] + X[:, 1]) + 0.5 * X[:, 2] + 0.05 * rng.normal(size=rows)


def late_error(X: Floats, y: Floats) -> float:
    errors = MetricRegressor().progressive(X, y) - y
    return float(np.sqrt(np.mean(errors[len(y) // 2 :] ** 2)))


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize("steady", [144, 700])
@pytest.mark.parametrize("size", [1.0, 1e-6, 1e9])
def test_feature_that_varies_late_does_not_dominate_the_metric(views: int, steady: int, size: float) -> None:
    X, y = stream(2000)
    # An irrelevant feature: constant up to a rounding error of its mean, later with a few values.
    late = size * np.cos(2 * np.pi * (np.arange(2000) // steady) / 7 + 0.9)
    learner = MetricRegressor(views=views).fit(np.column_stack([X, late]), y)
    weights = learner.history().feature_weights[-1]
    assert weights[5] < 0.2
    assert weights[:3].sum() > 0.5
    assert (learner.eigenvalues_ >= 1e-8).all()


def test_feature_that_varies_late_hardly_increases_the_error() -> None:
    X, y = stream(3000)
    late = np.cos(2 * np.pi * (np.arange(3000) // 300) / 7)
    assert late_error(np.column_stack([X, late]), y) < 1.3 * late_error(X, y)
