"""What goes into an encoding and what comes out of it, besides tables."""

from dataclasses import dataclass
from typing import NamedTuple

from ellipack.stream.encoding.column import Cells
from ellipack.stream.sources.batch import BadRow
from ellipack.validation import Floats, Ints


@dataclass(frozen=True)
class Rows:
    """Rows that are ready to be encoded: read, and found to fit.

    Attributes
    ----------
    numbers : for each row, its place in the source, from 1.
    labels : their labels; none if they were read without.
    bad : the rows that were skipped, and why.
    cells : the rows, column by column.
    """

    numbers: Ints
    labels: Floats
    bad: tuple[BadRow, ...]
    cells: list[Cells]

    def __len__(self) -> int:
        return len(self.numbers)


class Part(NamedTuple):
    """Features of consecutive rows, within which there are no new ones.

    Attributes
    ----------
    rows : which of the rows they are of.
    X : their features.
    scales : how large the features are that are new with this part: what `StreamRegressor.widen` takes. Mostly empty.
    """

    rows: slice
    X: Floats
    scales: Floats


class Summary(NamedTuple):
    """What there is to say about a column in a report."""

    name: str
    kind: str
    note: str
    missing: int
