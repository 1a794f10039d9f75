"""The paper's learners on any features and labels, with scikit-learn's methods."""

from copy import copy
from typing import Any, Final, cast, get_args

from numpy.typing import ArrayLike

from ellipack.errors import InputError
from ellipack.estimators.calibrated import CalibratedRegressor
from ellipack.estimators.intrinsic_dimension import IntrinsicDimensionRegressor
from ellipack.estimators.locally_adaptive import LocallyAdaptiveRegressor
from ellipack.estimators.packing import PackingRegressor
from ellipack.estimators.phased import PhasedRegressor
from ellipack.learners import rescaled
from ellipack.learners.intervals import NO_INTERVALS, WantedIntervals
from ellipack.learners.intrinsic_dimension import IntrinsicDimensionState
from ellipack.learners.locally_adaptive import LocallyAdaptiveState
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedState
from ellipack.learners.rescaled import RescaledState
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.validation import Floats

PaperRegressor = PackingRegressor | PhasedRegressor | LocallyAdaptiveRegressor | IntrinsicDimensionRegressor
"""Regressors that require instances in the unit ball and labels in [0, 1]."""

_REGRESSORS: Final[dict[type[Any], type[PaperRegressor]]] = {
    PackingState: PackingRegressor,
    PhasedState: PhasedRegressor,
    LocallyAdaptiveState: LocallyAdaptiveRegressor,
    IntrinsicDimensionState: IntrinsicDimensionRegressor,
}
"""Classes of the regressors by the classes of their states."""


class RescaledRegressor(CalibratedRegressor[RescaledState[Any]]):
    """Wrapper that lets the paper's learners accept any features and labels.

    The paper requires instances in the unit ball and labels in [0, 1]. The wrapper keeps a range for each feature and
    for the label, and scales rows and labels by these ranges. A range grows when a value falls outside of it; the
    fitted state is then converted to the new scale. Predictions clip rows to the ranges.

    Parameters
    ----------
    regressor : PackingRegressor, PhasedRegressor, LocallyAdaptiveRegressor or IntrinsicDimensionRegressor
        The learner. Its parameter `metric`, if it has one, applies to scaled rows. After `fit`, only one of the same
        class can take its place.

    Attributes
    ----------
    state_ : RescaledState
        Fitted state.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Names of the features, if the columns had names.

    Examples
    --------
    >>> X, y = [[1000.0, -3.0], [9000.0, 5.0], [2000.0, -2.0]], [70.0, -10.0, 65.0]
    >>> learner = RescaledRegressor(PackingRegressor())
    >>> learner.progressive(X, y).tolist()
    [0.0, 70.0, 70.0]
    >>> learner.predict([[8500.0, 4.0]]).tolist()
    [-10.0]
    """

    def __init__(self, regressor: PaperRegressor) -> None:
        self.regressor = regressor

    @property
    def _checked_regressor(self) -> CalibratedRegressor[Any]:
        """The parameter `regressor`, after a check of its class."""
        if not isinstance(self.regressor, PaperRegressor):
            names = ", ".join(each.__name__ for each in get_args(PaperRegressor))
            raise InputError(f"regressor must be one of {names}, got {self.regressor!r}")
        return self.regressor

    def _regressor_of(self, state: RescaledState[Any]) -> CalibratedRegressor[Any]:
        """Return the parameter `regressor`, after a check that it has the class of the one that was fitted."""
        regressor, fitted = self._checked_regressor, _REGRESSORS[type(state.inner)]
        if not isinstance(regressor, fitted):
            got = type(regressor).__name__
            raise InputError(f"regressor must be a {fitted.__name__}, as when it was fitted, got a {got}: fit again")
        return regressor

    def _check_parameters(self) -> None:
        self._checked_regressor._check_parameters()

    def _initial_state(self, d: int) -> RescaledState[Any]:
        return rescaled.init(self._checked_regressor._initial_state(d), d)

    def check_feature_count(self, d: int) -> None:
        """Raise `DomainError` if there are too many features. See `StreamingEstimator.check_feature_count`."""
        self._checked_regressor.check_feature_count(d)

    def _dimension(self, state: RescaledState[Any]) -> int:
        return state.dimension

    def _clock(self, state: RescaledState[Any]) -> int:
        return int(state.clock)

    def _predict(self, state: RescaledState[Any], X: ArrayLike, intervals: WantedIntervals = NO_INTERVALS) -> Floats:
        return rescaled.predict(state, X, self._regressor_of(state)._predict, intervals)

    def _learn(
        self, state: RescaledState[Any], X: ArrayLike, y: ArrayLike, intervals: WantedIntervals = NO_INTERVALS
    ) -> Floats:
        inner = self._regressor_of(state)
        return rescaled.learn(state, X, y, inner._learn, inner._predict, intervals)

    def _to_archive(self, state: RescaledState[Any]) -> Archive:
        return rescaled.to_archive(state, self._regressor_of(state)._to_archive)

    def _from_archive(self, archive: Archive, d: int) -> RescaledState[Any]:
        return rescaled.from_archive(archive, d, self._checked_regressor._from_archive)

    def _add_features(self, state: RescaledState[Any], scales: Floats) -> None:
        rescaled.add_features(state, len(scales))

    @property
    def regressor_(self) -> PaperRegressor:
        """Fitted learner on scaled rows."""
        state = self._fitted_state
        inner: Any = copy(self._regressor_of(state))
        inner._fitted = state.inner, None
        return cast(PaperRegressor, inner)

    @property
    def metric_(self) -> Metric:
        """Metric on scaled rows, of spectral norm 1."""
        return self.regressor_.metric_

    @property
    def n_centers_(self) -> int:
        """Number of centers."""
        return self.regressor_.n_centers_

    @property
    def effective_rank_(self) -> int:
        """Effective rank of the metric at the last round."""
        return self.regressor_.effective_rank_

    @property
    def radius_(self) -> float:
        """Radius at the last round, on scaled rows."""
        return self.regressor_.radius_
