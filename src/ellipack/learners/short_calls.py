"""Predictions of many rows by short calls of a compiled core.

A call of a core does not handle signals. Many rows are therefore predicted by several calls, between which Ctrl-C and
other signals are handled. All predictions are still from the same state, although other threads may learn meanwhile.
"""

from collections.abc import Callable
from typing import Protocol, Self, TypeVar


class CopyableCore(Protocol):
    """Compiled core whose predictions change only if its clock does."""

    @property
    def clock(self) -> int:
        """Number of rounds."""

    def copy(self) -> Self:
        """Return an independent copy."""


Core = TypeVar("Core", bound=CopyableCore)


def row_slices(count: int, rows_per_call: int) -> list[slice]:
    """Return consecutive slices of rows.

    Parameters
    ----------
    count : int
        Number of rows.
    rows_per_call : int
        Largest number of rows of a slice.

    Returns
    -------
    slices : list of slice

    Examples
    --------
    >>> row_slices(5, 3)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    return [slice(start, min(start + rows_per_call, count)) for start in range(0, count, rows_per_call)]


def predict_in_short_calls(
    core: Core, predict: Callable[[Core, slice], object], count: int, rows_per_call: int
) -> None:
    """Predict rows by several calls of a core, all from the same state.

    Parameters
    ----------
    core : Core
        The core. Other threads may learn.
    predict : callable
        Predicts a slice of the rows with a core. If the core learns between two slices, it is called again for all of
        them with a copy.
    count : int
        Number of rows.
    rows_per_call : int
        Largest number of rows of a slice.
    """
    slices = row_slices(count, rows_per_call)
    if len(slices) > 1:
        if _predict_while_unchanged(core, predict, slices):
            return
        core = core.copy()
    for part in slices:
        predict(core, part)


def _predict_while_unchanged(core: Core, predict: Callable[[Core, slice], object], slices: list[slice]) -> bool:
    """Predict slices until the core has learned; return whether it has not."""
    clock = core.clock
    for part in slices:
        predict(core, part)
        if core.clock != clock:
            return False
    return True
