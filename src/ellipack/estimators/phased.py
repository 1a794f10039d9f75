"""The phased algorithm of section 4 with scikit-learn's methods."""

from numpy.typing import ArrayLike

from ellipack.errors import InputError, ShapeError
from ellipack.estimators.calibrated import CalibratedRegressor
from ellipack.estimators.gop import GradientOuterProduct
from ellipack.learners import phased
from ellipack.learners.intervals import NO_INTERVALS, WantedIntervals
from ellipack.learners.packing import PackingHistory
from ellipack.learners.phased import Phase, PhasedState
from ellipack.metric import GopEstimator, Metric
from ellipack.serialization import Archive
from ellipack.theory.schedules import radius
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, check_boolean, check_positive


class PhasedRegressor(CalibratedRegressor[PhasedState]):
    """Algorithm 1 in phases of doubling length, with a metric learned between phases (section 4 of the paper).

    At the end of each phase the learner estimates the gradient outer product from all rows so far. The regularized
    estimate is the metric of the next phase.

    As in the paper, instances must lie in the unit ball and labels in [0, 1]. Other data raise a `DomainError`; see
    `PackingRegressor`. All rows are kept in memory. The default estimator is appendix A of the paper. From about 3
    features on, its estimate is 0 and the metric stays Euclidean. Pass ``GradientOuterProduct(LocalSlopes())`` to learn
    directions.

    Parameters
    ----------
    alpha : float, default 0.5
        Exponent of the regularization, which is ``t**-alpha`` at round t.
    gop : GradientOuterProduct, optional
        Estimator of the gradient outer product. The default is ``GradientOuterProduct()``, which is appendix A.
    keep_founding_label : bool, default True
        Whether a new center counts the label of its own instance; see `PackingRegressor`.

    Attributes
    ----------
    state_ : PhasedState
        Fitted state.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Names of the features, if the columns had names.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
       section 4, Theorem 2 and appendix A.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(500, 3))
    >>> y = 0.5 + 0.5 * X[:, 0]
    >>> from ellipack import GradientOuterProduct, LocalSlopes
    >>> learner = PhasedRegressor(gop=GradientOuterProduct(LocalSlopes())).fit(X, y)
    >>> np.diag(learner.metric_.matrix).round(1).tolist()
    [1.0, 0.2, 0.2]
    """

    def __init__(
        self, alpha: float = 0.5, gop: GradientOuterProduct | None = None, *, keep_founding_label: bool = True
    ) -> None:
        self.alpha = alpha
        self.gop = gop
        self.keep_founding_label = keep_founding_label

    def _check_parameters(self) -> None:
        check_positive(self.alpha, "alpha")
        check_boolean(self.keep_founding_label, "keep_founding_label")
        self._gop_estimator()

    def _initial_state(self, d: int) -> PhasedState:
        self._check_parameters()
        metric = getattr(self._gop_estimator().gradients, "metric", None)
        if metric is not None and metric.dimension != d:
            raise ShapeError(f"X must have {metric.dimension} columns, like the metric of the slopes, got {d}")
        return phased.init(d)

    def check_feature_count(self, d: int) -> None:
        """Raise `DomainError` if there are too many features. See `StreamingEstimator.check_feature_count`."""
        phased.check_feature_count(d)

    def _gop_estimator(self) -> GopEstimator:
        gop = GradientOuterProduct() if self.gop is None else self.gop
        if not isinstance(gop, GradientOuterProduct):
            raise InputError(f"gop must be a GradientOuterProduct, got {gop!r}")
        return gop.estimator()

    def _dimension(self, state: PhasedState) -> int:
        return state.dimension

    def _clock(self, state: PhasedState) -> int:
        return state.clock

    def _predict(self, state: PhasedState, X: ArrayLike, intervals: WantedIntervals = NO_INTERVALS) -> Floats:
        return phased.predict(state, X, intervals)

    def _learn(
        self, state: PhasedState, X: ArrayLike, y: ArrayLike, intervals: WantedIntervals = NO_INTERVALS
    ) -> Floats:
        return phased.learn(
            state,
            X,
            y,
            intervals,
            alpha=self.alpha,
            estimator=self._gop_estimator(),
            keep_founding_label=self.keep_founding_label,
        )

    def _to_archive(self, state: PhasedState) -> Archive:
        return phased.to_archive(state)

    def _from_archive(self, archive: Archive, d: int) -> PhasedState:
        return phased.from_archive(archive, d)

    def _add_features(self, state: PhasedState, scales: Floats) -> None:
        phased.add_features(state, len(scales))

    @property
    def metric_(self) -> Metric:
        """Metric of the current phase, of spectral norm 1."""
        return self._fitted_state.packing.metric

    @property
    def n_centers_(self) -> int:
        """Number of centers in the current phase, which began without centers."""
        return self._fitted_state.packing.core.size

    @property
    def effective_rank_(self) -> int:
        """Effective rank at the last round of the current phase; at its first round before that."""
        return int(effective_rank(self.metric_.eigenvalues, max(1, self._fitted_state.packing.clock)))

    @property
    def radius_(self) -> float:
        """Radius at the last round of the current phase; at its first round before that."""
        return float(radius(self.metric_.eigenvalues, max(1, self._fitted_state.packing.clock)))

    @property
    def phases_(self) -> list[Phase]:
        """Finished phases: metric, effective rank, centers, and the gradient outer product at the end of each."""
        return list(self._fitted_state.phases)

    def history(self) -> PackingHistory:
        """Return radius, effective rank and number of centers for every round.

        Returns
        -------
        history : PackingHistory

        Examples
        --------
        >>> PhasedRegressor().fit([[0.1], [0.9], [0.2]], [0.0, 1.0, 0.5]).history().n_centers.tolist()
        [1, 2, 1]
        """
        return phased.history(self._fitted_state)
