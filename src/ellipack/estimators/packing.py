"""Algorithm 1 of the paper with scikit-learn's methods."""

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import ShapeError
from ellipack.estimators.calibrated import CalibratedRegressor
from ellipack.learners import packing
from ellipack.learners.intervals import NO_INTERVALS, WantedIntervals
from ellipack.learners.packing import PackingHistory, PackingState
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.schedules import radius
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, check_boolean


class PackingRegressor(CalibratedRegressor[PackingState]):
    """Online regression over a packing of ellipsoids in a fixed metric (Algorithm 1 of the paper).

    The prediction for a row is the mean label of its nearest center. A row farther from all centers than the current
    radius becomes a center.

    As in the paper, instances must lie in the unit ball and labels in [0, 1]. Other data raise a `DomainError`; they
    are never rescaled. Use `RescaledRegressor` for other data. Some of scikit-learn's checks pass rows outside the unit
    ball; ``tests/estimators/test_sklearn.py`` lists them as expected failures.

    Parameters
    ----------
    metric : Metric or array-like of shape (n_features, n_features) or (n_features,), optional
        A metric, a positive definite matrix, or the diagonal of one. The default is the Euclidean metric, which gives
        the algorithm of Hazan and Megiddo [2]_.
    keep_founding_label : bool, default True
        Whether a new center counts the label of its own instance, as in the paper's proof. If False, it starts without
        labels, as in the printed algorithm.

    Attributes
    ----------
    state_ : PackingState
        Fitted state.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Names of the features, if the columns had names.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
       Algorithm 1 and Theorem 1.
    .. [2] E. Hazan and N. Megiddo. Online Learning with Prior Knowledge. COLT 2007.

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

    def _check_parameters(self) -> None:
        check_boolean(self.keep_founding_label, "keep_founding_label")
        check_metric(self.metric)

    def _initial_state(self, d: int) -> PackingState:
        check_boolean(self.keep_founding_label, "keep_founding_label")
        return packing.init(as_metric(self.metric, d))

    def _dimension(self, state: PackingState) -> int:
        return state.metric.dimension

    def _clock(self, state: PackingState) -> int:
        return state.clock

    def _predict(self, state: PackingState, X: ArrayLike, intervals: WantedIntervals = NO_INTERVALS) -> Floats:
        return packing.predict(state, X, intervals)

    def _learn(
        self, state: PackingState, X: ArrayLike, y: ArrayLike, intervals: WantedIntervals = NO_INTERVALS
    ) -> Floats:
        return packing.learn(state, X, y, intervals, keep_founding_label=self.keep_founding_label)

    def _to_archive(self, state: PackingState) -> Archive:
        return packing.to_archive(state)

    def _from_archive(self, archive: Archive, d: int) -> PackingState:
        return packing.from_archive(archive, d)

    def _add_features(self, state: PackingState, scales: Floats) -> None:
        packing.add_features(state, len(scales))

    @property
    def metric_(self) -> Metric:
        """Metric, divided by its spectral norm."""
        return self._fitted_state.metric

    @property
    def n_centers_(self) -> int:
        """Number of centers."""
        return self._fitted_state.core.size

    @property
    def centers_(self) -> Floats:
        """Centers in feature coordinates, one per row, in order of insertion."""
        directions = self.metric_.eigenvectors / np.sqrt(self.metric_.eigenvalues)
        return np.asarray(self._fitted_state.core.coordinates @ directions.T)

    @property
    def radius_(self) -> float:
        """Radius at the last round, ``eps_t`` of the paper."""
        return float(radius(self.metric_.eigenvalues, self._fitted_state.clock))

    @property
    def effective_rank_(self) -> int:
        """Effective rank of the metric at the last round, ``rho_t`` of the paper."""
        return int(effective_rank(self.metric_.eigenvalues, self._fitted_state.clock))

    def history(self, t: ArrayLike | None = None) -> PackingHistory:
        """Return radius, effective rank and number of centers by round.

        Parameters
        ----------
        t : array-like of int, optional
            Rounds, starting at 1. The default is all rounds so far.

        Returns
        -------
        history : PackingHistory

        Examples
        --------
        >>> PackingRegressor().fit([[0.1], [0.9], [0.2]], [0.0, 1.0, 0.5]).history().n_centers.tolist()
        [1, 2, 2]
        """
        return packing.history(self._fitted_state, t)


def check_metric(metric: Metric | ArrayLike | None) -> None:
    """Raise `InputError` if the parameter `metric` is not a metric on any number of features."""
    if metric is not None and not isinstance(metric, Metric):
        as_metric(metric, len(np.atleast_1d(metric)))


def as_metric(metric: Metric | ArrayLike | None, d: int) -> Metric:
    """Return the parameter `metric` as a metric on d features."""
    if metric is None:
        return Metric.identity(d)
    width = metric.dimension if isinstance(metric, Metric) else next(iter(np.shape(metric)), d)
    if width != d:  # checked before anything of size d is allocated
        raise ShapeError(f"X must have {width} columns, got {d}")
    if isinstance(metric, Metric):
        return metric
    return Metric.from_diagonal(metric) if np.ndim(metric) == 1 else Metric.from_matrix(metric)
