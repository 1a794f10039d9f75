"""What River's door takes for a number."""

import math
import reprlib
from decimal import Decimal
from numbers import Real
from typing import Any, Final

import numpy as np

from ellipack.errors import DomainError, KindError, NonFiniteError

PLAIN: Final = frozenset({float, int, bool, np.float64, np.float32, np.int64, np.int32, np.bool_})
"""Kinds of numbers that are most of them all, and need no closer look."""


def number(value: Any, what: str, largest: float) -> float:
    """Return a value as a float, or say what is wrong with it.

    Parameters
    ----------
    value : any real number there is: Python's, NumPy's, decimals, fractions, yes and no.
    what : what messages call it.
    largest : the size that it may have.
    """
    if not isinstance(value, Real | Decimal | np.bool_):
        raise KindError(f"{what} must be a number, got {_shown(value)}")
    try:
        with np.errstate(over="ignore"):  # of NumPy's long floats, which become infinite
            found = float(value)
    except (OverflowError, ValueError):  # a whole number beyond all floats; a decimal that signals
        found = math.inf
    if not math.isfinite(found):
        raise NonFiniteError(f"{what} must be a finite number, got {_shown(value)}")
    if abs(found) > largest:
        raise DomainError(f"{what} must be at most {largest:g} in size, got {_shown(value)}")
    return found


def _shown(value: object) -> str:
    """Return a value for a message: one line, not too long, and numbers plainly."""
    return reprlib.repr(value.item() if isinstance(value, np.number | np.bool_) else value)
