"""The same inputs for River's methods: rows as dictionaries, and as frames; refused ones change nothing."""

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ellipack.errors import EllipackError, InputError, KindError
from ellipack.river import MetricRegressor, PackingClassifier, PackingRegressor, PhasedRegressor
from ellipack.river.base import RiverRegressor
from tests.entry_points.data_frame_cases import FRAMES, NAMES
from tests.entry_points.input_cases import TABLE, Accepted, InputCase, Outcome, Refused
from tests.entry_points.learners import FIRST, SMALL, stream

LEARNERS: dict[str, Callable[[], RiverRegressor[Any]]] = {
    "packing": PackingRegressor,
    "phased": PhasedRegressor,
    "metric": lambda: MetricRegressor(neighbors=8, config=SMALL),
}

BATCH = 40

METHODS_OF_ROWS = "predict_one", "predict_interval_one", "predict_proba_one", "learn_one"

WITHOUT_ROWS = {
    "nothing",
    "a dictionary of columns",
    "no rows",
    "a single row",
    "a number",
    "sparse",
    "polars",
}
"""Cases without a last row that could be a dictionary."""

NOT_FRAMES = {
    *("records", "sparse", "nothing", "a dictionary of columns", "a single row", "layers", "a number"),
    *("ragged", "labels sparse", "two labels per row"),
}
"""Cases that pandas cannot convert to a frame."""

ACCEPTED_BY_RIVER: dict[str, Outcome] = dict.fromkeys(
    (
        *("no rows", "no columns", "ragged", "a column too few", "a column too many", "other names", "another order"),
        "names of mixed kinds",
    ),
    Accepted(),
)
"""Cases that other methods refuse. In River, features may appear and disappear in any order."""

NUMBERS_OF_LABELS = {"labels missing", "a label too few", "a label too many"}
"""Cases of a wrong number of labels, which do not apply to a single row."""

LARGE = {"1e308", "a label of 1e308"}
"""Cases that only the practical learner refuses as too large."""


def outcome(name: str, case: InputCase, learner: str) -> Outcome:
    """Return the expected outcome of a case for River's methods."""
    if name in LARGE and learner != "metric":
        return Accepted()
    return ACCEPTED_BY_RIVER.get(name, case.outcome)


def cases(excluded: set[str]) -> pytest.MarkDecorator:
    """Return the cases of both tables, except for some, for every learner."""
    entries = [("array", TABLE), ("frame", FRAMES)]
    some = [
        pytest.param(name, case, learner, id=f"{kind}-{name}-{learner}")
        for kind, table in entries
        for name, case in table.items()
        if name not in excluded
        for learner in LEARNERS
    ]
    return pytest.mark.parametrize(("name", "case", "learner"), some)


@cache
def _fitted(learner: str) -> bytes:
    model, (X, y) = LEARNERS[learner](), stream(FIRST)
    model.learn_many(pd.DataFrame(X, columns=NAMES), pd.Series(y))
    return pickle.dumps(model)


def fitted(learner: str) -> RiverRegressor[Any]:
    """Return a learner after a few rows."""
    model: RiverRegressor[Any] = pickle.loads(_fitted(learner))
    return model


def bits(model: RiverRegressor[Any]) -> object:
    """Return the whole state of a learner, to the bit."""
    assert model._learner is not None
    saved = model._learner.to_archive()
    arrays = {
        name: (str(array.dtype), array.shape, array.tobytes()) for name, array in saved.arrays_by_full_name().items()
    }
    return model.feature_names, saved.facts, arrays


def framed(X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows and labels as a pandas frame and series."""
    names = NAMES if len(np.shape(X)) < 2 else [*NAMES, "d"][: np.shape(X)[1]]
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X if hasattr(X, "columns") else pd.DataFrame(X, columns=names)
    return frame, y if hasattr(y, "index") else pd.Series(y, dtype=None if y is not None else float)


def last_row(X: Any, y: Any) -> tuple[dict[Any, Any], Any]:
    """Return the last row as a dictionary, and its label."""
    row = X.iloc[-1].to_dict() if hasattr(X, "iloc") else dict(zip([*NAMES, "d"], X[-1], strict=False))
    return row, y.iloc[-1] if hasattr(y, "iloc") else y[-1]


def check_outcome(expected: Outcome, learner: str, call: Callable[[RiverRegressor[Any]], None]) -> None:
    """Check that a learner accepts an input and can continue, or refuses it without a change."""
    model = fitted(learner)
    before = bits(model)
    if isinstance(expected, Refused):
        with pytest.raises(EllipackError, match=r"^(feature '[abc]'|y) must (be|hold) .*got ") as caught:
            call(model)
        assert "\n" not in str(caught.value)
        assert bits(model) == before
        return
    call(model)
    X, y = stream(10, seed=2)
    model.learn_many(pd.DataFrame(X, columns=NAMES), pd.Series(y))
    assert np.isfinite(model.predict_many(pd.DataFrame(X, columns=NAMES))).all()


@cases(WITHOUT_ROWS | NUMBERS_OF_LABELS)
def test_learn_one_accepts_or_refuses_a_row(name: str, case: InputCase, learner: str) -> None:
    row, label = last_row(*case.make(*stream(BATCH, seed=1)))
    check_outcome(outcome(name, case, learner), learner, lambda model: model.learn_one(row, label))


@cases(NOT_FRAMES)
def test_learn_many_accepts_or_refuses_a_whole_frame(name: str, case: InputCase, learner: str) -> None:
    X, y = framed(*case.make(*stream(BATCH, seed=1)))
    check_outcome(outcome(name, case, learner), learner, lambda model: model.learn_many(X, y))


@cases(WITHOUT_ROWS | NUMBERS_OF_LABELS)
def test_predict_one_accepts_or_refuses_a_row(name: str, case: InputCase, learner: str) -> None:
    row, _ = last_row(*case.make(*stream(BATCH, seed=1)))
    model = fitted(learner)
    before = bits(model)
    if case.spoils == "rows" and isinstance(outcome(name, case, learner), Refused):
        with pytest.raises(EllipackError, match=r"^feature '[abc]' must be .*got "):
            model.predict_one(row)
    else:
        assert np.isfinite(model.predict_one(row))
    assert bits(model) == before


@pytest.mark.parametrize("row", [[1.0, 2.0], "a", None, 3, ("a",), {"a"}, pd.DataFrame({"a": [1.0]})], ids=repr)
@pytest.mark.parametrize("make", [*LEARNERS.values(), lambda: MetricRegressor(by="a"), PackingClassifier])
def test_rows_that_are_no_dictionaries_are_refused(make: Callable[[], Any], row: Any) -> None:
    model = make()
    for _ in range(2):
        for method in filter(None, (getattr(model, name, None) for name in METHODS_OF_ROWS)):
            with pytest.raises(KindError, match="x must be a dictionary from names of features to numbers, got "):
                method(row, 1) if method.__name__ == "learn_one" else method(row)
        model.learn_one({"a": 0.1, "b": 0.2}, 1)


def test_names_of_keys_that_are_no_names_are_refused() -> None:
    by: Any = {"a": 1}
    with pytest.raises(InputError, match=r"by must be the name of a feature, or a list of names, got {'a': 1}"):
        MetricRegressor(by=by).learn_one({"a": 0.1}, 1.0)


def test_other_frames_than_pandas_are_refused() -> None:
    X, y = FRAMES["polars"].make(*stream(BATCH, seed=1))
    with pytest.raises(KindError, match=r"X must be a pandas DataFrame, got polars\S*DataFrame"):
        fitted("metric").learn_many(X, y)
    rows: Any = [{"a": 1.0}]
    with pytest.raises(KindError, match=r"X must be a pandas DataFrame, got builtins.list"):
        fitted("metric").predict_many(rows)
