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
from ellipack.learners.metric.learner import Round
from ellipack.river import MetricRegressor, PackingRegressor, PhasedRegressor, load, pending
from ellipack.serialization import Archive
from tests.interrupts import interrupt_everywhere

SMALL = MetricConfig(powers=(0.5,), ridges=(0.01,), validation_points=8, pool=8)
LEARNERS: dict[str, Callable[[], Any]] = {
    "metric": lambda: MetricRegressor(16, neighbors=4, config=SMALL),
    "packing": PackingRegressor,
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(5))),
}
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())
RIVER = ("/ellipack/river/base", "/ellipack/river/pending", "/ellipack/learners/row_learners")

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
    """Return the names of the features, what is learned, and the pending predictions."""
    archive = Archive().with_parts(**model._state_parts(model._learner))
    arrays = tuple((name, array.tobytes()) for name, array in sorted(archive.arrays_by_full_name().items()))
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


def learned_archive(model: Any) -> str:
    archive = model._learner.to_archive()
    return repr(
        (archive.facts, sorted((name, array.tobytes()) for name, array in archive.arrays_by_full_name().items()))
    )


@pytest.mark.parametrize("name", ["packing", "phased"])
@pytest.mark.parametrize("is_late", [True, False])
def test_intervals_are_calibrated_by_a_row_that_is_learned_and_by_no_other(name: str, is_late: bool) -> None:
    model = learned(LEARNERS[name], 8)
    for x, y in STREAM * 2:  # up to a round that ends no phase
        model.predict_interval_one(x)
        model.learn_one(x, y)
    model.learn_one(*STREAM[2])  # a deferred round
    round_ = Round([0.2, 0.4, 1.0, 2.0], 0.5, bounds=[-1e-3] * 8 + [1e-3] * 8 if is_late else [])

    def learn(model: Any) -> None:
        if is_late:
            model._learner.learn_late(round_)
        else:
            model._learner.learn_with_interval(round_)

    after, seen = deepcopy(model), set()
    learn(after)
    states = [learned_archive(model), learned_archive(after)]

    def check(model: Any) -> None:
        assert learned_archive(model) in states
        seen.add(learned_archive(model))

    interrupt_everywhere(RIVER, partial(deepcopy, model), learn, check)
    assert seen == {*states}


Step = tuple[str, int]

# Labels come at once, late, late with the row predicted again, for a row without a prediction, and for one that was
# predicted without need. Rows 1 and 8 are equal.
ROWS = [*STREAM, STREAM[1]]
STEPS: list[Step] = [
    *[("predict", 0), ("learn", 0), ("predict", 1), ("predict", 2), ("learn", 1), ("predict", 3), ("learn", 3)],
    *[("predict", 3), ("predict", 4), ("predict", 1), ("learn", 2), ("predict", 8), ("learn", 1), ("learn", 7)],
    *[("predict", 5), ("learn", 4), ("predict", 5), ("learn", 6), ("learn", 5), ("predict", 6), ("learn", 8)],
]


def do(model: Any, step: Step) -> None:
    what, t = step
    x, y = ROWS[t]
    if what == "learn":
        model.learn_one(x, y)
        return
    if t % 2 == 0:
        model.predict_one(x)
    model.predict_interval_one(x)


@learners
def test_pending_predictions_belong_to_the_rows_that_were_learned(make: Callable[[], Any]) -> None:
    model = make()
    for step in STEPS:
        before, after = deepcopy(model), deepcopy(model)
        do(after, step)
        states = [bits(before), bits(after)]

        def check(model: Any, after: Any = after, states: Any = states, step: Step = step) -> None:
            now = bits(deepcopy(model))
            if step[0] == "learn":
                assert now in states
            if now != states[1]:
                do(model, step)
            other = deepcopy(after)
            for each in (model, other):
                each.predict_interval_one({"a": 0.7, "new": 1.0})
                each.learn_one(*ROWS[8])
            assert bits(model) == bits(other)

        interrupt_everywhere(RIVER, partial(deepcopy, before), partial(do, step=step), check)
        model = after


def test_the_limit_of_pending_predictions_survives_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "MAX_PENDING", 3)
    model = PackingRegressor()
    model.learn_one({"a": 1.0}, 0.5)
    for t in range(2):
        model.predict_interval_one({"a": float(t)})
    for t in range(2, 6):  # the limit is reached, and passed

        def check(model: PackingRegressor) -> None:
            for at in range(10, 20):
                model.predict_interval_one({"a": float(at)})
                assert len(model._pending) == sum(map(len, model._pending._by_row.values())) <= 3
            model.learn_one({"a": 19.0}, 0.5)
            assert len(model._pending) == 2

        def call(model: PackingRegressor, t: int = t) -> None:
            model.predict_interval_one({"a": float(t)})

        interrupt_everywhere(RIVER, partial(deepcopy, model), call, check)
        call(model)
