"""Algorithm 1 with scikit-learn's verbs."""

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import ShapeError
from ellipack.estimators.base import StreamingRegressor
from ellipack.learners import packing
from ellipack.learners.packing import PackingHistory, PackingState
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.schedules import radius
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats


class PackingRegressor(StreamingRegressor[PackingState]):
    """The paper's Algorithm 1: online regression over a packing of ellipsoids in a fixed metric.

    To the letter: instances must lie in the unit ball and labels in [0, 1]. Anything else is a `DomainError`, never
    rescaled in silence; those of scikit-learn's checks that feed such rows are expected to fail, and are listed in
    ``tests/test_sklearn.py``. `RescaledRegressor` lets this one take any data.

    Parameters
    ----------
    metric : a `Metric`, a positive definite matrix, or its diagonal; Euclidean if not given, which makes this
        Hazan and Megiddo's algorithm.
    keep_founding_label : whether a new center absorbs the label of the instance that founds it, as the paper's
        proof has it, or starts without labels, as its algorithm is printed.

    Examples
    --------
    >>> X, y = [[0.1, 0.0], [0.9, 0.0], [0.2, 0.0]], [0.0, 1.0, 0.5]
    >>> learner = PackingRegressor()
    >>> learner.progressive(X, y).tolist()
    [0.5, 0.0, 0.0]
    >>> learner.partial_fit([[0.8, 0.1]], [0.9]).predict([[0.85, 0.05]]).tolist()
    [0.95]
    """

    def __init__(self, metric: Metric | ArrayLike | None = None, *, keep_founding_label: bool = True) -> None:
        self.metric = metric
        self.keep_founding_label = keep_founding_label

    def _initial_state(self, d: int) -> PackingState:
        return packing.init(_metric(self.metric, d))

    def _predict(self, state: PackingState, X: ArrayLike) -> Floats:
        return packing.predict(state, X)

    def _learn(self, state: PackingState, X: ArrayLike, y: ArrayLike) -> Floats:
        return packing.learn(state, X, y, keep_founding_label=self.keep_founding_label)

    def _to_archive(self, state: PackingState) -> Archive:
        return packing.to_archive(state)

    def _from_archive(self, archive: Archive, d: int) -> PackingState:
        return packing.from_archive(archive, d)

    def _add_features(self, state: PackingState, scales: Floats) -> None:
        packing.add_features(state, len(scales))

    @property
    def metric_(self) -> Metric:
        """The metric, of spectral norm 1."""
        return self._fitted_state.metric

    @property
    def n_centers_(self) -> int:
        """How many centers there are."""
        return self._fitted_state.core.size

    @property
    def centers_(self) -> Floats:
        """Where the centers are, in feature coordinates, a row each, in order of founding."""
        directions = self.metric_.eigenvectors / np.sqrt(self.metric_.eigenvalues)
        return np.asarray(self._fitted_state.core.coordinates @ directions.T)

    @property
    def radius_(self) -> float:
        """How far a center reached at the last round."""
        return float(radius(self.metric_.eigenvalues, self._fitted_state.clock))

    @property
    def effective_rank_(self) -> int:
        """The effective rank of the metric at the last round."""
        return int(effective_rank(self.metric_.eigenvalues, self._fitted_state.clock))

    def history(self, t: ArrayLike | None = None) -> PackingHistory:
        """Return radius, effective rank and number of centers at rounds `t`, at all rounds if not given."""
        return packing.history(self._fitted_state, t)


def _metric(metric: Metric | ArrayLike | None, d: int) -> Metric:
    if metric is None:
        return Metric.identity(d)
    width = metric.dimension if isinstance(metric, Metric) else next(iter(np.shape(metric)), d)
    if width != d:  # before anything is made that large
        raise ShapeError(f"X must have {width} columns, got {d}")
    if isinstance(metric, Metric):
        return metric
    return Metric.from_diagonal(metric) if np.ndim(metric) == 1 else Metric.from_matrix(metric)
