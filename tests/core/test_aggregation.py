"""The compiled aggregation and least squares, bitwise equal to references in plain Python."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._core import BernsteinAggregation, LeastSquares
from tests.core.builds import Core, builds
from tests.reference.exact_aggregation import ExactAggregation, ExactLeastSquares
from tests.strategies import seeds

sizes = st.sampled_from([1e-160, 1e-12, 1.0, 1e12, 1e60])


def state(aggregation: Any) -> list[Any]:
    """Return the state of an aggregation, compiled or not."""
    arrays = (aggregation.log_priors, aggregation.gains, aggregation.squares)
    return [*(np.array(array).tolist() for array in arrays), aggregation.scale]


@builds
@given(st.integers(2, 20), st.integers(1, 60), sizes, st.booleans(), seeds)
def test_aggregation_equals_the_reference(
    core: Core, experts: int, rounds: int, size: float, agreeing: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    log_priors = np.log(rng.dirichlet(np.ones(experts)) + 1e-3)
    compiled = core.BernsteinAggregation(log_priors, np.zeros(experts), np.zeros(experts), 0.0)
    reference = ExactAggregation(log_priors.tolist(), [0.0] * experts, [0.0] * experts, 0.0)
    for t in range(rounds):
        predictions = size * rng.normal(size=experts)
        if agreeing and t % 3 == 0:
            predictions[:] = predictions[0]
        weights = compiled.weights()
        assert weights.tolist() == reference.weights()
        prediction, label = float(weights @ predictions), size * 10.0 ** rng.integers(-2, 3) * rng.normal()
        compiled.update(predictions, prediction, label)
        reference.update(predictions.tolist(), prediction, label)
        assert state(compiled) == state(reference)


@builds
@given(st.integers(1, 12), st.integers(1, 40), st.sampled_from([1e-6, 1.0, 1e9]), st.booleans(), seeds)
def test_least_squares_equals_the_reference(
    core: Core, size: int, rounds: int, scale: float, degenerate: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    prior = np.diag(rng.uniform(0.5, 1.0, size=size))
    compiled = core.LeastSquares(prior, np.zeros(size))
    reference = ExactLeastSquares(prior.tolist(), [0.0] * size)
    for t in range(rounds):
        features = scale * rng.normal(size=size)
        if degenerate:  # one feature never varies, others are equal
            features[-1], features[: size // 2] = 0.0, features[0]
        if t % 4 == 0:
            span = float(rng.uniform(1.5, 30))
            compiled.discount(span)
            reference.discount(span)
            assert compiled.inverse.tolist() == reference.inverse
        target = rng.normal()
        compiled.update(features, target)
        reference.update(features.tolist(), target)
        assert compiled.coefficients.tolist() == reference.coefficients
        assert compiled.inverse.tolist() == reference.inverse


@builds
@given(st.integers(1, 9), st.integers(0, 6), seeds)
def test_a_low_rank_regression_has_the_documented_inverse(core: Core, size: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    variances, link, coefficients = rng.normal(size=(3, size))
    rows = rng.normal(size=(count, size))
    regression = core.LeastSquares.from_low_rank(variances, link, rows, coefficients)
    expected = np.diag(variances) + np.outer(link, link) - rows.T @ rows
    np.testing.assert_allclose(regression.inverse, expected, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(regression.inverse, regression.inverse.T)
    assert regression.coefficients.tolist() == coefficients.tolist()


@pytest.mark.parametrize("sizes", [(2, 3, 3, 3), (3, 2, 3, 3), (3, 3, 2, 3), (3, 3, 3, 2), (0, 0, 0, 0)])
def test_factors_of_other_sizes_are_refused(sizes: tuple[int, int, int, int]) -> None:
    variances, link, width, coefficients = sizes
    rows = np.ones((coefficients, width))
    with pytest.raises(ValueError, match=r"an entry for each coefficient|rows must have . columns"):
        LeastSquares.from_low_rank(np.ones(variances), np.ones(link), rows, np.ones(coefficients))


def test_rows_that_rounding_makes_redundant_change_nothing() -> None:
    # The quadratic form is negative because of rounding. The inverse must not grow.
    compiled = LeastSquares(np.array([[1.0, -1.0 - 1e-12], [-1.0 - 1e-12, 1.0]]), np.zeros(2))
    before = compiled.inverse
    compiled.update(np.array([1.0, 1.0]), 5.0)
    assert compiled.inverse.tolist() == before.tolist()
    assert compiled.coefficients.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_are_equal_and_independent(duplicate: Any) -> None:
    rng = np.random.default_rng(0)
    aggregation = BernsteinAggregation(np.log([0.2, 0.3, 0.5]), np.zeros(3), np.zeros(3), 0.0)
    regression = LeastSquares(np.eye(3), np.zeros(3))
    for _ in range(5):
        aggregation.update(rng.normal(size=3), 0.1, 0.5)
        regression.update(rng.normal(size=3), 1.0)
    others = duplicate(aggregation), duplicate(regression)
    before = state(aggregation), regression.inverse.tolist(), regression.coefficients.tolist()
    assert (state(others[0]), others[1].inverse.tolist(), others[1].coefficients.tolist()) == before
    others[0].update(rng.normal(size=3), 0.1, 0.5)
    others[1].update(rng.normal(size=3), 1.0)
    assert (state(aggregation), regression.inverse.tolist(), regression.coefficients.tolist()) == before
    assert state(others[0]) != before[0]


AGGREGATION: dict[str, Any] = {
    "log_priors": np.log([0.25, 0.75]), "gains": np.zeros(2), "squares": np.ones(2), "scale": 1.0
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gains": np.zeros(1)}, "gains must have 2 entries, got 1"),
        ({"squares": np.zeros(3)}, "squares must have 2 entries, got 3"),
        ({name: np.zeros(1) for name in ("log_priors", "gains", "squares")}, "at least two experts"),
        ({"log_priors": np.array([0.0, np.nan])}, "an aggregation must be finite"),
        ({"gains": np.array([0.0, np.inf])}, "an aggregation must be finite"),
        ({"squares": np.array([0.0, np.nan])}, "an aggregation must be finite"),
        ({"squares": np.array([0.0, -1.0])}, "squares must be >= 0"),
        ({"scale": np.nan}, "scale must be 0 or at least 1e-290"),
        ({"scale": -1.0}, "scale must be 0 or at least 1e-290"),
        ({"scale": 1e-300}, "scale must be 0 or at least 1e-290"),
    ],
)
def test_impossible_aggregations_are_rejected(changes: dict[str, Any], message: str) -> None:
    BernsteinAggregation(**AGGREGATION)
    with pytest.raises(ValueError, match=message):
        BernsteinAggregation(**{**AGGREGATION, **changes})


def test_impossible_least_squares_are_rejected() -> None:
    for inverse, coefficients in (
        (np.eye(3), np.zeros(2)), (np.eye(2)[:1], np.zeros(2)), (np.ones((1, 4)), np.zeros(2)), (np.eye(0), np.zeros(0))
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"must have|a coefficient and a row"):
            LeastSquares(inverse, coefficients)


def test_rounds_of_the_wrong_size_are_rejected() -> None:
    aggregation, regression = BernsteinAggregation(**AGGREGATION), LeastSquares(np.eye(2), np.zeros(2))
    with pytest.raises(ValueError, match="predictions must have 2 entries, got 3"):
        aggregation.update(np.zeros(3), 0.0, 0.0)
    with pytest.raises(ValueError, match="features must have 2 entries, got 1"):
        regression.update(np.zeros(1), 0.0)
    for span in (1.0, 0.0, -2.0, np.nan):
        with pytest.raises(ValueError, match="span must be > 1"):
            regression.discount(span)
