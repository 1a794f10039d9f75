"""The practical learner with scikit-learn's verbs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import InputError
from ellipack.estimators.base import StreamingRegressor
from ellipack.learners.experts import expert_names
from ellipack.learners.metric import learner, serialization
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.feature_growth import add_features
from ellipack.learners.metric.state import MetricState, Size, initial_state
from ellipack.metric import Metric
from ellipack.parallel import thread_count
from ellipack.serialization import Archive
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, Ints


class MetricHistory(NamedTuple):
    """What was learned by the end of each phase, an entry or a row a phase."""

    end: Ints
    n_centers: Ints
    effective_rank: Ints
    eigenvalues: Floats
    feature_importances: Floats
    expert_weights: Floats
    choices: list[tuple[str, ...]]


class MetricRegressor(StreamingRegressor[MetricState]):
    """Regression on a stream that learns its own metric while it predicts.

    It takes any features and any labels, without scaling or tuning. Experts (a running mean, ridge regressions, the
    paper's Algorithm 1, and means, local linear fits and kriging over the nearest centers) are aggregated so that the
    prediction is nearly as good as the best of them, on any stream; the theorem is in
    `ellipack.learners.aggregation`. The slopes of the local fits add up to a gradient outer product. At the end of each
    phase a new metric is made of it, in which neighbors are searched from then on.

    Parameters
    ----------
    max_centers : int, default 100_000
        Largest number of rows in memory. When memory is full, centers that newer ones make redundant are evicted.
    neighbors : int, default 32
        Number of neighbors that kriging uses.
    views : {1, 2}, default 1
        2 adds a view of the features by their ranks: a little more accurate, at twice the cost.
    random_state : int, default 0
        Random seed of the draw of centers that score candidates for the metric.
    n_jobs : int, default -1
        Number of threads for predictions and for the end of a phase; -1 uses all cores. Results do not depend on it.
    config : MetricConfig, optional
        Settings that few users change.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(600, 4))
    >>> y = 10 * np.sin(X[:, 2]) + X[:, 0]
    >>> learner = MetricRegressor()
    >>> predictions = learner.progressive(X, y)
    >>> bool(np.std(predictions[300:] - y[300:]) < 0.2 * np.std(y))
    True
    >>> int(learner.feature_importances_.argmax())
    2
    """

    def __init__(
        self,
        max_centers: int = 100_000,
        *,
        neighbors: int = 32,
        views: int = 1,
        random_state: int = 0,
        n_jobs: int = -1,
        config: MetricConfig | None = None,
    ) -> None:
        self.max_centers = max_centers
        self.neighbors = neighbors
        self.views = views
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.config = config

    def _initial_state(self, d: int) -> MetricState:
        thread_count(self.n_jobs)
        size = Size(self.views, self.neighbors, self.max_centers)
        config = MetricConfig() if self.config is None else self.config
        if not isinstance(config, MetricConfig):
            raise InputError(f"config must be a MetricConfig, got {config!r}")
        return initial_state(d, size, self.random_state, config)

    def _predict(self, state: MetricState, X: ArrayLike) -> Floats:
        return learner.predict(state, X, self.n_jobs)

    def _learn(self, state: MetricState, X: ArrayLike, y: ArrayLike) -> Floats:
        return learner.learn(state, X, y, self.n_jobs)

    def _to_archive(self, state: MetricState) -> Archive:
        return serialization.to_archive(state)

    def _from_archive(self, archive: Archive, d: int) -> MetricState:
        return serialization.from_archive(archive, d)

    def _add_features(self, state: MetricState, scales: Floats) -> None:
        add_features(state, scales)

    @property
    def metric_(self) -> Metric:
        """The metric, of spectral norm 1, on features in standard units."""
        return self._fitted_state.phase.metrics[0]

    @property
    def eigenvalues_(self) -> Floats:
        """The spectrum of the metric, in falling order, the largest 1."""
        return self.metric_.eigenvalues

    @property
    def directions_(self) -> Floats:
        """The directions of the metric, a row each, in falling order, for features in their own units."""
        return np.asarray(self.metric_.eigenvectors.T / self._fitted_state.core.parts().views[0].scale)

    @property
    def effective_rank_(self) -> int:
        """The effective rank of the metric at the last round."""
        return int(effective_rank(self.eigenvalues_, max(1, self._fitted_state.clock)))

    @property
    def feature_importances_(self) -> Floats:
        """How much each feature counts: the diagonal of the metric in standard units, adding up to 1."""
        return _importances(self.metric_)

    @property
    def expert_names_(self) -> list[str]:
        """Names of the experts."""
        return expert_names(len(self._fitted_state.phase.metrics))

    @property
    def expert_weights_(self) -> Floats:
        """Weight of each expert in the aggregation, in the order of `expert_names_`; they add up to 1."""
        return self._fitted_state.core.parts().aggregation.experts.weights()

    @property
    def n_centers_(self) -> int:
        """Number of centers."""
        return self._fitted_state.n_centers

    def history(self) -> MetricHistory:
        """Return what had been learned by the end of each phase."""
        phases = self._fitted_state.phase.finished
        metrics = [phase.metrics[0] for phase in phases]
        d = self.metric_.dimension
        return MetricHistory(
            end=np.array([phase.end for phase in phases], dtype=np.int64),
            n_centers=np.array([phase.n_centers for phase in phases], dtype=np.int64),
            effective_rank=np.array(
                [int(effective_rank(m.eigenvalues, p.end)) for m, p in zip(metrics, phases, strict=True)],
                dtype=np.int64,
            ),
            eigenvalues=np.array([metric.eigenvalues for metric in metrics]).reshape(-1, d),
            feature_importances=np.array([_importances(metric) for metric in metrics]).reshape(-1, d),
            expert_weights=np.array([phase.expert_weights for phase in phases]).reshape(-1, len(self.expert_names_)),
            choices=[phase.choices for phase in phases],
        )


def _importances(metric: Metric) -> Floats:
    diagonal = np.diag(metric.matrix)
    return np.asarray(diagonal / diagonal.sum())
