"""The compiled rounds of `MetricRegressor`: builds, copies, threads, and checks of the constructors."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack import _core
from ellipack._core import CenterIndex, CenterMemory, CoreParts, MetricCore, MetricParts, MetricSettings, PackingExpert
from ellipack.learners.intervals import NO_BOUNDS
from ellipack.learners.metric.state import COUNT, HIGH, LOW
from ellipack.validation import Floats
from tests.core.builds import modules
from tests.learners.metric.learners import PASTS, Past, smooth_stream, trained
from tests.strategies import seeds

FIELDS = {
    "FeatureView": ["knots", "shift", "scale", "directions", "gop", "fit_dimension"],
    "CenterMemory": ["rows", "label_sums", "label_counts", "round_sums", "error_sums"],
    "PackingExpert": [
        "coordinates", "label_sums", "label_counts", "creation_rounds", "rank_starts", "clock", "coordinate_scale",
        "max_centers"
    ],
    "ConformalIntervals": ["mean_error", "labels", "rounds", "widths", "scale_losses", "excess_misses"],
    "LeastSquares": ["inverse", "coefficients"],
    "BernsteinAggregation": ["log_priors", "gains", "squares", "scale"],
    "GlobalRegressions": ["ridge", "forgetting"],
    "StackedAggregation": ["experts", "stack", "top"],
    "MetricParts": [
        "views", "centers", "packing", "regressions", "aggregation", "label_statistics", "feature_statistics",
        "intervals", "index", "clock",
    ],
    "CenterIndex": ["coordinates"],
    "MetricSettings": ["neighbors", "max_centers", "label_margin"],
    "PastFeatures": ["labels", "max_keys", "stream", "keys", "histories"],
    "PastParts": ["rounds", "features", "combination", "active_from", "active_errors", "total_errors"],
    "CoreParts": ["plain", "past"],
}  # fmt: skip
"""The arguments of each constructor, which are also attributes."""


def fields(part: Any) -> dict[str, Any]:
    return {name: getattr(part, name) for name in FIELDS[type(part).__name__]}


def changed(part: Any, **changes: Any) -> Any:
    """Return a part with changed arguments."""
    return type(part)(**{**fields(part), **changes})


def moved(part: Any, core: ModuleType) -> Any:
    """Return a part converted to the types of another build."""
    if isinstance(part, list):
        return [moved(each, core) for each in part]
    if type(part).__name__ not in FIELDS:
        return part
    return getattr(core, type(part).__name__)(**{name: moved(value, core) for name, value in fields(part).items()})


def content(part: Any) -> Any:
    """Return the contents of a part for bitwise comparison."""
    if isinstance(part, list):
        return [content(each) for each in part]
    if isinstance(part, np.ndarray):
        return part.dtype.str, part.shape, part.tobytes()
    if type(part).__name__ not in FIELDS:
        return part
    return {name: content(value) for name, value in fields(part).items()}


def parts_of_learner(rounds: int = 75, views: int = 2) -> MetricParts:
    return trained(*smooth_stream(rounds), views=views).core.parts().plain


def new_core(parts: MetricParts) -> MetricCore:
    """Return a core that sees the features alone."""
    return MetricCore(SETTINGS, CoreParts(parts, None))


SETTINGS = MetricSettings(neighbors=8, max_centers=1000, label_margin=0.05)
PARTS = parts_of_learner()
COORDINATES = PARTS.index.coordinates
FEWER = trained(*smooth_stream(75, 2), views=2).core.parts().plain
FEWER_ROWS = parts_of_learner(rounds=20)
NO_KEYS = np.zeros(0, dtype=np.int64)


def learn_rows(core: Any, X: Floats, y: Floats) -> Floats:
    predictions = np.empty(len(X))
    keys = np.arange(len(X)) % 3 if core.has_keys else NO_KEYS
    assert core.learn(X, keys, y, predictions, NO_BOUNDS) == len(X)
    return predictions


# ---- Builds, copies, threads


@settings(max_examples=10)
@given(st.integers(1, 2), st.sampled_from([3, 45]), st.sampled_from([2, 8, 32]), st.sampled_from(PASTS), seeds)
def test_builds_are_bitwise_equal(views: int, d: int, neighbors: int, past: Past, seed: int) -> None:
    X, y = smooth_stream(160, d, seed)
    start = trained(X[:100], y[:100], views, past=past).core.parts()
    outcomes = []
    for module in modules:
        core = module.MetricCore(module.MetricSettings(neighbors, 1000, 0.05), moved(start, module))
        predictions = learn_rows(core, X[100:], y[100:])
        outcomes.append((predictions.tobytes(), content(core.parts())))
    assert all(outcome == outcomes[0] for outcome in outcomes)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
@pytest.mark.parametrize("rounds", [0, 1, 70])
@pytest.mark.parametrize("past", PASTS)
def test_copies_are_equal_and_independent(duplicate: Any, rounds: int, past: Past) -> None:
    X, y = smooth_stream(120)
    core = trained(X[:1], y[:1], views=2, past=past).core
    if rounds:
        learn_rows(core, X[:rounds], y[:rounds])
    other = duplicate(core)
    before = content(core.parts())
    assert content(other.parts()) == before
    assert content(other.settings) == content(core.settings)
    first = learn_rows(other, X[rounds:], y[rounds:])
    assert content(core.parts()) == before
    assert learn_rows(core, X[rounds:], y[rounds:]).tobytes() == first.tobytes()
    assert content(core.parts()) == content(other.parts())


@pytest.mark.parametrize("name", FIELDS["MetricParts"])
def test_copies_of_parts_are_equal(name: str) -> None:
    part = getattr(PARTS, name)
    for other in (copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        assert content(other) == content(part)


def test_parts_are_copies() -> None:
    core = new_core(PARTS)
    before = content(core.parts())
    parts = core.parts().plain
    parts.label_statistics[:] = np.nan
    parts.centers.rows[:] = np.nan
    parts.aggregation.experts.update(np.arange(26.0), 3.0, 5.0)
    assert content(core.parts()) == before


def test_expert_weights_are_those_of_the_aggregation() -> None:
    core = new_core(PARTS)
    learn_rows(core, *smooth_stream(50, seed=1))
    weights = core.expert_weights()
    assert content(weights) == content(core.parts().plain.aggregation.experts.weights())
    assert content(weights) != content(PARTS.aggregation.experts.weights())
    assert weights.sum() == pytest.approx(1.0)
    weights[:] = 0.0  # a copy
    assert core.expert_weights().sum() == pytest.approx(1.0)


def test_feature_scales_are_those_of_the_first_view() -> None:
    first, second = PARTS.views
    scale = np.array([2.0, 3.0, 5.0])
    core = new_core(changed(PARTS, views=[changed(first, scale=scale), second]))
    scales = core.feature_scales()
    assert content(scales) == content(scale)
    scales[:] = 0.0  # a copy
    assert content(core.feature_scales()) == content(scale)


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize("past", PASTS)
def test_a_core_built_from_its_parts_continues_bitwise_equal(views: int, past: Past) -> None:
    X, y = smooth_stream(400)
    kept = trained(X[:1], y[:1], views, past=past).core
    rebuilt = kept
    for start in range(1, 400, 57):
        part = slice(start, min(start + 57, 400))
        rebuilt = MetricCore(rebuilt.settings, rebuilt.parts())
        assert learn_rows(kept, X[part], y[part]).tobytes() == learn_rows(rebuilt, X[part], y[part]).tobytes()
    assert content(kept.parts()) == content(rebuilt.parts())


def test_threads_see_states_between_rounds() -> None:
    X, y = smooth_stream(300)
    core = trained(X[:50], y[:50]).core
    probe = X[:4].copy()

    def predicted(of: MetricCore) -> bytes:
        predictions = np.empty(4)
        of.predict(probe, predictions, NO_BOUNDS)
        return predictions.tobytes()

    alone = copy.deepcopy(core)
    known = {predicted(alone)}
    for t in range(50, 300):
        learn_rows(alone, X[t : t + 1], y[t : t + 1])
        known.add(predicted(alone))
    with ThreadPoolExecutor(3) as pool:
        learning = pool.submit(learn_rows, core, X[50:], y[50:])
        predicting = [pool.submit(lambda: {predicted(core) for _ in range(200)}) for _ in range(2)]
        copying = pool.submit(lambda: [predicted(copy.deepcopy(core)) for _ in range(20)])
        learning.result()
        for each in predicting:
            assert each.result() <= known
        assert set(copying.result()) <= known
    assert content(core.parts()) == content(alone.parts())


@settings(max_examples=10)
@given(st.sampled_from(PASTS), st.integers(0, 12), st.integers(0, 30), st.integers(-3, 40))
def test_a_core_learns_rows_of_a_batch_up_to_the_end_of_the_phase(past: Past, first: int, size: int, left: int) -> None:
    X, y = smooth_stream(130, 3)
    begun = trained(X[:100], y[:100], past=past).core
    core, alone = begun.copy(), begun.copy()
    rows, labels, keys = X[100:], y[100:], np.arange(30) % 3 if core.has_keys else NO_KEYS
    count, phase_end = min(size, 30 - first), core.clock + 1 + left
    predictions, plain = np.full(30, np.nan), np.full(30, np.nan)
    learned = core.learn(
        rows, keys, labels, predictions, NO_BOUNDS, plain, NO_BOUNDS, first=first, count=count, phase_end=phase_end
    )
    assert learned == max(0, min(count, left))
    run, expected = slice(first, first + learned), np.empty(learned)
    alone.learn(rows[run], keys[run], labels[run], expected, NO_BOUNDS)
    assert predictions[run].tobytes() == expected.tobytes()
    assert np.isfinite(plain[run]).all()
    assert content(core.parts()) == content(alone.parts())
    for values in (predictions, plain):
        assert np.isnan(np.delete(values, np.arange(first, first + learned))).all()


@pytest.mark.parametrize(("first", "count"), [(9, 0), (9, None), (8, 1), (0, 9), (2**64 - 1, 2), (1, 2**64 - 1)])
def test_rows_outside_of_a_batch_are_rejected(first: int, count: int | None) -> None:
    X, y = smooth_stream(8)
    core = new_core(PARTS)
    with pytest.raises(ValueError, match="first and count must be those of rows"):
        core.learn(X, NO_KEYS, y, np.empty(8), NO_BOUNDS, first=first, count=count)
    assert core.clock == PARTS.clock


def test_a_core_stops_before_a_round_that_would_fill_the_memory() -> None:
    X, y = smooth_stream(200)
    core = trained(X[:20], y[:20], max_centers=1000).core
    core = MetricCore(MetricSettings(8, len(core) + 5, 0.05), core.parts())
    predictions = np.full(180, np.nan)
    done = core.learn(X[20:], NO_KEYS, y[20:], predictions, NO_BOUNDS)
    assert len(core) == core.settings.max_centers - 1
    assert 4 <= done < 180
    assert np.isfinite(predictions[:done]).all()
    assert np.isnan(predictions[done:]).all()
    before = content(core.parts())
    new = 20 + done
    assert core.learn(X[new:], NO_KEYS, y[new:], predictions[done:], NO_BOUNDS) == 0
    assert not core.learn_one(X[new].tolist(), y[new])
    assert content(core.parts()) == before
    expected = core.predict_one(X[new].tolist())
    after, prediction, _ = core.round_on_copy(X[new].tolist(), y[new])
    assert prediction == expected
    assert len(after.plain.centers) == core.settings.max_centers
    assert after.plain.clock == core.clock + 1
    assert content(core.parts()) == before


def test_a_round_before_a_refit_differs_only_in_the_regressions() -> None:
    X, y = smooth_stream(60)
    core = trained(X[:59], y[:59], past=Past(2)).core
    before = content(core.parts())
    expected, *published = core.round_on_copy(X[59].tolist(), y[59])
    after, *same = core.round_before_refit(X[59].tolist(), y[59])
    assert same == published
    assert content(core.parts()) == before
    assert after.past is not None
    assert expected.past is not None
    for learner, other in ((after.plain, expected.plain), (after.past.rounds, expected.past.rounds)):
        assert learner.regressions.ridge.inverse.shape == learner.regressions.forgetting.inverse.shape == (1, 1)
        assert content(changed(learner, regressions=other.regressions)) == content(other)
    with pytest.raises(ValueError, match="regression"):
        CoreParts(after.plain, after.past)


def test_algorithm_1_has_a_bounded_number_of_centers() -> None:
    X, y = smooth_stream(400, seed=3)
    most = len(PARTS.packing.coordinates) + 2
    unbounded = new_core(PARTS)
    bounded = new_core(changed(PARTS, packing=changed(PARTS.packing, max_centers=most)))
    for core in (unbounded, bounded):
        learn_rows(core, X, y)
    packing = bounded.parts().plain.packing
    assert len(packing.coordinates) == most < len(unbounded.parts().plain.packing.coordinates)
    # Every label is still assigned to a center.
    assert packing.label_counts.sum() == unbounded.parts().plain.packing.label_counts.sum()


def test_experts_are_clipped_to_the_labels_and_aggregated() -> None:
    core = new_core(PARTS)
    low, high = PARTS.label_statistics[LOW], PARTS.label_statistics[HIGH]
    slack = 0.05 * (high - low)
    for row in smooth_stream(20, seed=5)[0].tolist():
        experts, pair = core.expert_predictions(row)
        assert ((experts >= low - slack) & (experts <= high + slack)).all()
        assert pair[0] == pytest.approx(PARTS.aggregation.experts.weights() @ experts)
        deviations = experts - pair[0]
        stacked = pair[0] + PARTS.aggregation.stack.coefficients @ deviations
        assert pair[1] == pytest.approx(np.clip(stacked, low - slack, high + slack))
        assert core.predict_one(row) == pytest.approx(PARTS.aggregation.top.weights() @ pair)


# ---- Checks of the constructors


def invalid_changes(part: Any) -> list[tuple[str, Any]]:
    """Return invalid changes of single arrays: one entry too few or too many along each axis, not finite."""
    overflowing = {"gop", "inverse", "coefficients"}
    out: list[tuple[str, Any]] = []
    for name, array in fields(part).items():
        if not isinstance(array, np.ndarray):
            continue
        ways = [array[:-1], np.concatenate([array, array[-1:]])]
        if array.ndim == 2:
            ways += [array[:, :-1], array[:, :0], array.T[:-1].copy()]
        if name == "knots":  # may have any number of rows
            ways = ways[2:]
        if name == "rows":  # centers may have any number of features
            ways = [*ways[:2], *ways[3:]]
        out += [(name, np.ascontiguousarray(way)) for way in ways]
        if array.dtype.kind == "f" and array.size and name not in overflowing:
            for value in (np.nan, np.inf, -np.inf):
                bad = array.copy()
                bad.flat[array.size // 2] = value
                out.append((name, bad))
    return out


SPOILED = [
    (part, change)
    for part in (PARTS.views[1], PARTS.centers, PARTS.packing, PARTS.aggregation.experts, PARTS.regressions.ridge)
    for change in invalid_changes(part)
]


@pytest.mark.parametrize(("part", "change"), SPOILED, ids=[f"{type(p).__name__}-{c[0]}" for p, c in SPOILED])
def test_invalid_arrays_are_rejected(part: Any, change: tuple[str, Any]) -> None:
    assert content(changed(part)) == content(part)
    with pytest.raises(ValueError, match="must"):
        changed(part, **dict([change]))


@pytest.mark.parametrize(
    ("name", "array"), [(name, array) for name, array in invalid_changes(PARTS) if name.endswith("statistics")]
)
def test_invalid_statistics_are_rejected(name: str, array: Floats) -> None:
    with pytest.raises(ValueError, match="must"):
        changed(PARTS, **{name: array})


@pytest.mark.parametrize(
    "changes",
    [
        {"label_counts": np.zeros(len(PARTS.centers), dtype=np.int64)},
        {"label_counts": np.full(len(PARTS.centers), -1)},
        {"label_counts": np.full(len(PARTS.centers), 2**63 - 1)},
        {"rows": np.full(PARTS.centers.rows.shape, 1e200)},
        {"error_sums": np.full(len(PARTS.centers), -1.0)},
        {"error_sums": np.full(len(PARTS.centers), np.nan)},
        {"rows": np.zeros((0, 0)), "label_sums": np.zeros(0), "label_counts": np.zeros(0, dtype=np.int64),
         "round_sums": np.zeros(0), "error_sums": np.zeros(0)},
    ],
)  # fmt: skip
def test_impossible_centers_are_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        changed(PARTS.centers, **changes)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_impossible_coordinates_are_rejected(value: float) -> None:
    with pytest.raises(ValueError, match="coordinates must be finite and at most 1e100"):
        CenterIndex([np.full((2, 3), value)])
    with pytest.raises(ValueError, match="coordinates must be finite and at most 1e100"):
        PARTS.index.append([np.full((1, 3), value), np.zeros((1, 3))])


def test_centers_are_taken_replaced_and_appended() -> None:
    centers, places, others = PARTS.centers, np.array([5, 0, 7]), FEWER_ROWS.centers
    taken = centers.take(places)
    more, replaced = centers.append(others), centers.replace(places, others.take(np.arange(3)))
    index = PARTS.index.append(FEWER_ROWS.index.coordinates)
    for name in FIELDS["CenterMemory"]:
        own, new = getattr(centers, name), getattr(others, name)
        assert getattr(taken, name).tobytes() == own[places].tobytes()
        assert getattr(more, name).tobytes() == np.concatenate([own, new]).tobytes()
        own[places] = new[:3]
        assert getattr(replaced, name).tobytes() == own.tobytes()
    pairs = zip(COORDINATES, FEWER_ROWS.index.coordinates, index.coordinates, index.take(places), strict=True)
    for own, new, both, some in pairs:
        assert both.tobytes() == np.concatenate([own, new]).tobytes()
        assert some.tobytes() == own[places].tobytes()
    assert content(PARTS.index) == content(CenterIndex(COORDINATES))
    assert content(PARTS.centers) == content(changed(PARTS.centers))


@pytest.mark.parametrize("place", [-1, 66, 2**62])
def test_places_without_a_center_are_rejected(place: int) -> None:
    places = np.array([0, place])
    for take in (
        PARTS.centers.take,
        PARTS.index.take,
        lambda at: PARTS.centers.replace(at, PARTS.centers.take(at * 0)),
    ):
        with pytest.raises(ValueError, match="places must be from 0 to 66 - 1, got"):
            take(places)
    with pytest.raises(ValueError, match="others must have 2 entries, got 1"):
        PARTS.centers.replace(np.array([0, 1]), PARTS.centers.take(np.array([3])))
    with pytest.raises(ValueError, match="must have"):
        PARTS.centers.append(FEWER.centers)
    with pytest.raises(ValueError, match="must have"):
        PARTS.index.append(FEWER.index.coordinates)
    with pytest.raises(ValueError, match="must have"):
        PARTS.index.append(COORDINATES[:1])


def test_parts_do_not_change_when_the_core_learns() -> None:
    X, y = smooth_stream(20)
    core = new_core(PARTS)
    parts, before = core.parts().plain, content(PARTS)
    learn_rows(core, X, y)
    assert content(parts) == content(PARTS) == before
    assert len(core.parts().plain.index.coordinates[0]) == len(core)


def test_a_packing_is_the_same_in_another_round() -> None:
    later = PARTS.packing.at_round(PARTS.packing.clock + 10)
    assert content(later) == content(changed(PARTS.packing, clock=PARTS.packing.clock + 10))
    with pytest.raises(ValueError, match="must"):
        PARTS.packing.at_round(-1)


NOTHING: dict[str, Any] = {
    "coordinates": np.zeros((0, 3)), "label_sums": np.zeros(0), "label_counts": np.zeros(0, dtype=np.int64),
    "creation_rounds": np.zeros(0, dtype=np.int64),
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"clock": -1},
        {"clock": 2**62},
        {"clock": int(PARTS.packing.creation_rounds[-1]) - 1},
        {"coordinate_scale": 0.0},
        {"coordinate_scale": -1.0},
        {"coordinate_scale": np.nan},
        {"coordinate_scale": np.inf},
        {"coordinate_scale": 1e-300},
        {"rank_starts": PARTS.packing.rank_starts[::-1].copy()},
        {"rank_starts": np.zeros(0, dtype=np.int64)},
        {"label_counts": np.zeros_like(PARTS.packing.label_counts)},
        {"label_counts": np.full_like(PARTS.packing.label_counts, 2**62)},
        {"creation_rounds": PARTS.packing.creation_rounds[::-1].copy()},
        {"creation_rounds": PARTS.packing.creation_rounds - PARTS.packing.creation_rounds[0]},
        {**NOTHING, "coordinates": np.zeros((0, 0))},
        *(
            {**NOTHING, name: getattr(PARTS.packing, name)}
            for name in ("label_sums", "label_counts", "creation_rounds")
        ),
    ],
)
def test_impossible_packings_are_rejected(changes: dict[str, Any]) -> None:
    PackingExpert(**{**fields(PARTS.packing), **NOTHING})
    with pytest.raises(ValueError, match="must"):
        changed(PARTS.packing, **changes)


NO_CENTERS = CenterMemory(np.zeros((0, 3)), np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
FIRST_VIEW, SECOND_VIEW = PARTS.views
ONE_VIEW = parts_of_learner(views=1)


def statistics(entry: int, value: float) -> Floats:
    changed_statistics = PARTS.label_statistics
    changed_statistics[entry] = value
    return changed_statistics


@pytest.mark.parametrize(
    "changes",
    [
        {"views": []},
        {"views": [], "index": CenterIndex([])},
        {"views": [FIRST_VIEW]},
        {"views": [FIRST_VIEW], "index": CenterIndex(COORDINATES[:1])},
        {"views": [*PARTS.views, SECOND_VIEW]},
        {"views": [SECOND_VIEW, FIRST_VIEW]},
        {"views": FEWER.views},
        {"centers": FEWER.centers},
        {"centers": NO_CENTERS},
        {"centers": NO_CENTERS, "index": CenterIndex([np.zeros((0, 3))] * 2)},
        {"packing": FEWER.packing},
        {"regressions": FEWER.regressions},
        {"regressions": _core.GlobalRegressions(PARTS.regressions.ridge, FEWER.regressions.forgetting)},
        {"aggregation": ONE_VIEW.aggregation},
        {"aggregation": changed(PARTS.aggregation, stack=ONE_VIEW.aggregation.stack)},
        {"aggregation": changed(PARTS.aggregation, top=PARTS.aggregation.experts)},
        {"aggregation": changed(PARTS.aggregation, experts=PARTS.aggregation.top)},
        {"feature_statistics": FEWER.feature_statistics},
        {"feature_statistics": np.zeros((5, 0))},
        {"index": CenterIndex([])},
        {"index": CenterIndex([COORDINATES[0]] * 3)},
        {"index": CenterIndex([each[:-1].copy() for each in COORDINATES])},
        {"index": CenterIndex([np.vstack([each, each[:1]]) for each in COORDINATES])},
        {"index": CenterIndex([each[:, :2].copy() for each in COORDINATES])},
        {"clock": -1},
        {"clock": 2**63 - 1},
        {"label_statistics": statistics(COUNT, 0.0)},
        {"label_statistics": statistics(COUNT, -3.0)},
        {"label_statistics": statistics(LOW, 1e9)},
        {"label_statistics": statistics(1, -1.0)},
        {"label_statistics": statistics(4, -1.0)},
    ],
)  # fmt: skip
def test_inconsistent_parts_are_rejected(changes: dict[str, Any]) -> None:
    assert content(changed(PARTS)) == content(PARTS)
    with pytest.raises(ValueError, match="must"):
        changed(PARTS, **changes)


@pytest.mark.parametrize(
    "changes",
    [{"neighbors": 0}, {"neighbors": 1}, {"neighbors": 513}, {"neighbors": 2**40}, {"label_margin": np.nan},
     {"label_margin": -1.0}, {"label_margin": np.inf}],
)  # fmt: skip
def test_impossible_settings_are_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        MetricCore(changed(SETTINGS, **changes), CoreParts(PARTS, None))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e141])
def test_rejected_rows_and_labels_change_nothing(bad: float) -> None:
    X, y = smooth_stream(8)
    core = new_core(PARTS)
    before, predictions = content(core.parts()), np.full(8, 7.0)
    rows, labels = X.copy(), y.copy()
    rows[5, 1], labels[5] = bad, bad
    with pytest.raises(ValueError, match="rows must be finite and at most 1e140 in size"):
        core.predict(rows, predictions, NO_BOUNDS)
    with pytest.raises(ValueError, match="rows must be finite and at most 1e140 in size"):
        core.learn(rows, NO_KEYS, y, predictions, NO_BOUNDS)
    with pytest.raises(ValueError, match="labels must be finite and at most 1e60 in size"):
        core.learn(X, NO_KEYS, labels, predictions, NO_BOUNDS)
    for one in (core.predict_one, core.expert_predictions, lambda row: core.learn_one(row, 0.0)):
        with pytest.raises(ValueError, match="rows must be finite"):
            one(rows[5].tolist())
    with pytest.raises(ValueError, match="labels must be finite"):
        core.learn_one(X[0].tolist(), bad)
    assert content(core.parts()) == before
    assert (predictions == 7.0).all()


def test_rows_of_the_wrong_shape_are_rejected() -> None:
    X, y = smooth_stream(8)
    core = new_core(PARTS)
    before = content(core.parts())
    for rows, labels, predictions in (
        (X, y, np.empty(7)), (X, y[:7], np.empty(8)), (X[:7], y, np.empty(8)), (X[:, :2].copy(), y, np.empty(8)),
        (X.reshape(4, 6), y, np.empty(8)), (X.reshape(12, 2), y, np.empty(8)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="must"):
            core.learn(rows, NO_KEYS, labels, predictions, NO_BOUNDS)
        if len(predictions) != len(rows) or rows.shape[1] != 3:
            with pytest.raises(ValueError, match="must"):
                core.predict(rows, predictions, NO_BOUNDS)
    for row in ([], [1.0, 2.0], [1.0] * 4, [1.0] * 6):
        for one in (core.predict_one, core.expert_predictions, lambda row: core.learn_one(row, 0.0)):
            with pytest.raises(ValueError, match="must"):
                one(row)
    assert content(core.parts()) == before
    assert core.learn(X[:0], NO_KEYS, y[:0], np.empty(0), NO_BOUNDS) == 0


def test_output_arrays_are_filled_in_or_rejected() -> None:
    X, y = smooth_stream(8)
    core = new_core(PARTS)
    read_only = np.empty(8)
    read_only.flags.writeable = False
    single: Any = np.empty(8, dtype=np.float32)
    for predictions in (single, np.empty(16)[::2], np.empty((8, 1)), read_only):
        with pytest.raises(TypeError):
            core.predict(X, predictions, NO_BOUNDS)
        with pytest.raises(TypeError):
            core.learn(X, NO_KEYS, y, predictions, NO_BOUNDS)
    rows: Any = np.asfortranarray(X.astype(np.float32))
    expected, predictions = np.empty(8), np.empty(8)
    core.predict(X.astype(np.float32).astype(np.float64), expected, NO_BOUNDS)
    core.predict(rows, predictions, NO_BOUNDS)  # input arrays are converted
    assert predictions.tobytes() == expected.tobytes()


# ---- Extreme but valid numbers


@settings(max_examples=30)
@given(seeds)
def test_cores_with_extreme_parts_run(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = smooth_stream(30)
    extreme = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e308, 1e150, 1e-150, 5e-324, 1e60]

    def with_extreme(part: Any, name: str) -> Any:
        array = getattr(part, name)
        array.flat[rng.integers(array.size)] = rng.choice(extreme)
        try:
            return changed(part, **{name: array})
        except ValueError:
            return part

    parts = PARTS
    names = ["knots", "shift", "scale", "directions", "gop"]
    views = [with_extreme(view, str(rng.choice(names if view.knots.size else names[1:]))) for view in parts.views]
    centers = with_extreme(parts.centers, str(rng.choice(["rows", "label_sums", "round_sums"])))
    packing = with_extreme(parts.packing, str(rng.choice(["coordinates", "label_sums"])))
    ridge = with_extreme(parts.regressions.ridge, str(rng.choice(FIELDS["LeastSquares"])))
    stack = with_extreme(parts.aggregation.stack, str(rng.choice(FIELDS["LeastSquares"])))
    experts = with_extreme(parts.aggregation.experts, str(rng.choice(["gains", "squares"])))
    parts = changed(
        parts, views=views, centers=centers, packing=packing, regressions=changed(parts.regressions, ridge=ridge),
        aggregation=changed(parts.aggregation, stack=stack, experts=experts),
    )  # fmt: skip
    for name in ("label_statistics", "feature_statistics"):
        parts = with_extreme(parts, name)
    core = new_core(parts)
    learn_rows(core, X, y)
    assert core.clock == PARTS.clock + 30


def test_arrays_that_are_not_aligned_are_left_to_the_checks_of_python() -> None:
    learner = new_core(PARTS)
    room = np.zeros(8 * learner.dimension + 1, dtype=np.uint8)
    assert learner.accepts_rows(room[:-1].view(np.float64)[None])
    assert not learner.accepts_rows(room[1:].view(np.float64)[None])
    row, label = room[:-1].view(np.float64)[None], room[:8].view(np.float64)
    assert learner.accepts_rounds(row, label)
    assert not learner.accepts_rounds(room[1:].view(np.float64)[None], label)
    assert not learner.accepts_rounds(row, room[1:9].view(np.float64))
    assert not learner.accepts_rounds(row, np.zeros(2))
