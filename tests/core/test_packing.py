"""The compiled Algorithm 1, bitwise equal to a reference in plain Python."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack._core import PackingCore
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats, Ints
from tests.core.builds import Core, builds, modules
from tests.reference.packing import Packing, label_sum
from tests.strategies import ball, cuts, seeds, spectra


@st.composite
def streams(draw: st.DrawFn, max_rows: int = 150) -> tuple[Floats, Floats, Ints]:
    """Return whitened rows, labels, and the rounds in which the rank increases."""
    spectrum = draw(spectra())
    rng, n = np.random.default_rng(draw(seeds)), draw(st.integers(1, max_rows))
    X = ball(rng, n, len(spectrum)) * np.sqrt(spectrum)
    if draw(st.booleans()):  # on a lattice: distances are exact and often equal
        X = np.round(4 * X) / 4
    return X, rng.random(n), rank_starts(spectrum)


def state(core: PackingCore) -> list[Any]:
    """Return the complete state of a core."""
    return [np.array(each).tolist() for each in core.to_arrays()]


@given(streams(), st.booleans(), st.data())
def test_rounds_match_algorithm_1(stream: tuple[Floats, Floats, Ints], keep: bool, data: st.DataObject) -> None:
    X, y, starts = stream
    packings, expected = [core.PackingCore(X.shape[1], starts) for core in modules], Packing(starts, keep)
    for part in data.draw(cuts(len(X))):
        made = [expected.learn(point, label) for point, label in zip(X[part], y[part].tolist(), strict=True)]
        predictions = [expected.predict(point) for point in X[:9]]
        for packing in packings:
            assert packing.learn(X[part], y[part], keep).tolist() == made
            assert packing.predict(X[:9]).tolist() == predictions
    for packing in packings:
        assert packing.coordinates.tolist() == [point.tolist() for point in expected.points]
        assert packing.label_sums.tolist() == [label_sum(labels) for labels in expected.labels]
        assert packing.label_counts.tolist() == [len(labels) for labels in expected.labels]
        assert packing.creation_rounds.tolist() == expected.creation_rounds
        assert (packing.clock, packing.size, packing.dimension) == (len(X), len(expected.points), X.shape[1])
        assert packing.rank_starts.tolist() == starts.tolist()


def test_long_streams_pass_every_bound_on_the_radius() -> None:
    """One packing of each build learns without a break, another one is restored from its arrays again and again."""
    rng = np.random.default_rng(0)
    X, y, starts = rng.uniform(-1, 1, size=(1500, 2)) / 2, rng.random(1500), np.array([300])
    packings, restored = ([core.PackingCore(2, starts) for core in modules] for _ in range(2))
    expected = Packing(starts, True)
    for start in range(0, 1500, 125):
        restored = [type(packing)(*packing.to_arrays()) for packing in restored]
        part = slice(start, start + 125)
        predictions = [expected.learn(point, label) for point, label in zip(X[part], y[part].tolist(), strict=True)]
        for packing in (*packings, *restored):
            assert packing.learn(X[part], y[part], True).tolist() == predictions


@given(streams(60), st.data())
def test_copies_and_pickles_are_independent(stream: tuple[Floats, Floats, Ints], data: st.DataObject) -> None:
    X, y, starts = stream
    at = data.draw(st.integers(0, len(X)))
    original = PackingCore(X.shape[1], starts)
    original.learn(X[:at], y[:at], True)
    before = state(original)
    others = [original.copy(), deepcopy(original), pickle.loads(pickle.dumps(original))]
    made = [other.learn(X[at:], y[at:], True).tolist() for other in others]
    assert state(original) == before
    assert made == [original.learn(X[at:], y[at:], True).tolist()] * 3
    assert [state(other) for other in others] == [state(original)] * 3


@builds
def test_the_rank_increases_in_the_round_that_starts_it(core: Core) -> None:
    X = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.6, 0.0]])
    for start, size in ((4, 1), (5, 2)):  # the radius of round 4 is 0.63 at rank 2, and 0.5 at rank 1
        packing = core.PackingCore(2, np.array([start]))
        packing.learn(X, np.ones(4), True)
        assert packing.size == size


def test_arrays_are_copies() -> None:
    core = PackingCore(1, np.empty(0, dtype=np.int64))
    core.learn(np.array([[0.0], [0.5]]), np.array([0.5, 0.7]), True)
    before = state(core)
    for each in (core.coordinates, core.label_sums, core.label_counts, core.creation_rounds, *core.to_arrays()[:4]):
        each[:] = 0
    assert state(core) == before


GOOD: dict[str, Any] = {
    "coordinates": [[0.0, 0.0], [0.5, 0.5]],
    "label_sums": [0.5, 1.0],
    "label_counts": [1, 2],
    "creation_rounds": [1, 3],
    "rank_starts": [4],
    "clock": 3,
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"coordinates": [[0.0, np.nan], [0.5, 0.5]]}, "coordinates must be finite"),
        ({"coordinates": [[0.0, 0.0]]}, "label_sums must have one entry per center"),
        ({"label_sums": [0.5, np.inf]}, "label_sums must be finite"),
        ({"label_sums": [0.5]}, "label_sums must have one entry per center"),
        ({"label_counts": [1]}, "label_counts must have one entry per center"),
        ({"label_counts": [-1, 2]}, "label_counts must be from 0 to 2\\^52"),
        ({"label_counts": [2**62, 2**62]}, "label_counts must be from 0 to 2\\^52"),
        ({"label_counts": [2, 2]}, "the sum of label_counts must be <= clock"),
        ({"creation_rounds": [1, 2, 3]}, "creation_rounds must have one entry per center"),
        ({"creation_rounds": [0, 1]}, "creation_rounds must be >= 1"),
        ({"creation_rounds": [2, 2]}, "creation_rounds must be strictly increasing"),
        ({"creation_rounds": [1, 4]}, "creation_rounds must be <= clock"),
        ({"rank_starts": []}, "rank_starts must have one entry less than the number of coordinates"),
        ({"rank_starts": [3, 4]}, "rank_starts must have one entry less than the number of coordinates"),
        ({"clock": -1}, "clock must be from 0 to 2\\^52"),
        ({"clock": 2**60}, "clock must be from 0 to 2\\^52"),
        ({"clock": 0}, "centers must exist if and only if clock > 0"),
        (
            {"coordinates": np.empty((0, 2)), "label_sums": [], "label_counts": [], "creation_rounds": []},
            "centers must exist if and only if clock > 0",
        ),
    ],
)
def test_impossible_states_are_rejected(changed: dict[str, Any], message: str) -> None:
    def core(parts: dict[str, Any]) -> PackingCore:
        floats = [np.array(parts[name], dtype=np.float64) for name in ("coordinates", "label_sums")]
        ints = [np.array(parts[name], dtype=np.int64) for name in ("label_counts", "creation_rounds", "rank_starts")]
        return PackingCore(floats[0], floats[1], ints[0], ints[1], ints[2], parts["clock"])

    assert core(GOOD).clock == 3
    with pytest.raises(ValueError, match=message):
        core(GOOD | changed)


def test_invalid_rank_starts_and_dimensions_are_rejected() -> None:
    with pytest.raises(ValueError, match="rank_starts must be sorted"):
        PackingCore(3, np.array([5, 4]))
    with pytest.raises(ValueError, match="dimension must be >= 1, got 0"):
        PackingCore(0, np.empty(0, dtype=np.int64))


def test_rows_of_the_wrong_shape_are_rejected() -> None:
    core = PackingCore(2, np.array([4]))
    with pytest.raises(ValueError, match="rows must have 2 columns, got 3"):
        core.learn(np.zeros((1, 3)), np.zeros(1), True)
    with pytest.raises(ValueError, match="labels must have 2 entries, got 1"):
        core.learn(np.zeros((2, 2)), np.zeros(1), True)
    with pytest.raises(ValueError, match="rows must have 2 columns, got 1"):
        core.predict(np.zeros((1, 1)))
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="coordinates must be finite, got"):
            core.learn(np.full((1, 2), bad), np.zeros(1), True)
        with pytest.raises(ValueError, match="coordinates must be finite, got"):
            core.predict(np.full((1, 2), bad))
    assert core.clock == 0


@settings(max_examples=5)
@given(seeds)
def test_threads_see_the_state_between_calls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y, starts = ball(rng, 4000, 2), rng.random(4000), np.array([50])
    batches = [slice(start, start + 100) for start in range(0, 4000, 100)]
    alone, seen = PackingCore(2, starts), set()
    for part in batches:
        alone.learn(X[part], y[part], True)
        seen.add(alone.predict(X[:50]).tobytes())
    shared = PackingCore(2, starts)
    shared.learn(X[batches[0]], y[batches[0]], True)

    def look() -> list[bytes]:
        found = []
        while shared.clock < 4000:
            found.append(shared.predict(X[:50]).tobytes())
            assert shared.copy().clock % 100 == 0
        return found

    with ThreadPoolExecutor(3) as pool:
        looking = [pool.submit(look) for _ in range(3)]
        for part in batches[1:]:
            shared.learn(X[part], y[part], True)
        assert set().union(*(each.result() for each in looking)) <= seen
    assert state(shared) == state(alone)
