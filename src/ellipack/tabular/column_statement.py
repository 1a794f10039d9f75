"""Say in one line what the columns of a table were taken for: `describe_columns`."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ellipack.tabular.table_batch import escape_name

_MAX_NAMES = 6
PLURALS = {
    "number": "numbers",
    "boolean": "Booleans",
    "time": "dates or times",
    "category": "text",
    "undecided": "undecided (too few values)",
}
"""Names of the kinds of columns, for the user."""


class TakenFor(NamedTuple):
    """What a column was taken for: its name, its kind, and how its cells are written, if that is unusual."""

    name: str
    kind: str
    format: str


def describe_columns(target: TakenFor, columns: Iterable[TakenFor], left_out: Sequence[tuple[str, str]]) -> str:
    """Return one line that says what columns were taken for; an empty string if all contain plain numbers.

    Parameters
    ----------
    target : TakenFor
        The target.
    columns : iterable of TakenFor
        The columns that are used.
    left_out : sequence of (str, str)
        Names of the columns that are not used, and why.

    Examples
    --------
    >>> price, sky = TakenFor("price", "number", "in €"), TakenFor("sky", "category", "")
    >>> describe_columns(TakenFor("y", "number", ""), [price, sky], [("id", "counts the rows")])
    'numbers (in €): price; text: sky; left out: id (counts the rows)'
    """
    columns = sorted(columns, key=lambda column: column.kind == "undecided")  # these come last
    groups: dict[str, list[str]] = {}
    if target.format:
        groups["target"] = [f"{escape_name(target.name)} ({target.format})"]
    for column in columns:
        kind = PLURALS[column.kind] + (f" ({column.format})" if column.format else "")
        groups.setdefault(kind, []).append(escape_name(column.name))
    if left_out:
        groups["left out"] = [f"{escape_name(name)} ({reason})" for name, reason in left_out]
    is_plain = not any(column.format or column.kind != "number" for column in [target, *columns])
    return "" if is_plain and not left_out else "; ".join(f"{kind}: {_list(names)}" for kind, names in groups.items())


def _list(names: list[str]) -> str:
    """Join names. If there are many, the last ones are counted only, except those with a remark."""
    if len(names) <= _MAX_NAMES:
        return ", ".join(names)
    shown = [name for name in names if name.endswith(")")] or names[: _MAX_NAMES - 1]
    more = [f"{len(names) - len(shown):,} more"] if len(shown) < len(names) else []
    return ", ".join([*shown, *more])
