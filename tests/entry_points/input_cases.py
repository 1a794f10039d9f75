"""Unusual and invalid inputs as arrays, each with its expected outcome.

A case changes valid rows and labels. The outcome is that they are accepted, or refused with an error whose message
names the thing, the rule and the value. Most cases change the last row of a batch: a learner that checks row by row
would have learned the others before the error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ellipack.errors import DomainError, EllipackError, InputError, KindError, NonFiniteError, ShapeError
from ellipack.validation import Floats

Make = Callable[[Floats, Floats], tuple[Any, Any]]


@dataclass(frozen=True)
class Refused:
    """The call raises this error, with a message that matches this regular expression, and changes nothing."""

    error: type[EllipackError]
    message: str


@dataclass(frozen=True)
class Accepted:
    """Predictions are finite and have the same bits as those for the same numbers in plain arrays."""


Outcome = Accepted | Refused


@dataclass(frozen=True)
class InputCase:
    """An input and its expected outcome.

    Attributes
    ----------
    make : callable
        Function that makes the input from valid rows and labels.
    outcome : Accepted or Refused
        Outcome for learners that accept any rows and labels.
    paper : Accepted or Refused, optional
        Outcome for learners that require the unit ball and [0, 1]. The default is `outcome`.
    spoils : {"rows", "labels", "width"}
        What is unusual: the rows, the labels, or only the number of columns compared with earlier rows.
    """

    make: Make
    outcome: Outcome
    paper: Outcome | None = None
    spoils: str = "rows"

    def of(self, is_paper: bool) -> Outcome:
        """Return the outcome for a learner."""
        return self.paper if is_paper and self.paper is not None else self.outcome


def last(value: object) -> Make:
    """Return a function that puts a value into the last row, in the middle column."""

    def make(X: Floats, y: Floats) -> tuple[Any, Any]:
        table: NDArray[Any] = X.copy() if isinstance(value, float) else X.astype(object)
        table[-1, 1] = value
        return table, y

    return make


def last_label(value: object) -> Make:
    """Return a function that replaces the last label."""

    def make(X: Floats, y: Floats) -> tuple[Any, Any]:
        column: NDArray[Any] = y.copy() if isinstance(value, float) else y.astype(object)
        column[-1] = value
        return X, column

    return make


def rows(change: Callable[[Floats], Any]) -> Make:
    """Return a function that changes the rows."""
    return lambda X, y: (change(X), y)


def labels(change: Callable[[Floats], Any]) -> Make:
    """Return a function that changes the labels."""
    return lambda X, y: (X, change(y))


def both(change: Callable[[Floats], Any]) -> Make:
    """Return a function that changes rows and labels in the same way."""
    return lambda X, y: (change(X), change(y))


def read_only(array: Floats) -> Floats:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def unaligned(array: Floats) -> NDArray[Any]:
    """Return the same numbers at an address that is not aligned, as in a packed record."""
    room = np.empty(array.nbytes + 1, dtype=np.uint8)
    moved = room[1:].view(np.float64).reshape(array.shape)
    moved[...] = array
    return moved


def strided(array: Floats) -> Floats:
    """Return the same numbers as a reversed view of every other entry of a larger array."""
    room = np.full([2 * n for n in array.shape], np.nan)
    view = room[tuple(slice(None, None, -2) for _ in array.shape)]
    view[...] = array
    return view


def fractions(array: Floats) -> NDArray[Any]:
    made: NDArray[Any] = np.vectorize(Fraction, otypes=[object])(array)
    return made


def ragged(X: Floats) -> list[Any]:
    return [*X[:-1].tolist(), X[-1].tolist()[:-1]]


def alternating(y: Floats) -> Floats:
    return np.asarray(np.arange(len(y)) % 2, dtype=np.float64)


FINITE_X = r"X must be finite, got {} at row \d+, column 1"
FINITE_Y = r"y must be finite, got {} at row \d+"
BALL = Refused(DomainError, r"X must lie in the unit ball \(norm <= 1\), got norm \S+ at row \d+")
UNIT = Refused(DomainError, r"y must lie in \[0, 1\], got \S+ at row \d+")
REMEDY = ": fill in or drop missing values"

TABLE: dict[str, InputCase] = {
    # Rows with entries that are not finite real numbers.
    "NaN": InputCase(last(np.nan), Refused(NonFiniteError, FINITE_X.format("NaN") + REMEDY)),
    "infinity": InputCase(last(np.inf), Refused(NonFiniteError, FINITE_X.format("inf"))),
    "minus infinity": InputCase(last(-np.inf), Refused(NonFiniteError, FINITE_X.format("-inf"))),
    "None": InputCase(last(None), Refused(NonFiniteError, FINITE_X.format("None") + REMEDY)),
    "NaN among objects": InputCase(
        rows(lambda X: last(np.nan)(X, X)[0].astype(object)), Refused(NonFiniteError, FINITE_X.format("NaN"))
    ),
    "text": InputCase(last("high"), Refused(KindError, r"X must hold real numbers, got 'high' at row \d+, column 1")),
    "a number as text": InputCase(last("0.1"), Refused(KindError, r"X must hold real numbers, got '0.1' at row \d+")),
    "all text": InputCase(
        rows(lambda X: X.astype(str)), Refused(KindError, r"X must hold real numbers, got '.*' at row 0, column 0")
    ),
    "bytes": InputCase(
        rows(lambda X: X.astype(bytes)), Refused(KindError, r"X must hold real numbers, got b'.*' at row 0, column 0")
    ),
    "dates": InputCase(
        rows(lambda X: X.astype("M8[s]")), Refused(KindError, "X must hold real numbers, got datetime64")
    ),
    "complex": InputCase(rows(lambda X: X + 0j), Refused(KindError, "X must hold real numbers, got complex128")),
    "complex objects": InputCase(last(1j), Refused(KindError, "X must hold real numbers: ")),
    "dictionaries": InputCase(last({}), Refused(KindError, "X must hold real numbers: .*dict")),
    "records": InputCase(
        rows(lambda X: np.ascontiguousarray(X).view([("a", float), ("b", float), ("c", float)])),
        Refused(InputError, "X must hold real numbers, got void|X has 1 features"),
    ),
    "sparse": InputCase(rows(scipy.sparse.csr_array), Refused(KindError, "X must be dense, got the sparse csr_array")),
    "masked": InputCase(
        rows(lambda X: np.ma.masked_less(X, 0)), Refused(KindError, "X must hold real numbers, got a masked array")
    ),
    "an integer beyond the largest float": InputCase(
        last(10**400), Refused(InputError, "X must hold real numbers: int too large")
    ),
    "a long float beyond the largest float": InputCase(
        rows(lambda X: last(0.0)(X, X)[0].astype(np.longdouble) * np.longdouble("1e4000")),
        Refused(NonFiniteError, r"X must be finite, got -?inf at row \d+, column \d"),
    ),
    "nothing": InputCase(rows(lambda X: None), Refused(InputError, "X must .*, got None")),
    "a dictionary of columns": InputCase(
        rows(lambda X: {"a": X[:, 0]}), Refused(KindError, "X must hold real numbers")
    ),
    # Rows of another shape.
    "no rows": InputCase(
        lambda X, y: (X[:0], y[:0]), Refused(ShapeError, r"X must have at least one row .* got 0 sample\(s\)")
    ),
    "no columns": InputCase(
        rows(lambda X: X[:, :0]), Refused(ShapeError, r"X must have at least one .* column.*0 feature\(s\)|0 features")
    ),
    "a single row": InputCase(
        lambda X, y: (X[0], y[:1]), Refused(ShapeError, r"X must be two-dimensional .*, got shape \(3,\): Reshape")
    ),
    "layers": InputCase(
        rows(lambda X: X[:, :, None]), Refused(ShapeError, r"X must be two-dimensional .*, got shape \(")
    ),
    "a number": InputCase(rows(lambda X: 0.5), Refused(ShapeError, r"X must be two-dimensional .*, got shape \(\)")),
    "ragged": InputCase(rows(ragged), Refused(InputError, "X must hold real numbers: .*inhomogeneous")),
    "a column too few": InputCase(
        rows(lambda X: X[:, :2]),
        Refused(ShapeError, "X has 2 features, but .* is expecting 3 features"),
        spoils="width",
    ),
    "a column too many": InputCase(
        rows(lambda X: np.hstack([X, X[:, :1] / 9])),
        Refused(ShapeError, "X has 4 features, but .* is expecting 3 features"),
        spoils="width",
    ),
    # Numbers of any size.
    "1e308": InputCase(last(1e308), Refused(DomainError, r"X must be at most 1e\+140 in size, got 1e\+308"), BALL),
    "1e140": InputCase(last(-1e140), Accepted(), BALL),
    "1e-308": InputCase(rows(lambda X: X * 1e-308), Accepted()),
    "the smallest float": InputCase(last(5e-324), Accepted()),
    "minus 0": InputCase(rows(lambda X: -0.0 * np.abs(X)), Accepted()),
    "integers past 2**53": InputCase(
        rows(lambda X: np.sign(X).astype(np.int64) * 2**53 + np.arange(X.size).reshape(X.shape)), Accepted(), BALL
    ),
    "integers past 2**64": InputCase(last(2**64 + 1), Accepted(), BALL),
    "one row": InputCase(lambda X, y: (X[:1], y[:1]), Accepted()),
    "copies of a row": InputCase(lambda X, y: (np.repeat(X[:1], 300, axis=0), np.resize(y, 300)), Accepted()),
    "constant columns": InputCase(rows(np.zeros_like), Accepted()),
    # Rows of any type and memory layout.
    "float16": InputCase(both(lambda a: (a * 0.9).astype(np.float16)), Accepted()),
    "float32": InputCase(both(lambda a: (a * 0.9).astype(np.float32)), Accepted()),
    "long floats": InputCase(both(lambda a: a.astype(np.longdouble)), Accepted()),
    "big-endian": InputCase(both(lambda a: a.astype(">f8")), Accepted()),
    "booleans": InputCase(lambda X, y: (X > 2, y > 0.5), Accepted()),
    "read-only": InputCase(both(read_only), Accepted()),
    "Fortran order": InputCase(both(np.asfortranarray), Accepted()),
    "not contiguous": InputCase(both(strided), Accepted()),
    "not aligned": InputCase(both(unaligned), Accepted()),
    "a broadcast row": InputCase(rows(lambda X: np.broadcast_to(X[0], X.shape)), Accepted()),
    "objects": InputCase(both(lambda a: a.astype(object)), Accepted()),
    "fractions": InputCase(both(fractions), Accepted()),
    "lists": InputCase(both(lambda a: a.tolist()), Accepted()),
    # Labels.
    "label NaN": InputCase(
        last_label(np.nan), Refused(NonFiniteError, FINITE_Y.format("NaN") + REMEDY), spoils="labels"
    ),
    "label infinite": InputCase(last_label(-np.inf), Refused(NonFiniteError, FINITE_Y.format("-inf")), spoils="labels"),
    "label None": InputCase(
        last_label(None), Refused(NonFiniteError, FINITE_Y.format("None") + REMEDY), spoils="labels"
    ),
    "label text": InputCase(
        last_label("high"), Refused(KindError, r"y must hold real numbers, got 'high' at row \d+"), spoils="labels"
    ),
    "labels complex": InputCase(
        labels(lambda y: y + 0j), Refused(KindError, "y must hold real numbers, got complex128"), spoils="labels"
    ),
    "labels sparse": InputCase(
        labels(lambda y: scipy.sparse.csr_array(y[None])),
        Refused(KindError, "y must be dense, got the"),
        spoils="labels",
    ),
    "labels missing": InputCase(
        labels(lambda y: None),
        Refused(InputError, "y must hold one label per row: .* the target y is None"),
        spoils="labels",
    ),
    "a label too few": InputCase(
        labels(lambda y: y[:-1]),
        Refused(ShapeError, r"y must hold one label per row: \d+ rows, got \d+ labels"),
        spoils="labels",
    ),
    "a label too many": InputCase(
        labels(lambda y: np.append(y, 0.5)),
        Refused(ShapeError, r"y must hold one label per row: \d+ rows, got \d+"),
        spoils="labels",
    ),
    "two labels per row": InputCase(
        labels(lambda y: np.column_stack([y, y])),
        Refused(ShapeError, r"y must be one-dimensional, got shape \("),
        spoils="labels",
    ),
    "a label of 1e308": InputCase(
        last_label(1e308), Refused(DomainError, r"y must be at most 1e\+60 in size, got 1e\+308"), UNIT, spoils="labels"
    ),
    "labels constant": InputCase(labels(lambda y: np.full_like(y, 0.25)), Accepted(), spoils="labels"),
    "labels 1e-308": InputCase(labels(lambda y: y * 1e-308), Accepted(), spoils="labels"),
    "labels 1e-160": InputCase(labels(lambda y: y * 1e-160), Accepted(), spoils="labels"),
    "labels from 0 to 1 and back": InputCase(labels(alternating), Accepted(), spoils="labels"),
    "labels jump by 1e9": InputCase(
        labels(lambda y: y + 1e9 * (np.arange(len(y)) > len(y) // 2)), Accepted(), UNIT, "labels"
    ),
    "a label of 1e60": InputCase(last_label(1e60), Accepted(), UNIT, "labels"),
}
