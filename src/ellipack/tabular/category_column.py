"""Texts: a feature for each category that comes often enough, and one for all the others."""

from dataclasses import dataclass

import numpy as np

from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.columns import (
    Bools,
    NewFeature,
    State,
    get_bool,
    get_entry,
    get_int,
    get_ints,
    get_list,
    get_str,
    invalid_entry,
)
from ellipack.tabular.table_batch import to_clean_strings, to_strings
from ellipack.validation import Floats, Ints

MAX_CATEGORY_LENGTH = 100
"""Characters of a text that can be a category of its own; a longer one is prose."""

MAX_COUNTED_CATEGORIES = 10_000
"""Levels that are counted at a time; when there are more, counting starts anew, so that memory is bounded."""

_OTHER = 0


@dataclass(frozen=True)
class CategoryCells:
    """For each row the place of its category in a list; a missing text is a category too, None."""

    codes: Ints
    categories: list[str | None]

    @property
    def invalid(self) -> Bools:
        """No cell is bad: any text is a text."""
        return np.zeros(len(self.codes), dtype=bool)

    def filter(self, rows: Bools) -> "CategoryCells":
        """Return the codes in some of the rows."""
        return CategoryCells(self.codes[rows], self.categories)


def parse_categories(column: pa.Array) -> CategoryCells:
    """Return a column as categories, without space around them."""
    encoded = pc.dictionary_encode(to_strings(column))
    categories = [*to_clean_strings(encoded.dictionary).to_pylist(), None]
    codes = encoded.indices.fill_null(len(categories) - 1).to_numpy(zero_copy_only=False)
    return CategoryCells(codes.astype(np.int64), categories)


class CategoryColumn:
    """A column of texts.

    A category gets a feature when it comes the `min_frequency`-th time, in that row already, as long as there are fewer
    than `max_categories` features, that of all the others among them. A column that is closed gets no more.
    """

    kind = "category"

    def __init__(self, name: str, feature: int, min_frequency: int, max_categories: int, note: str = "") -> None:
        self.name, self.note = name, note
        self._earns_at, self._max_levels = min_frequency, max_categories
        self.closed = max_categories == 1
        self._category_indices: dict[str | None, int] = {}  # categories with a feature, numbered from 1
        self._features = [feature]  # of the others, and then of each category that earned one
        self._counts: dict[str | None, int] = {}
        self.n_missing = 0

    def parse(self, column: pa.Array) -> CategoryCells:
        """Return cells as categories."""
        return parse_categories(column)

    def explain_invalid(self, value: str) -> str:
        """Return nothing: any text fits."""
        return ""

    def partial_fit_transform(self, cells: CategoryCells) -> tuple[Ints, list[NewFeature]]:
        """Return each row's index of its category, 0 for the others, and the rows in which categories get a feature."""
        encoded = self.transform(cells)
        absent = np.array([category is None for category in cells.categories])
        self.n_missing += int(np.count_nonzero(absent[cells.codes]))
        events: list[NewFeature] = []
        rare = np.flatnonzero(encoded == _OTHER) if not self.closed else np.empty(0, np.int64)
        for row, code in zip(rare.tolist(), cells.codes[rare].tolist(), strict=True):
            category = cells.categories[code]
            if category not in self._category_indices and not self.closed and self._count_and_promote(category):
                events.append((row, category))
            encoded[row] = self._category_indices.get(category, _OTHER)
        return encoded, events

    def transform(self, cells: CategoryCells) -> Ints:
        """Return each row's number of its category, 0 for the others."""
        return np.array([self._category_indices.get(category, _OTHER) for category in cells.categories])[cells.codes]

    def write_features(self, encoded: Ints, X: Floats) -> None:
        """Write 1 for the category that a row has."""
        X[np.arange(len(encoded)), np.array(self._features)[encoded]] = 1.0

    def add_feature(self, category: str | None, feature: int) -> None:
        """Take the feature for a category; categories come in the order in which they earned it."""
        self._features.append(feature)

    def feature_names(self) -> dict[int, str]:
        """Return the names of the features by their places."""
        names = [f"{self.name}=other", *(_feature_name(self.name, category) for category in self._category_indices)]
        return dict(zip(self._features, names, strict=True))

    def to_dict(self) -> State:
        """Return all that is known of the column."""
        own = {"name": self.name, "kind": self.kind, "note": self.note, "features": list(self._features)}
        rule = {"min_frequency": self._earns_at, "max_categories": self._max_levels, "closed": self.closed}
        counts = [[category, count] for category, count in self._counts.items()]
        return own | rule | {"categories": list(self._category_indices), "counts": counts, "missing": self.n_missing}

    def _count_and_promote(self, category: str | None) -> bool:
        """Count a category; return whether it has earned a feature, and note that."""
        if category is not None and len(category) > MAX_CATEGORY_LENGTH:
            return False
        count = self._counts.get(category, 0) + 1
        if count < self._earns_at:
            if count == 1 and len(self._counts) == MAX_COUNTED_CATEGORIES:
                self._counts.clear()
            self._counts[category] = count
            return False
        self._counts.pop(category, None)
        self._category_indices[category] = len(self._category_indices) + 1
        if len(self._category_indices) + 1 == self._max_levels:
            self.closed = True
            self._counts.clear()
        return True

    @classmethod
    def from_dict(cls, data: State) -> "CategoryColumn":
        """Return what `to_dict` was taken of."""
        min_frequency, most = get_int(data, "min_frequency", 1), get_int(data, "max_categories", 1)
        places, categories = (
            get_ints(data, "features"),
            [_check_category(category) for category in get_list(data, "categories")],
        )
        if len(places) != len(categories) + 1 or len(places) > most or len(set(categories)) != len(categories):
            raise invalid_entry("features", "one for each category and one for the others, none twice", places)
        column = cls(get_str(data, "name"), places[0], min_frequency, most, get_str(data, "note"))
        column.closed, column.n_missing = get_bool(data, "closed"), get_int(data, "missing")
        column._features, column._category_indices = (
            places,
            {category: i for i, category in enumerate(categories, start=1)},
        )
        for pair in get_list(data, "counts"):
            if not isinstance(pair, list) or len(pair) != 2 or _check_category(pair[0]) in column._category_indices:
                raise invalid_entry("counts", "pairs of a category that has no feature and its count", pair)
            column._counts[pair[0]] = get_int({"counts": pair[1]}, "counts", 1)
        if len(column._counts) > MAX_COUNTED_CATEGORIES or max(column._counts.values(), default=0) >= min_frequency:
            raise invalid_entry(
                "counts",
                f"at most {MAX_COUNTED_CATEGORIES:,} counts, each less than {min_frequency}",
                get_entry(data, "counts"),
            )
        if len(places) == most or column.closed:
            column.closed = True
            column._counts.clear()
        return column


def _check_category(value: object) -> str | None:
    """Return a category that was saved."""
    if value is not None and not isinstance(value, str):
        raise invalid_entry("categories", "texts or null", value)
    return value


def _feature_name(column: str, category: str | None) -> str:
    """Return the name of a category's feature, never that of the others' or of another category's."""
    if category is None:
        return f"{column} is missing"
    return f"{column}='other'" if category == "other" else f"{column}={category}"
