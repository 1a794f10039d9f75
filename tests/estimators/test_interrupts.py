"""An interrupt at any line of a call leaves an estimator that is as before the call, complete, or after a round."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ellipack
from ellipack import (
    GradientOuterProduct,
    KeyedRegressor,
    LocalSlopes,
    MetricConfig,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
)
from ellipack.serialization import Archive
from tests.interrupts import interrupt_everywhere

SMALL = MetricConfig(powers=(0.5,), ridges=(0.01,), validation_points=8, pool=8)
ESTIMATORS = ("/ellipack/estimators/",)
LEARNERS: dict[str, Callable[[], Any]] = {
    "metric": lambda: MetricRegressor(16, neighbors=4, n_jobs=1, config=SMALL),
    "keyed": lambda: KeyedRegressor(
        0,
        learner=MetricRegressor(16, neighbors=4, past=False, n_jobs=1, config=SMALL),
        pooled=MetricRegressor(16, neighbors=4, n_jobs=1, config=SMALL),
        max_learners=2,
    ),
    "packing": PackingRegressor,
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(5))),
    "rescaled": lambda: RescaledRegressor(PackingRegressor()),
}
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.uniform(-0.5, 0.5, size=(20, 2)), columns=["a", "b"])
OTHER = pd.DataFrame(RNG.uniform(-0.5, 0.5, size=(20, 3)), columns=["c", "d", "e"])
X["a"], OTHER["c"] = X["a"].round(), OTHER["c"].round(1)  # few keys
Y = RNG.random(20)


def archive_bits(archive: Archive) -> tuple[object, ...]:
    arrays = tuple((name, array.tobytes()) for name, array in sorted(archive.arrays_by_full_name().items()))
    return repr(archive.facts), arrays


def bits(learner: Any) -> tuple[object, ...]:
    """Return what is learned, and what scikit-learn sees of it."""
    width, names = getattr(learner, "n_features_in_", None), getattr(learner, "feature_names_in_", None)
    return width, None if names is None else tuple(names), archive_bits(learner.to_archive())


def learn_more(learner: Any) -> list[float]:
    """Learn two rows, and return their predictions."""
    table = pd.DataFrame(np.full((2, learner.n_features_in_), 0.1), columns=getattr(learner, "feature_names_in_", None))
    predictions: list[float] = learner.progressive(table, [0.1, 0.9]).tolist()
    return predictions


class OneOfTwoStates:
    """Checks that a learner has one of two states and continues; once for each, that it can be saved and loaded."""

    def __init__(self, before: object, after: object, path: Path) -> None:
        self.states, self.path, self.seen = {before, after}, path, set[object]()

    def __call__(self, learner: Any) -> None:
        found = bits(learner)
        assert found in self.states
        loaded = None
        if found not in self.seen:
            learner.save(self.path)
            loaded = ellipack.load(self.path)
            assert bits(loaded) == found
        self.seen.add(found)
        predictions = learn_more(learner)
        if loaded is not None:
            assert learn_more(loaded) == predictions
            assert bits(loaded) == bits(learner)


@learners
def test_fit_replaces_everything_or_nothing(make: Callable[[], Any], tmp_path: Path) -> None:
    fitted, again = make().fit(X[:3], Y[:3]), make().fit(OTHER[:3], Y[:3])
    check = OneOfTwoStates(bits(fitted), bits(again), tmp_path / "model")
    lines = interrupt_everywhere(ESTIMATORS, partial(deepcopy, fitted), lambda each: each.fit(OTHER[:3], Y[:3]), check)
    assert lines > 10
    assert check.seen == check.states


@learners
def test_a_first_fit_leaves_an_estimator_that_is_fitted_or_not(make: Callable[[], Any]) -> None:
    before, after, seen = bits(make()), bits(make().fit(X[:3], Y[:3])), set()

    def check(learner: Any) -> None:
        found = bits(learner)
        assert found in (before, after)
        seen.add(found)

    interrupt_everywhere(ESTIMATORS, make, lambda each: each.progressive(X[:3], Y[:3]), check)
    assert seen == {before, after}


@learners
def test_partial_fit_stops_after_a_round(make: Callable[[], Any]) -> None:
    """Rows 6 to 10 end phases of all learners that have phases."""
    states, learner = [], make().fit(X[:6], Y[:6])
    started = deepcopy(learner)
    for t in range(6, 11):
        states.append(bits(learner))
        learner.partial_fit(X[t : t + 1], Y[t : t + 1])
    states.append(bits(learner))

    def check(stopped: Any) -> None:
        at = 6 + states.index(bits(stopped))
        if at < 11:
            stopped.partial_fit(X[at:11], Y[at:11])
        assert bits(stopped) == states[-1]

    interrupt_everywhere(ESTIMATORS, partial(deepcopy, started), lambda each: each.partial_fit(X[6:11], Y[6:11]), check)


@learners
def test_features_are_added_completely_or_not_at_all(make: Callable[[], Any], tmp_path: Path) -> None:
    fitted = make().fit(X[:7], Y[:7])
    check = OneOfTwoStates(bits(fitted), bits(deepcopy(fitted).add_features([0.5])), tmp_path / "model")
    interrupt_everywhere(ESTIMATORS, partial(deepcopy, fitted), lambda each: each.add_features([0.5]), check)
    assert check.seen == check.states


@learners
def test_an_interrupted_save_leaves_the_old_or_the_new_file(make: Callable[[], Any], tmp_path: Path) -> None:
    path, old, new = tmp_path / "model", make().fit(X[:3], Y[:3]), make().fit(X[:7], Y[:7])
    old_bits, new_bits, seen = bits(old), bits(new), set()

    old.save(path)
    old_file = path.read_bytes()

    def prepare() -> Any:
        path.write_bytes(old_file)
        return new

    def check(learner: Any) -> None:
        assert bits(learner) == new_bits
        contents = path.read_bytes()
        if contents not in seen:
            seen.add(contents)
            assert bits(ellipack.load(path)) in (old_bits, new_bits)
        assert [each.name for each in tmp_path.iterdir() if not each.name.endswith(".partial")] == ["model"]

    interrupt_everywhere(ESTIMATORS, prepare, lambda each: each.save(path), check)
    assert len(seen) == 2


def test_the_gradient_outer_product_is_fitted_completely_or_not_at_all() -> None:
    def fitted(transformer: GradientOuterProduct) -> tuple[object, ...]:
        names = ("n_features_in_", "feature_names_in_", "gop_", "eigenvalues_", "directions_")
        return tuple(np.asarray(getattr(transformer, name, None)).tolist() for name in names)

    first = GradientOuterProduct(LocalSlopes(4)).fit(X, Y)
    before, after = fitted(first), fitted(deepcopy(first).fit(OTHER.to_numpy(), Y))

    def check(transformer: GradientOuterProduct) -> None:
        assert fitted(transformer) in (before, after)

    interrupt_everywhere(ESTIMATORS, partial(deepcopy, first), lambda each: each.fit(OTHER.to_numpy(), Y), check)
