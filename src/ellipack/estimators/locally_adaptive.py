"""Locally adaptive regression with scikit-learn's methods."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError
from ellipack.estimators.calibrated import CalibratedRegressor
from ellipack.estimators.packing import as_metric, check_metric
from ellipack.learners import locally_adaptive
from ellipack.learners.intervals import NO_INTERVALS, WantedIntervals
from ellipack.learners.locally_adaptive import Levels, LocallyAdaptiveState
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, check_in_range, check_integer

_ADAPTS: Final = ("lipschitz", "dimension")
_MAX_LIPSCHITZ: Final = 1e15


class LocallyAdaptiveRegressor(CalibratedRegressor[LocallyAdaptiveState]):
    """Online regression with a tree of packings, which adapts to how smooth the function is in each region.

    The tree has a packing of ellipsoids at each level, with radii that decrease from level to level. The nodes that
    contain a row predict their mean labels, and the prediction is their weighted mean. The learner competes with every
    pruning of the tree: with large balls where the function is smooth, or the rows have a low dimension, and with small
    ones elsewhere [1]_. `ellipack.theory.pruning_regret_bound` bounds the regret.

    As in the paper, instances must lie in the unit ball and labels in [0, 1]. Other data raise a `DomainError`; they
    are never rescaled. Use `RescaledRegressor` for other data.

    Parameters
    ----------
    metric : Metric or array-like of shape (n_features, n_features) or (n_features,), optional
        A metric, a positive definite matrix, or the diagonal of one. The default is the Euclidean metric, as in the
        original.
    adapt : {"lipschitz", "dimension"}, default "lipschitz"
        What levels differ in. With "lipschitz", level k = 1, 2, ... has the Lipschitz constant ``lipschitz *
        2**(k-1)`` and the effective rank of the metric. With "dimension", all have the constant `lipschitz`, and the
        dimension decreases from the number of features to 1.
    levels : int, default 20
        Number of levels; with ``adapt="dimension"``, at most the number of features.
    lipschitz : float, default 1.0
        Lipschitz constant of the first level, at least 1.

    Attributes
    ----------
    state_ : LocallyAdaptiveState
        Fitted state.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Names of the features, if the columns had names.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Locally-Adaptive Nonparametric Online Learning. NeurIPS 2020.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(4000, 1))
    >>> y = np.where(X[:, 0] < 0, 0.5, 0.5 + 0.5 * np.sin(40 * X[:, 0]))  # smooth on the left only
    >>> learner = LocallyAdaptiveRegressor().fit(X, y)
    >>> bool(np.abs(learner.predict(X) - y).mean() < 0.1)
    True
    """

    def __init__(
        self,
        metric: Metric | ArrayLike | None = None,
        *,
        adapt: str = "lipschitz",
        levels: int = 20,
        lipschitz: float = 1.0,
    ) -> None:
        self.metric = metric
        self.adapt = adapt
        self.levels = levels
        self.lipschitz = lipschitz

    def _check_parameters(self) -> None:
        make_levels(self.adapt, self.levels, self.lipschitz, d=1)
        check_metric(self.metric)

    def _initial_state(self, d: int) -> LocallyAdaptiveState:
        return locally_adaptive.init(as_metric(self.metric, d), make_levels(self.adapt, self.levels, self.lipschitz, d))

    def _dimension(self, state: LocallyAdaptiveState) -> int:
        return state.metric.dimension

    def _clock(self, state: LocallyAdaptiveState) -> int:
        return state.core.clock

    def _predict(self, state: LocallyAdaptiveState, X: ArrayLike, intervals: WantedIntervals = NO_INTERVALS) -> Floats:
        return locally_adaptive.predict(state, X, intervals)

    def _learn(
        self, state: LocallyAdaptiveState, X: ArrayLike, y: ArrayLike, intervals: WantedIntervals = NO_INTERVALS
    ) -> Floats:
        return locally_adaptive.learn(state, X, y, intervals)

    def _to_archive(self, state: LocallyAdaptiveState) -> Archive:
        return locally_adaptive.to_archive(state)

    def _from_archive(self, archive: Archive, d: int) -> LocallyAdaptiveState:
        return locally_adaptive.from_archive(archive, d)

    def _add_features(self, state: LocallyAdaptiveState, scales: Floats) -> None:
        locally_adaptive.add_features(state, len(scales))

    @property
    def metric_(self) -> Metric:
        """Metric, divided by its spectral norm."""
        return self._fitted_state.metric

    @property
    def n_centers_(self) -> int:
        """Number of nodes of the tree."""
        return self._fitted_state.core.size

    @property
    def effective_rank_(self) -> int:
        """Effective rank of the metric at the last round."""
        return int(effective_rank(self.metric_.eigenvalues, self._fitted_state.core.clock))

    @property
    def radii_(self) -> Floats:
        """Radius of each level at the last round."""
        state = self._fitted_state
        lipschitz, dimensions = state.levels
        ranks = np.where(dimensions > 0, dimensions, self.effective_rank_)
        return np.asarray((lipschitz * state.core.clock) ** (-1 / (1 + ranks)))

    @property
    def radius_(self) -> float:
        """Radius of the last level at the last round."""
        return float(self.radii_[-1])

    @property
    def level_weights_(self) -> Floats:
        """Share of each level, the root first, in the weights on the paths of all rows so far."""
        nodes = self._fitted_state.nodes
        leaves = np.flatnonzero(nodes.depths() == self.levels_)
        path = [leaves]
        for _ in range(self.levels_):
            path.insert(0, nodes.parents[path[0]])
        weights = nodes.log_weights[np.array(path)]
        shares = np.exp(weights - weights.max(axis=0))
        shares /= shares.sum(axis=0)
        return np.asarray(np.average(shares, axis=1, weights=nodes.label_counts[leaves]))

    @property
    def levels_(self) -> int:
        """Number of levels below the root."""
        return len(self._fitted_state.levels.lipschitz)


def make_levels(adapt: object, levels: int, lipschitz: float, d: int) -> Levels:
    """Return the levels of a tree for d features.

    Examples
    --------
    >>> make_levels("lipschitz", 3, 1.0, d=5).lipschitz.tolist()
    [1.0, 2.0, 4.0]
    >>> make_levels("dimension", 3, 1.0, d=5).dimensions.tolist()
    [5, 3, 1]
    """
    if not isinstance(adapt, str) or adapt not in _ADAPTS:
        raise DomainError(f"adapt must be one of {', '.join(_ADAPTS)}, got {adapt!r}")
    count = check_integer(levels, "levels", 1, 50)
    constant = check_in_range(lipschitz, "lipschitz", 1.0, _MAX_LIPSCHITZ)
    if adapt == "lipschitz":
        return Levels(constant * np.exp2(np.arange(count, dtype=np.float64)), np.zeros(count, dtype=np.int64))
    dimensions = np.unique(np.linspace(d, 1, min(count, d)).round().astype(np.int64))[::-1].copy()
    return Levels(np.full(len(dimensions), constant), dimensions)
