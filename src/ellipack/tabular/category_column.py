"""Columns of categories: one-hot features while there are few levels, target statistics for many."""

from copy import copy
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from ellipack.choices import DEFAULT_LEVEL_MEMORY, DEFAULT_LEVELS
from ellipack.learners.metric.effects import EffectGrid
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
from ellipack.tabular.target_statistics import STATISTICS, LearnedRows, Level, LevelStatistics, check_level
from ellipack.validation import Floats, Ints, check_integer

MAX_LEVEL_LENGTH = 100
"""Maximum length of a level with a one-hot feature. Longer strings count as free text."""

_OTHER = 0
_MAX_EFFECT_LEVELS = 12
_MIN_REPEATED, _MIN_REPEATED_SHARE = 20, 0.05  # rows of known levels, before an identifier is used


@dataclass(frozen=True)
class LevelOptions:
    """Options of category columns. A level is a distinct value; a missing value is a level, too.

    Attributes
    ----------
    min_frequency : int, default 5
        Number of occurrences before a level gets a one-hot feature.
    one_hot : int, default 32
        Number of levels up to which a column is one-hot encoded. With more levels, it gets target statistics.
    remembered : int, default 50,000
        Number of levels of a column that are remembered. Beyond, the least recently used level is forgotten.
    """

    min_frequency: int = 5
    one_hot: int = DEFAULT_LEVELS
    remembered: int = DEFAULT_LEVEL_MEMORY

    def __post_init__(self) -> None:
        check_integer(self.min_frequency, "min_frequency", 1)
        check_integer(self.one_hot, "one_hot", 0)
        check_integer(self.remembered, "remembered", 1)

    @classmethod
    def from_dict(cls, data: JsonDict) -> "LevelOptions":
        """Restore options from a saved state; raise ModelFileError if they are invalid."""
        return cls(get_int(data, "min_frequency", 1), get_int(data, "one_hot"), get_int(data, "remembered", 1))


@dataclass(frozen=True)
class CategoryCells:
    """Parsed cells of a category column.

    Attributes
    ----------
    codes : ndarray of int
        Index into `levels` for each row.
    levels : list of str or None
        Levels, possibly with duplicates.
    """

    codes: Ints
    levels: list[Level]

    @property
    def invalid(self) -> Bools:
        """Mask of the invalid cells: all false, because any string is a level."""
        return np.zeros(len(self.codes), dtype=bool)

    def filter(self, rows: Bools) -> "CategoryCells":
        """Return the cells of the rows where the mask is true."""
        return CategoryCells(self.codes[rows], self.levels)


class EncodedCategories(NamedTuple):
    """Encoded cells of a category column.

    Attributes
    ----------
    indices : ndarray of int
        Index of the one-hot feature of each row, 0 for that of all other levels.
    statistics : ndarray of float, shape (n_rows, 3)
        Values of `STATISTICS` for each row.
    """

    indices: Ints
    statistics: Floats


def parse_categories(column: pa.Array) -> CategoryCells:
    """Parse a column as categories, stripped of whitespace."""
    encoded = pc.dictionary_encode(to_strings(column))
    levels = [*to_clean_strings(encoded.dictionary).to_pylist(), None]
    codes = encoded.indices.fill_null(len(levels) - 1).to_numpy(zero_copy_only=False)
    return CategoryCells(codes.astype(np.int64), levels)


class CategoryColumn:
    """Column of categories.

    **One-hot features.** The `min_frequency`-th occurrence of a level adds a feature for it, which is 1 in that row
    already. Infrequent levels share the feature ``NAME=other``. A column with many levels from the start has none of
    these. If the first cells all have the same level, it has a feature from the first row on, so that the features
    are constant, too.

    **Target statistics.** When there are more levels than `LevelOptions.one_hot`, the column gets the features of
    `LevelStatistics`, and no more one-hot features. It keeps those that it has. Statistics are learned from the first
    row on, so that they are known when they are needed.

    **Identifiers.** A column whose first values are all different is left out: it has no features. It gets the
    statistics when its values come again in at least 20 rows, and in 5% of the rows.

    Parameters
    ----------
    name : str
        Name of the column.
    target : str
        Name of the target column.
    features : list of int
        Indices of the first features: one for all other levels and one for `only_level`, if it is given, or three for
        the statistics, or none.
    options : LevelOptions
        Options.
    note : str, default ""
        Remark for the report.
    only_level : str or None, default None
        Level of all first cells, which has a feature from the first row on.

    Attributes
    ----------
    n_missing : int
        Number of missing values so far.
    """

    kind = "category"

    def __init__(
        self,
        name: str,
        target: str,
        features: list[int],
        options: LevelOptions,
        note: str = "",
        only_level: str | None = None,
    ) -> None:
        self.name, self.options, self.n_missing = name, options, 0
        self._target, self._features, self._note = target, features, note
        # Of levels with a one-hot feature, starting at 1.
        self._one_hot_indices: dict[Level, int] = {} if only_level is None else {only_level: 1}
        self._has_other = len(features) == 1 + len(self._one_hot_indices)
        self._has_statistics = len(features) == len(STATISTICS)
        self._n_other = 0
        self._statistics = LevelStatistics(options.remembered)

    @property
    def is_left_out(self) -> bool:
        """Whether the column has no features, because its values seem to identify rows."""
        return not (self._has_other or self._has_statistics)

    @property
    def note(self) -> str:
        """Remark for the report, with the number of rows whose level has no feature or no statistics yet."""
        other = f"{self._n_other:,} rows in 'other'" if self._n_other else ""
        statistics = f"statistics of {len(self._statistics):,} levels"
        unknown = f"{self._statistics.n_unknown:,} rows with a new or forgotten level"
        left_out = "left out" if self.is_left_out else ""
        notes = [left_out, self._note, other, *([statistics, unknown] if self._has_statistics else [])]
        return "; ".join(filter(None, notes))

    def describe_format(self) -> str:
        """Return an empty string: nothing is unusual."""
        return ""

    def parse(self, column: pa.Array) -> CategoryCells:
        """Parse cells as categories."""
        return parse_categories(column)

    def explain_invalid(self, value: str) -> str:
        """Return an empty string: any string is valid."""
        return ""

    def draft(self) -> "CategoryColumn":
        """Return the same column, which can be changed without effect on this one."""
        own = copy(self)
        own._features, own._one_hot_indices = list(self._features), dict(self._one_hot_indices)
        own._statistics = self._statistics.draft()
        return own

    def commit(self) -> None:
        """Make the changes of a draft final. What it is a draft of must not be used any more."""
        self._statistics.commit()

    def partial_fit_transform(self, cells: CategoryCells, labels: Floats) -> tuple[EncodedCategories, list[NewFeature]]:
        """Encode cells row by row, each before its label is learned, and return the new features."""
        levels = [_shorten(level) for level in cells.levels]
        n_unknown, n_known = self._statistics.n_unknown, self._statistics.n_known
        learned = self._statistics.learn([levels[code] for code in cells.codes.tolist()], labels)
        indices, new_features = self._one_hot_of(levels)[cells.codes], list[NewFeature]()
        if self.is_left_out:
            repeated = n_known + np.cumsum(learned.counts > 0)
            n_rows = n_unknown + n_known + np.arange(1, len(indices) + 1)
            comes_again = (repeated >= _MIN_REPEATED) & (repeated >= _MIN_REPEATED_SHARE * n_rows)
            end = int(comes_again.argmax()) if comes_again.any() else len(indices)
            new_features = self._start_statistics(end, learned)
        elif not self._has_statistics:
            n_levels = n_unknown + np.cumsum(learned.counts == 0)
            end = int(np.searchsorted(n_levels, self.options.one_hot, side="right"))
            new_features = self._add_one_hot_features(cells, learned.counts[:end], indices)
            new_features += self._start_statistics(end, learned)
        self.n_missing += int(np.count_nonzero(np.array([level is None for level in levels])[cells.codes]))
        self._n_other += int(np.count_nonzero(indices == _OTHER)) if self._has_other else 0
        return EncodedCategories(indices, learned.features), new_features

    def _start_statistics(self, row: int, learned: LearnedRows) -> list[NewFeature]:
        """Return the features of the statistics, from a row on, unless it is beyond the last one."""
        if row >= len(learned.counts):
            return []
        self._has_statistics = True
        scale = float(learned.label_scales[row])
        return [NewFeature(row, scale), NewFeature(row, scale), NewFeature(row, 1.0)]

    def transform(self, cells: CategoryCells) -> EncodedCategories:
        """Encode cells with the current state, without changing it."""
        levels = [_shorten(level) for level in cells.levels]
        return EncodedCategories(self._one_hot_of(levels)[cells.codes], self._statistics.features(levels)[cells.codes])

    def write_features(self, encoded: EncodedCategories, X: Floats) -> None:
        """Write the one-hot features and the statistics to `X`."""
        n_statistics = len(STATISTICS) if self._has_statistics else 0
        one_hot = np.array(self._features[: len(self._features) - n_statistics])
        if self._has_other:
            X[np.arange(len(X)), one_hot[encoded.indices]] = 1.0
        if n_statistics:
            X[:, self._features[-n_statistics:]] = encoded.statistics

    def add_feature(self, feature: int) -> None:
        """Assign an index to a new feature. They come in the order of `partial_fit_transform`."""
        self._features.append(feature)

    def start_late(self, first: pa.Array, n_missing: int, feature: int) -> list[float]:
        """Start with the feature of all other levels, if any."""
        self.n_missing = n_missing
        return [1.0] * len(self._features)

    def feature_names(self) -> dict[int, str]:
        """Return the names of the features by index."""
        names = [f"{self.name}=other"] if self._has_other else []
        names += [_one_hot_name(self.name, level) for level in self._one_hot_indices]
        if self._has_statistics:
            names += [f"mean of {self._target} by {self.name}", f"last {self._target} by {self.name}"]
            names += [f"log count of {self.name}"]
        return dict(zip(self._features, names, strict=True))

    def effect_grids(self, rows: Floats) -> list[EffectGrid]:
        """Return the most frequent levels."""
        levels = [] if self.is_left_out else self._statistics.most_frequent(_MAX_EFFECT_LEVELS)
        if not levels:
            return []
        X = np.zeros((len(levels), rows.shape[1]))
        self.write_features(EncodedCategories(self._one_hot_of(levels), self._statistics.features(levels)), X)
        labels = tuple("missing" if level is None else level for level in levels)
        return [
            EffectGrid(self.name, list(self._features), X[:, self._features], np.arange(float(len(levels))), labels)
        ]

    def _one_hot_of(self, levels: list[Level]) -> Ints:
        """Return the one-hot index of each level, 0 for those without a feature."""
        return np.array([self._one_hot_indices.get(level, _OTHER) for level in levels], dtype=np.int64)

    def _add_one_hot_features(self, cells: CategoryCells, counts: Ints, indices: Ints) -> list[NewFeature]:
        """Add a feature at each row whose level becomes frequent, update the indices and return the new features."""
        new_features = []
        for row in np.flatnonzero(counts == self.options.min_frequency - 1).tolist():
            level = cells.levels[cells.codes[row]]
            if level in self._one_hot_indices or len(level or "") > MAX_LEVEL_LENGTH:
                continue
            self._one_hot_indices[level] = len(self._one_hot_indices) + 1
            is_level = np.array([each == level for each in cells.levels])[cells.codes[row:]]
            indices[row:][is_level] = self._one_hot_indices[level]
            new_features.append(NewFeature(row, 1.0))
        return new_features

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        own = {"name": self.name, "kind": self.kind, "note": self._note, "target": self._target}
        counts = {"missing": self.n_missing, "in_other": self._n_other}
        one_hot = {"has_other": self._has_other, "one_hot": list(self._one_hot_indices)}
        statistics = {"has_statistics": self._has_statistics, "statistics": self._statistics.to_dict()}
        rules = {"options": asdict(self.options), "features": list(self._features)}
        return own | rules | counts | one_hot | statistics

    @classmethod
    def from_dict(cls, data: JsonDict) -> "CategoryColumn":
        """Restore the state from `to_dict`; raise ModelFileError if it is invalid."""
        options, features = LevelOptions.from_dict(get_entry(data, "options")), get_ints(data, "features")
        levels = [check_level(level) for level in get_list(data, "one_hot")]
        column = cls(get_str(data, "name"), get_str(data, "target"), features, options, get_str(data, "note"))
        column._has_other, column._has_statistics = get_bool(data, "has_other"), get_bool(data, "has_statistics")
        column.n_missing, column._n_other = get_int(data, "missing"), get_int(data, "in_other")
        column._one_hot_indices = {level: i for i, level in enumerate(levels, start=1)}
        column._statistics = LevelStatistics.from_dict(get_entry(data, "statistics"), options.remembered)
        n_features = len(levels) + column._has_other + len(STATISTICS) * column._has_statistics
        if len(set(levels)) != len(levels) or len(features) != n_features:
            raise invalid_entry("features", f"{n_features} features, for distinct levels", len(features))
        if levels and not column._has_other:
            raise invalid_entry("has_other", "true if there are one-hot features", column._has_other)
        return column


def _shorten(level: Level) -> Level:
    """Return a level, or a digest of it if it is long, which bounds memory."""
    if level is None or len(level) <= MAX_LEVEL_LENGTH:
        return level
    return blake2b(level.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _one_hot_name(column: str, level: Level) -> str:
    """Return the name of the feature of a level, distinct from ``NAME=other``."""
    if level is None:
        return f"{column} is missing"
    return f"{column}='other'" if level == "other" else f"{column}={level}"
