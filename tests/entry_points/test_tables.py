"""Every method of `TableRegressor` accepts each table, or refuses it without a change of the model."""

from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from ellipack import MetricRegressor, TableRegressor
from ellipack.errors import EllipackError, InputError, KindError, ShapeError, StreamError
from ellipack.validation import Floats
from tests.entry_points.learners import SMALL

Columns = dict[str, Any]


def table(rows: int, seed: int) -> Columns:
    rng = np.random.default_rng(seed)
    return {
        "a": (rng.integers(-20, 20, rows) / 2).tolist(),
        "sky": [("clear", "rain")[i] for i in rng.integers(0, 2, rows)],
        "day": [f"2024-01-{1 + t % 28:02d}" for t in range(rows)],
        "y": rng.normal(size=rows).tolist(),
    }


def last(column: str, cell: object) -> Callable[[Columns], Columns]:
    """Return a function that replaces the last cell of a column."""
    return lambda valid: valid | {column: [*valid[column][:-1], cell]}


def whole(column: str, cells: object) -> Callable[[Columns], Columns]:
    """Return a function that replaces a column."""
    return lambda valid: valid | {column: cells}


def without(column: str) -> Callable[[Columns], Columns]:
    return lambda valid: {name: cells for name, cells in valid.items() if name != column}


def instead(value: object) -> Callable[[Columns], object]:
    return lambda _: value


VERBS: dict[str, Callable[[TableRegressor, Any], Any]] = {
    "fit": lambda model, X: model.fit(X).predict(X),
    "partial_fit": lambda model, X: model.partial_fit(X).predict(X),
    "progressive": lambda model, X: model.progressive(X),
    "progressive with intervals": lambda model, X: np.column_stack([*model.progressive(X, coverage=0.9)[1]]),
    "predict": lambda model, X: model.predict(X),
    "predict_interval": lambda model, X: np.column_stack([*model.predict_interval(X)]),
    "predict_next": lambda model, X: model.predict_next(X),
}
LEARNING = ("fit", "partial_fit", "progressive", "progressive with intervals")
LATER = tuple(verb for verb in VERBS if verb != "fit")
NO_TABLE = "X must be a data frame, an Arrow table, a dictionary of columns"
Refusal = tuple[Callable[[Columns], object], type[EllipackError], str, tuple[str, ...]]

REFUSED: dict[str, Refusal] = {
    "text among numbers": (last("a", "far"), StreamError, r"row \d+, column 'a': 'far' is not a number", LATER),
    "infinity": (last("a", np.inf), StreamError, "column 'a': 'inf' is too large", tuple(VERBS)),
    "too large": (last("a", 1e300), StreamError, r"column 'a': '1e\+300' is too large", tuple(VERBS)),
    "no date": (last("day", "soon"), StreamError, "column 'day': 'soon' is not a date", LATER),
    "complex": (whole("a", np.full(5, 1j)), KindError, "column 'a' must hold numbers, text, dates", tuple(VERBS)),
    "bytes": (last("sky", b"x"), StreamError, "column 'sky': type binary is not supported", tuple(VERBS)),
    "structs": (whole("sky", [{"b": 1}] * 5), StreamError, "column 'sky': type struct", tuple(VERBS)),
    "durations": (whole("a", pd.to_timedelta([1] * 5)), StreamError, "column 'a': type duration", tuple(VERBS)),
    "label of text": (last("y", "x"), StreamError, "column 'y': 'x' is not a number", LEARNING),
    "infinite label": (last("y", np.inf), StreamError, "column 'y': 'inf' is too large", LEARNING),
    "large label": (last("y", 1e200), StreamError, r"column 'y': '1e\+200' is too large", LEARNING),
    "complex label": (whole("y", np.full(5, 1j)), KindError, "column 'y' must hold numbers", tuple(VERBS)),
    "no label": (without("y"), StreamError, r"table has no column named 'y' \(the target\)", LEARNING),
    "column lacks": (without("a"), StreamError, "table has no column named 'a'", LATER),
    "ragged": (whole("a", [1.0]), ShapeError, "columns must have the same number of rows, got a: 1", tuple(VERBS)),
    "two dimensions": (whole("a", np.ones((5, 2))), ShapeError, "column 'a' must be one-dimensional", tuple(VERBS)),
    "one cell": (whole("a", 1.0), ShapeError, "column 'a' must be one-dimensional", tuple(VERBS)),
    "a number": (instead(3), InputError, f"{NO_TABLE}.*got int", tuple(VERBS)),
    "nothing": (instead(None), InputError, f"{NO_TABLE}.*got NoneType", tuple(VERBS)),
    "an empty list": (instead([]), InputError, f"{NO_TABLE}.*got list", tuple(VERBS)),
    "a ragged list": (instead([[1], [1, 2]]), InputError, f"{NO_TABLE}.*got list", tuple(VERBS)),
    "a vector": (instead(np.ones(3)), InputError, f"{NO_TABLE}.*got ndarray", tuple(VERBS)),
    "a series": (instead(pd.Series([1.0])), InputError, f"{NO_TABLE}.*got Series", tuple(VERBS)),
    "sparse": (instead(scipy.sparse.eye(3)), InputError, f"{NO_TABLE}.*got dia_", tuple(VERBS)),
    "a lazy frame": (
        instead(pl.LazyFrame({"a": [1]})),
        InputError,
        rf"{NO_TABLE}.*got LazyFrame: X.collect\(\) makes",
        tuple(VERBS),
    ),
    "equal names": (
        instead(pd.DataFrame([[1, 2]], columns=["a", "a"])),
        InputError,
        "distinct names, got 'a' twice",
        tuple(VERBS),
    ),
}

ACCEPTED: dict[str, Callable[[Columns], object]] = {
    "Arrow": pa.table,
    "record batch": pa.RecordBatch.from_pydict,
    "pandas": pd.DataFrame,
    "pandas, categories and dates": lambda valid: pd.DataFrame(valid).astype(
        {"sky": "category", "day": "datetime64[s]"}
    ),
    "polars": pl.DataFrame,
    "polars, categories": lambda valid: pl.DataFrame(valid).with_columns(pl.col("sky").cast(pl.Categorical)),
    "polars, enumeration": lambda valid: pl.DataFrame(valid).with_columns(
        pl.col("sky").cast(pl.Enum(["rain", "clear"]))
    ),
    "rows": lambda valid: pa.table(valid).to_pylist(),
    "iterator": lambda valid: iter([valid]),
    "matrix of one column": lambda valid: valid | {"a": np.array(valid["a"])[:, None]},
    "other order, and one more": lambda valid: {"z": [None] * len(valid["a"])} | dict(reversed(valid.items())),
    "numbers as text": lambda valid: valid | {"a": [repr(each) for each in valid["a"]]},
    "decimals": lambda valid: valid | {"a": [Decimal(repr(each)) for each in valid["a"]]},
    "masked": lambda valid: valid | {"a": np.ma.masked_array(valid["a"], mask=False)},
}


@cache
def _fitted() -> TableRegressor:
    return TableRegressor("y", learner=MetricRegressor(neighbors=8, config=SMALL)).fit(table(30, 0))


def bits(model: TableRegressor, folder: Path) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


@pytest.mark.parametrize("case", REFUSED)
def test_refused_tables_change_nothing(case: str, tmp_path: Path) -> None:
    make, error, message, verbs = REFUSED[case]
    model = deepcopy(_fitted())
    before = bits(model, tmp_path)
    for verb in verbs:
        with pytest.raises(error, match=message):
            VERBS[verb](model, make(table(5, 1)))
        assert bits(model, tmp_path) == before, verb


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted_tables_give_the_results_of_plain_columns(case: str) -> None:
    for verb, call in VERBS.items():
        if case == "iterator" and verb == "fit":
            continue  # it predicts the same rows again
        if case == "other order, and one more" and verb == "fit":
            continue  # the order of features differs
        one, other = deepcopy(_fitted()), deepcopy(_fitted())
        given = ACCEPTED[case](table(30, 1))
        if case == "iterator" and verb == "partial_fit":
            found: Floats = one.partial_fit(given).predict(table(30, 1))
        else:
            found = call(one, given)
        assert found.tobytes() == call(other, table(30, 1)).tobytes(), verb
        assert np.isfinite(found).all()
