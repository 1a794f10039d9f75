"""The regressors with guarantees, with River's methods."""

from typing import cast

from ellipack.errors import InputError
from ellipack.estimators.gop import GradientOuterProduct
from ellipack.estimators.intrinsic_dimension import radius_offset
from ellipack.estimators.locally_adaptive import make_levels
from ellipack.learners import intrinsic_dimension, locally_adaptive, packing, phased, rescaled
from ellipack.learners.intrinsic_dimension import IntrinsicDimensionState
from ellipack.learners.locally_adaptive import LocallyAdaptiveState
from ellipack.learners.packing import PackingState
from ellipack.learners.row_learners import (
    LearnerFunctions,
    PackingRowLearner,
    PhasedRowLearner,
    RescaledRowLearner,
)
from ellipack.metric import GopEstimator, Metric
from ellipack.river.base import RiverRegressor, check_unchanged, effective_rank_at
from ellipack.validation import check_boolean, check_positive


class _RescaledRegressor(RiverRegressor[PackingRowLearner | PhasedRowLearner]):
    """Base class of the paper's learners, with ranges of features and labels that grow."""

    @property
    def _packing(self) -> PackingState | None:
        if self._learner is None:
            return None
        inner = self._learner.state.inner
        return inner if isinstance(inner, PackingState) else inner.packing

    @property
    def metric_(self) -> Metric | None:
        """Metric on features scaled by their ranges, in the order of `feature_names`; None before the first row."""
        return None if self._packing is None else self._packing.metric

    @property
    def n_centers(self) -> int:
        """Number of centers."""
        return 0 if self._packing is None else self._packing.core.size

    @property
    def effective_rank(self) -> int:
        """Effective rank of the metric at the last round; 0 before the first row."""
        return effective_rank_at(self.metric_, 0 if self._packing is None else self._packing.clock)


class PackingRegressor(_RescaledRegressor):
    """Online regression over a packing of balls in the Euclidean metric (Algorithm 1 of the paper).

    In the Euclidean metric this is the algorithm of Hazan and Megiddo [2]_. It accepts any features and labels: it
    scales them by ranges, which grow when a value falls outside. For another metric, use `ellipack.PackingRegressor`
    in `ellipack.RescaledRegressor`.

    Parameters
    ----------
    keep_founding_label : bool, default True
        Whether a new center counts the label of its own instance.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
       Algorithm 1.
    .. [2] E. Hazan and N. Megiddo. Online Learning with Prior Knowledge. COLT 2007.

    Examples
    --------
    >>> model = PackingRegressor()
    >>> model.learn_one({"height": 1.2, "age": 40}, 310.0)
    >>> model.learn_one({"height": 9.9, "age": 71}, 820.0)
    >>> model.predict_one({"height": 9.0, "age": 65, "new": 1})
    820.0
    """

    def __init__(self, keep_founding_label: bool = True) -> None:
        super().__init__()
        self.keep_founding_label = keep_founding_label

    def _check_parameters(self) -> None:
        keep = check_boolean(self.keep_founding_label, "keep_founding_label")
        if self._learner is not None:
            check_unchanged("keep_founding_label", keep, self._learner.keep_founding_label)

    def _new_learner(self, d: int) -> PackingRowLearner:
        keep = check_boolean(self.keep_founding_label, "keep_founding_label")
        return PackingRowLearner(rescaled.init(packing.init(Metric.identity(d)), d), keep)


class _SingleStateRegressor(RiverRegressor[RescaledRowLearner]):
    """Base class of further learners on scaled rows, whose states have a metric and a core."""

    @property
    def _state(self) -> LocallyAdaptiveState | IntrinsicDimensionState | None:
        return None if self._learner is None else self._learner.state.inner

    @property
    def metric_(self) -> Metric | None:
        """Metric on features scaled by their ranges, in the order of `feature_names`; None before the first row."""
        return None if self._state is None else self._state.metric

    @property
    def n_centers(self) -> int:
        """Number of centers."""
        return 0 if self._state is None else self._state.core.size

    @property
    def effective_rank(self) -> int:
        """Effective rank of the metric at the last round; 0 before the first row."""
        return effective_rank_at(self.metric_, 0 if self._state is None else self._state.core.clock)


class LocallyAdaptiveRegressor(_SingleStateRegressor):
    """Online regression with a tree of packings, which adapts to how smooth the function is in each region.

    This is `ellipack.LocallyAdaptiveRegressor` with River's methods, in the Euclidean metric. It accepts any features
    and labels: it scales them by ranges, which grow when a value falls outside.

    Parameters
    ----------
    adapt : {"lipschitz", "dimension"}, default "lipschitz"
        What levels of the tree differ in: the Lipschitz constant or the dimension.
    levels : int, default 20
        Number of levels; with ``adapt="dimension"``, at most the number of features in the first row.
    lipschitz : float, default 1.0
        Lipschitz constant of the first level, at least 1.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Locally-Adaptive Nonparametric Online Learning. NeurIPS 2020.

    Examples
    --------
    >>> model = LocallyAdaptiveRegressor()
    >>> for t in range(300):
    ...     model.learn_one({"angle": t % 17}, 2.0 * (t % 17))
    >>> abs(model.predict_one({"angle": 12}) - 24.0) < 2.0
    True
    """

    def __init__(self, adapt: str = "lipschitz", levels: int = 20, lipschitz: float = 1.0) -> None:
        super().__init__()
        self.adapt = adapt
        self.levels = levels
        self.lipschitz = lipschitz

    def _check_parameters(self) -> None:
        make_levels(self.adapt, self.levels, self.lipschitz, d=1)

    def _new_learner(self, d: int) -> RescaledRowLearner:
        levels = make_levels(self.adapt, self.levels, self.lipschitz, d)
        return RescaledRowLearner(rescaled.init(locally_adaptive.init(Metric.identity(d), levels), d), _TREE)


_TREE = LearnerFunctions(
    locally_adaptive.predict, locally_adaptive.learn, locally_adaptive.to_archive, locally_adaptive.from_archive
)


class IntrinsicDimensionRegressor(_SingleStateRegressor):
    """Online regression over a packing of balls, with radii that adapt to the dimension of the rows.

    This is `ellipack.IntrinsicDimensionRegressor` with River's methods, in the Euclidean metric. It accepts any
    features and labels: it scales them by ranges, which grow when a value falls outside.

    Parameters
    ----------
    labels : {"arbitrary", "noisy"}, default "arbitrary"
        Whether radii suit any labels, or those of a function with much noise.

    References
    ----------
    .. [1] S. Kpotufe and F. Orabona. Regression-tree Tuning in a Streaming Setting. NeurIPS 2013.

    Examples
    --------
    >>> model = IntrinsicDimensionRegressor()
    >>> for t in range(300):
    ...     model.learn_one({"angle": t % 17, "double": 2 * (t % 17)}, 2.0 * (t % 17))
    >>> model.intrinsic_dimension, abs(model.predict_one({"angle": 12, "double": 24}) - 24.0) < 2.0
    (1, True)
    """

    def __init__(self, labels: str = "arbitrary") -> None:
        super().__init__()
        self.labels = labels

    def _check_parameters(self) -> None:
        radius_offset(self.labels)

    def _new_learner(self, d: int) -> RescaledRowLearner:
        inner = intrinsic_dimension.init(Metric.identity(d), radius_offset(self.labels))
        return RescaledRowLearner(rescaled.init(inner, d), _DIMENSION)

    @property
    def intrinsic_dimension(self) -> int:
        """Estimate of the dimension of the rows; 0 before the first row."""
        return 0 if self._state is None else cast(IntrinsicDimensionState, self._state).core.intrinsic_dimension

    @property
    def effective_rank(self) -> int:
        """The same as `intrinsic_dimension`, which takes the place of the effective rank in the radius."""
        return self.intrinsic_dimension


_DIMENSION = LearnerFunctions(
    intrinsic_dimension.predict,
    intrinsic_dimension.learn,
    intrinsic_dimension.to_archive,
    intrinsic_dimension.from_archive,
)


class PhasedRegressor(_RescaledRegressor):
    """Algorithm 1 in phases of doubling length, with a metric learned between phases (section 4 of the paper).

    It accepts any features and labels: it scales them by ranges, which grow when a value falls outside. All rows are
    kept in memory.

    Parameters
    ----------
    alpha : float, default 0.5
        Exponent of the regularization, which is ``t**-alpha`` at round t.
    gop : GradientOuterProduct, optional
        Estimator of the gradient outer product. The default is appendix A of the paper, which finds no directions from
        about 3 features on.
    keep_founding_label : bool, default True
        Whether a new center counts the label of its own instance.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
       section 4 and appendix A.

    Examples
    --------
    >>> from ellipack import GradientOuterProduct, LocalSlopes
    >>> model = PhasedRegressor(gop=GradientOuterProduct(LocalSlopes()))
    >>> for t in range(300):
    ...     model.learn_one({"signal": t % 17, "noise": t % 5}, 2.0 * (t % 17))
    >>> max(model.feature_weights, key=model.feature_weights.get)
    'signal'
    """

    def __init__(
        self, alpha: float = 0.5, gop: GradientOuterProduct | None = None, keep_founding_label: bool = True
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.gop = gop
        self.keep_founding_label = keep_founding_label

    def _check_feature_count(self, d: int) -> None:
        phased.check_feature_count(d)

    def _check_parameters(self) -> None:
        learner, (alpha, gop, keep) = self._learner, self._checked_parameters()
        if isinstance(learner, PhasedRowLearner):
            check_unchanged("alpha", alpha, learner.alpha)
            if repr(gop) != repr(learner.estimator):  # metrics with equal matrices are no equal objects
                raise InputError("gop must be the one that rows were learned with: use a new model")
            check_unchanged("keep_founding_label", keep, learner.keep_founding_label)

    def _checked_parameters(self) -> tuple[float, GopEstimator, bool]:
        alpha = check_positive(self.alpha, "alpha")
        keep = check_boolean(self.keep_founding_label, "keep_founding_label")
        if not isinstance(self.gop, GradientOuterProduct | None):
            raise InputError(f"gop must be a GradientOuterProduct, got {self.gop!r}")
        return alpha, (self.gop or GradientOuterProduct()).estimator(), keep

    def _new_learner(self, d: int) -> PhasedRowLearner:
        parameters = self._checked_parameters()
        return PhasedRowLearner(rescaled.init(phased.init(d), d), *parameters)
