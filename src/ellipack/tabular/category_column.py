"""Columns of categories: one-hot features for frequent categories, and one feature for all others."""

from dataclasses import dataclass

import numpy as np

from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.columns import (
    Bools,
    JsonDict,
    NewFeature,
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
"""Maximum length of a category with a feature of its own. Longer strings count as free text."""

MAX_COUNTED_CATEGORIES = 10_000
"""Maximum number of categories counted at a time. Beyond, all counts are reset, which bounds memory."""

_OTHER = 0


@dataclass(frozen=True)
class CategoryCells:
    """Parsed categories.

    Attributes
    ----------
    codes : ndarray of int
        Index into `categories` for each row.
    categories : list of str or None
        Distinct categories. None stands for a missing value.
    """

    codes: Ints
    categories: list[str | None]

    @property
    def invalid(self) -> Bools:
        """Mask of the invalid cells: all false, because any string is a category."""
        return np.zeros(len(self.codes), dtype=bool)

    def filter(self, rows: Bools) -> "CategoryCells":
        """Return the cells of the rows where the mask is true."""
        return CategoryCells(self.codes[rows], self.categories)


def parse_categories(column: pa.Array) -> CategoryCells:
    """Parse a column as categories, stripped of whitespace."""
    encoded = pc.dictionary_encode(to_strings(column))
    categories = [*to_clean_strings(encoded.dictionary).to_pylist(), None]
    codes = encoded.indices.fill_null(len(categories) - 1).to_numpy(zero_copy_only=False)
    return CategoryCells(codes.astype(np.int64), categories)


class CategoryColumn:
    """Column of categories.

    The `min_frequency`-th occurrence of a category adds a feature for it, which is 1 in that row already. Infrequent
    categories share the feature ``NAME=other``. A missing value is a category, too. Once there are `max_categories`
    features, the column is closed and gets no more. The parameters are those of scikit-learn's ``OneHotEncoder``.

    Parameters
    ----------
    name : str
        Name of the column.
    feature : int
        Index of the feature of all other categories.
    min_frequency : int
        Number of occurrences before a category gets its own feature.
    max_categories : int
        Maximum number of features, including that of all other categories.
    note : str, default ""
        Remark for the report.

    Attributes
    ----------
    closed : bool
        Whether the column gets no more features.
    n_missing : int
        Number of missing values so far.
    """

    kind = "category"

    def __init__(self, name: str, feature: int, min_frequency: int, max_categories: int, note: str = "") -> None:
        self.name, self.note = name, note
        self._min_frequency, self._max_categories = min_frequency, max_categories
        self.closed = max_categories == 1
        self._category_indices: dict[str | None, int] = {}  # of categories with a feature, starting at 1
        self._features = [feature]  # index of "other", then of each category with a feature
        self._counts: dict[str | None, int] = {}
        self.n_missing = 0

    def parse(self, column: pa.Array) -> CategoryCells:
        """Parse cells as categories."""
        return parse_categories(column)

    def explain_invalid(self, value: str) -> str:
        """Return an empty string: any string is valid."""
        return ""

    def partial_fit_transform(self, cells: CategoryCells) -> tuple[Ints, list[NewFeature]]:
        """Return the category index of each row, 0 for other categories, and the new features; update the counts."""
        encoded = self.transform(cells)
        is_missing = np.array([category is None for category in cells.categories])
        self.n_missing += int(np.count_nonzero(is_missing[cells.codes]))
        new_features: list[NewFeature] = []
        infrequent = np.flatnonzero(encoded == _OTHER) if not self.closed else np.empty(0, np.int64)
        for row, code in zip(infrequent.tolist(), cells.codes[infrequent].tolist(), strict=True):
            category = cells.categories[code]
            if category not in self._category_indices and not self.closed and self._count_and_promote(category):
                new_features.append((row, category))
            encoded[row] = self._category_indices.get(category, _OTHER)
        return encoded, new_features

    def transform(self, cells: CategoryCells) -> Ints:
        """Return the category index of each row, 0 for other categories."""
        return np.array([self._category_indices.get(category, _OTHER) for category in cells.categories])[cells.codes]

    def write_features(self, encoded: Ints, X: Floats) -> None:
        """Write the one-hot encoding to `X`."""
        X[np.arange(len(encoded)), np.array(self._features)[encoded]] = 1.0

    def add_feature(self, category: str | None, feature: int) -> None:
        """Assign an index to the feature of a category. Categories come in the order of `partial_fit_transform`."""
        self._features.append(feature)

    def feature_names(self) -> dict[int, str]:
        """Return the names of the features by index."""
        names = [f"{self.name}=other", *(_feature_name(self.name, category) for category in self._category_indices)]
        return dict(zip(self._features, names, strict=True))

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        own = {"name": self.name, "kind": self.kind, "note": self.note, "features": list(self._features)}
        rule = {"min_frequency": self._min_frequency, "max_categories": self._max_categories, "closed": self.closed}
        counts = [[category, count] for category, count in self._counts.items()]
        return own | rule | {"categories": list(self._category_indices), "counts": counts, "missing": self.n_missing}

    def _count_and_promote(self, category: str | None) -> bool:
        """Count an occurrence; return whether the category gets a feature now."""
        if category is not None and len(category) > MAX_CATEGORY_LENGTH:
            return False
        count = self._counts.get(category, 0) + 1
        if count < self._min_frequency:
            if count == 1 and len(self._counts) == MAX_COUNTED_CATEGORIES:
                self._counts.clear()
            self._counts[category] = count
            return False
        self._counts.pop(category, None)
        self._category_indices[category] = len(self._category_indices) + 1
        if len(self._category_indices) + 1 == self._max_categories:
            self.closed = True
            self._counts.clear()
        return True

    @classmethod
    def from_dict(cls, data: JsonDict) -> "CategoryColumn":
        """Restore the state from `to_dict`; raise ModelFileError if it is invalid."""
        min_frequency, most = get_int(data, "min_frequency", 1), get_int(data, "max_categories", 1)
        features = get_ints(data, "features")
        categories = [_check_category(category) for category in get_list(data, "categories")]
        if len(features) != len(categories) + 1 or len(features) > most or len(set(categories)) != len(categories):
            raise invalid_entry(
                "features", "one for each category and one for all others, without duplicates", features
            )
        column = cls(get_str(data, "name"), features[0], min_frequency, most, get_str(data, "note"))
        column.closed, column.n_missing = get_bool(data, "closed"), get_int(data, "missing")
        column._features = features
        column._category_indices = {category: i for i, category in enumerate(categories, start=1)}
        for pair in get_list(data, "counts"):
            if not isinstance(pair, list) or len(pair) != 2 or _check_category(pair[0]) in column._category_indices:
                raise invalid_entry("counts", "pairs of a category without a feature and its count", pair)
            column._counts[pair[0]] = get_int({"counts": pair[1]}, "counts", 1)
        if len(column._counts) > MAX_COUNTED_CATEGORIES or max(column._counts.values(), default=0) >= min_frequency:
            raise invalid_entry(
                "counts",
                f"at most {MAX_COUNTED_CATEGORIES:,} counts, each less than {min_frequency}",
                get_entry(data, "counts"),
            )
        if len(features) == most or column.closed:
            column.closed = True
            column._counts.clear()
        return column


def _check_category(value: object) -> str | None:
    """Return a saved category; raise ModelFileError if it is not a string or null."""
    if value is not None and not isinstance(value, str):
        raise invalid_entry("categories", "strings or null", value)
    return value


def _feature_name(column: str, category: str | None) -> str:
    """Return the name of the feature of a category, distinct from ``NAME=other``."""
    if category is None:
        return f"{column} is missing"
    return f"{column}='other'" if category == "other" else f"{column}={category}"
