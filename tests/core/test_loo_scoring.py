"""Leave-one-out scores in single precision, compared with a reference in double precision."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._core import LeaveOneOutScorer
from ellipack.validation import Floats, Ints
from tests.core.builds import Core, builds, modules
from tests.reference.metric_selection import Validation, leave_one_out_error
from tests.strategies import seeds


def score(points: Floats, labels: Floats, validation: Ints, neighbors: int, core: Core = None) -> float:
    scorer = (LeaveOneOutScorer if core is None else core.LeaveOneOutScorer)(labels, validation, neighbors)
    return float(scorer.score(points, np.ones(points.shape[1])))


@st.composite
def samples(draw: st.DrawFn) -> tuple[Floats, Floats, Ints, int]:
    """Return points, labels from 0 to 1, validation points, and the number of neighbors."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(3, 90)), draw(st.integers(1, 7))
    points, labels = rng.normal(size=(n, d)), rng.uniform(size=n)
    if draw(st.booleans()):  # a coordinate that does not vary
        points[:, rng.integers(d)] = 0.3
    if draw(st.booleans()):  # duplicates
        points = points[rng.integers(max(2, n // 2), size=n)]
    if draw(st.booleans()):  # few labels
        labels = np.round(labels)
    labels[:2] = 0.0, 1.0
    points = points * 10.0 ** draw(st.integers(-140, 100))
    validation = rng.permutation(n)[: rng.integers(1, n + 1)]
    return points, labels, validation, min(draw(st.integers(1, 40)), n - 1)


@builds
@given(samples())
def test_scores_match_double_precision(core: Core, sample: tuple[Floats, Floats, Ints, int]) -> None:
    expected = leave_one_out_error(Validation(*sample), np.eye(sample[0].shape[1]))
    assert score(*sample, core) == pytest.approx(expected, rel=1e-3, abs=1e-4)


@given(samples())
def test_builds_are_bitwise_equal(sample: tuple[Floats, Floats, Ints, int]) -> None:
    assert len({score(*sample, core) for core in modules}) == 1


@given(samples(), seeds)
def test_a_score_does_not_depend_on_earlier_scores(sample: tuple[Floats, Floats, Ints, int], seed: int) -> None:
    points, labels, validation, neighbors = sample
    rng = np.random.default_rng(seed)
    candidates = [10.0 ** rng.uniform(-3, 3, size=points.shape[1]) for _ in range(4)]
    scorer = LeaveOneOutScorer(labels, validation, neighbors)
    for scales in candidates:
        alone = LeaveOneOutScorer(labels, validation, neighbors).score(points, scales)
        assert scorer.score(points, scales) == alone


def test_scales_multiply_columns() -> None:
    rng = np.random.default_rng(0)
    points, labels, scales = rng.normal(size=(60, 3)), rng.uniform(size=60), np.array([1.0, 0.1, 3.0])
    scorer = LeaveOneOutScorer(labels, np.arange(0, 60, 2), 16)
    assert scorer.score(points, scales) == scorer.score(points * scales, np.ones(3)) != scorer.score(points, np.ones(3))


@pytest.mark.parametrize("points", [np.zeros((30, 2)), np.repeat([[0.0, 1.0], [1e-200, 1.0]], 15, axis=0)])
def test_the_mean_is_predicted_if_all_points_are_equal(points: Floats) -> None:
    labels = np.random.default_rng(0).uniform(size=30)
    expected = sum((np.delete(labels, k).mean() - labels[k]) ** 2 for k in range(30))
    assert score(points, labels, np.arange(30), 29) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("size", [1e154, 1e160, 1e300])
def test_distances_may_overflow(size: float) -> None:
    rng = np.random.default_rng(0)
    scorer = LeaveOneOutScorer(rng.uniform(size=40), np.arange(40), 8)
    for _ in range(2):  # the second search uses the neighbors of the first
        scorer.score(size * rng.normal(size=(40, 3)), np.ones(3))


def test_the_score_of_infinite_coordinates_is_infinite() -> None:
    scorer = LeaveOneOutScorer(np.zeros(5), np.arange(5), 2)
    for bad in (np.nan, np.inf):
        points = np.zeros((5, 2))
        points[3, 1] = bad
        assert scorer.score(points, np.ones(2)) == np.inf
    assert scorer.score(np.full((5, 2), 1e200), np.full(2, 1e200)) == np.inf
    assert scorer.score(np.zeros((5, 2)), np.ones(2)) == 0.0


SCORER: dict[str, Any] = {"labels": np.zeros(5), "validation": np.arange(5), "neighbors": 4}


@pytest.mark.parametrize(
    "changes",
    [
        {"neighbors": 5},
        {"neighbors": 0},
        {"neighbors": 2**40},
        {"neighbors": 2**62},
        {"validation": np.array([0, 5])},
        {"validation": np.array([-1])},
        {"labels": np.array([0.0, 1.0, np.nan, 0.0, 0.0])},
        {"labels": np.zeros(0), "validation": np.zeros(0, dtype=np.int64)},
    ],
    ids=str,
)
def test_invalid_samples_are_rejected(changes: dict[str, Any]) -> None:
    LeaveOneOutScorer(**SCORER)
    with pytest.raises(ValueError, match="must"):
        LeaveOneOutScorer(**{**SCORER, **changes})


def test_points_of_the_wrong_shape_are_rejected() -> None:
    scorer = LeaveOneOutScorer(**SCORER)
    for points, scales in (
        (np.zeros((4, 2)), np.ones(2)), (np.zeros((5, 2)), np.ones(3)), (np.zeros((5, 0)), np.ones(0)),
        (np.zeros((2, 5)), np.ones(2)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="must"):
            scorer.score(points, scales)


def test_the_score_without_validation_points_is_zero() -> None:
    assert score(np.zeros((5, 2)), np.zeros(5), np.zeros(0, dtype=np.int64), 3) == 0.0
