"""The compiled local experts, compared with textbook formulas and between builds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._core import local_predictions
from ellipack.learners.metric.experts import LOCAL_EXPERTS
from ellipack.validation import Floats
from tests.core.builds import NAMES, Core, builds, modules
from tests.reference import local_experts as reference
from tests.reference.local_experts import Neighborhood
from tests.strategies import seeds


def around(points: Floats, labels: Floats, counts: Floats, rng: np.random.Generator) -> Neighborhood:
    """Return the neighborhood of the origin. Labels are relative to the nearest neighbor."""
    squared = reference.squared_distances(points, np.zeros(points.shape[1]))
    order = np.argsort(squared, kind="stable")
    trend, forgetting = rng.normal(size=(2, len(points)))
    ages = rng.uniform(size=len(points))
    return Neighborhood(order, squared[order], points[order], labels[order], counts[order], trend, forgetting, ages)


def predict_locally(near: Neighborhood, neighbors: int, fit_dimension: int, core: Core = None) -> tuple[Floats, Floats]:
    """Return the predictions of the local experts, and the slope."""
    function = local_predictions if core is None else core.local_predictions
    answer: tuple[Floats, Floats] = function(
        near.squared, near.labels, near.counts, near.ages, near.trend, near.forgetting_trend, near.offsets,
        neighbors, fit_dimension,
    )  # fmt: skip
    return answer


@st.composite
def neighborhoods(draw: st.DrawFn, spread: bool = True) -> tuple[Neighborhood, int, int]:
    """Return a neighborhood, the number of neighbors for kriging, and the dimension of linear fits."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(1, 50)), draw(st.integers(1, 9))
    points, labels = rng.normal(size=(n, d)), rng.normal(size=n)
    if draw(st.booleans()):  # a coordinate that does not vary
        points[:, rng.integers(d)] = 0.0 if draw(st.booleans()) else 0.7
    if draw(st.booleans()):  # duplicates
        points = points[rng.integers(max(1, n // 2), size=n)]
    if draw(st.booleans()):
        labels[:] = labels[0]
    counts = rng.integers(1, draw(st.sampled_from([2, 50, 10**6])), size=n)
    points = points * 10.0 ** (draw(st.integers(-120, 5)) if spread else 0)
    near = around(points, labels, counts.astype(np.float64), rng)
    return near, draw(st.integers(1, 40)), draw(st.integers(1, d))


@builds
@given(neighborhoods())
def test_predictions_match_textbook_formulas(core: Core, drawn: tuple[Neighborhood, int, int]) -> None:
    near, neighbors, fit_dimension = drawn
    predictions, slope = predict_locally(near, neighbors, fit_dimension, core)
    used = max(neighbors, 2 * fit_dimension + 10)
    expected, expected_slope = reference.local_predictions(near.nearest(used), fit_dimension, neighbors)
    np.testing.assert_allclose(predictions, expected, rtol=1e-7, atol=1e-7)
    farthest = float(np.sqrt(near.squared[-1])) or 1.0
    np.testing.assert_allclose(slope * farthest, expected_slope * farthest, rtol=1e-7, atol=1e-7)


@given(neighborhoods())
def test_builds_are_bitwise_equal(drawn: tuple[Neighborhood, int, int]) -> None:
    answers = [predict_locally(*drawn, core) for core in modules]
    assert len(NAMES) == len(answers)
    assert all(np.concatenate(each).tobytes() == np.concatenate(answers[0]).tobytes() for each in answers)


@given(neighborhoods(spread=False), st.floats(-1e6, 1e6))
def test_a_constant_added_to_labels_is_added_to_predictions(
    drawn: tuple[Neighborhood, int, int], constant: float
) -> None:
    near, neighbors, fit_dimension = drawn
    before, slope = predict_locally(near, neighbors, fit_dimension)
    after, other = predict_locally(near._replace(labels=near.labels + constant), neighbors, fit_dimension)
    np.testing.assert_allclose(after, before + constant, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(other, slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(
    "points",
    [
        np.zeros((40, 3)),
        np.repeat([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]], 20, axis=0),
        1e-160 * np.random.default_rng(0).normal(size=(40, 3)),
        1 + 1e-15 * np.random.default_rng(0).normal(size=(40, 3)),
        np.column_stack([np.linspace(0, 1, 40), np.zeros(40), np.zeros(40)]),
        np.array([[0.5, 0.5, 0.5]]),
        1e6 * np.random.default_rng(0).normal(size=(40, 3)),
    ],
    ids=["all equal", "two places", "tiny", "nearly equal", "on a line", "one neighbor", "far apart"],
)
def test_predictions_are_finite_for_every_neighborhood(points: Floats, size: float) -> None:
    rng = np.random.default_rng(1)
    for counts in (np.ones(len(points)), np.power(10.0, rng.integers(0, 9, size=len(points)))):
        near = around(points, size * rng.normal(size=len(points)), counts, rng)
        predictions, slope = predict_locally(near, 32, 3)
        assert np.isfinite(predictions).all()
        assert np.isfinite(slope).all()


def test_all_experts_predict_equal_labels() -> None:
    rng = np.random.default_rng(0)
    near = around(rng.normal(size=(9, 3)), np.full(9, 0.5), np.ones(9), rng)
    none = np.zeros(9)
    predictions, slope = predict_locally(near._replace(trend=none, forgetting_trend=none), 9, 3)
    assert predictions.tolist() == pytest.approx([0.5] * len(LOCAL_EXPERTS))
    assert slope.tolist() == pytest.approx([0.0] * 3, abs=1e-12)


ARGUMENTS: dict[str, Any] = {
    **{name: np.ones(5) for name in ("squared_distances", "labels", "label_counts", "ages", "trend")},
    "forgetting_trend": np.ones(5), "offsets": np.ones((5, 3)), "neighbors": 4, "fit_dimension": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        *({name: np.ones(4)} for name in ARGUMENTS if np.ndim(ARGUMENTS[name]) == 1),
        {"offsets": np.ones((4, 3))},
        {"neighbors": 0},
        {"neighbors": 513},
        {"fit_dimension": 0},
        {"fit_dimension": 4},
        {name: np.ones((0, 3) if name == "offsets" else 0) for name in ARGUMENTS if np.ndim(ARGUMENTS[name])},
    ],
    ids=str,
)
def test_invalid_neighborhoods_are_rejected(changes: dict[str, Any]) -> None:
    local_predictions(**ARGUMENTS)
    with pytest.raises(ValueError, match="must"):
        local_predictions(**{**ARGUMENTS, **changes})
