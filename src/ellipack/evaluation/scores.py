"""Scores of progressive predictions, compared with two baselines: the running mean and the last label.

Sums are accumulated in row order, so that they do not depend on how rows are batched or on a resume. Memory is bounded:
when there are too many bins, neighboring bins are merged; when the sample is full, every other row is dropped.
"""

from copy import copy
from dataclasses import dataclass, field

import numpy as np

from ellipack.errors import ModelFileError
from ellipack.evaluation.bins import FIRST_BIN_WIDTH, MAX_BINS, add_to_bins, bin_ends
from ellipack.serialization import Archive
from ellipack.validation import Floats, Ints

WARM_UP_ROWS = 10
"""Number of first rows that the errors of longer runs leave out, also those of the baselines.

The first row is predicted before anything is known. Its error can exceed that of all others together.
"""

_MIN_ROWS_AFTER_WARM_UP = 40
_LATE_PART = 0.25  # of the rows, the last ones, for the late errors
_MAX_SAMPLE = 2048
_SQUARED, _ABSOLUTE, _SQUARED_OF_MEAN, _SQUARED_OF_LAST, _LABELS, _SQUARED_LABELS = range(6)
"""Indices of `Scores.sums`. The first label is subtracted from labels, which keeps the variance accurate."""
_SAVED_FACTS = ("n_rows", "first_label", "last_label", "bin_width", "sample_stride")
_SAVED_ARRAYS = ("sums", "counted_sums", "bin_sums", "sample_rows", "sample_pairs", "sample_times")
_BINNED = [_SQUARED, _SQUARED_OF_MEAN, _SQUARED_OF_LAST]


@dataclass(eq=False)
class Scores:
    """Running scores of predictions, each made before its label was seen.

    Properties are None before the first row, or where they are not defined.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    sums : ndarray of float, shape (6,)
        Sums over all rows: squared and absolute errors, squared errors of the running mean and of the last label,
        and labels and squared labels.
    counted_sums : ndarray of float, shape (6,)
        The same without the first `WARM_UP_ROWS` rows.
    first_label, last_label : float
        First and last label.
    bin_width : int
        Rows per bin.
    bin_sums : ndarray of float, shape (n_bins, 3)
        Sums of squared errors in each bin: of the predictions, the running mean and the last label.
    sample_stride : int
        Step between sampled rows.
    sample_rows : ndarray of int
        Numbers of the sampled rows, starting at 1.
    sample_pairs : ndarray of float, shape (n_sampled, 2)
        Prediction and label of each sampled row.
    sample_times : ndarray of float, shape (n_sampled,)
        Date of each sampled row in microseconds since 1970, NaN if it has none.

    Examples
    --------
    >>> scores = Scores()
    >>> scores.update(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 4.0]))
    >>> scores.n_rows, scores.mae
    (3, 1.0)
    """

    n_rows: int = 0
    sums: Floats = field(default_factory=lambda: np.zeros(6))
    counted_sums: Floats = field(default_factory=lambda: np.zeros(6))
    first_label: float = 0.0
    last_label: float = 0.0
    bin_width: int = FIRST_BIN_WIDTH
    bin_sums: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    sample_stride: int = 1
    sample_rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sample_pairs: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    sample_times: Floats = field(default_factory=lambda: np.zeros(0))

    def updated(self, predictions: Floats, labels: Floats, times: Floats | None = None) -> "Scores":
        """Return the scores after more rows; see `update`. These do not change."""
        scores = copy(self)
        scores.update(predictions, labels, times)
        return scores

    def update(self, predictions: Floats, labels: Floats, times: Floats | None = None) -> None:
        """Add predictions and their labels, and the dates of their rows, if they have any. Arrays are replaced."""
        if len(labels) == 0:
            return
        if self.n_rows == 0:
            self.first_label = float(labels[0])
        shifted = labels - self.first_label
        running = np.add.accumulate(np.append(self.sums[_LABELS], shifted))
        seen = self.n_rows + np.arange(len(labels))
        # Before the first label, both baselines predict 0.
        means = np.where(seen > 0, self.first_label + running[:-1] / np.maximum(seen, 1), 0.0)
        lasts = np.append(self.last_label, labels[:-1])
        errors = predictions - labels
        terms = np.column_stack(
            [errors**2, np.abs(errors), (means - labels) ** 2, (lasts - labels) ** 2, shifted, shifted**2]
        )
        self.bin_sums, self.bin_width = add_to_bins(self.bin_sums, self.bin_width, self.n_rows, terms[:, _BINNED])
        self._sample(predictions, labels, np.full(len(labels), np.nan) if times is None else times)
        self.sums = _add_rows(self.sums, terms)
        self.counted_sums = _add_rows(self.counted_sums, terms[max(0, WARM_UP_ROWS - self.n_rows) :])
        self.n_rows += len(labels)
        self.last_label = float(labels[-1])

    @property
    def label_variance(self) -> float:
        """Variance of the labels."""
        mean = self.sums[_LABELS] / max(1, self.n_rows)
        return float(max(0.0, self.sums[_SQUARED_LABELS] / max(1, self.n_rows) - mean**2))

    @property
    def label_mean(self) -> float:
        """Mean of the labels."""
        return float(self.first_label + self.sums[_LABELS] / max(1, self.n_rows))

    @property
    def rmse(self) -> float | None:
        """Root mean squared error of the predictions."""
        return self._root_mean(_SQUARED)

    @property
    def mean_rmse(self) -> float | None:
        """Root mean squared error of the running mean."""
        return self._root_mean(_SQUARED_OF_MEAN)

    @property
    def last_rmse(self) -> float | None:
        """Root mean squared error of the last label."""
        return self._root_mean(_SQUARED_OF_LAST)

    @property
    def mae(self) -> float | None:
        """Mean absolute error of the predictions."""
        sums, rows = self._counted()
        return float(sums[_ABSOLUTE] / rows) if rows else None

    @property
    def r2(self) -> float | None:
        """Coefficient of determination; None if the labels are constant."""
        sums, rows = self._counted()
        if not rows:
            return None
        total = sums[_SQUARED_LABELS] - sums[_LABELS] ** 2 / rows
        return float(1 - sums[_SQUARED] / total) if total > 0 else None

    @property
    def skill(self) -> float | None:
        """Skill score, ``1 - rmse / mean_rmse``; None if the running mean has no error."""
        sums, _ = self._counted()
        mean = sums[_SQUARED_OF_MEAN]
        return float(1 - np.sqrt(sums[_SQUARED] / mean)) if mean > 0 else None

    @property
    def warm_up(self) -> int:
        """Number of first rows that the errors leave out: 0 in a short run."""
        return WARM_UP_ROWS if self.n_rows >= _MIN_ROWS_AFTER_WARM_UP + WARM_UP_ROWS else 0

    def late_errors(self) -> tuple[float, float, float] | None:
        """Return the root mean squared errors in the last bins, at least a quarter of the rows; None without two bins.

        The errors are those of the predictions, the running mean and the last label.
        """
        ends = self.bin_ends()
        if len(ends) < 2:
            return None
        first = min(int(np.searchsorted(ends, (1 - _LATE_PART) * self.n_rows, side="right")), len(ends) - 1)
        rows = self.n_rows - int(ends[first - 1]) if first else self.n_rows
        errors = np.sqrt(self.bin_sums[first:].sum(axis=0) / rows)
        return float(errors[0]), float(errors[1]), float(errors[2])

    def _counted(self) -> tuple[Floats, int]:
        """Return sums over the rows that the errors count, and their number."""
        return self.counted_sums if self.warm_up else self.sums, self.n_rows - self.warm_up

    def bin_ends(self) -> Ints:
        """Return the number of the last row in each bin."""
        return bin_ends(len(self.bin_sums), self.bin_width, self.n_rows)

    def bin_errors(self) -> Floats:
        """Return the root mean squared errors in each bin: of the predictions, the running mean and the last label."""
        sizes = np.diff(self.bin_ends(), prepend=0)
        return np.asarray(np.sqrt(self.bin_sums / np.maximum(sizes, 1)[:, None]))

    def _root_mean(self, which: int) -> float | None:
        """Return the root of a mean of squares, None before the first row."""
        sums, rows = self._counted()
        return float(np.sqrt(sums[which] / rows)) if rows else None

    def _sample(self, predictions: Floats, labels: Floats, times: Floats) -> None:
        """Add every `sample_stride`-th row to the sample; double the stride when the sample is too large."""
        numbers = self.n_rows + 1 + np.arange(len(labels))
        rows = np.append(self.sample_rows, numbers)
        pairs = np.vstack([self.sample_pairs, np.column_stack([predictions, labels])])
        dates = np.append(self.sample_times, times)
        while True:
            kept = (rows - 1) % self.sample_stride == 0
            rows, pairs, dates = rows[kept], pairs[kept], dates[kept]
            if len(rows) <= _MAX_SAMPLE:
                break
            self.sample_stride *= 2
        self.sample_rows, self.sample_pairs, self.sample_times = rows, pairs, dates

    def to_archive(self) -> Archive:
        """Return the state as an archive."""
        facts = {name: getattr(self, name) for name in _SAVED_FACTS}
        return Archive(facts, {name: getattr(self, name) for name in _SAVED_ARRAYS})

    @classmethod
    def from_archive(cls, archive: Archive) -> "Scores":
        """Restore the state from an archive; raise ModelFileError if it is invalid."""
        rows = archive.integer("n_rows", 0)
        width, stride = archive.integer("bin_width", 1), archive.integer("sample_stride", 1)
        bins, sampled = -(-rows // width), -(-rows // stride)
        if bins > MAX_BINS or sampled > _MAX_SAMPLE:
            raise ModelFileError(
                f"{archive.prefix}bin_width and sample_stride must fit {rows} rows, got {width} and {stride}"
            )
        numbers = archive.ints("sample_rows", sampled, least=1)
        if sampled and numbers.tolist() != list(range(1, rows + 1, stride)):
            raise ModelFileError(f"{archive.prefix}sample_rows must be every {stride}th row")
        return cls(
            rows,
            _restore_sums(archive, "sums"),
            _restore_sums(archive, "counted_sums"),
            archive.number("first_label"),
            archive.number("last_label"),
            width,
            archive.floats_between(0.0, np.inf, "bin_sums", bins, 3),
            stride,
            numbers,
            archive.floats("sample_pairs", sampled, 2),
            archive.any_floats("sample_times", sampled),
        )


def _restore_sums(archive: Archive, name: str) -> Floats:
    """Restore sums; only that of the labels may be negative."""
    sums = archive.floats(name, 6)
    if np.delete(sums, _LABELS).min() < 0:
        raise ModelFileError(f"{archive.prefix}{name} must be >= 0, except the sum of the labels, got {sums.min():g}")
    return sums


def _add_rows(sums: Floats, terms: Floats) -> Floats:
    """Add rows to sums, one after the other."""
    return np.asarray(np.add.accumulate(np.vstack([sums, terms]))[-1])
