"""What is learned depends on points alone: not on how trees over them grew, nor on the room there is to spare."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.learners import packing, phased
from ellipack.learners.metric import engine, state
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.state import MetricState, Size
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedState
from ellipack.metric import GopEstimator, LocalSlopes, Metric
from ellipack.packing.centers import Centers, padded
from ellipack.packing.index import Index
from ellipack.packing.tree import state as trees
from ellipack.packing.tree.state import Tree
from ellipack.validation import Floats, Ints
from tests.strategies import ball, seeds

State = TypeVar("State")


def tree_over(points: Floats) -> Tree:
    return Index.build(points).tree if len(points) else trees.empty(points.shape[1])


def rebuilt_centers(centers: Centers) -> Centers:
    points = tree_over(centers.coordinates)
    size, room = centers.size, trees.room(points)
    sums, counts = padded(centers.label_sums[:size], room), padded(centers.label_counts[:size], room)
    return Centers(points, sums, counts, padded(centers.founded[:size], room))


def rebuild_practical(learner: MetricState) -> None:
    machine, size = learner.machine, learner.n_centers
    learner.machine = machine._replace(
        views=tuple(view._replace(points=tree_over(Index(view.points).points())) for view in machine.views),
        memory=type(machine.memory)._make(array[:size].copy() for array in machine.memory),
        packing=rebuilt_centers(machine.packing),
    )


def compare(
    make: Callable[[], State],
    play: Callable[[State, slice], Floats],
    rebuild: Callable[[State], None],
    moments: Ints,
) -> None:
    """Let two learners play the same rounds, one of them rebuilt at some moments: both must say the same bits."""
    kept, rebuilt = make(), make()
    for start, stop in pairwise(np.unique(moments).tolist()):
        rebuild(rebuilt)
        assert play(kept, slice(start, stop)).tobytes() == play(rebuilt, slice(start, stop)).tobytes()


def drawn_moments(rng: np.random.Generator, rounds: int) -> Ints:
    return np.append(rng.integers(1, rounds, size=5), [0, rounds])


@settings(max_examples=20)
@given(st.integers(1, 2), st.sampled_from([30, 300, 1000]), st.sampled_from([0.0, 0.2]), seeds)
def test_the_practical_learner_goes_on_the_same(views: int, most: int, copies: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 3))
    for t in np.flatnonzero(rng.random(600) < copies):
        X[t] = X[rng.integers(t + 1)]
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=600)

    def play(learner: MetricState, part: slice) -> Floats:
        return np.append(engine.learn(learner, X[part], y[part]), engine.predict(learner, X))

    make = partial(state.init, 3, Size(views, 8, most), 0, MetricConfig(judged=16, pool=64))
    compare(make, play, rebuild_practical, drawn_moments(rng, len(X)))


@settings(max_examples=30)
@given(seeds)
def test_algorithm_1_goes_on_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = ball(rng, 300, 2), rng.random(300)

    def play(learner: PackingState, part: slice) -> Floats:
        return np.append(packing.learn(learner, X[part], y[part]), packing.predict(learner, X))

    def rebuild(learner: PackingState) -> None:
        learner.centers = rebuilt_centers(learner.centers)

    compare(partial(packing.init, Metric.identity(2)), play, rebuild, drawn_moments(rng, len(X)))


@settings(max_examples=30)
@given(seeds)
def test_section_4_goes_on_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = ball(rng, 300, 2), rng.random(300)
    estimator = GopEstimator(LocalSlopes(10), anchors=30)

    def play(learner: PhasedState, part: slice) -> Floats:
        made = phased.learn(learner, X[part], y[part], alpha=0.2, estimator=estimator)
        return np.append(made, phased.predict(learner, X))

    def rebuild(learner: PhasedState) -> None:
        learner.packing.centers = rebuilt_centers(learner.packing.centers)
        learner.rows, learner.labels = learner.rows[: learner.clock].copy(), learner.labels[: learner.clock].copy()

    compare(partial(phased.init, 2), play, rebuild, drawn_moments(rng, len(X)))
