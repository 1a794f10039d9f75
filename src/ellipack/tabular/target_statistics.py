"""Running statistics of the labels of each level of a category column: `LevelStatistics`.

A level is a distinct value of a category column. One-hot features of thousands of levels are many and mostly 0. The
statistics describe any number of levels by three features, computed from the labels of *earlier* rows only. All three
are 0 where nothing is known: at the first row of a level, and before the statistics are used at all. Labels are
therefore measured from the mean of all earlier labels.

**Shrinkage.** The mean of n labels of a level is shrunken to the mean of all labels, by the factor ``n / (n + k)``.
The best k is the variance within levels over the variance between levels. Both are estimated from the rows so far whose
level is known: the squared distance of a label from the mean of its level, times ``n / (n + 1)``, has the variance
within levels as its mean; the squared distance from the mean of all labels has the sum of both.
"""

import math
from copy import copy
from typing import Final, NamedTuple

import numpy as np

from ellipack.bounded_map import BoundedMap
from ellipack.tabular.columns import JsonDict, get_entry, get_float, get_int, get_list, invalid_entry
from ellipack.validation import MAX_ABS_LABEL, Floats, Ints

Level = str | None
"""A distinct value of a category column. None stands for a missing value."""

STATISTICS: Final = ("mean", "last", "log count")
"""Features of a row: the shrunken mean of the labels of its level, the last label of its level, both minus the mean of
all labels, and the logarithm of one plus the number of rows of its level."""

_LevelSums = tuple[int, float, float]  # number, sum and last of the labels of a level
_NO_ROWS: Final[_LevelSums] = (0, 0.0, 0.0)
_FIRST_LABELS = 5  # of a stream, which are never outliers
_OUTLIER_WIDTHS = 3.0
_SHRINKAGE_RANGE: Final = (0.1, 100.0)


class LearnedRows(NamedTuple):
    """What was known of rows before they were learned.

    Attributes
    ----------
    counts : ndarray of int
        Number of earlier rows of the same level that are remembered.
    features : ndarray of float, shape (n_rows, 3)
        Values of `STATISTICS`. All are 0 if there are no earlier rows of the level.
    label_scales : ndarray of float
        Typical distance of labels from their mean, 1 where it is not known.
    """

    counts: Ints
    features: Floats
    label_scales: Floats


class LabelMean:
    """Mean of the labels so far, which outliers do not affect.

    A label is an outlier by the rule of `ellipack.learners.metric.learner`, where a phase ends when the number of
    labels is a power of two. An outlier counts as a label that equals the mean before it.

    Attributes
    ----------
    value : float
        The mean; 0 before the first label.

    Examples
    --------
    >>> mean = LabelMean()
    >>> [mean.add(label) for label in [1.0, 2.0, 1.0, 3.0, 3.0, 1e9, 5.0]]
    [1.0, 2.0, 1.0, 3.0, 3.0, 2.0, 5.0]
    >>> mean.value == (1 + 2 + 1 + 3 + 3 + 2 + 5) / 7
    True
    """

    def __init__(self) -> None:
        self.value = 0.0
        self._count, self._total = 0, 0.0
        self._low, self._high = math.inf, -math.inf
        self._n_outliers = 0  # in this phase, plus half of those before, rounded down

    def add(self, label: float) -> float:
        """Add a label. Return it, or the mean before it if it is an outlier."""
        low, high = self._low, self._high
        if not low <= label <= high:
            if self._count >= _FIRST_LABELS and self._is_outlier(label):
                self._n_outliers += 1
                label = self.value
            else:
                self._low, self._high = min(low, label), max(high, label)
        self._count += 1
        self._total += label
        self.value = self._total / self._count
        if self._n_outliers and self._count & (self._count - 1) == 0:
            self._n_outliers //= 2
        return label

    def add_all(self, labels: Floats) -> tuple[Floats, Floats]:
        """Add labels. Return them, without outliers, and the mean before each."""
        lows = np.minimum.accumulate(np.concatenate([[self._low], labels]))
        highs = np.maximum.accumulate(np.concatenate([[self._high], labels]))
        widths = np.maximum(highs[:-1] - lows[:-1], 0.0)
        margins = _OUTLIER_WIDTHS * widths
        outside = (labels < lows[:-1] - margins) | (labels > highs[:-1] + margins)
        counts = self._count + np.arange(len(labels) + 1)
        if self._n_outliers or (outside & (counts[:-1] >= _FIRST_LABELS) & (widths > 0)).any():
            return self._add_one_by_one(labels)
        totals = _accumulate(self._total, labels)
        means = totals / np.maximum(counts, 1)
        self._count, self._total, self.value = int(counts[-1]), float(totals[-1]), float(means[-1])
        self._low, self._high = float(lows[-1]), float(highs[-1])
        return labels, means[:-1]

    def _add_one_by_one(self, labels: Floats) -> tuple[Floats, Floats]:
        pairs = [(self.value, self.add(label)) for label in labels.tolist()]
        means, kept = np.array(pairs).reshape(-1, 2).T
        return kept, means

    def _is_outlier(self, label: float) -> bool:
        width = self._high - self._low
        margin = _OUTLIER_WIDTHS * 10.0 ** min(self._n_outliers, 300) * width
        return width > 0 and not self._low - margin <= label <= self._high + margin

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        bounds = [self._low, self._high] if self._count else None
        return {"count": self._count, "total": self._total, "range": bounds, "outliers": self._n_outliers}

    @classmethod
    def from_dict(cls, data: JsonDict) -> "LabelMean":
        """Restore the state from `to_dict`; raise ModelFileError if it is invalid."""
        mean = cls()
        mean._count, mean._total = get_int(data, "count"), get_float(data, "total")
        mean._n_outliers = get_int(data, "outliers")
        if mean._count:
            bounds = get_list(data, "range")
            if len(bounds) != 2:
                raise invalid_entry("range", "two labels", bounds)
            mean._low, mean._high = (_check_label(bound, "range") for bound in bounds)
            mean.value = _check_label(mean._total / mean._count, "total")
        if (mean._count and mean._low > mean._high) or (not mean._count and mean._total):
            raise invalid_entry("count", "consistent with the total and the range", mean._count)
        return mean


class LevelStatistics:
    """Statistics of the labels of each level. Memory is bounded: least recently used levels are forgotten.

    Parameters
    ----------
    max_levels : int
        Maximum number of levels that are remembered.

    Attributes
    ----------
    n_unknown, n_known : int
        Number of rows so far whose level was new or forgotten, and of the others.

    Examples
    --------
    >>> statistics = LevelStatistics(max_levels=1000)
    >>> learned = statistics.learn(["a", "b", "a"], np.array([3.0, 6.0, 3.0]))
    >>> learned.counts.tolist()
    [0, 0, 1]
    >>> learned.features.round(3).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.015, -1.5, 0.693]]
    >>> statistics.features(["a", "c"])[:, 1].tolist()
    [-1.0, 0.0]
    """

    def __init__(self, max_levels: int) -> None:
        self.n_unknown, self.n_known = 0, 0
        self._mean = LabelMean()
        self._levels = BoundedMap[Level, _LevelSums](max_levels)
        self._within, self._around_mean = 0.0, 0.0  # sums of squares over the rows with a known level

    def __len__(self) -> int:
        return len(self._levels)

    def most_frequent(self, count: int) -> list[Level]:
        """Return the levels with the most rows, the most frequent first."""
        by_rows = sorted(self._levels.items(), key=lambda entry: -entry[1][0])
        return [level for level, _ in by_rows[:count]]

    def features(self, levels: list[Level]) -> Floats:
        """Return the features of rows, given the rows that were learned before, without learning them."""
        sums = np.array([self._levels.get(level, _NO_ROWS) for level in levels]).reshape(-1, 3)
        shrinkage = _shrinkage(np.array(self._within), np.array(self._around_mean))
        return _compute_features(sums, np.array(self._mean.value), shrinkage)

    def learn(self, levels: list[Level], labels: Floats) -> LearnedRows:
        """Learn the labels of rows, one after another. Return what was known before each."""
        labels, means = self._mean.add_all(labels)
        sums = np.array(self._update_sums(levels, labels.tolist())).reshape(-1, 3)
        counts, totals, _ = sums.T
        known = counts > 0
        residuals = np.where(known, labels - totals / np.maximum(counts, 1.0), 0.0)
        within = _accumulate(self._within, residuals**2 * (counts / (counts + 1)))
        around_mean = _accumulate(self._around_mean, np.where(known, labels - means, 0.0) ** 2)
        n_known = self.n_known + np.concatenate([[0], np.cumsum(known)])
        scales = np.sqrt(around_mean / np.maximum(n_known, 1))[:-1]
        features = _compute_features(sums, means, _shrinkage(within[:-1], around_mean[:-1]))
        self._within, self._around_mean, self.n_known = float(within[-1]), float(around_mean[-1]), int(n_known[-1])
        self.n_unknown += int(np.count_nonzero(~known))
        return LearnedRows(counts.astype(np.int64), features, np.where(scales > 0, scales, 1.0))

    def _update_sums(self, levels: list[Level], labels: list[float]) -> list[_LevelSums]:
        """Add each label to the sums of its level. Return the sums before that."""
        remembered, before = self._levels, list[_LevelSums]()
        for level, label in zip(levels, labels, strict=True):
            sums = remembered.get(level, _NO_ROWS)
            before.append(sums)
            remembered.put(level, (sums[0] + 1, sums[1] + label, label))
        return before

    def draft(self) -> "LevelStatistics":
        """Return the same statistics, which can learn without effect on these."""
        own = copy(self)
        own._mean, own._levels = copy(self._mean), self._levels.draft()
        return own

    def commit(self) -> None:
        """Make the changes of a draft final. What it is a draft of must not be used any more."""
        self._levels.commit()

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        sums = {"known": self.n_known, "within": self._within, "around_mean": self._around_mean}
        levels = [[level, *found] for level, found in self._levels.items()]
        own = {"unknown": self.n_unknown, "labels": self._mean.to_dict()}
        return own | sums | {"levels": levels}

    @classmethod
    def from_dict(cls, data: JsonDict, max_levels: int) -> "LevelStatistics":
        """Restore the state from `to_dict`; raise ModelFileError if it is invalid."""
        statistics = cls(max_levels)
        statistics.n_unknown, statistics.n_known = get_int(data, "unknown"), get_int(data, "known")
        statistics._within, statistics._around_mean = get_float(data, "within"), get_float(data, "around_mean")
        if min(statistics._within, statistics._around_mean) < 0:
            raise invalid_entry("within", "a sum of squares, as around_mean", statistics._within)
        statistics._mean = LabelMean.from_dict(get_entry(data, "labels"))
        for entry in get_list(data, "levels"):
            if not isinstance(entry, list) or len(entry) != 4:
                raise invalid_entry("levels", "lists of a level, its count, sum and last label", entry)
            level, count = check_level(entry[0]), get_int({"levels": entry[1]}, "levels", 1)
            total, last = get_float({"levels": entry[2]}, "levels"), _check_label(entry[3], "levels")
            _check_label(total / count, "levels")
            statistics._levels.put(level, (count, total, last))
        n_levels = len(get_list(data, "levels"))
        if len(statistics) != n_levels or n_levels > max_levels:
            raise invalid_entry("levels", f"at most {max_levels:,} distinct levels", n_levels)
        statistics.commit()
        return statistics


def _accumulate(start: float, values: Floats) -> Floats:
    """Return the sums so far, from `start` to the last one. They are added in row order, however rows are batched."""
    sums: Floats = np.add.accumulate(np.concatenate([[start], values]))
    return sums


def _compute_features(sums: Floats, means: Floats, shrinkage: Floats) -> Floats:
    """Return the features of rows, given the sums of their levels, the mean of all labels and k."""
    counts, totals, lasts = sums.T
    deviations = (totals - counts * means) / (counts + shrinkage)
    last_deviations = np.where(counts > 0, lasts - means, 0.0)
    log_counts = [math.log1p(count) for count in counts.tolist()]
    return np.column_stack([deviations, last_deviations, log_counts])


def _shrinkage(within: Floats, around_mean: Floats) -> Floats:
    """Return k, the number of labels of a level whose mean is halfway to the mean of all labels."""
    least, most = _SHRINKAGE_RANGE
    between = np.maximum(around_mean - within, within / most)
    ratio: Floats = np.divide(within, between, out=np.full(np.shape(within), most), where=between > 0)
    return np.maximum(ratio, least)


def check_level(value: object) -> Level:
    """Return a saved level; raise ModelFileError if it is not a string or null."""
    if value is not None and not isinstance(value, str):
        raise invalid_entry("levels", "strings or null", value)
    return value


def _check_label(value: object, key: str) -> float:
    """Return a saved label; raise ModelFileError if it is not a number of at most `MAX_ABS_LABEL`."""
    label = get_float({key: value}, key)
    if abs(label) > MAX_ABS_LABEL * (1 + 1e-9):  # means may be rounded
        raise invalid_entry(key, f"a label of at most {MAX_ABS_LABEL:g}", label)
    return label
