"""An interrupt at any line of a call leaves a River model after a completed round, from which it can continue."""

import json
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ellipack import GradientOuterProduct, LocalSlopes, MetricConfig
from ellipack.river import MetricRegressor, PackingRegressor, PhasedRegressor, load
from ellipack.serialization import Archive
from tests.interrupts import interrupt_everywhere

SMALL = MetricConfig(powers=(0.5,), ridges=(0.01,), validation_points=8, pool=8)
LEARNERS: dict[str, Callable[[], Any]] = {
    "metric": lambda: MetricRegressor(16, neighbors=4, config=SMALL),
    "packing": PackingRegressor,
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(5))),
}
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())
RIVER = ("/ellipack/river/base", "/ellipack/learners/row_learners")

# The first rows have no features, then one, then two, then four.
STREAM: list[tuple[dict[Any, float], float]] = [
    ({}, 0.5),
    ({"a": 0.0}, 0.7),
    ({"a": 0.3}, 0.1),
    ({"a": -0.4, "b": 2.0}, 0.9),
    ({"b": 1.5}, 0.4),
    ({"a": 0.1, "b": -7.0, "c": 3.0, "d": 1.0}, 0.2),
    ({"a": 0.2, "b": 0.5, "c": 9.0, "d": 2.0}, 0.3),
    ({"a": 0.2, "b": 0.1, "c": 1.0, "d": 3.0}, 0.8),
]


def learned(make: Callable[[], Any], stop: int) -> Any:
    model = make()
    for x, y in STREAM[:stop]:
        model.learn_one(x, y)
    return model


def bits(model: Any) -> tuple[object, ...]:
    """Return the names of the features and what is learned."""
    archive = Archive() if model._learner is None else model._learner.to_archive()
    arrays = tuple((name, archive.arrays[name].tobytes()) for name in sorted(archive.arrays))
    return tuple(model.feature_names), json.dumps(archive.facts, sort_keys=True), arrays


@learners
def test_learn_one_learns_a_row_completely_or_not_at_all(make: Callable[[], Any]) -> None:
    states = [bits(learned(make, stop)) for stop in range(len(STREAM) + 1)]
    for t, (x, y) in enumerate(STREAM):
        seen: set[object] = set()

        def check(model: Any, t: int = t, seen: set[object] = seen) -> None:
            now = bits(model)
            assert now in states[t : t + 2]
            seen.add(now)

        def learn(model: Any, x: dict[Any, float] = x, y: float = y) -> None:
            model.learn_one(x, y)

        interrupt_everywhere(RIVER, partial(deepcopy, learned(make, t)), learn, check)
        assert seen == {*states[t : t + 2]}


@learners
def test_learn_many_stops_after_a_round(make: Callable[[], Any], tmp_path: Path) -> None:
    path = tmp_path / "model"
    frame = pd.DataFrame([x for x, _ in STREAM]).fillna(0.0)
    labels = pd.Series([y for _, y in STREAM])
    states = [bits(learned(make, stop)) for stop in range(len(STREAM) + 1)]
    seen: set[int] = set()

    def check(model: Any) -> None:
        at = states.index(bits(model))
        if at not in seen:
            model.save(path)
            assert bits(load(path)) == states[at]
            seen.add(at)
        model.learn_many(frame[at:], labels[at:])
        assert bits(model) == states[-1]

    interrupt_everywhere(RIVER[:1], make, lambda model: model.learn_many(frame, labels), check)
    assert len(seen) > 3
