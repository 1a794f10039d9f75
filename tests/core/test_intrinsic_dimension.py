"""The compiled learner that adapts to the dimension of the rows, bitwise equal to a reference in plain Python."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack._core import IntrinsicDimensionCore
from ellipack.validation import Floats
from tests.core.builds import modules
from tests.reference.intrinsic_dimension import DimensionPacking
from tests.reference.packing import label_sum
from tests.strategies import ball, cuts, seeds


@st.composite
def row_streams(draw: st.DrawFn, max_rows: int = 150) -> tuple[Floats, Floats]:
    """Return rows of a low dimension in several coordinates, and labels."""
    d, n = draw(st.integers(1, 6)), draw(st.integers(1, max_rows))
    low, rng = draw(st.integers(1, d)), np.random.default_rng(draw(seeds))
    basis, _ = np.linalg.qr(rng.normal(size=(d, low)))
    X = ball(rng, n, low) @ basis.T
    if draw(st.booleans()):  # on a lattice: distances are exact and often equal
        X = np.round(4 * X) / 4
    return np.ascontiguousarray(X), rng.random(n)


def state(core: IntrinsicDimensionCore) -> list[Any]:
    """Return the complete state of a core."""
    return [np.array(each).tolist() for each in core.to_arrays()]


def check_equal(core: Any, expected: DimensionPacking) -> None:
    assert state(core)[:-1] == [
        [point.tolist() for point in expected.points],
        [label_sum(labels) for labels in expected.labels],
        [len(labels) for labels in expected.labels],
        [rounds[0] for rounds in expected.rounds],
        expected.offset,
        expected.dimension,
        expected.phase_centers,
    ]
    assert (core.clock, core.size) == (expected.clock, len(expected.points))
    assert (core.intrinsic_dimension, core.offset) == (expected.dimension, expected.offset)


@settings(max_examples=60)
@given(row_streams(), st.sampled_from([1, 2]), st.data())
def test_rounds_match_the_reference(stream: tuple[Floats, Floats], offset: int, data: st.DataObject) -> None:
    X, y = stream
    learners, expected = [core.IntrinsicDimensionCore(X.shape[1], offset) for core in modules], DimensionPacking(offset)
    for part in data.draw(cuts(len(X))):
        made = [expected.learn(x, label) for x, label in zip(X[part], y[part].tolist(), strict=True)]
        predictions = [expected.predict(x) for x in X[:9]]
        for learner in learners:
            assert learner.learn(X[part], y[part]).tolist() == made
            assert learner.predict(X[:9]).tolist() == predictions
    for learner in learners:
        check_equal(learner, expected)


@pytest.mark.parametrize("offset", [1, 2])
def test_the_dimension_increases_in_long_streams_as_in_the_reference(offset: int) -> None:
    rng = np.random.default_rng(0)
    X, y = ball(rng, 1200, 8), rng.random(1200)
    learners, expected = [core.IntrinsicDimensionCore(8, offset) for core in modules], DimensionPacking(offset)
    for start in range(0, 1200, 300):
        part = slice(start, start + 300)
        made = [expected.learn(x, label) for x, label in zip(X[part], y[part].tolist(), strict=True)]
        for learner in learners:
            assert learner.learn(X[part], y[part]).tolist() == made
        learners = [type(learner)(*learner.to_arrays()) for learner in learners]
        for learner in learners:
            check_equal(learner, expected)
    assert expected.dimension >= 3


@settings(max_examples=40)
@given(row_streams(60), st.sampled_from([1, 2]), st.data())
def test_copies_and_pickles_are_independent(stream: tuple[Floats, Floats], offset: int, data: st.DataObject) -> None:
    X, y = stream
    at = data.draw(st.integers(0, len(X)))
    original = IntrinsicDimensionCore(X.shape[1], offset)
    original.learn(X[:at], y[:at])
    before = state(original)
    others = [original.copy(), deepcopy(original), pickle.loads(pickle.dumps(original))]
    made = [other.learn(X[at:], y[at:]).tolist() for other in others]
    assert state(original) == before
    assert made == [original.learn(X[at:], y[at:]).tolist()] * 3
    assert [state(other) for other in others] == [state(original)] * 3


GOOD: dict[str, Any] = {
    "coordinates": [[0.0, 0.0], [0.5, 0.5]],
    "label_sums": [0.5, 1.0],
    "label_counts": [1, 2],
    "creation_rounds": [1, 3],
    "offset": 1,
    "intrinsic_dimension": 1,
    "phase_centers": 2,
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"coordinates": [[0.0, np.nan], [0.5, 0.5]]}, "coordinates must be finite"),
        ({"label_sums": [0.5]}, "label_sums must have one entry per center"),
        ({"label_counts": [0, 3]}, "label_counts must be >= 1 and add up to rounds"),
        ({"label_counts": [2**52, 2**52]}, "rounds must be from 0 to 2\\^52"),
        ({"creation_rounds": [1, 4]}, "creation_rounds must be <= rounds"),
        ({"creation_rounds": [2, 2]}, "creation_rounds must be strictly increasing"),
        ({"offset": 3}, "offset must be 1 or 2"),
        ({"intrinsic_dimension": 3}, "dimension must be from 1 to the number of coordinates"),
        ({"intrinsic_dimension": 0}, "dimension must be from 1 to the number of coordinates"),
        ({"phase_centers": 3}, "phase_centers must be from 0 to the number of centers"),
    ],
)
def test_impossible_states_are_rejected(changed: dict[str, Any], message: str) -> None:
    def core(parts: dict[str, Any]) -> IntrinsicDimensionCore:
        arrays: dict[str, Any] = {
            name: np.array(parts[name], dtype=np.float64) for name in ("coordinates", "label_sums")
        }
        arrays |= {name: np.array(parts[name], dtype=np.int64) for name in ("label_counts", "creation_rounds")}
        return IntrinsicDimensionCore(**(parts | arrays))

    assert core(GOOD).clock == 3
    with pytest.raises(ValueError, match=message):
        core(GOOD | changed)


def test_invalid_arguments_are_rejected() -> None:
    core = IntrinsicDimensionCore(2, 1)
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
    X, y = ball(rng, 2000, 4), rng.random(2000)
    batches = [slice(start, start + 100) for start in range(0, 2000, 100)]
    alone, seen = IntrinsicDimensionCore(4, 1), set()
    for part in batches:
        alone.learn(X[part], y[part])
        seen.add(alone.predict(X[:50]).tobytes())
    shared = IntrinsicDimensionCore(4, 1)
    shared.learn(X[batches[0]], y[batches[0]])

    def look() -> list[bytes]:
        found = []
        while shared.clock < 2000:
            found.append(shared.predict(X[:50]).tobytes())
            assert shared.copy().clock % 100 == 0
        return found

    with ThreadPoolExecutor(3) as pool:
        looking = [pool.submit(look) for _ in range(3)]
        for part in batches[1:]:
            shared.learn(X[part], y[part])
        assert set().union(*(each.result() for each in looking)) <= seen
    assert state(shared) == state(alone)
