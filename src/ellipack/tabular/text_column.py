"""Texts: a feature for each level that comes often enough, and one for all the others."""

from dataclasses import dataclass

import numpy as np

from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.columns import Event, Flags, Json, broken, entry, flag, listed, text, whole_number, wholes
from ellipack.tabular.table_batch import as_text, clean
from ellipack.validation import Floats, Ints

LONGEST = 100
"""Characters of a text that can be a level of its own; a longer one is prose."""

MOST_COUNTED = 10_000
"""Levels that are counted at a time; when there are more, counting starts anew, so that memory is bounded."""

_OTHER = 0


@dataclass(frozen=True)
class Codes:
    """For each row the place of its level in a list; a missing text is a level too, None."""

    codes: Ints
    levels: list[str | None]

    @property
    def bad(self) -> Flags:
        """No cell is bad: any text is a text."""
        return np.zeros(len(self.codes), dtype=bool)

    def kept(self, rows: Flags) -> "Codes":
        """Return the codes in some of the rows."""
        return Codes(self.codes[rows], self.levels)


def parse_texts(column: pa.Array) -> Codes:
    """Return a column as levels, without space around them."""
    encoded = pc.dictionary_encode(as_text(column))
    levels = [*clean(encoded.dictionary).to_pylist(), None]
    codes = encoded.indices.fill_null(len(levels) - 1).to_numpy(zero_copy_only=False)
    return Codes(codes.astype(np.int64), levels)


class TextColumn:
    """A column of texts.

    A level gets a feature when it comes the `min_frequency`-th time, in that row already, as long as there are fewer
    than `max_categories` features, that of all the others among them. A column that is closed gets no more.
    """

    kind = "text"

    def __init__(self, name: str, feature: int, min_frequency: int, max_categories: int, note: str = "") -> None:
        self.name, self.note = name, note
        self._earns_at, self._max_levels = min_frequency, max_categories
        self.closed = max_categories == 1
        self._earned: dict[str | None, int] = {}  # levels with a feature, numbered from 1
        self._features = [feature]  # of the others, and then of each level that earned one
        self._counts: dict[str | None, int] = {}
        self.missing = 0

    def parse(self, column: pa.Array) -> Codes:
        """Return cells as levels."""
        return parse_texts(column)

    def refusal(self, value: str) -> str:
        """Return nothing: any text fits."""
        return ""

    def learn(self, cells: Codes) -> tuple[Ints, list[Event]]:
        """Return each row's number of its level, 0 for the others, and the rows in which levels earn a feature."""
        encoded = self.apply(cells)
        absent = np.array([level is None for level in cells.levels])
        self.missing += int(np.count_nonzero(absent[cells.codes]))
        events: list[Event] = []
        rare = np.flatnonzero(encoded == _OTHER) if not self.closed else np.empty(0, np.int64)
        for row, code in zip(rare.tolist(), cells.codes[rare].tolist(), strict=True):
            level = cells.levels[code]
            if level not in self._earned and not self.closed and self._earns(level):
                events.append((row, level))
            encoded[row] = self._earned.get(level, _OTHER)
        return encoded, events

    def apply(self, cells: Codes) -> Ints:
        """Return each row's number of its level, 0 for the others."""
        return np.array([self._earned.get(level, _OTHER) for level in cells.levels])[cells.codes]

    def write(self, encoded: Ints, X: Floats) -> None:
        """Write 1 for the level that a row has."""
        X[np.arange(len(encoded)), np.array(self._features)[encoded]] = 1.0

    def grow(self, level: str | None, feature: int) -> None:
        """Take the feature for a level; levels come in the order in which they earned it."""
        self._features.append(feature)

    def features(self) -> dict[int, str]:
        """Return the names of the features by their places."""
        names = [f"{self.name}=other", *(_named(self.name, level) for level in self._earned)]
        return dict(zip(self._features, names, strict=True))

    def to_dict(self) -> Json:
        """Return all that is known of the column."""
        own = {"name": self.name, "kind": self.kind, "note": self.note, "features": list(self._features)}
        rule = {"min_frequency": self._earns_at, "max_categories": self._max_levels, "closed": self.closed}
        counts = [[level, count] for level, count in self._counts.items()]
        return own | rule | {"levels": list(self._earned), "counts": counts, "missing": self.missing}

    def _earns(self, level: str | None) -> bool:
        """Count a level; return whether it has earned a feature, and note that."""
        if level is not None and len(level) > LONGEST:
            return False
        count = self._counts.get(level, 0) + 1
        if count < self._earns_at:
            if count == 1 and len(self._counts) == MOST_COUNTED:
                self._counts.clear()
            self._counts[level] = count
            return False
        self._counts.pop(level, None)
        self._earned[level] = len(self._earned) + 1
        if len(self._earned) + 1 == self._max_levels:
            self.closed = True
            self._counts.clear()
        return True

    @classmethod
    def from_dict(cls, data: Json) -> "TextColumn":
        """Return what `to_dict` was taken of."""
        min_frequency, most = whole_number(data, "min_frequency", 1), whole_number(data, "max_categories", 1)
        places, levels = wholes(data, "features"), [_level(level) for level in listed(data, "levels")]
        if len(places) != len(levels) + 1 or len(places) > most or len(set(levels)) != len(levels):
            raise broken("features", "one for each level and one for the others, none twice", places)
        column = cls(text(data, "name"), places[0], min_frequency, most, text(data, "note"))
        column.closed, column.missing = flag(data, "closed"), whole_number(data, "missing")
        column._features, column._earned = places, {level: i for i, level in enumerate(levels, start=1)}
        for pair in listed(data, "counts"):
            if not isinstance(pair, list) or len(pair) != 2 or _level(pair[0]) in column._earned:
                raise broken("counts", "pairs of a level that has no feature and its count", pair)
            column._counts[pair[0]] = whole_number({"counts": pair[1]}, "counts", 1)
        if len(column._counts) > MOST_COUNTED or max(column._counts.values(), default=0) >= min_frequency:
            raise broken(
                "counts", f"at most {MOST_COUNTED:,} counts, each less than {min_frequency}", entry(data, "counts")
            )
        if len(places) == most or column.closed:
            column.closed = True
            column._counts.clear()
        return column


def _level(value: object) -> str | None:
    """Return a level that was saved."""
    if value is not None and not isinstance(value, str):
        raise broken("levels", "texts or null", value)
    return value


def _named(column: str, level: str | None) -> str:
    """Return the name of a level's feature, never that of the others' or of another level's."""
    if level is None:
        return f"{column} is missing"
    return f"{column}='other'" if level == "other" else f"{column}={level}"
