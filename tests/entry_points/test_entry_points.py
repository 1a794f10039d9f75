"""Whatever stands before whichever door: it is handled, or refused with nothing changed."""

from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ellipack.validation import Floats
from tests.entry_points.entry_points import ENTRY_POINTS, EntryPoint, is_paper
from tests.entry_points.input_cases import Handled, InputCase, Refused
from tests.entry_points.learners import FIRST, stream

BATCH = 120

CASES = [
    pytest.param(door, entry, learner, id=f"{way}-{name}-{learner}")
    for way, door in ENTRY_POINTS.items()
    for name, entry, learner in door.entries()
]


def cases(outcome: type[Handled | Refused]) -> pytest.MarkDecorator:
    """Return the cases that come to this."""
    some = [case for case in CASES if isinstance(case.values[1].of(is_paper(case.values[2])), outcome)]  # type: ignore[union-attr, arg-type]
    return pytest.mark.parametrize(("door", "entry", "learner"), some)


@cache
def _taught(way: str, learner: str) -> Any:
    door = ENTRY_POINTS[way]
    return door.learners[learner]().partial_fit(*door.first(*stream(FIRST)))


def taught(door: EntryPoint, learner: str) -> Any:
    """Return a learner who has learned a few rows."""
    return deepcopy(_taught(next(way for way, each in ENTRY_POINTS.items() if each is door), learner))


@cases(Refused)
def test_what_is_refused_changes_nothing(door: EntryPoint, entry: InputCase, learner: str) -> None:
    expected = entry.of(is_paper(learner))
    assert isinstance(expected, Refused)
    X, y = entry.make(*stream(BATCH, seed=1))
    message = door.messages.get(next(name for name, each in door.table.items() if each is entry), expected.message)
    someone = taught(door, learner)
    before = door.bits(someone)
    with pytest.raises(expected.error, match=message):
        door.enter(someone, X, y)
    assert door.bits(someone) == before
    if door.learns and entry.spoils != "width":
        nobody = door.learners[learner]()
        before = door.bits(nobody)
        with pytest.raises(expected.error, match=message):
            door.enter(nobody, X, y)
        assert door.bits(nobody) == before


def plain(values: Any) -> Any:
    """Return the same numbers as float64, in the order of C, in memory of its own; names stay."""
    if hasattr(values, "columns"):
        return pd.DataFrame(np.array(values, dtype=np.float64), columns=list(values.columns))
    return np.array(values, dtype=np.float64, order="C")


@cases(Handled)
def test_what_is_handled_is_learned_like_the_same_numbers(door: EntryPoint, entry: InputCase, learner: str) -> None:
    expected = entry.of(is_paper(learner))
    assert isinstance(expected, Handled)
    X, y = entry.make(*stream(BATCH, seed=1))
    one, other = taught(door, learner), taught(door, learner)
    made: Floats = door.enter(one, X, y)
    assert np.isfinite(made).all()
    assert made.tobytes() == door.enter(other, plain(X), plain(y)).tobytes()
    assert door.bits(one) == door.bits(other)
    # Whatever it was, the learner goes on.
    more, labels = door.first(*stream(10, seed=2))
    assert np.isfinite(one.partial_fit(more, labels).predict(more)).all()
