"""The same table at River's door: rows as dictionaries one by one, and as frames; refused ones leave no trace."""

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ellipack.errors import EllipackError, KindError
from ellipack.river import MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack.river.base import RiverRegressor
from tests.entry_points.data_frame_cases import FRAMES, NAMES
from tests.entry_points.input_cases import TABLE, Handled, InputCase, Outcome, Refused
from tests.entry_points.learners import FIRST, SMALL, stream

LEARNERS: dict[str, Callable[[], RiverRegressor]] = {
    "packing": PackingRegressor,
    "phased": PhasedRegressor,
    "metric": lambda: MetricRegressor(neighbors=8, config=SMALL),
}

BATCH = 120

NO_ROW = {"nothing", "a dictionary of columns", "no rows", "a row that is no table", "a number", "sparse", "polars"}
"""What has no last row that could be a dictionary."""

NO_FRAME = {
    *("records", "sparse", "nothing", "a dictionary of columns", "a row that is no table", "layers", "a number"),
    *("ragged", "labels sparse", "two labels a row"),
}
"""What pandas itself would not make a frame of."""

OTHERWISE: dict[str, Outcome] = dict.fromkeys(
    (
        *("no rows", "no columns", "ragged", "a column too few", "a column too many", "other names", "another order"),
        "names of mixed kinds",
    ),
    Handled(),
)
"""Features come and go here, in any order, and so may all of them: what other doors refuse and this one takes."""

NO_MATTER = {"labels missing", "a label too few", "a label too many"}
"""Of many labels, which a row that comes alone does not have."""

LARGE = {"1e308", "a label of 1e308"}
"""What is too large for the practical learner only."""


def outcome(name: str, entry: InputCase, learner: str) -> Outcome:
    """Return what becomes of an entry at this door."""
    if name in LARGE and learner != "metric":
        return Handled()
    return OTHERWISE.get(name, entry.outcome)


def cases(left_out: set[str]) -> pytest.MarkDecorator:
    """Return every entry of both tables that concerns a way in, for every learner."""
    entries = [("array", TABLE), ("frame", FRAMES)]
    some = [
        pytest.param(name, entry, learner, id=f"{kind}-{name}-{learner}")
        for kind, table in entries
        for name, entry in table.items()
        if name not in left_out
        for learner in LEARNERS
    ]
    return pytest.mark.parametrize(("name", "entry", "learner"), some)


@cache
def _taught(learner: str) -> bytes:
    model, (X, y) = LEARNERS[learner](), stream(FIRST)
    model.learn_many(pd.DataFrame(X, columns=NAMES), pd.Series(y))
    return pickle.dumps(model)


def taught(learner: str) -> RiverRegressor:
    """Return a learner who has learned a few rows."""
    model: RiverRegressor = pickle.loads(_taught(learner))
    return model


def bits(model: RiverRegressor) -> object:
    """Return everything that a learner carries, to the bit: what it would save."""
    assert model._learner is not None
    saved = model._learner.to_archive()
    arrays = {name: (str(array.dtype), array.shape, array.tobytes()) for name, array in saved.arrays.items()}
    return model.feature_names, saved.facts, arrays


def framed(X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows and labels as River has many of them."""
    names = NAMES if len(np.shape(X)) < 2 else [*NAMES, "d"][: np.shape(X)[1]]
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X if hasattr(X, "columns") else pd.DataFrame(X, columns=names)
    return frame, y if hasattr(y, "index") else pd.Series(y, dtype=None if y is not None else float)


def alone(X: Any, y: Any) -> tuple[dict[Any, Any], Any]:
    """Return the last row and its label as River has one."""
    row = X.iloc[-1].to_dict() if hasattr(X, "iloc") else dict(zip([*NAMES, "d"], X[-1], strict=False))
    return row, y.iloc[-1] if hasattr(y, "iloc") else y[-1]


def judge(expected: Outcome, learner: str, enter: Callable[[RiverRegressor], None]) -> None:
    """See that a learner takes what is handled and goes on, or refuses it with nothing changed."""
    model = taught(learner)
    before = bits(model)
    if isinstance(expected, Refused):
        with pytest.raises(EllipackError, match=r"^(feature '[abc]'|y) must (be|hold) .*got ") as caught:
            enter(model)
        assert "\n" not in str(caught.value)
        assert bits(model) == before
        return
    enter(model)
    X, y = stream(10, seed=2)
    model.learn_many(pd.DataFrame(X, columns=NAMES), pd.Series(y))
    assert np.isfinite(model.predict_many(pd.DataFrame(X, columns=NAMES))).all()


@cases(NO_ROW | NO_MATTER)
def test_a_row_is_learned_or_refused_with_nothing_changed(name: str, entry: InputCase, learner: str) -> None:
    row, label = alone(*entry.make(*stream(BATCH, seed=1)))
    judge(outcome(name, entry, learner), learner, lambda model: model.learn_one(row, label))


@cases(NO_FRAME)
def test_a_frame_is_learned_or_refused_as_a_whole(name: str, entry: InputCase, learner: str) -> None:
    X, y = framed(*entry.make(*stream(BATCH, seed=1)))
    judge(outcome(name, entry, learner), learner, lambda model: model.learn_many(X, y))


@cases(NO_ROW | NO_MATTER)
def test_a_row_is_predicted_or_refused(name: str, entry: InputCase, learner: str) -> None:
    row, _ = alone(*entry.make(*stream(BATCH, seed=1)))
    model = taught(learner)
    before = bits(model)
    if entry.spoils == "rows" and isinstance(outcome(name, entry, learner), Refused):
        with pytest.raises(EllipackError, match=r"^feature '[abc]' must be .*got "):
            model.predict_one(row)
    else:
        assert np.isfinite(model.predict_one(row))
    assert bits(model) == before


def test_a_frame_is_pandas() -> None:
    X, y = FRAMES["polars"].make(*stream(BATCH, seed=1))
    with pytest.raises(KindError, match=r"X must be a pandas DataFrame, got polars\S*DataFrame"):
        taught("metric").learn_many(X, y)
    rows: Any = [{"a": 1.0}]
    with pytest.raises(KindError, match=r"X must be a pandas DataFrame, got builtins.list"):
        taught("metric").predict_many(rows)
