"""Results depend on the centers, not on the shape of the trees over them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack._core import MetricCore, PackingCore
from ellipack.learners import packing, phased
from ellipack.learners.metric import learner as metric_learner
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.initial_state import LearnerSize, initial_state
from ellipack.learners.metric.predictions import predict
from ellipack.learners.metric.state import MetricState
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedState, Samples
from ellipack.metric import GopEstimator, LocalSlopes, Metric
from ellipack.validation import Floats, Ints
from tests.fuzz.strategies import n_examples
from tests.strategies import ball, seeds

State = TypeVar("State")


def rebuild_metric_core(state: MetricState) -> None:
    state.phase = replace(state.phase, core=MetricCore(state.core.settings, state.core.parts()))


def rebuild_packing(learner: PackingState) -> None:
    learner.parts = learner.metric, PackingCore(*learner.core.to_arrays())


def compare(
    make: Callable[[], State],
    learn: Callable[[State, slice], Floats],
    rebuild: Callable[[State], None],
    moments: Ints,
) -> None:
    """Assert that two learners have the same bits if one of them is rebuilt between rounds."""
    kept, rebuilt = make(), make()
    for start, stop in pairwise(np.unique(moments).tolist()):
        rebuild(rebuilt)
        assert learn(kept, slice(start, stop)).tobytes() == learn(rebuilt, slice(start, stop)).tobytes()


def drawn_moments(rng: np.random.Generator, rounds: int) -> Ints:
    return np.append(rng.integers(1, rounds, size=5), [0, rounds])


@settings(max_examples=n_examples(10))
@given(st.integers(1, 2), st.sampled_from([30, 300, 1000]), st.sampled_from([0.0, 0.2]), seeds)
def test_the_practical_learner_goes_on_the_same(views: int, most: int, copies: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 3))
    for t in np.flatnonzero(rng.random(600) < copies):
        X[t] = X[rng.integers(t + 1)]
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=600)

    def learn(learner: MetricState, part: slice) -> Floats:
        return np.append(metric_learner.learn(learner, X[part], y[part]), predict(learner, X[::6]))

    make = partial(
        initial_state, 3, LearnerSize(views, 8, most), 0, MetricConfig(powers=(0.5,), validation_points=16, pool=64)
    )
    compare(make, learn, rebuild_metric_core, drawn_moments(rng, len(X)))


@settings(max_examples=n_examples(15))
@given(seeds)
def test_algorithm_1_goes_on_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = ball(rng, 300, 2), rng.random(300)

    def learn(learner: PackingState, part: slice) -> Floats:
        return np.append(packing.learn(learner, X[part], y[part]), packing.predict(learner, X))

    compare(partial(packing.init, Metric.identity(2)), learn, rebuild_packing, drawn_moments(rng, len(X)))


@settings(max_examples=n_examples(15))
@given(seeds)
def test_section_4_goes_on_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = ball(rng, 300, 2), rng.random(300)
    estimator = GopEstimator(LocalSlopes(10), anchors=30)

    def learn(learner: PhasedState, part: slice) -> Floats:
        made = phased.learn(learner, X[part], y[part], alpha=0.2, estimator=estimator)
        return np.append(made, phased.predict(learner, X))

    def rebuild(learner: PhasedState) -> None:
        rebuild_packing(learner.packing)
        samples = Samples(learner.rows.copy(), learner.labels.copy())
        learner.parts = learner.parts._replace(samples=samples)

    compare(partial(phased.init, 2), learn, rebuild, drawn_moments(rng, len(X)))
