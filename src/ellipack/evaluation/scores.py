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
SQUARED, ABSOLUTE, SQUARED_OF_MEAN, SQUARED_OF_LAST, LABELS, SQUARED_LABELS = range(6)
"""What is summed up; labels less the first one, so that their variance is not lost in rounding."""
_BINNED = [SQUARED, SQUARED_OF_MEAN, SQUARED_OF_LAST]


@dataclass(eq=False)
class Scores:
    """The sums so far.

    Attributes
    ----------
    rows : how many rows there were.
    sums : over all rows.
    first, last : labels.
    width, bins : rows in a bin, and for each bin the sums of squared errors: the learner's, the mean's, the last's.
    stride : of the rows that are sampled.
    sampled, pairs : their numbers, from 1, and for each the prediction and the label.
    """

    rows: int = 0
    sums: Floats = field(default_factory=lambda: np.zeros(6))
    first: float = 0.0
    last: float = 0.0
    width: int = _FIRST_WIDTH
    bins: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    stride: int = 1
    sampled: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    pairs: Floats = field(default_factory=lambda: np.zeros((0, 2)))

    def add(self, predictions: Floats, labels: Floats) -> None:
        """Count in more rows."""
        if len(labels) == 0:
            return
        if self.rows == 0:
            self.first = float(labels[0])
        shifted = labels - self.first
        running = np.add.accumulate(np.append(self.sums[LABELS], shifted))
        seen = self.rows + np.arange(len(labels))
        # Before any label all three predict 0.
        means = np.where(seen > 0, self.first + running[:-1] / np.maximum(seen, 1), 0.0)
        lasts = np.append(self.last, labels[:-1])
        errors = predictions - labels
        terms = np.column_stack(
            [errors**2, np.abs(errors), (means - labels) ** 2, (lasts - labels) ** 2, shifted, shifted**2]
        )
        self._bin(terms[:, _BINNED])
        self._sample(predictions, labels)
        self.sums = np.add.accumulate(np.vstack([self.sums, terms]))[-1]
        self.rows += len(labels)
        self.last = float(labels[-1])

    @property
    def variance(self) -> float:
        """The variance of the labels."""
        mean = self.sums[LABELS] / max(1, self.rows)
        return float(max(0.0, self.sums[SQUARED_LABELS] / max(1, self.rows) - mean**2))

    @property
    def label_mean(self) -> float:
        """The mean of the labels."""
        return float(self.first + self.sums[LABELS] / max(1, self.rows))

    def root_mean(self, which: int) -> float | None:
        """Return the root of the mean of squares, nothing before the first row."""
        return float(np.sqrt(self.sums[which] / self.rows)) if self.rows else None

    @property
    def mean_absolute(self) -> float | None:
        """The mean absolute error."""
        return float(self.sums[ABSOLUTE] / self.rows) if self.rows else None

    @property
    def r2(self) -> float | None:
        """The part of the labels' variance that was predicted; nothing where they have none."""
        total = self.variance * self.rows
        return float(1 - self.sums[SQUARED] / total) if total > 0 else None

    @property
    def skill(self) -> float | None:
        """By what part the error is below that of the running mean; nothing where that has none."""
        mean = self.sums[SQUARED_OF_MEAN]
        return float(1 - np.sqrt(self.sums[SQUARED] / mean)) if mean > 0 else None

    def bin_ends(self) -> Ints:
        """Return the number of the last row of each bin."""
        return np.minimum(self.width * np.arange(1, len(self.bins) + 1), self.rows)

    def bin_errors(self) -> Floats:
        """Return the root mean square errors of each bin, a row each: the learner's, the mean's, the last's."""
        sizes = np.diff(self.bin_ends(), prepend=0)
        return np.asarray(np.sqrt(self.bins / np.maximum(sizes, 1)[:, None]))

    def _bin(self, terms: Floats) -> None:
        at, done = self.rows, 0
        while done < len(terms):
            number = at // self.width
            if number == _BINS:
                self.width *= 2
                self.bins = self.bins[::2] + self.bins[1::2]
                continue
            if number == len(self.bins):
                self.bins = np.vstack([self.bins, np.zeros(3)])
            ahead = min(len(terms) - done, (number + 1) * self.width - at)
            part = terms[done : done + ahead]
            self.bins[number] = np.add.accumulate(np.vstack([self.bins[number], part]))[-1]
            at, done = at + ahead, done + ahead

    def _sample(self, predictions: Floats, labels: Floats) -> None:
        numbers = self.rows + 1 + np.arange(len(labels))
        held, pairs = np.append(self.sampled, numbers), np.vstack([self.pairs, np.column_stack([predictions, labels])])
        while True:
            kept = (held - 1) % self.stride == 0
            held, pairs = held[kept], pairs[kept]
            if len(held) <= _SAMPLE:
                break
            self.stride *= 2
        self.sampled, self.pairs = held, pairs

    def contents(self) -> Archive:
        """Return what is saved."""
        facts = {name: getattr(self, name) for name in ("rows", "first", "last", "width", "stride")}
        return Archive(facts, {name: getattr(self, name) for name in ("sums", "bins", "sampled", "pairs")})

    @classmethod
    def restore(cls, saved: Archive) -> "Scores":
        """Return the scores that were saved as these contents."""
        rows, width, stride = saved.whole("rows", 0), saved.whole("width", 1), saved.whole("stride", 1)
        bins, sampled = -(-rows // width), -(-rows // stride)
        if bins > _BINS or sampled > _SAMPLE:
            raise CheckpointError(f"{saved.place}width and stride must fit {rows} rows, got {width} and {stride}")
        numbers = saved.ints("sampled", sampled, least=1)
        if sampled and numbers.tolist() != list(range(1, rows + 1, stride)):
            raise CheckpointError(f"{saved.place}sampled must be every {stride}th row")
        return cls(
            rows,
            saved.floats("sums", 6),
            saved.number("first"),
            saved.number("last"),
            width,
            saved.floats("bins", bins, 3),
            stride,
            numbers,
            saved.floats("pairs", sampled, 2),
        )
