"""From the rows of a table to features, learning on the way: `Encoding`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ellipack.choices import ON_ERROR
from ellipack.errors import CheckpointError, DomainError
from ellipack.tabular.columns import Cells, Column, Flags, Json, broken, entry, listed, plain, text, whole_number
from ellipack.tabular.kind_inference import Choice, begin_columns, begin_target, require
from ellipack.tabular.number_column import NumberColumn, Target
from ellipack.tabular.table_batch import BadRow, Batch, clean
from ellipack.tabular.text_column import TextColumn
from ellipack.tabular.time_column import TimeColumn
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
    scales : sizes of the features that are new with this part, for `StreamingRegressor.add_features`. Mostly empty.
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


_VERSION = 1
_KINDS: dict[str, Callable[[Json], Column]] = {
    "number": NumberColumn.from_json,
    "boolean": NumberColumn.from_json,
    "time": TimeColumn.from_json,
    "text": TextColumn.from_json,
}


class Encoding:
    """Features for the rows of a table, as they come.

    A row's features depend on that row and those before it, on nothing else: not on how rows are cut into batches, nor
    on whether the run was interrupted and went on from `to_json`. New features come up on the way (a text that was
    seen often enough, a first missing value), always as last columns, and are 0 in all rows before.

    ========= ====================================================================================================
    kind      features
    ========= ====================================================================================================
    number    the number; whole numbers past 2^53 are rounded to what a float holds. If missing, the mean so far, and
              from the first that is missing on, ``NAME is missing``
    boolean   1 or 0; if missing, as a number
    time      sine and cosine of the hour (if the first rows have a time of day), the weekday and the day of the year,
              and the days since the first row, all in UTC; if missing, ``NAME is missing``
    text      ``NAME=LEVEL`` for each text that came often enough, up to a number; ``NAME=other`` for all others. What
              is missing is a level as well
    ========= ====================================================================================================

    Attributes
    ----------
    target : the name of the column to predict.
    warnings : what to tell whoever chose the columns.

    Examples
    --------
    >>> from ellipack.tabular.arrow import pa
    >>> from ellipack.tabular import Batch
    >>> table = Batch.of(pa.table({"sky": ["blue", "grey", "blue"], "wind": ["3", "?", "5"], "y": ["1", "2", "3"]}))
    >>> encoding = Encoding.begin(table, "y", earns_at=2)
    >>> rows = encoding.read(table)
    >>> for part in encoding.encode(rows):
    ...     print(rows.labels[part.rows], part.X.tolist(), part.scales)
    [1.] [[1.0, 3.0]] []
    [2.] [[1.0, 3.0, 1.0]] [1.]
    [3.] [[0.0, 5.0, 0.0, 1.0]] [1.]
    >>> encoding.names
    ['sky=other', 'wind', 'wind is missing', 'sky=blue']
    """

    def __init__(self, target: Target, columns: list[Column], warnings: list[str]) -> None:
        self._target, self._columns, self.warnings = target, columns, warnings
        self._names = _unique_names(columns)

    @classmethod
    def begin(
        cls,
        head: Batch,
        target: str,
        *,
        take: Collection[str] | None = None,
        drop: Collection[str] = (),
        kinds: Mapping[str, str] | None = None,
        earns_at: int = 5,
        max_levels: int = 32,
    ) -> "Encoding":
        """Return an encoding that has learned nothing yet but what kind each column is.

        Parameters
        ----------
        head : the first rows of the table; the first `SNIFFED` of them tell.
        target : the column to predict.
        take : the columns to make features of; all others if left out.
        drop : columns to make none of.
        kinds : for some columns, their kinds, where they are not to be guessed.
        earns_at : the how-manieth time a text comes it gets a feature of its own.
        max_levels : the features that a column of texts may have, that of all the other texts included.
        """
        choice = Choice(take, drop, kinds or {}, earns_at, max_levels)
        columns, warnings = begin_columns(head, target, choice)
        return cls(begin_target(head, target, choice.kinds.get(target)), columns, warnings)

    @property
    def target(self) -> str:
        """The name of the column to predict."""
        return self._target.name

    @property
    def names(self) -> list[str]:
        """The names of the features so far, each one once."""
        return list(self._names)

    def columns(self) -> list[Summary]:
        """Return what there is to say about each column."""
        return [Summary(column.name, column.kind, column.note, column.missing) for column in self._columns]

    def unused(self, names: Sequence[str]) -> list[str]:
        """Return which columns of a table are neither made features of nor predicted."""
        used = {self._target.name, *(column.name for column in self._columns)}
        return [name for name in names if name not in used]

    def read(self, batch: Batch, on_error: str = "stop") -> Rows:
        """Return the rows of a batch with their labels; changes nothing.

        Parameters
        ----------
        batch : rows with at least the columns that are used, in any order.
        on_error : ``stop`` raises StreamError at the first value that does not fit its column's kind, or is larger than
            `LARGEST`, and at a label that is missing or larger than `LARGEST_LABEL`; ``skip`` leaves such rows out.
        """
        require(batch, self._target.name, "the target")
        column = plain(batch.table.column(self._target.name), batch.source, self._target.name)
        return self._read(batch, on_error, column)

    def read_unlabelled(self, batch: Batch, on_error: str = "stop") -> Rows:
        """Return the rows of a batch that has no labels, or whose labels don't matter; changes nothing."""
        return self._read(batch, on_error, None)

    def encode(self, rows: Rows) -> list[Part]:
        """Return the features of rows, in parts within which their number does not change, and learn from them."""
        outcomes = [column.learn(cells) for column, cells in zip(self._columns, rows.cells, strict=True)]
        asked = sorted((row, i, level) for i, (_, events) in enumerate(outcomes) for row, level in events)
        width = len(self._names)
        for feature, (_, i, level) in enumerate(asked, start=width):
            self._columns[i].grow(level, feature)
        if asked:
            self._names = _unique_names(self._columns)
        X = np.zeros((len(rows), len(self._names)))
        for column, (encoded, _) in zip(self._columns, outcomes, strict=True):
            column.write(encoded, X)
        return _parts(X, [row for row, _, _ in asked])

    def encode_only(self, rows: Rows) -> Floats:
        """Return the features of rows by what was learned so far; changes nothing. A text that is new is another."""
        X = np.zeros((len(rows), len(self._names)))
        for column, cells in zip(self._columns, rows.cells, strict=True):
            column.write(column.apply(cells), X)
        return X

    def to_json(self) -> Json:
        """Return all that was learned, as JSON holds it without loss."""
        columns = [column.to_json() for column in self._columns]
        own = {"version": _VERSION, "target": self._target.to_json(), "warnings": list(self.warnings)}
        return own | {"columns": columns}

    @classmethod
    def from_json(cls, data: Any) -> "Encoding":
        """Return the encoding that `to_json` was taken of; raise CheckpointError if it was of none."""
        version = whole_number(data, "version", 1)
        if version > _VERSION:
            raise CheckpointError(f"the encoding was saved by a later ellipack (version {version}, ours is {_VERSION})")
        columns = []
        for saved in listed(data, "columns"):
            kind = text(saved, "kind")
            if kind not in _KINDS:
                raise broken("kind", f"one of {', '.join(_KINDS)}", kind)
            columns.append(_KINDS[kind](saved))
        target = Target.from_json(entry(data, "target"))
        names = [target.name, *(column.name for column in columns)]
        places = sorted(place for column in columns for place in column.features())
        if len(set(names)) != len(names) or not columns or places != list(range(len(places))):
            raise broken("columns", "columns of different names, with features that are numbered through", names)
        return cls(target, columns, [text({"warnings": each}, "warnings") for each in listed(data, "warnings")])

    def _read(self, batch: Batch, on_error: str, labels: Any) -> Rows:
        if on_error not in ON_ERROR:
            raise DomainError(f"on_error must be one of {', '.join(ON_ERROR)}, got {on_error!r}")
        cells: list[Cells] = []
        faults: dict[int, BadRow] = {}
        for column in self._columns:
            require(batch, column.name, "which features are made of")
            found = plain(batch.table.column(column.name), batch.source, column.name)
            cells.append(column.parse(found))
            for row in np.flatnonzero(cells[-1].bad).tolist():
                reason = column.refusal(clean(found.slice(row, 1))[0].as_py())
                faults.setdefault(row, BadRow(int(batch.numbers[row]), reason, column.name))
        values = np.empty(0)
        if labels is not None:
            parsed = self._target.parse(labels)
            values = parsed.values
            for row in np.flatnonzero(parsed.bad).tolist():
                reason = self._target.refusal(clean(labels.slice(row, 1))[0].as_py())
                faults.setdefault(row, BadRow(int(batch.numbers[row]), reason, self._target.name))
        bad = tuple(faults[row] for row in sorted(faults))
        if not bad:
            return Rows(batch.numbers, values, bad, cells)
        if on_error == "stop":
            raise bad[0].error(batch.source)
        kept: Flags = np.ones(len(batch), dtype=bool)
        kept[list(faults)] = False
        values = values if labels is None else values[kept]
        return Rows(batch.numbers[kept], values, bad, [each.kept(kept) for each in cells])


def _parts(X: Floats, growth: list[int]) -> list[Part]:
    """Cut features into parts, given the row that each of the last columns came up in."""
    parts = []
    starts = sorted({0, *growth})
    width = X.shape[1] - len(growth)
    for start, stop in zip(starts, [*starts[1:], len(X)], strict=True):
        new = growth.count(start)
        width += new
        if stop > start:
            parts.append(Part(slice(start, stop), np.ascontiguousarray(X[start:stop, :width]), np.ones(new)))
    return parts


def _unique_names(columns: list[Column]) -> list[str]:
    """Return the features' names in their order; one that was there before gets a number after it."""
    by_place = sorted((place, name) for column in columns for place, name in column.features().items())
    names: dict[str, None] = {}
    for _, name in by_place:
        unique, number = name, 2
        while unique in names:
            unique, number = f"{name} ({number})", number + 1
        names[unique] = None
    return list(names)
