"""The phased algorithm of section 4 with scikit-learn's verbs."""

from numpy.typing import ArrayLike

from ellipack.errors import InputError, ShapeError
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.gop import GradientOuterProduct
from ellipack.learners import phased
from ellipack.learners.packing import PackingHistory
from ellipack.learners.phased import Phase, PhasedState
from ellipack.metric import GopEstimator, Metric
from ellipack.serialization import Archive
from ellipack.theory.schedules import radius
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, check_positive


class PhasedRegressor(StreamingRegressor[PhasedState]):
    """The paper's section 4: Algorithm 1 in phases, each in the metric learned from all rounds before it.

    To the letter: instances must lie in the unit ball and labels in [0, 1], or there is a `DomainError` (what that
    means for scikit-learn's checks stands in `PackingRegressor`); all rows are kept, because the
    gradient outer product is estimated from all of them at the end of every phase. By default that estimate is
    appendix A's to the letter too, which from about 3 features on is 0, so that the metric stays Euclidean; pass
    ``GradientOuterProduct(LocalSlopes())`` for one that finds directions.

    Parameters
    ----------
    alpha : the regularization at round t is ``t**-alpha``.
    gop : how the gradient outer product is estimated, a `GradientOuterProduct`; appendix A to the letter if not
        given.
    keep_founding_label : see `PackingRegressor`.

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

    def _initial_state(self, d: int) -> PhasedState:
        check_positive(self.alpha, "alpha")
        metric = getattr(self._estimator().gradients, "metric", None)
        if metric is not None and metric.dimension != d:
            raise ShapeError(f"X must have {metric.dimension} columns, as the metric of slopes has, got {d}")
        return phased.init(d)

    def _estimator(self) -> GopEstimator:
        gop = GradientOuterProduct() if self.gop is None else self.gop
        if not isinstance(gop, GradientOuterProduct):
            raise InputError(f"gop must be a GradientOuterProduct, got {gop!r}")
        return gop.estimator()

    def _predict(self, state: PhasedState, X: ArrayLike) -> Floats:
        return phased.predict(state, X)

    def _learn(self, state: PhasedState, X: ArrayLike, y: ArrayLike) -> Floats:
        return phased.learn(
            state, X, y, alpha=self.alpha, estimator=self._estimator(), keep_founding_label=self.keep_founding_label
        )

    def _to_archive(self, state: PhasedState) -> Archive:
        return phased.to_archive(state)

    def _from_archive(self, archive: Archive, d: int) -> PhasedState:
        return phased.from_archive(archive, d)

    def _add_features(self, state: PhasedState, scales: Floats) -> None:
        phased.add_features(state, len(scales))

    @property
    def metric_(self) -> Metric:
        """The metric of the present phase, of spectral norm 1."""
        return self._fitted_state.packing.metric

    @property
    def n_centers_(self) -> int:
        """How many centers there are in the present phase, which began with none."""
        return self._fitted_state.packing.core.size

    @property
    def effective_rank_(self) -> int:
        """The effective rank of the metric at the last round of the present phase, or at its first to come."""
        return int(effective_rank(self.metric_.eigenvalues, max(1, self._fitted_state.packing.clock)))

    @property
    def radius_(self) -> float:
        """How far a center reached at the last round of the present phase, or will at its first."""
        return float(radius(self.metric_.eigenvalues, max(1, self._fitted_state.packing.clock)))

    @property
    def phases_(self) -> list[Phase]:
        """What each phase that is over was like: its metric, effective rank, centers, and the estimate at its end."""
        return list(self._fitted_state.phases)

    def history(self) -> PackingHistory:
        """Return radius, effective rank and number of centers at the end of every round, phase after phase."""
        return phased.history(self._fitted_state)
