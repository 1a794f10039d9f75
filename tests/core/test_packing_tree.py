"""The compiled tree of packings, bitwise equal to a reference in plain Python."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack._core import PackingTreeCore
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats, Ints
from tests.core.builds import modules
from tests.reference.packing_tree import Tree, mean
from tests.strategies import ball, cuts, seeds, spectra


class TreeStream(NamedTuple):
    """Whitened rows, labels, and the arguments of an initial core."""

    X: Floats
    y: Floats
    lipschitz: Floats
    dimensions: Ints
    starts: Ints

    def core(self, module: Any) -> Any:
        return module.PackingTreeCore(self.lipschitz, self.dimensions, self.starts)


@st.composite
def tree_streams(draw: st.DrawFn, max_rows: int = 80) -> TreeStream:
    spectrum = draw(spectra(4))
    rng, n = np.random.default_rng(draw(seeds)), draw(st.integers(1, max_rows))
    X = ball(rng, n, len(spectrum)) * np.sqrt(spectrum)
    if draw(st.booleans()):  # on a lattice: distances are exact and often equal
        X = np.round(4 * X) / 4
    levels = draw(st.integers(1, 4))
    lipschitz = np.exp2(np.sort(rng.integers(0, 12, levels)).astype(np.float64))
    dimensions = np.zeros(levels, dtype=np.int64)
    if draw(st.booleans()):
        lipschitz, dimensions = np.ones(levels), np.arange(levels, 0, -1)
    return TreeStream(X, rng.random(n), lipschitz, dimensions, rank_starts(spectrum))


def state(core: PackingTreeCore) -> list[Any]:
    """Return the complete state of a core."""
    return [np.array(each).tolist() for each in core.to_arrays()]


@settings(max_examples=60)
@given(tree_streams(), st.data())
def test_rounds_match_the_reference(stream: TreeStream, data: st.DataObject) -> None:
    X, y = stream.X, stream.y
    trees = [stream.core(core) for core in modules]
    expected = Tree(stream.lipschitz, stream.dimensions, stream.starts)
    for tree in trees:
        assert tree.predict(X[:1]).tolist() == [0.5]
    for part in data.draw(cuts(len(X))):
        made = [expected.learn(x, label) for x, label in zip(X[part].tolist(), y[part].tolist(), strict=True)]
        predictions = [expected.predict(x) for x in X[:9].tolist()]
        for tree in trees:
            assert tree.learn(X[part], y[part]).tolist() == made
            assert tree.predict(X[:9]).tolist() == predictions
    for tree in trees:
        check_equal(tree, expected)
        assert (tree.clock, tree.dimension) == X.shape


def check_equal(tree: PackingTreeCore, expected: Tree) -> None:
    points, parents, sums, counts, log_weights, *_ = state(tree)
    assert points == [node.point for node in expected.nodes]
    assert parents == expected.parents
    assert counts == [len(node.labels) for node in expected.nodes]
    assert [total / count for total, count in zip(sums, counts, strict=True)] == [
        mean(node.labels) for node in expected.nodes
    ]
    assert log_weights == [node.log_weight for node in expected.nodes]
    assert tree.size == len(expected.nodes)


def test_many_children_are_searched_as_few_are() -> None:
    rng = np.random.default_rng(0)
    X, y = ball(rng, 500, 3), rng.random(500)
    X[::5] = np.round(4 * X[::5]) / 4
    stream = TreeStream(X, y, np.array([1e4, 1e6]), np.zeros(2, dtype=np.int64), np.array([1, 1]))
    expected = Tree(stream.lipschitz, stream.dimensions, stream.starts)
    made = [expected.learn(x, label) for x, label in zip(X.tolist(), y.tolist(), strict=True)]
    assert len(expected.nodes[0].children) > 3 * 64
    for core in modules:
        tree = stream.core(core)
        assert tree.learn(X[:300], y[:300]).tolist() == made[:300]
        restored = core.PackingTreeCore(*tree.to_arrays())
        assert restored.learn(X[300:], y[300:]).tolist() == tree.learn(X[300:], y[300:]).tolist() == made[300:]
        assert state(restored) == state(tree)


@settings(max_examples=40)
@given(tree_streams(60), st.data())
def test_copies_and_pickles_are_independent(stream: TreeStream, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(stream.X)))
    original = PackingTreeCore(stream.lipschitz, stream.dimensions, stream.starts)
    original.learn(stream.X[:at], stream.y[:at])
    before = state(original)
    others = [original.copy(), deepcopy(original), pickle.loads(pickle.dumps(original))]
    made = [other.learn(stream.X[at:], stream.y[at:]).tolist() for other in others]
    assert state(original) == before
    assert made == [original.learn(stream.X[at:], stream.y[at:]).tolist()] * 3
    assert [state(other) for other in others] == [state(original)] * 3


GOOD: dict[str, Any] = {
    "points": [[0.0, 0.0], [0.0, 0.0], [0.5, 0.5]],
    "parents": [-1, 0, 0],
    "label_sums": [1.5, 0.5, 1.0],
    "label_counts": [3, 1, 2],
    "log_weights": [0.0, 0.1, -0.1],
    "lipschitz": [1.0],
    "dimensions": [0],
    "rank_starts": [4],
}
FLOAT_ARRAYS = {"points", "label_sums", "log_weights", "lipschitz"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"points": [[0.0, 0.0]]}, "points must have one row per node"),
        ({"points": [[0.0, np.nan], [0.0, 0.0], [0.5, 0.5]]}, "points must be finite"),
        ({"parents": [0, 0, 0]}, "parents must be -1 for the root and earlier nodes for others"),
        ({"parents": [-1, 0, 2]}, "parents must be -1 for the root and earlier nodes for others"),
        ({"parents": [-1, -1, 0]}, "parents must be -1 for the root and earlier nodes for others"),
        ({"parents": [-1, 0, 1], "label_counts": [2, 2, 2]}, "parents must not lead below the last level"),
        ({"label_sums": [1.5, 0.5]}, "label_sums must have one entry per node"),
        ({"label_sums": [1.5, 0.5, np.inf]}, "label_sums must be finite"),
        ({"label_counts": [3, 1]}, "label_counts must have one entry per node"),
        ({"label_counts": [3, 0, 3]}, "label_counts must be from 1 to 2\\^52"),
        ({"label_counts": [3, 1, 1]}, "label_counts of children must add up to that of their parent"),
        ({"label_counts": [3, 2, 2]}, "label_counts of children must add up to that of their parent"),
        ({"log_weights": [0.0, 0.1]}, "log_weights must have one entry per node"),
        ({"log_weights": [0.0, 0.1, np.nan]}, "log_weights must be finite"),
        ({"lipschitz": [0.5]}, "lipschitz must be finite and >= 1"),
        ({"lipschitz": []}, "there must be at least one level"),
        ({"dimensions": [-1]}, "dimensions must be from 0 to 2\\^52"),
        ({"dimensions": [0, 0]}, "dimensions must have one entry per level"),
        ({"rank_starts": []}, "rank_starts must have one entry less than the number of coordinates"),
    ],
)
def test_impossible_states_are_rejected(changed: dict[str, Any], message: str) -> None:
    def core(parts: dict[str, Any]) -> PackingTreeCore:
        arrays: dict[str, Any] = {
            name: np.array(each, dtype=np.float64 if name in FLOAT_ARRAYS else np.int64) for name, each in parts.items()
        }
        return PackingTreeCore(**arrays)

    assert core(GOOD).clock == 3
    with pytest.raises(ValueError, match=message):
        core(GOOD | changed)


def test_invalid_arguments_are_rejected() -> None:
    levels = np.ones(1), np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="rank_starts must be sorted"):
        PackingTreeCore(*levels, np.array([5, 4]))
    core = PackingTreeCore(*levels, np.array([4]))
    with pytest.raises(ValueError, match="rows must have 2 columns, got 3"):
        core.learn(np.zeros((1, 3)), np.zeros(1))
    with pytest.raises(ValueError, match="labels must have 2 entries, got 1"):
        core.learn(np.zeros((2, 2)), np.zeros(1))
    for call in (core.predict, lambda X: core.learn(X, np.zeros(1))):
        with pytest.raises(ValueError, match="coordinates must be finite, got"):
            call(np.full((1, 2), np.inf))
    assert (core.clock, core.size) == (0, 0)


@settings(max_examples=3)
@given(seeds)
def test_threads_see_the_state_between_calls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = ball(rng, 1000, 2), rng.random(1000)
    batches = [slice(start, start + 100) for start in range(0, 1000, 100)]
    arguments = np.array([1.0, 8.0]), np.zeros(2, dtype=np.int64), np.array([50])
    alone, seen = PackingTreeCore(*arguments), set()
    for part in batches:
        alone.learn(X[part], y[part])
        seen.add(alone.predict(X[:50]).tobytes())
    shared = PackingTreeCore(*arguments)
    shared.learn(X[batches[0]], y[batches[0]])

    def look() -> list[bytes]:
        found = []
        while shared.clock < 1000:
            found.append(shared.predict(X[:50]).tobytes())
            assert shared.copy().clock % 100 == 0
        return found

    with ThreadPoolExecutor(3) as pool:
        looking = [pool.submit(look) for _ in range(3)]
        for part in batches[1:]:
            shared.learn(X[part], y[part])
        assert set().union(*(each.result() for each in looking)) <= seen
    assert state(shared) == state(alone)
