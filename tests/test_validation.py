import numpy as np
import polars as pl
import pytest
import scipy.sparse

from ellipack import validation
from ellipack.errors import DomainError, InputError, KindError, NonFiniteError, ShapeError


@pytest.mark.parametrize(
    "values",
    [
        [[1, 2], [3, 4]],
        np.array([[1, 2], [3, 4]], dtype=np.float32),
        np.array([[1, 2], [3, 4]], dtype=">f8"),
        np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
        np.array([[1, 0, 2, 0], [3, 0, 4, 0]])[:, ::2],
        np.array([[1, 2], [3, 4]], dtype=object),
        [[True, 2], [3, 4.0]],
        np.frombuffer(np.array([[1.0, 2.0], [3.0, 4.0]]).tobytes()).reshape(2, 2),  # read-only
    ],
)
def test_rows_of_any_type_become_contiguous_floats(values: object) -> None:
    table = validation.check_rows(values)  # type: ignore[arg-type]
    assert table.dtype == np.float64
    assert table.dtype.isnative
    assert table.flags.c_contiguous
    assert table.flags.writeable
    np.testing.assert_array_equal(table, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([[1, 2], [3]], InputError, "X must hold real numbers"),
        ([[1.0], [None]], NonFiniteError, "X must be finite, got None at row 1, column 0: fill in or drop"),
        ([[np.nan]], NonFiniteError, "X must be finite, got NaN at row 0, column 0: fill in or drop"),
        ([[1.0, -np.inf]], NonFiniteError, "X must be finite, got -inf at row 0, column 1$"),
        ([["1.5x"]], InputError, "X must hold real numbers"),
        ([["1.5"]], KindError, "X must hold real numbers, got '1.5' at row 0, column 0"),
        ([[b"1.5"]], KindError, "X must hold real numbers, got b'1.5' at row 0, column 0"),
        ([[1.0, 2.0], [3.0, "high"]], KindError, "X must hold real numbers, got 'high' at row 1, column 1"),
        (np.array([["1.5"], ["2"]]), KindError, "X must hold real numbers, got '1.5' at row 0, column 0"),
        (
            pl.LazyFrame({"a": [1.0]}),
            InputError,
            r"X must hold real numbers, got a LazyFrame: X\.collect\(\) computes it",
        ),
        (np.array([[1.0, "1.5"]], dtype=object), KindError, "X must hold real numbers, got '1.5' at row 0, column 1"),
        (np.array([[{}]], dtype=object), KindError, "X must hold real numbers: .*not 'dict'"),
        (scipy.sparse.eye_array(3), KindError, "X must be dense, got the sparse dia_array"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), KindError, "X must hold real numbers, got datetime64"),
        (np.array([[1]], dtype="m8[s]"), KindError, "X must hold real numbers, got timedelta64"),
        ([[1j]], KindError, "X must hold real numbers, got complex128: Complex data not supported"),
        ([[10**400]], InputError, "X must hold real numbers: int too large"),
        (np.ma.masked_less([[1.0, 2.0]], 1.5), KindError, "X must hold real numbers, got a masked array"),
        (3.0, ShapeError, r"X must be two-dimensional \(rows, columns\), got shape \(\)"),
        ([1.0, 2.0], ShapeError, r"got shape \(2,\): Reshape your data, X\[None\] if it is a row"),
        (np.empty((3, 0)), ShapeError, r"at least one row and one column, got 0 feature\(s\) \(shape=\(3, 0\)\)"),
        (np.empty((0, 3)), ShapeError, r"at least one row and one column, got 0 sample\(s\) \(shape=\(0, 3\)\)"),
    ],
)
def test_invalid_tables_are_refused(values: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        validation.check_rows(values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a"] * 5, "y must hold real numbers, got 'a' at row 0$"),
        ([1.0, "12", 3.0], "y must hold real numbers, got '12' at row 1$"),
        (np.array([f"{k}.5" for k in range(300)]), "y must hold real numbers, got '0.5' at row 0$"),
        ("0.9", "y must hold real numbers, got '0.9'$"),
    ],
)
def test_text_is_refused_with_its_first_value(values: object, message: str) -> None:
    with pytest.raises(KindError, match=message):
        validation.as_floats(values, "y")  # type: ignore[arg-type]


def test_only_read_only_arrays_are_copied() -> None:
    table = np.ones((4, 3))
    assert validation.as_floats(table, "X") is table
    locked = table.view()
    locked.flags.writeable = False
    copy = validation.as_floats(locked, "X")
    assert copy.flags.writeable
    assert not np.shares_memory(copy, table)


def test_rounding_does_not_put_a_row_outside_the_unit_ball() -> None:
    rows = np.random.default_rng(0).normal(size=(1000, 7))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    validation.check_in_unit_ball(rows)
    with pytest.raises(DomainError, match=r"got norm 1\.00001 at row 3"):
        validation.check_in_unit_ball(np.vstack([rows[:3], 1.00001 * rows[3:4]]))


def test_ranges_include_their_ends() -> None:
    validation.check_in_unit_interval(np.array([0.0, 1.0]))
    assert validation.check_in_range(2.0, "scale", 2.0, 2.0) == 2.0
    with pytest.raises(DomainError, match="scale must be from 0 to 1, got nan"):
        validation.check_in_range(np.nan, "scale", 0.0, 1.0)


@pytest.mark.parametrize("value", [1.5, "3", None])
def test_floats_and_strings_are_not_integers(value: object) -> None:
    with pytest.raises(DomainError, match="count must be an integer >= 1, got"):
        validation.check_integer(value, "count", 1)  # type: ignore[arg-type]


def test_numpy_integers_are_integers() -> None:
    assert validation.check_integer(np.int32(3), "count", 1) == 3  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["3", b"3", None, 1j, [1.0, 2.0], 10**400])
def test_other_types_than_numbers_are_refused_by_name(value: object) -> None:
    with pytest.raises(DomainError, match="radius must be a number > 0, got "):
        validation.check_positive(value, "radius")  # type: ignore[arg-type]
    with pytest.raises(DomainError, match="radius must be a number >= 0, got "):
        validation.check_nonnegative(value, "radius")  # type: ignore[arg-type]
    with pytest.raises(DomainError, match="radius must be a number from 0 to 4, got "):
        validation.check_in_range(value, "radius", 0.0, 4.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_positive_and_nonnegative_numbers_are_finite(value: float) -> None:
    with pytest.raises(DomainError, match=f"radius must be finite and > 0, got {value}"):
        validation.check_positive(value, "radius")
    with pytest.raises(DomainError, match=f"radius must be finite and >= 0, got {value}"):
        validation.check_nonnegative(value, "radius")


def test_zero_is_nonnegative_and_not_positive() -> None:
    assert validation.check_nonnegative(0, "radius") == 0.0
    with pytest.raises(DomainError, match="radius must be > 0, got 0"):
        validation.check_positive(0, "radius")
    with pytest.raises(DomainError, match=r"radius must be >= 0, got -0\.1"):
        validation.check_nonnegative(-0.1, "radius")
