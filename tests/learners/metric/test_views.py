import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._kernels import kernel
from ellipack.learners.experts._kernels import Neighborhood, kriging_room, neighborhood
from ellipack.learners.metric import engine, state
from ellipack.learners.metric.asking._kernels import fill_trends, fill_trends_by_rows
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.machine import View
from ellipack.learners.metric.seeing._kernels import FARTHEST, embed, see_rows
from ellipack.learners.metric.state import Size
from ellipack.packing.tree import state as trees
from ellipack.validation import Floats, Ints
from tests.strategies import seeds


def view(knots: Floats, shift: Floats, scale: Floats, directions: Floats) -> View:
    d = len(shift)
    return View(knots, shift, scale, directions, trees.empty(d), np.zeros((d, d)))


def seen(of: View, rows: Floats) -> Floats:
    out = np.empty_like(rows)
    see_rows(of, rows, out)
    return out


@given(seeds)
def test_the_first_view_standardises_and_whitens(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(9, 3)), rng.normal(size=(3, 3))
    shift, scale = rng.normal(size=3), rng.random(3) + 0.5
    plain = view(np.zeros((0, 3)), shift, scale, W)
    np.testing.assert_allclose(seen(plain, X), (X - shift) / scale)
    out = np.empty_like(X)
    embed(plain, X, out)
    np.testing.assert_allclose(out, (X - shift) / scale @ W, atol=1e-12)
    one = np.empty((1, 3))
    embed(plain, X[4:5], one)
    assert one.tobytes() == out[4:5].tobytes()


def test_a_wild_value_is_held() -> None:
    plain = view(np.zeros((0, 1)), np.zeros(1), np.ones(1), np.eye(1))
    assert seen(plain, np.array([[1e300], [-1e300], [2.0]]))[:, 0].tolist() == [FARTHEST, -FARTHEST, 2.0]


@pytest.mark.parametrize(
    ("value", "rank"),
    [(-5.0, 0.0), (0.0, 0.0), (0.5, 0.125), (1.0, 0.5), (2.0, 0.875), (3.0, 1.0), (99.0, 1.0)],
)
def test_ranks_lie_between_knots_and_ties_in_their_middle(value: float, rank: float) -> None:
    knots = np.array([[0.0], [1.0], [1.0], [1.0], [3.0]])  # ranks 0, 1/4, 1/2, 3/4, 1
    ranked = view(knots, np.zeros(1), np.ones(1), np.eye(1))
    assert seen(ranked, np.array([[value]]))[0, 0] == pytest.approx(rank)


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=30), st.lists(st.floats(-12, 12), min_size=2, max_size=20))
def test_ranks_never_fall_as_values_grow(knots: list[float], values: list[float]) -> None:
    ranked = view(np.sort(np.array(knots))[:, None], np.zeros(1), np.ones(1), np.eye(1))
    ranks = seen(ranked, np.sort(np.array(values))[:, None])[:, 0]
    assert np.all(np.diff(ranks) >= -1e-12)
    assert np.all((ranks >= 0) & (ranks <= 1))


def test_scales_are_frozen_within_a_phase_and_set_at_its_end() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * [3.0, 0.1] + [5.0, -1.0]
    learner = state.init(2, Size(2, 8, 100), 0, MetricConfig(judged=8, pool=16))
    scales = []
    for x in X:
        ended = len(learner.phases)
        before = learner.machine.views[0].scale.copy()
        engine.learn(learner, x[None], [x[0]])
        if len(learner.phases) == ended:
            np.testing.assert_array_equal(learner.machine.views[0].scale, before)
        else:
            done = X[: learner.clock]
            np.testing.assert_allclose(learner.machine.views[0].shift, done.mean(axis=0))
            np.testing.assert_allclose(learner.machine.views[0].scale, done.std(axis=0))
            scales.append(learner.clock)
    assert scales == [phase.end for phase in learner.phases] == [4, 8, 12, 18, 27, 40, 60]  # half as long again each


@kernel
def fill_both(
    view: View,
    regressions: tuple[Floats, Floats],
    said: Floats,
    rows: Floats,
    positions: Ints,
    room: Floats,
    near: tuple[Neighborhood, Neighborhood],
) -> None:
    linear, fading = regressions
    fill_trends(view.directions, linear, fading, len(rows), room, near[0])
    fill_trends_by_rows(view, linear, fading, said, rows, positions, room, near[1])


@given(st.integers(1, 9), st.integers(1, 12), seeds)
def test_trends_from_offsets_are_those_of_the_rows(d: int, few: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(d, d)))[0] * 10.0 ** -rng.uniform(0, 4, size=d)
    of = view(np.zeros((0, d)), rng.normal(size=d), rng.uniform(0.1, 10, size=d), np.ascontiguousarray(directions))
    rows, query = rng.normal(size=(few, d)), rng.normal(size=d)
    linear, fading = rng.normal(size=(2, d + 1))
    standard = np.append(seen(of, query[None])[0], 1.0)
    near, other = neighborhood(few, d), neighborhood(few, d)
    near.offsets[:] = (seen(of, rows) - standard[:d]) @ of.directions
    said = np.array([0.0, linear @ standard, 0.0, fading @ standard])
    fill_both(of, (linear, fading), said, rows, np.arange(few), kriging_room(few, d).columns, (near, other))
    np.testing.assert_allclose(near.trend, other.trend, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(near.fading, other.fading, rtol=1e-9, atol=1e-9)
