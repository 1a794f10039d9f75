"""How good predictions were, summed up as they are made, beside those of the running mean and of the last label.

Every sum goes row after row, so that it has the same bits however rows are grouped, and after a resume. What is kept
does not grow with the rows: bins are joined in pairs and the sample is thinned out by half when they are full.
"""

from dataclasses import dataclass, field

import numpy as np

from ellipack.errors import CheckpointError
from ellipack.serialization import Archive
from ellipack.validation import Floats, Ints

_BINS, _FIRST_WIDTH = 256, 16  # of rows
_SAMPLE = 2048
_SQUARED, _ABSOLUTE, _SQUARED_OF_MEAN, _SQUARED_OF_LAST, _LABELS, _SQUARED_LABELS = range(6)
"""What is summed up; labels less the first one, so that their variance is not lost in rounding."""
_SAVED_FACTS = ("n_rows", "first_label", "last_label", "bin_width", "sample_stride")
_SAVED_ARRAYS = ("sums", "bin_sums", "sample_rows", "sample_pairs")
_BINNED = [_SQUARED, _SQUARED_OF_MEAN, _SQUARED_OF_LAST]


@dataclass(eq=False)
class Scores:
    """The sums so far.

    Attributes
    ----------
    n_rows : how many rows there were.
    sums : over all rows.
    first_label, last_label : labels.
    bin_width, bin_sums : rows in a bin, and its sums of squared errors: the learner's, the mean's, the last's.
    sample_stride : of the rows that are sampled.
    sample_rows, sample_pairs : their numbers, from 1, and for each the prediction and the label.
    """

    n_rows: int = 0
    sums: Floats = field(default_factory=lambda: np.zeros(6))
    first_label: float = 0.0
    last_label: float = 0.0
    bin_width: int = _FIRST_WIDTH
    bin_sums: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    sample_stride: int = 1
    sample_rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sample_pairs: Floats = field(default_factory=lambda: np.zeros((0, 2)))

    def update(self, predictions: Floats, labels: Floats) -> None:
        """Count in more rows."""
        if len(labels) == 0:
            return
        if self.n_rows == 0:
            self.first_label = float(labels[0])
        shifted = labels - self.first_label
        running = np.add.accumulate(np.append(self.sums[_LABELS], shifted))
        seen = self.n_rows + np.arange(len(labels))
        # Before any label all three predict 0.
        means = np.where(seen > 0, self.first_label + running[:-1] / np.maximum(seen, 1), 0.0)
        lasts = np.append(self.last_label, labels[:-1])
        errors = predictions - labels
        terms = np.column_stack(
            [errors**2, np.abs(errors), (means - labels) ** 2, (lasts - labels) ** 2, shifted, shifted**2]
        )
        self._bin(terms[:, _BINNED])
        self._sample(predictions, labels)
        self.sums = np.add.accumulate(np.vstack([self.sums, terms]))[-1]
        self.n_rows += len(labels)
        self.last_label = float(labels[-1])

    @property
    def label_variance(self) -> float:
        """The variance of the labels."""
        mean = self.sums[_LABELS] / max(1, self.n_rows)
        return float(max(0.0, self.sums[_SQUARED_LABELS] / max(1, self.n_rows) - mean**2))

    @property
    def label_mean(self) -> float:
        """The mean of the labels."""
        return float(self.first_label + self.sums[_LABELS] / max(1, self.n_rows))

    @property
    def rmse(self) -> float | None:
        """The root mean squared error of the predictions."""
        return self._root_mean(_SQUARED)

    @property
    def mean_rmse(self) -> float | None:
        """The root mean squared error of the running mean."""
        return self._root_mean(_SQUARED_OF_MEAN)

    @property
    def last_rmse(self) -> float | None:
        """The root mean squared error of the last label."""
        return self._root_mean(_SQUARED_OF_LAST)

    @property
    def mae(self) -> float | None:
        """The mean absolute error."""
        return float(self.sums[_ABSOLUTE] / self.n_rows) if self.n_rows else None

    @property
    def r2(self) -> float | None:
        """The part of the labels' variance that was predicted; nothing where they have none."""
        total = self.label_variance * self.n_rows
        return float(1 - self.sums[_SQUARED] / total) if total > 0 else None

    @property
    def skill(self) -> float | None:
        """By what part the error is below that of the running mean; nothing where that has none."""
        mean = self.sums[_SQUARED_OF_MEAN]
        return float(1 - np.sqrt(self.sums[_SQUARED] / mean)) if mean > 0 else None

    def bin_ends(self) -> Ints:
        """Return the number of the last row of each bin."""
        return np.minimum(self.bin_width * np.arange(1, len(self.bin_sums) + 1), self.n_rows)

    def bin_errors(self) -> Floats:
        """Return the root mean square errors of each bin, a row each: the learner's, the mean's, the last's."""
        sizes = np.diff(self.bin_ends(), prepend=0)
        return np.asarray(np.sqrt(self.bin_sums / np.maximum(sizes, 1)[:, None]))

    def _root_mean(self, which: int) -> float | None:
        """Return the root of the mean of squares, nothing before the first row."""
        return float(np.sqrt(self.sums[which] / self.n_rows)) if self.n_rows else None

    def _bin(self, terms: Floats) -> None:
        at, done = self.n_rows, 0
        while done < len(terms):
            number = at // self.bin_width
            if number == _BINS:
                self.bin_width *= 2
                self.bin_sums = self.bin_sums[::2] + self.bin_sums[1::2]
                continue
            if number == len(self.bin_sums):
                self.bin_sums = np.vstack([self.bin_sums, np.zeros(3)])
            ahead = min(len(terms) - done, (number + 1) * self.bin_width - at)
            part = terms[done : done + ahead]
            self.bin_sums[number] = np.add.accumulate(np.vstack([self.bin_sums[number], part]))[-1]
            at, done = at + ahead, done + ahead

    def _sample(self, predictions: Floats, labels: Floats) -> None:
        numbers = self.n_rows + 1 + np.arange(len(labels))
        held, pairs = (
            np.append(self.sample_rows, numbers),
            np.vstack([self.sample_pairs, np.column_stack([predictions, labels])]),
        )
        while True:
            kept = (held - 1) % self.sample_stride == 0
            held, pairs = held[kept], pairs[kept]
            if len(held) <= _SAMPLE:
                break
            self.sample_stride *= 2
        self.sample_rows, self.sample_pairs = held, pairs

    def to_archive(self) -> Archive:
        """Return what is saved."""
        facts = {name: getattr(self, name) for name in _SAVED_FACTS}
        return Archive(facts, {name: getattr(self, name) for name in _SAVED_ARRAYS})

    @classmethod
    def from_archive(cls, archive: Archive) -> "Scores":
        """Return the scores that were saved as this archive."""
        rows, width, stride = (
            archive.integer("n_rows", 0),
            archive.integer("bin_width", 1),
            archive.integer("sample_stride", 1),
        )
        bins, sampled = -(-rows // width), -(-rows // stride)
        if bins > _BINS or sampled > _SAMPLE:
            raise CheckpointError(
                f"{archive.prefix}bin_width and sample_stride must fit {rows} rows, got {width} and {stride}"
            )
        numbers = archive.ints("sample_rows", sampled, least=1)
        if sampled and numbers.tolist() != list(range(1, rows + 1, stride)):
            raise CheckpointError(f"{archive.prefix}sample_rows must be every {stride}th row")
        return cls(
            rows,
            archive.floats("sums", 6),
            archive.number("first_label"),
            archive.number("last_label"),
            width,
            archive.floats("bin_sums", bins, 3),
            stride,
            numbers,
            archive.floats("sample_pairs", sampled, 2),
        )
