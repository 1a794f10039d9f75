from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ellipack._core import CoreParts, KdTree, MetricCore
from ellipack.learners.metric import learner
from ellipack.learners.metric.eviction import evict_redundant_centers, find_redundant
from tests.learners.metric.learners import bits, new_state, smooth_stream, trained
from tests.strategies import seeds


def evicted(points: list[float], labels: list[float], part: float) -> list[int]:
    return np.flatnonzero(find_redundant(np.array(points)[:, None], np.array(labels), part)).tolist()


@given(st.integers(2, 300), st.integers(1, 12), st.sampled_from([0.1, 0.25, 0.5]), seeds)
def test_last_center_of_each_leaf_is_kept(n: int, d: int, part: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d))
    gone = find_redundant(points, rng.normal(size=n), part)
    tree = KdTree.build(np.ascontiguousarray(points[:, :8]))
    assert gone.sum() == min(n - tree.leaf_count, np.ceil(part * n))
    for leaf in range(tree.leaf_count):
        assert not gone[tree.leaf_positions(leaf).max()]
    assert not gone[-1]


def test_old_centers_that_are_close_to_a_later_one_are_evicted_first() -> None:
    assert evicted([0.0, 10.0, 0.001, 10.1, 20.0, 31.0, 40.0, 50.0], [0.0] * 8, 0.25) == [0, 1]
    assert evicted([55.0, 0.0, 31.0, 20.0, 0.001, 75.0, 90.0, 120.0], [0.0] * 8, 0.125) == [1]


def test_centers_with_different_labels_are_not_redundant() -> None:
    places, alike = [0.0, 10.0, 0.001, 10.1, 20.0, 31.0, 40.0, 50.0], [0.0, 0.0, 0.0, 0.1, 1.0, 2.0, 3.0, 4.0]
    assert evicted(places, alike, 0.125) == [0]
    assert evicted(places, [0.0, 0.0, 99.0, 0.1, 1.0, 2.0, 3.0, 4.0], 0.125) == [1]


def test_oldest_of_equal_pairs_is_evicted() -> None:
    assert evicted([0.0, 0.5, 100.0, 100.5, 200.0, 200.5], [0.0] * 6, 1 / 6) == [0]


def test_last_of_duplicates_is_kept() -> None:
    assert evicted([0.0] * 20 + [5.0] * 20, [0.0] * 40, 0.5) == [*range(19), 20]


def test_memory_is_bounded_and_learning_continues() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]
    state = new_state(3, views=2, max_centers=100)
    for start in range(0, 3000, 60):
        predictions = learner.learn(state, X[start : start + 60], y[start : start + 60])
        assert 64 <= state.n_centers < 100 or start < 120
    parts = state.core.parts().plain
    # The centers that are left are rows as they came, in their order, with their labels; the last row is among them.
    centers = parts.centers
    came = centers.round_sums.astype(int) - 1
    assert (np.diff(came) > 0).all()
    assert came[-1] == 2999
    assert np.array_equal(centers.rows, X[came])
    assert np.array_equal(centers.label_sums, y[came])
    assert (centers.label_counts == 1).all()
    assert [len(coordinates) for coordinates in parts.index.coordinates] == [len(centers)] * 2
    assert 0 < len(parts.packing.coordinates) <= 64
    assert np.std(predictions - y[-60:]) < 0.5 * np.std(y)


def test_only_centers_are_evicted() -> None:
    X, y = smooth_stream(200)
    state = trained(X, y, views=2)
    before, clock, size = dict(bits(state)), state.clock, state.n_centers
    parts = state.core.parts()
    evicted = CoreParts(evict_redundant_centers(parts.plain), None, parts.importance)
    state.phase = replace(state.phase, core=MetricCore(state.core.settings, evicted))
    after = dict(bits(state))
    assert state.clock == clock
    assert state.n_centers == size - np.ceil(size / 4)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {
        "plain/centers/rows", "plain/centers/label_sums", "plain/centers/label_counts", "plain/centers/round_sums",
        "plain/centers/error_sums",
        "plain/view0/coordinates", "plain/view1/coordinates",
    }  # fmt: skip


def test_100_000_centers_of_50_features_fit_in_a_third_of_a_gibibyte() -> None:
    count, d = 20_000, 50
    tree = KdTree.build(np.random.default_rng(0).normal(size=(count, d)))
    # The tree, rows, sums, counts and rounds of each center, and a quarter more for Algorithm 1.
    bytes_per_center = 1.25 * (tree.memory_bytes / count + 8 * (d + 3))
    assert 100_000 * bytes_per_center < 2**30 / 3
