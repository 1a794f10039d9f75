"""Rows, labels and weights of any type give the results of arrays; invalid ones are refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from ellipack import GradientOuterProduct, LocalSlopes, MetricRegressor
from ellipack.errors import DomainError, EllipackError, InputError, KindError, NonFiniteError, ShapeError
from ellipack.estimators import input_checks
from ellipack.estimators.input_checks import repeat_by_weight
from ellipack.validation import Floats
from tests.estimators.factories import QUICK
from tests.strategies import seeds

NAMES = ["a", "b", "c"]


def quick() -> MetricRegressor:
    return MetricRegressor(config=QUICK)


def stream(n: int = 60, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.integers(-9, 9, size=(n, 3)).astype(float)  # integers, so that every column type can hold them
    return X, rng.integers(0, 2, size=n).astype(float)


def columns(X: Floats) -> dict[str, Floats]:
    return dict(zip(NAMES, X.T, strict=True))


def read_only(array: Floats) -> Floats:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


TABLES: dict[str, Callable[[Floats], Any]] = {
    "lists": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "read-only": read_only,
    "pandas": lambda X: pd.DataFrame(columns(X)),
    "pandas, nullable": lambda X: pd.DataFrame(columns(X)).astype("Int64"),
    "pandas, Arrow": lambda X: pd.DataFrame(columns(X)).astype("double[pyarrow]"),
    "pandas, mixed": lambda X: pd.DataFrame(columns(X)).astype({"a": "Float64", "b": "int16[pyarrow]"}),
    "pandas, unnamed": pd.DataFrame,
    "polars": lambda X: pl.DataFrame(columns(X)),
    "polars, mixed": lambda X: pl.DataFrame(columns(X)).with_columns(pl.col("b").cast(pl.Int32)),
    "Arrow": lambda X: pa.table(columns(X)),
}
LABELS: dict[str, Callable[[Floats], Any]] = {
    "list": lambda y: y.tolist(),
    "objects": lambda y: y.astype(object),
    "read-only": read_only,
    "pandas": lambda y: pd.Series(y, index=range(7, 7 + len(y))),
    "pandas, nullable": lambda y: pd.Series(y, dtype="Int64"),
    "pandas, boolean": lambda y: pd.Series(y.astype(bool), dtype="boolean"),
    "pandas, Arrow": lambda y: pd.Series(y, dtype="double[pyarrow]"),
    "polars": pl.Series,
    "Arrow": lambda y: pa.chunked_array([y[:5], y[5:]]),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_tables_of_any_type_give_the_results_of_arrays(table: Callable[[Floats], Any]) -> None:
    X, y = stream()
    plain, other = quick().fit(X[:30], y[:30]), quick().fit(table(X[:30]), y[:30])
    assert other.progressive(table(X[30:]), y[30:]).tolist() == plain.progressive(X[30:], y[30:]).tolist()
    assert other.predict(table(X[:1])).tolist() == plain.predict(X[:1]).tolist()
    assert other.score(table(X), y) == plain.score(X, y)
    assert other.n_features_in_ == 3


@pytest.mark.parametrize("column", LABELS.values(), ids=LABELS.keys())
def test_labels_of_any_type_give_the_results_of_arrays(column: Callable[[Floats], Any]) -> None:
    X, y = stream()
    plain, other = quick().fit(X[:30], y[:30]), quick().fit(X[:30], column(y[:30]))
    assert other.progressive(X[30:], column(y[30:])).tolist() == plain.progressive(X[30:], y[30:]).tolist()
    made = GradientOuterProduct(LocalSlopes()).fit(X, column(y)).gop_
    assert made.tolist() == GradientOuterProduct(LocalSlopes()).fit(X, y).gop_.tolist()


@pytest.mark.parametrize("method", ["fit", "partial_fit", "progressive"])
def test_a_column_vector_of_labels_gives_a_warning(method: str) -> None:
    X, y = stream()
    flat, column = quick(), quick()
    getattr(flat, method)(X, y)
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as caught:
        getattr(column, method)(X, y[:, None])
    assert caught[0].filename == __file__  # the warning points to the caller
    assert column.predict(X).tolist() == flat.predict(X).tolist()


@pytest.mark.parametrize(
    ("X", "kind", "message"),
    [
        (
            pd.DataFrame({"a": [1, 2], "b": pd.array([1, None], dtype="Int64")}),
            NonFiniteError,
            "got <NA> at row 1, col",
        ),
        (
            pd.DataFrame({"a": [1, 2], "b": [1.0, np.nan]}),
            NonFiniteError,
            "got NaN at row 1, column 'b': fill in or drop",
        ),
        (pd.DataFrame({"a": [1, 2], "b": [1.0, None]}, dtype=object), NonFiniteError, "got None at row 1, column 'b'"),
        (pl.DataFrame({"a": [1, 2], "b": [1, None]}), NonFiniteError, "got NaN at row 1, column 'b': fill in or drop"),
        (
            pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
            KindError,
            "must hold real numbers, got 'x' at row 0, column 'b'",
        ),
        (
            pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
            KindError,
            "must hold real numbers, got 'x' at row 0, column 'b'",
        ),
        (pd.DataFrame({"a": [1, 2], "b": pd.to_datetime(["2020", "2021"])}), KindError, "not 'Timestamp'"),
        (pd.Series([1.0, 2.0]), ShapeError, r"got shape \(2,\): Reshape your data"),
    ],
)
def test_invalid_tables_are_refused(X: Any, kind: type[EllipackError], message: str) -> None:
    with pytest.raises(kind, match=message):
        MetricRegressor().fit(X, [1.0, 2.0])


@pytest.mark.parametrize(
    ("y", "kind", "message"),
    [
        (None, InputError, "requires y to be passed, but the target y is None"),
        ([1.0, None], NonFiniteError, "y must be finite, got None at row 1: fill in or drop missing values"),
        (pd.Series([True, None], dtype="boolean"), NonFiniteError, "y must be finite, got <NA> at row 1"),
        (pd.Series([1, None], dtype="Int64"), NonFiniteError, "y must be finite, got NaN at row 1: fill in or drop"),
        (pl.Series([1, None]), NonFiniteError, "y must be finite, got NaN at row 1: fill in or drop"),
        (pd.Series(["1", "2"]), KindError, "y must hold real numbers, got '1' at row 0"),
        (np.ones((2, 2)), ShapeError, r"y must be one-dimensional, got shape \(2, 2\)"),
    ],
)
def test_invalid_labels_are_refused(y: Any, kind: type[EllipackError], message: str) -> None:
    for learner in (MetricRegressor(), GradientOuterProduct(LocalSlopes())):
        with pytest.raises(kind, match=message):
            learner.fit([[1.0], [2.0]], y)
        assert not hasattr(learner, "n_features_in_")


@settings(max_examples=20)
@given(seeds, st.lists(st.integers(0, 3), min_size=25, max_size=25).filter(any))
def test_integer_weights_repeat_rows(seed: int, weights: list[int]) -> None:
    X, y = stream(25, seed)
    weighted = GradientOuterProduct(LocalSlopes(6)).fit(X, y, sample_weight=weights)
    again = GradientOuterProduct(LocalSlopes(6)).fit(X.repeat(weights, axis=0), y.repeat(weights))
    assert weighted.gop_.tolist() == again.gop_.tolist()
    table, targets = repeat_by_weight(X, y, weights)
    assert (len(table), len(targets)) == (sum(weights), sum(weights))


@pytest.mark.parametrize(
    ("weights", "kind", "message"),
    [
        (
            [1, 0.5, 1],
            DomainError,
            "sample_weight must hold integers >= 0, the number of times .*, got 0.5 at row 1",
        ),
        ([1, 1, -2], DomainError, "sample_weight must hold integers >= 0, .*, got -2 at row 2"),
        ([0, 0, 0], DomainError, "sample_weight must be > 0 for at least one row, got zero for every row"),
        ([1, np.nan, 1], NonFiniteError, "sample_weight must be finite, got NaN at row 1"),
        ([1, 1], ShapeError, r"sample_weight must hold one number per row: 3 rows, got shape \(2,\)"),
        (["a", "b", "c"], KindError, "sample_weight must hold real numbers"),
    ],
)
def test_invalid_weights_are_refused(weights: Any, kind: type[EllipackError], message: str) -> None:
    gop = GradientOuterProduct(LocalSlopes())
    with pytest.raises(kind, match=message):
        gop.fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0], sample_weight=weights)
    assert not hasattr(gop, "gop_")


def test_an_unexpected_error_about_names_is_no_invalid_input(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = stream()
    table, learner = pd.DataFrame(columns(X)), quick().fit(pd.DataFrame(columns(X)), y)

    def fail(*_: Any, **__: Any) -> None:
        raise TypeError("Python raises it if memory runs out")

    monkeypatch.setattr(input_checks, "validate_data", fail)
    for call in (lambda: learner.predict(table), lambda: quick().fit(table, y)):
        with pytest.raises(TypeError) as raised:
            call()
        assert not isinstance(raised.value, EllipackError)


def test_columns_with_equal_names_are_refused() -> None:
    X, y = stream()
    table = pd.DataFrame(X, columns=["a", "b", "a"][: X.shape[1]])
    learner = quick().fit(X, y)
    for call in (lambda: quick().fit(table, y), lambda: learner.predict(table)):
        with pytest.raises(InputError, match="X must have different names of columns, got 'a' 2 times"):
            call()
