"""Regression that adapts to the dimension of the rows, with scikit-learn's methods."""

from typing import Final

from numpy.typing import ArrayLike

from ellipack.errors import DomainError
from ellipack.estimators.calibrated import CalibratedRegressor
from ellipack.estimators.packing import as_metric, check_metric
from ellipack.learners import intrinsic_dimension
from ellipack.learners.intervals import NO_INTERVALS, WantedIntervals
from ellipack.learners.intrinsic_dimension import IntrinsicDimensionState
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.manifolds import ARBITRARY, NOISY
from ellipack.validation import Floats

_OFFSETS: Final = {"arbitrary": ARBITRARY, "noisy": NOISY}


class IntrinsicDimensionRegressor(CalibratedRegressor[IntrinsicDimensionState]):
    """Online regression over a packing of ellipsoids, with radii that adapt to the dimension of the rows.

    The radii of Algorithm 1 depend on the number of features. If the rows lie on a manifold of a lower dimension, they
    shrink too slowly. This learner estimates the dimension from the number of its centers, after Kpotufe and Orabona
    [1]_, and sets radii by the estimate. `ellipack.theory.manifold_regret_bound` bounds the regret.

    As in the paper, instances must lie in the unit ball and labels in [0, 1]. Other data raise a `DomainError`; they
    are never rescaled. Use `RescaledRegressor` for other data.

    Parameters
    ----------
    metric : Metric or array-like of shape (n_features, n_features) or (n_features,), optional
        A metric, a positive definite matrix, or the diagonal of one. The default is the Euclidean metric.
    labels : {"arbitrary", "noisy"}, default "arbitrary"
        "arbitrary" sets the radius in round t to ``t**(-1/(1+D))`` for an estimate D, as in Algorithm 1, which bounds
        the regret for any labels. "noisy" sets it to ``t**(-1/(2+D))``, as in [1]_, which is best if labels are a
        function of the row plus much noise of mean 0. A change after `fit` has no effect before the next `fit`.

    Attributes
    ----------
    state_ : IntrinsicDimensionState
        Fitted state.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Names of the features, if the columns had names.

    References
    ----------
    .. [1] S. Kpotufe and F. Orabona. Regression-tree Tuning in a Streaming Setting. NeurIPS 2013.

    Examples
    --------
    >>> import numpy as np
    >>> along = np.random.default_rng(0).uniform(-1, 1, size=(1000, 1))
    >>> X = along * np.full(9, 1 / 3)  # a line in 9 dimensions
    >>> learner = IntrinsicDimensionRegressor().fit(X, along[:, 0] ** 2)
    >>> learner.intrinsic_dimension_
    1
    """

    def __init__(self, metric: Metric | ArrayLike | None = None, *, labels: str = "arbitrary") -> None:
        self.metric = metric
        self.labels = labels

    def _check_parameters(self) -> None:
        radius_offset(self.labels)
        check_metric(self.metric)

    def _initial_state(self, d: int) -> IntrinsicDimensionState:
        return intrinsic_dimension.init(as_metric(self.metric, d), radius_offset(self.labels))

    def _dimension(self, state: IntrinsicDimensionState) -> int:
        return state.metric.dimension

    def _clock(self, state: IntrinsicDimensionState) -> int:
        return state.core.clock

    def _predict(
        self, state: IntrinsicDimensionState, X: ArrayLike, intervals: WantedIntervals = NO_INTERVALS
    ) -> Floats:
        return intrinsic_dimension.predict(state, X, intervals)

    def _learn(
        self, state: IntrinsicDimensionState, X: ArrayLike, y: ArrayLike, intervals: WantedIntervals = NO_INTERVALS
    ) -> Floats:
        return intrinsic_dimension.learn(state, X, y, intervals)

    def _to_archive(self, state: IntrinsicDimensionState) -> Archive:
        return intrinsic_dimension.to_archive(state)

    def _from_archive(self, archive: Archive, d: int) -> IntrinsicDimensionState:
        return intrinsic_dimension.from_archive(archive, d)

    def _add_features(self, state: IntrinsicDimensionState, scales: Floats) -> None:
        intrinsic_dimension.add_features(state, len(scales))

    @property
    def metric_(self) -> Metric:
        """Metric, divided by its spectral norm."""
        return self._fitted_state.metric

    @property
    def n_centers_(self) -> int:
        """Number of centers."""
        return self._fitted_state.core.size

    @property
    def intrinsic_dimension_(self) -> int:
        """Estimate of the dimension of the rows."""
        return self._fitted_state.core.intrinsic_dimension

    @property
    def effective_rank_(self) -> int:
        """The same as `intrinsic_dimension_`, which takes the place of the effective rank in the radius."""
        return self.intrinsic_dimension_

    @property
    def radius_(self) -> float:
        """Radius at the last round."""
        core = self._fitted_state.core
        return float(core.clock ** (-1 / (core.offset + core.intrinsic_dimension)))


def radius_offset(labels: object) -> int:
    """Return the offset of the radius ``t**(-1/(offset+D))`` for the parameter `labels`."""
    if not isinstance(labels, str) or labels not in _OFFSETS:
        raise DomainError(f"labels must be one of {', '.join(_OFFSETS)}, got {labels!r}")
    return _OFFSETS[labels]
