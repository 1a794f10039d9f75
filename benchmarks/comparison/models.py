"""Who takes part, with every setting: what is not written here is the library's default.

Each is set as its own documentation advises, and no look is taken ahead: what needs standard units gets those of the
rows so far. All have one thread. To add one is to add a line to the table at the end.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from benchmarks.comparison.adapters import (
    FIRST,
    GROWTH,
    Incremental,
    LastLabel,
    MeanLabel,
    Ours,
    Player,
    Retrained,
    River,
)
from ellipack import GradientOuterProduct, LocalSlopes, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack import RescaledRegressor as Rescaled

OURS, PAPER, STREAMING, BATCH, TRIVIAL = "ours", "paper", "streaming", "batch", "trivial"
SUBJECT = "MetricRegressor"
"""The learner that all ratios are of."""

WINDOW, TREES = 1000, 10
"""The rows that KNN keeps, and the trees of a forest."""

_RETRAINED = f"trained on everything seen at {FIRST} rows and whenever there are {100 * GROWTH - 100:.0f} % more"


class Learner(NamedTuple):
    """Something that takes part."""

    kind: str
    settings: str
    make: Callable[[int], Player]  # of a seed
    seeded: bool = True  # whether the seed changes anything


def river_knn(search: Literal["plain", "graph"] = "plain") -> Any:
    """Return River's KNN, which searches all rows that it keeps or, as is its default, a graph of them."""
    from river.neighbors import SWINN, KNNRegressor, LazySearch  # noqa: PLC0415

    engine = LazySearch(window_size=WINDOW) if search == "plain" else SWINN(maxlen=WINDOW, seed=0)
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


def _knn(seed: int) -> Player:
    return River(_river_scaled(river_knn()))


def _amf(seed: int) -> Player:
    return River(river_amf(seed))


def _amf_scaled(seed: int) -> Player:
    return River(_river_scaled(river_amf(seed)))


def _arf(seed: int) -> Player:
    from river.forest import ARFRegressor  # noqa: PLC0415

    return River(_river_scaled(ARFRegressor(n_models=TREES, seed=seed)))


def _hoeffding(seed: int) -> Player:
    from river.tree import HoeffdingAdaptiveTreeRegressor  # noqa: PLC0415

    return River(_river_scaled(HoeffdingAdaptiveTreeRegressor(grace_period=50, model_selector_decay=0.3, seed=seed)))


def _linear(seed: int) -> Player:
    from river.linear_model import LinearRegression  # noqa: PLC0415
    from river.optim import Adam  # noqa: PLC0415

    # Not by plain gradient steps, its default: on levels that are rare, and so large when scaled, they diverge.
    return River(_labels_scaled(LinearRegression(optimizer=Adam(0.01))))


def _bayesian(seed: int) -> Player:
    from river.linear_model import BayesianLinearRegression  # noqa: PLC0415

    return River(_labels_scaled(BayesianLinearRegression()))


def _sgd(seed: int) -> Player:
    from sklearn.linear_model import SGDRegressor  # noqa: PLC0415

    return Incremental(SGDRegressor(random_state=seed))


def _mlp(seed: int) -> Player:
    from sklearn.neural_network import MLPRegressor  # noqa: PLC0415

    return Incremental(MLPRegressor(random_state=seed))


def _lightgbm(seed: int) -> Player:
    from lightgbm import LGBMRegressor  # noqa: PLC0415

    def make() -> Any:
        return LGBMRegressor(n_estimators=500, learning_rate=0.05, random_state=seed, n_jobs=1, verbose=-1)

    return Retrained(make)


def _extra_trees(seed: int) -> Player:
    from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415

    return Retrained(lambda: ExtraTreesRegressor(n_estimators=200, random_state=seed))


def _soknl(seed: int) -> Player:
    from benchmarks.comparison.adapters import CapyMoa  # noqa: PLC0415

    return CapyMoa("SOKNL", random_seed=seed)


def _moa_arf(seed: int) -> Player:
    from benchmarks.comparison.adapters import CapyMoa  # noqa: PLC0415

    return CapyMoa("AdaptiveRandomForestRegressor", random_seed=seed)


def _ours(seed: int) -> Player:
    return Ours(MetricRegressor(random_state=seed))


def _two_views(seed: int) -> Player:
    return Ours(MetricRegressor(views=2, random_state=seed))


def _packing(seed: int) -> Player:
    return Ours(Rescaled(PackingRegressor()))


def _phased(seed: int) -> Player:
    return Ours(Rescaled(PhasedRegressor()))


def _slopes(seed: int) -> Player:
    return Ours(Rescaled(PhasedRegressor(gop=GradientOuterProduct(LocalSlopes()))))


LEARNERS = {
    SUBJECT: Learner(OURS, "as it comes", _ours),
    "MetricRegressor, 2 views": Learner(OURS, "views=2", _two_views),
    "Packing": Learner(PAPER, "Algorithm 1, Euclidean, through `RescaledRegressor`", _packing, seeded=False),
    "Phased": Learner(PAPER, "section 4 with appendix A, through `RescaledRegressor`", _phased, seeded=False),
    "Phased, slopes": Learner(PAPER, "section 4 with local slopes, through `RescaledRegressor`", _slopes, seeded=False),
    "KNN": Learner(STREAMING, f"River's: 5 nearest of the last {WINDOW:,} rows, exact, scaled", _knn, seeded=False),
    "AMF": Learner(STREAMING, f"River's: {TREES} trees, features as they are, as in its documentation", _amf),
    "AMF, scaled": Learner(STREAMING, f"River's: {TREES} trees, scaled", _amf_scaled),
    "ARF": Learner(STREAMING, f"River's: {TREES} trees, scaled", _arf),
    "Hoeffding tree": Learner(
        STREAMING, "River's adaptive one: grace_period=50, model_selector_decay=0.3, scaled", _hoeffding
    ),
    "Linear": Learner(STREAMING, "River's, by Adam(0.01), features and labels scaled", _linear, seeded=False),
    "Bayesian linear": Learner(STREAMING, "River's, features and labels scaled", _bayesian, seeded=False),
    "SGD": Learner(STREAMING, "scikit-learn's SGDRegressor by partial_fit, features and labels scaled", _sgd),
    "MLP": Learner(STREAMING, "scikit-learn's MLPRegressor by partial_fit, features and labels scaled", _mlp),
    "LightGBM": Learner(BATCH, f"500 trees at rate 0.05, {_RETRAINED}", _lightgbm),
    "ExtraTrees": Learner(BATCH, f"scikit-learn's, 200 trees, {_RETRAINED}", _extra_trees),
    "Running mean": Learner(TRIVIAL, "the mean of all labels so far", lambda _: MeanLabel(), seeded=False),
    "Last label": Learner(TRIVIAL, "the label before", lambda _: LastLabel(), seeded=False),
}
"""All that take part, by name, in the order in which they are shown."""

CAPYMOA = {
    "SOKNL": Learner(STREAMING, "CapyMOA's, as it comes: 100 trees", _soknl),
    "ARF, MOA's": Learner(STREAMING, "CapyMOA's, as it comes: 100 trees", _moa_arf),
}
"""Those that need Java and torch as well, and take part if asked for."""
