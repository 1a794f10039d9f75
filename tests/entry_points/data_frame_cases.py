"""Unusual and invalid inputs as data frames, each with its expected outcome."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from ellipack.errors import DomainError, InputError, KindError, NonFiniteError, ShapeError
from ellipack.validation import Floats
from tests.entry_points.input_cases import BALL, UNIT, Accepted, InputCase, Make, Refused

NAMES = ["a", "b", "c"]
OTHER_NAMES = Refused(InputError, "The feature names should match those that were passed during fit")


def framed(X: Floats, y: Floats) -> tuple[pd.DataFrame, pd.Series]:
    """Return rows with names of columns, and labels with another index."""
    return pd.DataFrame(X, columns=NAMES), pd.Series(y, index=range(7, 7 + len(y)))


def changed(change: Callable[[pd.DataFrame], Any]) -> Make:
    """Return a function that changes a frame."""
    return lambda X, y: (change(framed(X, y)[0]), framed(X, y)[1])


def last_cell(value: object) -> Make:
    """Return a function that puts a value into the last row, in the middle column."""

    def make(X: Floats, y: Floats) -> tuple[Any, Any]:
        table, column = framed(X, y)
        middle: Any = [*table["b"].tolist()[:-1], value]
        return table.assign(b=middle), column

    return make


def changed_labels(change: Callable[[pd.Series], Any]) -> Make:
    """Return a function that changes the labels of a frame."""
    return lambda X, y: (framed(X, y)[0], change(framed(X, y)[1]))


AT = r" at row \d+, column 'b'"

FRAMES: dict[str, InputCase] = {
    "NaN": InputCase(last_cell(np.nan), Refused(NonFiniteError, f"X must be finite, got NaN{AT}: fill in or drop")),
    "None among objects": InputCase(
        changed(
            lambda X: (
                last_cell(None)(X.to_numpy(), X["a"].to_numpy())[0].astype(object).where(lambda f: f.notna(), None)
            )
        ),
        Refused(NonFiniteError, f"X must be finite, got None{AT}: fill in or drop"),
    ),
    "NA": InputCase(
        changed(lambda X: X.assign(b=pd.array([*X["b"].tolist()[:-1], pd.NA], dtype="Float64"))),
        Refused(NonFiniteError, r"X must be finite, got (NaN|<NA>) at row \d+, column ('b'|\d)"),
    ),
    "text": InputCase(last_cell("high"), Refused(KindError, f"X must hold real numbers, got 'high'{AT}")),
    "categories": InputCase(
        changed(lambda X: X.assign(b=pd.Categorical(["low", "high"] * (len(X) // 2)))),
        Refused(KindError, r"X must hold real numbers, got 'low' at row 0, column 'b'"),
    ),
    "dates": InputCase(
        changed(lambda X: X.assign(b=pd.Timestamp("2026-01-01"))), Refused(KindError, "X must hold real numbers: ")
    ),
    "complex": InputCase(
        changed(lambda X: X.assign(b=1j)),
        Refused(KindError, "X must hold real numbers, got complex128|X must hold real"),
    ),
    "1e308": InputCase(last_cell(1e308), Refused(DomainError, r"X must be at most 1e\+140 in size, got 1e\+308"), BALL),
    "no rows": InputCase(
        lambda X, y: framed(X[:0], y[:0]), Refused(ShapeError, r"X must have at least one row .* got 0 sample\(s\)")
    ),
    "a column too few": InputCase(
        changed(lambda X: X.drop(columns="b")), Refused(ShapeError, OTHER_NAMES.message), spoils="width"
    ),
    "a column too many": InputCase(
        changed(lambda X: X.assign(d=0.0)), Refused(ShapeError, OTHER_NAMES.message), spoils="width"
    ),
    "other names": InputCase(changed(lambda X: X.rename(columns={"b": "B"})), OTHER_NAMES, spoils="width"),
    "another order": InputCase(changed(lambda X: X[["c", "b", "a"]]), OTHER_NAMES, spoils="width"),
    "names of mixed kinds": InputCase(
        changed(lambda X: X.rename(columns={"b": 1})), Refused(KindError, "Feature names are only supported if all")
    ),
    "label NA": InputCase(
        changed_labels(lambda y: y.astype("Float64").mask(y.index == y.index[-1])),
        Refused(NonFiniteError, r"y must be finite, got (NaN|<NA>) at row \d+: fill in or drop"),
        spoils="labels",
    ),
    "label text": InputCase(
        changed_labels(lambda y: y.astype(object).mask(y.index == y.index[-1], "high")),
        Refused(KindError, r"y must hold real numbers, got 'high' at row \d+"),
        spoils="labels",
    ),
    "labels jump": InputCase(
        changed_labels(lambda y: y + 1e9 * (np.arange(len(y)) > len(y) // 2)), Accepted(), UNIT, "labels"
    ),
    "a valid frame": InputCase(framed, Accepted()),
    "float32": InputCase(changed(lambda X: (X * 0.9).astype(np.float32)), Accepted()),
    "nullable": InputCase(changed(lambda X: X.astype("Float64")), Accepted()),
    "Arrow": InputCase(changed(lambda X: X.astype("double[pyarrow]")), Accepted()),
    "sparse columns": InputCase(changed(lambda X: X.astype(pd.SparseDtype(float, 0.0))), Accepted()),
    "objects": InputCase(changed(lambda X: X.astype(object)), Accepted()),
    "one row": InputCase(lambda X, y: framed(X[:1], y[:1]), Accepted()),
    "polars": InputCase(changed(lambda X: pl.DataFrame(X.to_dict("list"))), Accepted()),
}
