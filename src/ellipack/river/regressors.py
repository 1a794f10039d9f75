"""The three learners with River's verbs."""

import os
from typing import Any, Final, cast

from ellipack import serialization
from ellipack.errors import CheckpointError
from ellipack.estimators.gop import GradientOuterProduct
from ellipack.estimators.loading import PARAMETER_CLASSES
from ellipack.estimators.parameter_archive import object_from_archive
from ellipack.learners import packing, phased
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.learner import LARGEST_FEATURE, LARGEST_LABEL
from ellipack.learners.metric.rows import MetricRows
from ellipack.learners.metric.state import Size, initial_state
from ellipack.learners.packing import PackingState
from ellipack.learners.rescaled import engine
from ellipack.learners.rescaled.rows import PackingRows, PhasedRows
from ellipack.metric import Metric
from ellipack.river.base import RiverRegressor
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import check_positive


class MetricRegressor(RiverRegressor):
    """The practical learner, `ellipack.MetricRegressor`, with River's verbs.

    Any features, any labels; no scaling, no tuning. It learns which directions matter while it predicts.

    Parameters
    ----------
    max_centers
        Largest number of rows in memory. When memory is full, centers that newer ones make redundant are evicted.
    neighbors
        Number of neighbors that kriging uses.
    views
        2 adds a view of the features by their ranks: a little more accurate, at twice the cost.
    seed
        Random seed.
    config
        An `ellipack.MetricConfig` with settings that few users change.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> model = MetricRegressor()
    >>> score = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> score.get() < 0.5
    True
    """

    _largest_feature, _largest_label = LARGEST_FEATURE, LARGEST_LABEL

    def __init__(
        self,
        max_centers: int = 100_000,
        neighbors: int = 32,
        views: int = 1,
        seed: int = 0,
        config: MetricConfig | None = None,
    ) -> None:
        super().__init__()
        self.max_centers = max_centers
        self.neighbors = neighbors
        self.views = views
        self.seed = seed
        self.config = config

    def _new_learner(self, d: int) -> MetricRows:
        size = Size(self.views, self.neighbors, self.max_centers)
        return MetricRows(initial_state(d, size, self.seed, self.config or MetricConfig()))

    @property
    def metric_(self) -> Metric | None:
        """The metric, of spectral norm 1, on features in standard units, in the order of `feature_names`."""
        return None if self._learner is None else cast(MetricRows, self._learner).state.phase.metrics[0]

    @property
    def n_centers(self) -> int:
        """How many centres there are."""
        return 0 if self._learner is None else cast(MetricRows, self._learner).state.n_centers

    @property
    def effective_rank(self) -> int:
        """The effective rank of the metric at the last round; 0 before the first."""
        return _rank_at(self.metric_, 0 if self._learner is None else cast(MetricRows, self._learner).state.clock)


class _RescaledRegressor(RiverRegressor):
    """What the paper's learners have in common here: ranges of features and labels that grow with what comes."""

    @property
    def _packing(self) -> PackingState | None:
        if self._learner is None:
            return None
        inner = cast(PackingRows | PhasedRows, self._learner).state.inner
        return inner if isinstance(inner, PackingState) else inner.packing

    @property
    def metric_(self) -> Metric | None:
        """The metric, of spectral norm 1, on features in units of their ranges, in the order of `feature_names`."""
        return None if self._packing is None else self._packing.metric

    @property
    def n_centers(self) -> int:
        """How many centres there are."""
        return 0 if self._packing is None else self._packing.core.size

    @property
    def effective_rank(self) -> int:
        """The effective rank of the metric at the last round; 0 before the first."""
        return _rank_at(self.metric_, 0 if self._packing is None else self._packing.clock)


class PackingRegressor(_RescaledRegressor):
    """The paper's Algorithm 1 in the Euclidean metric (Hazan and Megiddo's), with River's verbs.

    Any features and labels: they are seen in units of ranges that grow when a value falls outside. For a metric of
    your own, see `ellipack.PackingRegressor` and `ellipack.RescaledRegressor`.

    Parameters
    ----------
    keep_founding_label
        Whether a new centre takes in the label of the instance that founds it.

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

    def _new_learner(self, d: int) -> PackingRows:
        return PackingRows(engine.init(packing.init(Metric.identity(d)), d), self.keep_founding_label)


class PhasedRegressor(_RescaledRegressor):
    """The paper's section 4, Algorithm 1 in phases that learn the metric, with River's verbs.

    Any features and labels: they are seen in units of ranges that grow when a value falls outside. All rows are kept.

    Parameters
    ----------
    alpha
        The regularization at round t is ``t**-alpha``.
    gop
        How the gradient outer product is estimated, an `ellipack.GradientOuterProduct`; appendix A to the letter if not
        given, which from about 3 features on finds no direction.
    keep_founding_label
        Whether a new centre takes in the label of the instance that founds it.

    Examples
    --------
    >>> from ellipack import GradientOuterProduct, LocalSlopes
    >>> model = PhasedRegressor(gop=GradientOuterProduct(LocalSlopes()))
    >>> for t in range(300):
    ...     model.learn_one({"signal": t % 17, "noise": t % 5}, 2.0 * (t % 17))
    >>> max(model.feature_importances, key=model.feature_importances.get)
    'signal'
    """

    def __init__(
        self, alpha: float = 0.5, gop: GradientOuterProduct | None = None, keep_founding_label: bool = True
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.gop = gop
        self.keep_founding_label = keep_founding_label

    def _new_learner(self, d: int) -> PhasedRows:
        gop = GradientOuterProduct() if self.gop is None else self.gop
        state, alpha = engine.init(phased.init(d), d), check_positive(self.alpha, "alpha")
        return PhasedRows(state, alpha, gop.estimator(), self.keep_founding_label)


def _rank_at(metric: Metric | None, clock: int) -> int:
    return 0 if metric is None or clock == 0 else int(effective_rank(metric.eigenvalues, clock))


SAVED_RIVER_LEARNERS: Final[dict[str, type[RiverRegressor]]] = {
    each.__name__: each for each in (MetricRegressor, PackingRegressor, PhasedRegressor)
}
"""What a file may hold, by name."""


def load(path: str | os.PathLike[str]) -> Any:
    """Return the learner that its `save` wrote to a file; it goes on with the same bits as if it had never stopped.

    A file that is damaged, foreign or of a later version is refused with a `CheckpointError`. Nothing in a file is
    ever run or imported.
    """
    kind, archive = serialization.read(path)
    name = kind.removeprefix("river.")
    if name == kind or name not in SAVED_RIVER_LEARNERS:
        raise CheckpointError(f"{path} holds a {kind} and no learner of ellipack.river: try ellipack.load")
    try:
        learner = object_from_archive(archive.part("parameters"), {**PARAMETER_CLASSES, **SAVED_RIVER_LEARNERS})
        if type(learner) is not SAVED_RIVER_LEARNERS[name]:
            raise CheckpointError(f"parameters/kind must be {name}, got {type(learner).__name__}")
        return learner.restore_state(archive)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
