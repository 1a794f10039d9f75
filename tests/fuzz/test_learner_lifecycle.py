"""Fuzz test of the life cycle of a learner: adversarial rows, saving, loading, copying and adding features.

A twin of each learner learns the same rows one by one, without saving, loading or copying. Both must always have
exactly the same state.
"""

import pickle
import tempfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import clone

import ellipack
from ellipack import GradientOuterProduct, LocalSlopes, MetricConfig, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack.errors import InputError
from ellipack.validation import Floats
from tests.entry_points.learners import bits
from tests.fuzz.strategies import RowRecipe, n_examples, row_recipes

PROBES = RowRecipe(6, "any", 1.0, "any", 1.0, 7)
MAX_CENTERS = 40
SMALL = MetricConfig(validation_points=8, pool=32)
MAX_FEATURES = 4


class LearnerLifecycle(RuleBasedStateMachine):
    """Rules and invariants of the life cycle."""

    learner: ClassVar[Any]
    domain: ClassVar[bool] = True  # whether rows must lie in the unit ball and labels in [0, 1]

    def __init__(self) -> None:
        super().__init__()
        self.one, self.twin = clone(self.learner), clone(self.learner)
        self.d, self.count, self.has_added_features = 2, 0, False
        self.low, self.high = np.inf, -np.inf
        self.log: list[tuple[Floats, Floats]] = []
        self.saved: bytes | None = None
        self.since: list[Callable[[Any], Any]] = []  # actions since the last save

    @initialize(recipe=row_recipes)
    def begin(self, recipe: RowRecipe) -> None:
        self.learn(recipe)

    @rule(recipe=row_recipes)
    def learn(self, recipe: RowRecipe) -> None:
        X, y = self._make_rows(recipe)
        predictions = self.one.progressive(X, y)
        singly = [self.twin.progressive(x[None], [label]) for x, label in zip(X, y, strict=True)]
        assert predictions.tobytes() == np.concatenate(singly).tobytes()
        self._check_predictions(predictions[1:] if self.count == 0 else predictions, y)
        self.log.append((X, y))
        self.since.append(lambda learner: learner.partial_fit(X, y))
        self.count += len(y)

    @rule(recipe=row_recipes)
    def predict(self, recipe: RowRecipe) -> None:
        X, _ = self._make_rows(recipe)
        predictions = self.one.predict(X)
        assert predictions.tobytes() == self.twin.predict(X).tobytes()
        assert np.isfinite(predictions).all()

    @rule(recipe=row_recipes, bad=st.sampled_from(["NaN", "infinite", "label", "width", "large"]))
    def refuse(self, recipe: RowRecipe, bad: str) -> None:
        X, y = (np.array(part) for part in self._make_rows(recipe))
        if bad in ("NaN", "infinite", "large"):
            X[-1, -1] = {"NaN": np.nan, "infinite": -np.inf, "large": 1e300}[bad]
        elif bad == "label":
            y[-1] = 1e300
        else:
            X = np.hstack([X, X])
        before = bits(self.one)
        with pytest.raises(InputError):
            self.one.partial_fit(X, y)
        assert bits(self.one) == before

    @rule()
    def save(self) -> None:
        self.saved, self.since = _saved(self.one), []

    @rule()
    def load(self) -> None:
        self.one = _loaded(_saved(self.one))

    @precondition(lambda self: self.saved is not None)
    @rule()
    def resume(self) -> None:
        assert self.saved is not None
        self.one = _loaded(self.saved)
        for happen in self.since:
            happen(self.one)

    @rule()
    def pickle(self) -> None:
        self.one = pickle.loads(pickle.dumps(self.one))

    @rule()
    def copy(self) -> None:
        self.one = deepcopy(self.one)

    @precondition(lambda self: not self.has_added_features and self.count < 150)
    @rule()
    def clone(self) -> None:
        X, y = (np.concatenate(parts) for parts in zip(*self.log, strict=True))
        self.one = clone(self.one).fit(X, y)

    @precondition(lambda self: self.d < MAX_FEATURES)
    @rule(scale=st.sampled_from([1.0, 1e-100, 1e100]))
    def add_features(self, scale: float) -> None:
        for each in (self.one, self.twin):
            each.add_features([scale])
        self.since.append(lambda learner: learner.add_features([scale]))
        self.d, self.has_added_features = self.d + 1, True

    @invariant()
    def equals_its_twin(self) -> None:
        if self.count:
            assert bits(self.one) == bits(self.twin)

    @invariant()
    def memory_is_bounded(self) -> None:
        if self.count and not self.domain:
            assert self.one.n_centers_ <= MAX_CENTERS
            assert sum(array.nbytes for array in self.one.to_archive().arrays_by_full_name().values()) < 200_000

    def _make_rows(self, recipe: RowRecipe) -> tuple[Floats, Floats]:
        return recipe.in_domain(self.d) if self.domain else recipe.rows(self.d)

    def _check_predictions(self, predictions: Floats, y: Floats) -> None:
        """Check that predictions are finite and within the range of the labels, with a small margin."""
        assert np.isfinite(predictions).all()
        self.low, self.high = min(self.low, y.min()), max(self.high, y.max())
        if self.domain:
            assert ((predictions >= 0) & (predictions <= 1)).all()
        else:
            slack = (0.05 + 1e-9) * (self.high - self.low) + 1e-9 * max(abs(self.low), abs(self.high))
            assert ((predictions >= self.low - slack) & (predictions <= self.high + slack)).all()


def _saved(learner: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder) / "model")
        return (Path(folder) / "model").read_bytes()


def _loaded(data: bytes) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model").write_bytes(data)
        return ellipack.load(Path(folder) / "model")


class PackingLifecycle(LearnerLifecycle):
    learner = PackingRegressor()


class PhasedLifecycle(LearnerLifecycle):
    learner = PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(6), anchors=12))


class MetricLifecycle(LearnerLifecycle):
    learner = MetricRegressor(MAX_CENTERS, neighbors=6, n_jobs=1, config=SMALL)
    domain = False


class ViewsLifecycle(LearnerLifecycle):
    learner = MetricRegressor(MAX_CENTERS, neighbors=6, views=2, n_jobs=2, config=SMALL)
    domain = False


def _test(life: type[LearnerLifecycle], examples: int) -> Any:
    """Return the test case of a life cycle with a number of examples."""
    life.TestCase.settings = settings(max_examples=n_examples(examples), stateful_step_count=20)
    return life.TestCase


TestPackingLifecycle = _test(PackingLifecycle, 8)
TestPhasedLifecycle = _test(PhasedLifecycle, 6)
TestMetricLifecycle = _test(MetricLifecycle, 8)
TestViewsLifecycle = _test(ViewsLifecycle, 5)
