"""Scores of prediction intervals: coverage, width and interval score, over all rows and over time.

Sums are accumulated in row order, so that they do not depend on how rows are batched or on a resume. Memory is bounded:
when there are too many bins, neighboring bins are merged.
"""

from copy import copy
from dataclasses import dataclass, field

import numpy as np

from ellipack.errors import ModelFileError
from ellipack.evaluation.bins import FIRST_BIN_WIDTH, MAX_BINS, add_to_bins, bin_ends
from ellipack.serialization import Archive
from ellipack.validation import Floats, Ints

_MAX_RECENT = 200
_ROWS, _COVERED, _WIDTH, _SCORE = range(4)


@dataclass(eq=False)
class IntervalScores:
    """Running scores of the intervals of several coverages. Infinite intervals do not count.

    Attributes
    ----------
    coverages : tuple of float
        Wanted coverages.
    n_rows : int
        Number of rows.
    bin_width : int
        Rows per bin.
    bin_sums : ndarray of float, shape (n_bins, n_coverages, 4)
        Sums in each bin: finite intervals, labels in them, widths, and interval scores.
    recent : ndarray of float, shape (n_recent, 1 + 2 * n_coverages)
        Label and ends of the intervals of the last rows.

    Examples
    --------
    >>> scores = IntervalScores((0.8,))
    >>> scores.update(np.array([[0.0, 2.0], [1.0, 2.0]]), np.array([1.0, 5.0]))
    >>> scores.covered().tolist(), scores.mean_widths().tolist(), scores.interval_scores().round(6).tolist()
    ([0.5], [1.5], [16.5])
    """

    coverages: tuple[float, ...] = ()
    n_rows: int = 0
    bin_width: int = FIRST_BIN_WIDTH
    bin_sums: Floats = field(default_factory=lambda: np.zeros((0, 0, 4)))
    recent: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        if not len(self.bin_sums):
            self.bin_sums = np.zeros((0, len(self.coverages), 4))
            self.recent = np.zeros((0, 1 + 2 * len(self.coverages)))

    def updated(self, ends: Floats, labels: Floats) -> "IntervalScores":
        """Return the scores after more rows; see `update`. These do not change."""
        scores = copy(self)
        scores.update(ends, labels)
        return scores

    def update(self, ends: Floats, labels: Floats) -> None:
        """Add intervals and their labels. Arrays are replaced.

        Parameters
        ----------
        ends : array of shape (n, 2 * n_coverages)
            Lower and upper end for each coverage in turn.
        labels : array of shape (n,)
            Labels.
        """
        if not self.coverages:
            return
        self.recent = np.vstack([self.recent, np.column_stack([labels, ends])])[-_MAX_RECENT:]
        lower, upper = ends[:, 0::2], ends[:, 1::2]
        finite = np.isfinite(lower) & np.isfinite(upper)
        low, high = np.where(finite, lower, 0.0), np.where(finite, upper, 0.0)
        missed = np.maximum(low - labels[:, None], 0.0) + np.maximum(labels[:, None] - high, 0.0)
        score = high - low + missed * 2 / (1 - np.array(self.coverages))
        terms = np.stack([np.ones_like(low), missed == 0, high - low, score], axis=2) * finite[:, :, None]
        self.bin_sums, self.bin_width = add_to_bins(self.bin_sums, self.bin_width, self.n_rows, terms)
        self.n_rows += len(labels)

    def covered(self) -> Floats:
        """Return the fraction of labels in their intervals for each coverage; NaN if there are none."""
        return self._mean(_COVERED)

    def mean_widths(self) -> Floats:
        """Return the mean width of the intervals for each coverage."""
        return self._mean(_WIDTH)

    def interval_scores(self) -> Floats:
        """Return the mean interval score (Winkler) for each coverage: lower is better."""
        return self._mean(_SCORE)

    def bin_ends(self) -> Ints:
        """Return the number of the last row in each bin."""
        return bin_ends(len(self.bin_sums), self.bin_width, self.n_rows)

    def bin_means(self) -> Floats:
        """Return the fraction of covered labels and the mean width, for each bin and coverage; NaN without any."""
        rows = self.bin_sums[:, :, [_ROWS]]
        return np.divide(
            self.bin_sums[:, :, [_COVERED, _WIDTH]], rows, out=np.full((*rows.shape[:2], 2), np.nan), where=rows > 0
        )

    def _mean(self, which: int) -> Floats:
        sums = self.bin_sums.sum(axis=0)
        out = np.full(len(sums), np.nan)
        return np.asarray(np.divide(sums[:, which], sums[:, _ROWS], out=out, where=sums[:, _ROWS] > 0))

    def to_archive(self) -> Archive:
        """Return the state as an archive."""
        facts = {"n_rows": self.n_rows, "bin_width": self.bin_width}
        sums = self.bin_sums.reshape(len(self.bin_sums), 4 * len(self.coverages))
        return Archive(facts, {"bin_sums": sums, "recent": self.recent})

    @classmethod
    def from_archive(cls, archive: Archive, coverages: tuple[float, ...]) -> "IntervalScores":
        """Restore the state from an archive; raise ModelFileError if it is invalid."""
        rows, width = archive.integer("n_rows", 0), archive.integer("bin_width", 1)
        count = archive.shape("bin_sums", 2)[0]
        sums = archive.floats("bin_sums", count, 4 * len(coverages)).reshape(count, len(coverages), 4)
        if count > MAX_BINS or count != -(-rows // width) or (sums < 0).any():
            raise ModelFileError(f"{archive.prefix}bin_sums must be sums over {rows} rows in bins of {width}")
        recent = archive.any_floats("recent", min(rows, _MAX_RECENT), 1 + 2 * len(coverages))
        if np.isnan(recent).any() or np.isinf(recent[:, 0]).any():
            raise ModelFileError(f"{archive.prefix}recent must hold finite labels, and no NaN")
        return cls(coverages, rows, width, sums, recent)
