"""What is wanted of a learner on a cluster, and what it returns."""

from typing import Any, NamedTuple

import dask.array as da
import numpy as np

from ellipack.learners.intervals import Intervals, Predictions, select_intervals
from ellipack.validation import Floats


class Wanted(NamedTuple):
    """What is wanted beside predictions.

    Attributes
    ----------
    coverages : array of float or None
        Coverages of prediction intervals; see `check_coverage`.
    progress : bool
        Whether a bar is written to standard error.
    """

    coverages: Floats | None
    progress: bool


class StreamIntervals(NamedTuple):
    """Prediction intervals.

    Attributes
    ----------
    lower, upper : Dask array of shape (n,), or (n, k) for a sequence of k coverages
        Ends of the intervals. The first two predictions of a learner have infinite ones.
    """

    lower: da.Array
    upper: da.Array


class LearnedStream(NamedTuple):
    """What `progressive` returns.

    Attributes
    ----------
    learner : MetricRegressor, KeyedRegressor or TableRegressor
        The learner, after all rows.
    predictions : Dask array of shape (n,)
        The prediction of each row, made before its label was learned. This process holds its chunks, one per step or
        partition, because those on workers would be lost with them.
    intervals : StreamIntervals or None
        Intervals of the predictions, if they are wanted.
    """

    learner: Any
    predictions: da.Array
    intervals: StreamIntervals | None = None


class PredictedChunks:
    """Predictions of consecutive rows, with intervals if they are wanted.

    Parameters
    ----------
    coverages : array of float or None
        Coverages of the intervals.
    """

    def __init__(self, coverages: Floats | None) -> None:
        self._coverages = coverages
        self._values: list[Floats] = []
        self._intervals: list[Intervals] = []

    @property
    def has_intervals(self) -> bool:
        """Whether intervals are wanted."""
        return self._coverages is not None

    def append(self, predictions: Predictions) -> None:
        """Add the predictions of the next rows."""
        self._values.append(predictions.values)
        if self._coverages is not None:
            self._intervals.append(select_intervals(predictions.bounds, self._coverages))

    def collect(self) -> tuple[da.Array, StreamIntervals | None]:
        """Return the predictions of all rows, and their intervals, as Dask arrays."""
        intervals = None
        if self._coverages is not None:
            lower, upper = zip(*self._intervals, strict=True)
            intervals = StreamIntervals(concatenate(lower), concatenate(upper))
        return concatenate(self._values), intervals


def concatenate(parts: Any) -> Any:
    """Return arrays as one Dask array, with a chunk for each."""
    return da.concatenate([da.from_array(np.ascontiguousarray(part), chunks=-1, name=False) for part in parts])
