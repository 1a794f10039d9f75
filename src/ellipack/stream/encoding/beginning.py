"""The columns that an encoding begins with: which of a table's, and what each is taken for."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ellipack.errors import DomainError, StreamError
from ellipack.stream.encoding.column import Column
from ellipack.stream.encoding.converting import plain
from ellipack.stream.encoding.kinds import SNIFFED, Guess, guess
from ellipack.stream.encoding.numbers import NumberColumn
from ellipack.stream.encoding.target import Target
from ellipack.stream.encoding.texts import TextColumn
from ellipack.stream.encoding.times import PARTS, TimeColumn
from ellipack.stream.sources.batch import Batch
from ellipack.stream.sources.cells import shown
from ellipack.validation import whole
from ellipack.vocabulary import KINDS


@dataclass(frozen=True)
class Choice:
    """Which columns to use and how, as `Encoding.begin` has them."""

    take: Collection[str] | None
    drop: Collection[str]
    kinds: Mapping[str, str]
    earns_at: int
    max_levels: int

    def __post_init__(self) -> None:
        whole(self.earns_at, "earns_at", 1)
        whole(self.max_levels, "max_levels", 1)
        for name, kind in self.kinds.items():
            if kind not in KINDS:
                raise DomainError(f"the kind of column '{name}' must be one of {', '.join(KINDS)}, got {kind!r}")


def begin_columns(head: Batch, target: str, choice: Choice) -> tuple[list[Column], list[str]]:
    """Return the columns to make features of, in the order of the table, and what to warn of."""
    columns: list[Column] = []
    warnings, width = [], 0
    for name in _chosen(head, target, choice):
        found = plain(head.table.column(name).slice(0, SNIFFED), head.source, name)
        guessed = guess(name, found, choice.kinds.get(name))
        columns.append(_column(name, guessed, width, choice))
        width += len(columns[-1].features())
        warnings += [guessed.warning] if guessed.warning else []
    return columns, warnings


def begin_target(head: Batch, name: str, kind: str | None) -> Target:
    """Return the column to predict, if it holds numbers, or yes and no."""
    column = plain(head.table.column(name).slice(0, SNIFFED), head.source, name)
    found = kind or guess(name, column).kind
    if found not in ("number", "boolean"):
        cell = column.drop_null()
        value = shown(cell[0]) if len(cell) else "nothing"
        raise StreamError(f"{head.source}: the target '{name}' must hold numbers, got {value}: choose another column")
    return Target(name, found)


def _chosen(head: Batch, target: str, choice: Choice) -> list[str]:
    names = head.table.schema.names
    asked = {target: "the target", **dict.fromkeys(choice.kinds, "of a given kind")}
    asked |= dict.fromkeys(choice.drop, "to drop") | dict.fromkeys(choice.take or (), "to take")
    for name, role in asked.items():
        require(head, name, role)
    if target in choice.drop or target in (choice.take or ()):
        raise StreamError(f"{head.source}: the target '{target}' can't be taken or dropped as well: choose one")
    taken = names if choice.take is None else choice.take
    chosen = [name for name in names if name in taken and name not in choice.drop and name != target]
    if not chosen:
        raise StreamError(f"{head.source}: no column is left to predict '{target}' from: take more, or drop fewer")
    return chosen


def require(batch: Batch, name: str, role: str) -> None:
    """Raise unless a table has one column of that name."""
    names = batch.table.schema.names
    if names.count(name) != 1:
        many = "two columns" if name in names else "no column"
        listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        raise StreamError(f"{batch.source} has {many} called {shown(name)}, {role}; there are: {listed}")


def _column(name: str, guessed: Guess, feature: int, choice: Choice) -> Column:
    if guessed.kind == "time":
        count = len(PARTS[guessed.form])
        return TimeColumn(name, guessed.form, list(range(feature, feature + count)), guessed.note)
    if guessed.kind == "text":
        most = 1 if guessed.is_identifier else choice.max_levels
        return TextColumn(name, feature, choice.earns_at, most, guessed.note)
    return NumberColumn(name, guessed.kind, feature, guessed.note)
