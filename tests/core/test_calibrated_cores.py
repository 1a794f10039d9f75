"""Intervals of the paper's cores: calibrated in each round, by the predictions and labels of the core."""

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from ellipack._core import ConformalIntervals
from ellipack.validation import Floats
from tests.core.builds import Core, builds

ROUNDS = 150


def make_core(core: Core, name: str) -> Any:
    """Return a core for two coordinates."""
    starts = np.array([3])
    return {
        "packing": lambda: core.PackingCore(2, starts),
        "tree": lambda: core.PackingTreeCore(np.array([1.0, 16.0]), np.zeros(2, dtype=np.int64), starts),
        "intrinsic dimension": lambda: core.IntrinsicDimensionCore(2, 1),
    }[name]()


def learn(learner: Any, X: Floats, y: Floats, bounds: Floats | None = None) -> Floats:
    founding = (True,) if type(learner).__name__ == "PackingCore" else ()
    predictions: Floats = learner.learn(X, y, *founding, bounds)
    return predictions


@builds
@pytest.mark.parametrize("name", ["packing", "tree", "intrinsic dimension"])
def test_each_round_calibrates_the_intervals(core: Core, name: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.7, 0.7, size=(ROUNDS, 2)), rng.random(ROUNDS)
    learner, expected, bounds = make_core(core, name), core.ConformalIntervals(), np.empty((ROUNDS, 16))
    predictions = np.append(learn(learner, X[:60], y[:60], bounds[:60]), learn(learner, X[60:], y[60:], bounds[60:]))
    assert expected.learn(predictions, y).tobytes() == bounds.tobytes()
    assert learner.intervals == expected
    silent = make_core(core, name)
    assert learn(silent, X, y).tobytes() == predictions.tobytes()
    assert silent.intervals == expected

    around = np.empty((9, 16))
    values = learner.predict(X[:9], around)
    assert values.tobytes() == learner.predict(X[:9]).tobytes()
    assert around.tobytes() == expected.around(values).tobytes()

    learn(silent, X[:1], 1 - y[:1])
    assert silent.intervals != expected
    for same in (learner.copy(), deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert same.intervals == expected
        same.intervals = silent.intervals
        assert same.intervals == silent.intervals
        assert learner.intervals == expected
    with pytest.raises(ValueError, match="bounds must have two entries per coverage and row"):
        learn(learner, X[:2], y[:2], np.empty((3, 16)))
    with pytest.raises(ValueError, match="bounds must have"):
        learner.predict(X[:2], np.empty((2, 15)))
    assert learner.clock == ROUNDS
    assert learner.intervals == expected


def test_calibrations_are_equal_if_all_numbers_are() -> None:
    start = ConformalIntervals()
    numbers: list[Any] = [start.mean_error, start.labels, start.rounds, start.widths, start.scale_losses]
    assert ConformalIntervals(*numbers) == start
    assert start != 0
    for k, other in enumerate([1.0, 1, 1, start.widths * 2, np.ones(3)]):
        changed = numbers.copy()
        changed[k] = other
        assert ConformalIntervals(*changed) != start
