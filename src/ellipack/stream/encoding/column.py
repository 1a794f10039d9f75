"""What every kind of column can do."""

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ellipack.stream.arrow import pa
from ellipack.validation import Floats

Flags = NDArray[np.bool_]
Event = tuple[int, str | None]
"""A row with which a column gets a feature more, and the level that it is for, if it is for a level."""

Json = dict[str, Any]


class Cells(Protocol):
    """A column's cells in some rows, parsed; what that comes to is the column's own business."""

    @property
    def bad(self) -> Flags:
        """Which of them do not fit the column's kind."""

    def kept(self, rows: Flags) -> Self:
        """Return the cells of some of the rows."""


class Column(Protocol):
    """A column: how its cells become features, and what was learned of it for that.

    Attributes
    ----------
    name : as in the table.
    kind : one of `KINDS`.
    note : what there is to say about it in a report.
    """

    name: str
    kind: str
    note: str

    @property
    def missing(self) -> int:
        """How many values were missing so far."""

    def parse(self, column: pa.Array) -> Any:
        """Return cells as this column reads them; changes nothing."""

    def refusal(self, value: str) -> str:
        """Return why a value does not fit."""

    def learn(self, cells: Any) -> tuple[Any, list[Event]]:
        """Return what to write, each row by what came before it, and the rows that bring a feature more; learn."""

    def apply(self, cells: Any) -> Any:
        """Return what to write by what was learned so far; changes nothing."""

    def write(self, encoded: Any, X: Floats) -> None:
        """Write features into their columns of `X`, which is 0 so far."""

    def grow(self, level: str | None, feature: int) -> None:
        """Take the feature that an event asked for."""

    def features(self) -> dict[int, str]:
        """Return the names of the column's features, by where they stand in a row."""

    def to_json(self) -> Json:
        """Return all that is known of the column."""
