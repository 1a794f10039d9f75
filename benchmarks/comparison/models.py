"""The models of the comparison, with every setting that differs from the default of its library.

Settings follow the documentation of each library. No model sees future rows: where features must be standardized,
the statistics are those of the rows so far. All models use one thread. To add a model, add a line to `MODELS`.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from benchmarks.comparison.adapters import (
    FIRST_TRAINING,
    TRAINING_GROWTH,
    CapyMoaAdapter,
    EllipackAdapter,
    LastLabel,
    MeanLabel,
    PartialFitAdapter,
    PrequentialModel,
    RetrainedAdapter,
    RiverAdapter,
)
from ellipack import (
    GradientOuterProduct,
    IntrinsicDimensionRegressor,
    LocallyAdaptiveRegressor,
    LocalSlopes,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
)
from ellipack import RescaledRegressor as Rescaled

OURS, PAPER, STREAMING, BATCH, TRIVIAL = "ours", "paper", "streaming", "batch", "trivial"
SUBJECT = "MetricRegressor"
"""The model that all others are compared with."""

WINDOW, TREES = 1000, 10
"""Rows in the window of KNN, and trees in a forest."""

_RETRAINED = (
    f"trained on all rows so far at {FIRST_TRAINING} rows and after every {100 * TRAINING_GROWTH - 100:.0f} % more"
)


class Model(NamedTuple):
    """A model of the comparison."""

    kind: str
    settings: str
    make: Callable[[int], PrequentialModel]  # from a seed
    seeded: bool = True  # whether the seed changes anything


def river_knn(search: Literal["linear", "graph"] = "linear") -> Any:
    """Return River's KNN: with a linear search of its window, or with a graph, its default."""
    from river.neighbors import SWINN, KNNRegressor, LazySearch  # noqa: PLC0415

    engine = LazySearch(window_size=WINDOW) if search == "linear" else SWINN(maxlen=WINDOW, seed=0)
    return KNNRegressor(engine=engine)


def river_amf(seed: int) -> Any:
    """Return River's AMF."""
    from river.forest import AMFRegressor  # noqa: PLC0415

    return AMFRegressor(n_estimators=TREES, seed=seed)


def _river_scaled(model: Any) -> Any:
    from river.preprocessing import StandardScaler  # noqa: PLC0415

    return StandardScaler() | model


def _labels_scaled(model: Any) -> Any:
    from river.preprocessing import TargetStandardScaler  # noqa: PLC0415

    return TargetStandardScaler(regressor=_river_scaled(model))


def _knn(seed: int) -> PrequentialModel:
    return RiverAdapter(_river_scaled(river_knn()))


def _amf(seed: int) -> PrequentialModel:
    return RiverAdapter(river_amf(seed))


def _amf_scaled(seed: int) -> PrequentialModel:
    return RiverAdapter(_river_scaled(river_amf(seed)))


def _arf(seed: int) -> PrequentialModel:
    from river.forest import ARFRegressor  # noqa: PLC0415

    return RiverAdapter(_river_scaled(ARFRegressor(n_models=TREES, seed=seed)))


def _hoeffding(seed: int) -> PrequentialModel:
    from river.tree import HoeffdingAdaptiveTreeRegressor  # noqa: PLC0415

    return RiverAdapter(
        _river_scaled(HoeffdingAdaptiveTreeRegressor(grace_period=50, model_selector_decay=0.3, seed=seed))
    )


def _linear(seed: int) -> PrequentialModel:
    from river.linear_model import LinearRegression  # noqa: PLC0415
    from river.optim import Adam  # noqa: PLC0415

    # Adam, because plain gradient descent, the default, diverges on rare categories: scaled, they are large.
    return RiverAdapter(_labels_scaled(LinearRegression(optimizer=Adam(0.01))))


def _bayesian(seed: int) -> PrequentialModel:
    from river.linear_model import BayesianLinearRegression  # noqa: PLC0415

    return RiverAdapter(_labels_scaled(BayesianLinearRegression()))


def _sgd(seed: int) -> PrequentialModel:
    from sklearn.linear_model import SGDRegressor  # noqa: PLC0415

    return PartialFitAdapter(SGDRegressor(random_state=seed))


def _mlp(seed: int) -> PrequentialModel:
    from sklearn.neural_network import MLPRegressor  # noqa: PLC0415

    return PartialFitAdapter(MLPRegressor(random_state=seed))


def _lightgbm(seed: int) -> PrequentialModel:
    from lightgbm import LGBMRegressor  # noqa: PLC0415

    def make() -> Any:
        return LGBMRegressor(n_estimators=500, learning_rate=0.05, random_state=seed, n_jobs=1, verbose=-1)

    return RetrainedAdapter(make)


def _extra_trees(seed: int) -> PrequentialModel:
    from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415

    return RetrainedAdapter(lambda: ExtraTreesRegressor(n_estimators=200, random_state=seed))


def _soknl(seed: int) -> PrequentialModel:
    return CapyMoaAdapter("SOKNL", random_seed=seed)


def _moa_arf(seed: int) -> PrequentialModel:
    return CapyMoaAdapter("AdaptiveRandomForestRegressor", random_seed=seed)


def _ours(seed: int) -> PrequentialModel:
    return EllipackAdapter(MetricRegressor(random_state=seed))


def _two_views(seed: int) -> PrequentialModel:
    return EllipackAdapter(MetricRegressor(views=2, random_state=seed))


def _packing(seed: int) -> PrequentialModel:
    return EllipackAdapter(Rescaled(PackingRegressor()))


def _tree(seed: int) -> PrequentialModel:
    return EllipackAdapter(Rescaled(LocallyAdaptiveRegressor()))


def _dimension(seed: int) -> PrequentialModel:
    return EllipackAdapter(Rescaled(IntrinsicDimensionRegressor()))


def _phased(seed: int) -> PrequentialModel:
    return EllipackAdapter(Rescaled(PhasedRegressor()))


def _slopes(seed: int) -> PrequentialModel:
    return EllipackAdapter(Rescaled(PhasedRegressor(gop=GradientOuterProduct(LocalSlopes()))))


MODELS = {
    SUBJECT: Model(OURS, "defaults", _ours),
    "MetricRegressor, 2 views": Model(OURS, "views=2", _two_views),
    "Packing": Model(PAPER, "Algorithm 1, Euclidean, through `RescaledRegressor`", _packing, seeded=False),
    "Locally adaptive": Model(
        PAPER, "tree of packings, 20 Lipschitz constants, through `RescaledRegressor`", _tree, seeded=False
    ),
    "Intrinsic dimension": Model(
        PAPER, "Algorithm 1 with an estimate of the dimension, through `RescaledRegressor`", _dimension, seeded=False
    ),
    "Phased": Model(PAPER, "section 4 with appendix A, through `RescaledRegressor`", _phased, seeded=False),
    "Phased, slopes": Model(PAPER, "section 4 with local slopes, through `RescaledRegressor`", _slopes, seeded=False),
    "KNN": Model(STREAMING, f"River: 5 nearest of the last {WINDOW:,} rows, exact search, scaled", _knn, seeded=False),
    "AMF": Model(STREAMING, f"River: {TREES} trees, features not scaled, as in its documentation", _amf),
    "AMF, scaled": Model(STREAMING, f"River: {TREES} trees, scaled", _amf_scaled),
    "ARF": Model(STREAMING, f"River: {TREES} trees, scaled", _arf),
    "Hoeffding tree": Model(
        STREAMING, "River, adaptive: grace_period=50, model_selector_decay=0.3, scaled", _hoeffding
    ),
    "Linear": Model(STREAMING, "River: Adam(0.01), features and labels scaled", _linear, seeded=False),
    "Bayesian linear": Model(STREAMING, "River: features and labels scaled", _bayesian, seeded=False),
    "SGD": Model(STREAMING, "scikit-learn: SGDRegressor with partial_fit, features and labels scaled", _sgd),
    "MLP": Model(STREAMING, "scikit-learn: MLPRegressor with partial_fit, features and labels scaled", _mlp),
    "LightGBM": Model(BATCH, f"500 trees, learning rate 0.05, {_RETRAINED}", _lightgbm),
    "ExtraTrees": Model(BATCH, f"scikit-learn: 200 trees, {_RETRAINED}", _extra_trees),
    "Running mean": Model(TRIVIAL, "the mean of all labels so far", lambda _: MeanLabel(), seeded=False),
    "Last label": Model(TRIVIAL, "the label of the row before", lambda _: LastLabel(), seeded=False),
}
"""All models by name, in the order of the tables."""

CAPYMOA_MODELS = {
    "SOKNL": Model(STREAMING, "CapyMOA: defaults, 100 trees", _soknl),
    "ARF, MOA": Model(STREAMING, "CapyMOA: defaults, 100 trees", _moa_arf),
}
"""Models that need Java and torch; they take part with ``--capymoa``."""
