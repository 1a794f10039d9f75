"""Predictions of the rows that follow, in many calls."""

from collections.abc import Callable, Sequence
from typing import Any, overload

from numpy.typing import ArrayLike

from ellipack.learners.intervals import Intervals, check_coverage, select_intervals
from ellipack.learners.metric.predictions import NextRowPredictor
from ellipack.validation import Floats, Ints


class Follower:
    """Predicts the rows that follow the last learned row, in any number of calls.

    Parameters
    ----------
    predictor : NextRowPredictor
        Predictor of the learner, which must not learn while the follower is used.
    check : callable
        Returns rows and the numbers of their keys, given rows and keys as users pass them.

    Examples
    --------
    >>> import numpy as np
    >>> from ellipack import MetricRegressor
    >>> X, y = np.ones((400, 1)), np.sin(np.arange(400) / 5)
    >>> learner = MetricRegressor().fit(X[:390], y[:390])
    >>> follower = learner.follow()
    >>> first, second = follower.predict_next(X[390:394]), follower.predict_next(X[394:])
    >>> bool((np.append(first, second) == learner.predict_next(X[390:])).all())
    True
    """

    def __init__(self, predictor: NextRowPredictor, check: Callable[[Any, Any], tuple[ArrayLike, Ints]]) -> None:
        self._predictor = predictor
        self._check = check

    @overload
    def predict_next(self, X: Any, *, keys: Any = None, labels: Any = None) -> Floats: ...

    @overload
    def predict_next(
        self, X: Any, *, coverage: float | Sequence[float], keys: Any = None, labels: Any = None
    ) -> tuple[Floats, Intervals]: ...

    def predict_next(
        self, X: Any, *, coverage: float | Sequence[float] | None = None, keys: Any = None, labels: Any = None
    ) -> Floats | tuple[Floats, Intervals]:
        """Predict rows that follow those of the last call. See `MetricRegressor.predict_next`."""
        wanted = None if coverage is None else check_coverage(coverage)
        rows, row_keys = self._check(X, keys)
        if wanted is None:
            return self._predictor.predict(rows, row_keys, labels)
        values, bounds = self._predictor.predict_with_intervals(rows, row_keys, labels)
        return values, select_intervals(bounds, wanted)
