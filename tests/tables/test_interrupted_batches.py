"""A `TableRegressor` that fails within a batch is after one of its rows, and goes on."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ellipack import KeyedRegressor, MetricConfig, MetricRegressor, PackingRegressor, RescaledRegressor, TableRegressor
from ellipack.bounded_map import BoundedMap
from ellipack.errors import DomainError
from ellipack.evaluation.scores import Scores
from ellipack.learners.metric import initial_state
from ellipack.tabular import LevelOptions
from tests.cli.tables import COLUMNS, TARGET, rides_with_late_labels
from tests.interrupts import interrupt_everywhere

SMALL = MetricConfig(powers=(0.5,), ridges=(0.01,), validation_points=8, pool=8)
LEARNERS: dict[str, Callable[[], Any]] = {
    "metric": lambda: MetricRegressor(16, neighbors=4, n_jobs=1, config=SMALL),
    "keyed": lambda: KeyedRegressor(
        "zone",
        learner=MetricRegressor(16, neighbors=4, past=False, n_jobs=1, config=SMALL),
        pooled=MetricRegressor(16, neighbors=4, n_jobs=1, config=SMALL),
        max_learners=2,
    ),
    "rescaled": lambda: RescaledRegressor(PackingRegressor()),
}
learners = pytest.mark.parametrize("learner", LEARNERS)
FIRST, LAST = 20, 28
"""The batch: it has a row whose label comes late, new levels, and a column that is decided in it."""


@cache
def rows() -> pd.DataFrame:
    table = pd.DataFrame(rides_with_late_labels(40), columns=["id", *COLUMNS])
    table["zone"] = [f"{zone}{t // 4}" if t > FIRST else zone for t, zone in enumerate(table["zone"])]
    table["late"] = ["" if t < 4 else str(t * t % 17) for t in range(len(table))]
    return table


def bits(model: TableRegressor, folder: Path) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def fitted(learner: str) -> TableRegressor:
    levels = LevelOptions(min_frequency=2, one_hot=5, remembered=6)
    model = TableRegressor(TARGET, learner=LEARNERS[learner](), levels=levels, id_column="id")
    return model.partial_fit(rows()[:FIRST])


def states_of(model: TableRegressor, folder: Path) -> list[bytes]:
    """Return the model before the batch and after each of its rows."""
    model, states = deepcopy(model), [bits(model, folder)]
    for t in range(FIRST, LAST):
        states.append(bits(model.partial_fit(rows()[t : t + 1]), folder))
    return states


def learn_batch(model: TableRegressor) -> None:
    model.partial_fit(rows()[FIRST:LAST])


@learners
def test_an_interrupt_leaves_the_model_after_a_row(learner: str, tmp_path: Path) -> None:
    model = fitted(learner)
    states, seen = states_of(model, tmp_path), set[int]()

    def check(stopped: TableRegressor) -> None:
        at = states.index(bits(stopped, tmp_path))
        if at not in seen and FIRST + at < LAST:
            stopped.partial_fit(rows()[FIRST + at : LAST])
            assert bits(stopped, tmp_path) == states[-1]
        seen.add(at)

    places = ("/evaluation/run.py", "/evaluation/batch_learning.py", "/learners/keyed/")
    step = 197 if learner == "keyed" else 61  # it has more lines
    assert interrupt_everywhere(places, partial(deepcopy, model), learn_batch, check, step) > 300
    assert {0, len(states) - 1} <= seen
    assert learner == "rescaled" or len(seen) > 2  # the paper's learners learn a batch as a whole


def fails_from(patch: pytest.MonkeyPatch, owner: type, name: str, first: int) -> None:
    """Let a method run out of memory at each call from a given one on."""
    method, left = getattr(owner, name), [first]

    def failing(*arguments: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError
        return method(*arguments)

    patch.setattr(owner, name, failing)


@learners
def test_a_batch_that_lacks_memory_is_completed_by_the_next_call(
    learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, cases = fitted(learner), [(Scores, "updated", 0), (BoundedMap, "commit", 1), (BoundedMap, "put", 3)]
    states = states_of(model, tmp_path)
    for owner, name, first in cases:
        failed = deepcopy(model)
        with monkeypatch.context() as patch:
            fails_from(patch, owner, name, first)
            with pytest.raises(MemoryError):
                learn_batch(failed)
        at = states.index(bits(failed, tmp_path))
        if FIRST + at < LAST:
            failed.partial_fit(rows()[FIRST + at : LAST])
        assert bits(failed, tmp_path) == states[-1]


def test_features_beyond_the_limit_leave_the_model_after_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted("metric")
    states = states_of(model, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(initial_state, "MAX_FEATURES", model.learner_.n_features_in_ + 1)
        with pytest.raises(DomainError, match="features"):
            learn_batch(model)
    at = states.index(bits(model, tmp_path))
    assert at > 0
    assert bits(model.partial_fit(rows()[FIRST + at : LAST]), tmp_path) == states[-1]
