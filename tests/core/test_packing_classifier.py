"""The compiled mistake-driven packings, bitwise equal to a reference in plain Python."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack._core import PackingClassifierCore
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats, Ints
from tests.core.builds import modules
from tests.reference.packing_classifier import MistakePacking
from tests.strategies import ball, cuts, seeds, spectra


@st.composite
def labeled_streams(draw: st.DrawFn, max_rows: int = 150) -> tuple[Floats, Ints, Ints, int]:
    """Return whitened rows, their packings or -1, rounds in which the rank increases, and the number of packings."""
    spectrum, packings = draw(spectra()), draw(st.integers(1, 3))
    rng, n = np.random.default_rng(draw(seeds)), draw(st.integers(1, max_rows))
    X = ball(rng, n, len(spectrum)) * np.sqrt(spectrum)
    if draw(st.booleans()):  # on a lattice: distances are exact and often equal
        X = np.round(4 * X) / 4
    labels = np.where(X[:, 0] > 0, 0, -1) if draw(st.booleans()) else rng.integers(-1, packings, n)
    return X, labels.astype(np.int64), rank_starts(spectrum), packings


def state(core: PackingClassifierCore) -> list[Any]:
    """Return the complete state of a core."""
    return [np.array(each).tolist() for each in core.to_arrays()]


@pytest.mark.parametrize("ball_clocks", [False, True])
@given(labeled_streams(), st.data())
def test_rounds_match_the_reference(
    ball_clocks: bool, stream: tuple[Floats, Ints, Ints, int], data: st.DataObject
) -> None:
    X, labels, starts, packings = stream
    classifiers = [core.PackingClassifierCore(X.shape[1], starts, packings, ball_clocks) for core in modules]
    expected = [MistakePacking(starts, ball_clocks) for _ in range(packings)]
    for part in data.draw(cuts(len(X))):
        rounds = zip(X[part], labels[part].tolist(), strict=True)
        made = [[each.learn(x, int(label == k)) for k, each in enumerate(expected)] for x, label in rounds]
        predictions = [[each.predict(x) for each in expected] for x in X[:9]]
        for classifier in classifiers:
            assert classifier.learn(X[part], labels[part]).tolist() == made
            assert classifier.predict(X[:9]).tolist() == predictions
    for classifier in classifiers:
        assert classifier.mistakes.tolist() == [each.mistakes for each in expected]
        assert state(classifier)[:5] == [
            [point.tolist() for each in expected for point in each.points],
            [float(sum(labels)) for each in expected for labels in each.labels],
            [len(labels) for each in expected for labels in each.labels],
            [mistake for each in expected for mistake in each.creation_mistakes],
            [len(each.points) for each in expected],
        ]
        assert (classifier.packing_count, classifier.dimension) == (packings, X.shape[1])


@given(labeled_streams(60), st.booleans(), st.data())
def test_copies_and_pickles_are_independent(
    stream: tuple[Floats, Ints, Ints, int], ball_clocks: bool, data: st.DataObject
) -> None:
    X, labels, starts, packings = stream
    at = data.draw(st.integers(0, len(X)))
    original = PackingClassifierCore(X.shape[1], starts, packings, ball_clocks)
    original.learn(X[:at], labels[:at])
    before = state(original)
    others = [original.copy(), deepcopy(original), pickle.loads(pickle.dumps(original))]
    made = [other.learn(X[at:], labels[at:]).tolist() for other in others]
    assert state(original) == before
    assert made == [original.learn(X[at:], labels[at:]).tolist()] * 3
    assert [state(other) for other in others] == [state(original)] * 3


GOOD: dict[str, Any] = {
    "coordinates": [[0.0, 0.0], [0.5, 0.5], [0.1, 0.1]],
    "label_sums": [0.0, 1.0, 1.0],
    "label_counts": [1, 2, 1],
    "creation_rounds": [1, 3, 1],
    "sizes": [2, 1],
    "rank_starts": [4],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"label_sums": [0.0, 1.0]}, "label_sums must have 3 entries, got 2"),
        ({"label_counts": [1, 2]}, "label_counts must have 3 entries, got 2"),
        ({"label_counts": [0, 3, 1]}, "label_counts must be >= 1"),
        ({"label_counts": [2**52, 1, 1]}, "the sum of label_counts must be <= 2\\^52"),
        ({"creation_rounds": [1, 3]}, "creation_rounds must have 3 entries, got 2"),
        ({"creation_rounds": [1, 4, 1]}, "creation_rounds must be at most the number of mistakes"),
        ({"creation_rounds": [2, 2, 1]}, "creation_rounds must be strictly increasing"),
        ({"sizes": [2, 2]}, "sizes must add up to the number of centers"),
        ({"sizes": [2]}, "sizes must add up to the number of centers"),
        ({"sizes": [4, -1]}, "sizes must add up to the number of centers"),
        ({"rank_starts": []}, "rank_starts must have one entry less than the number of coordinates"),
        ({"coordinates": [[0.0, 0.0], [np.nan, 0.5], [0.1, 0.1]]}, "coordinates must be finite"),
    ],
)
def test_impossible_states_are_rejected(changed: dict[str, Any], message: str) -> None:
    def core(parts: dict[str, Any]) -> PackingClassifierCore:
        floats = [np.array(parts[name], dtype=np.float64) for name in ("coordinates", "label_sums")]
        names = ("label_counts", "creation_rounds", "sizes", "rank_starts")
        ints = [np.array(parts[name], dtype=np.int64) for name in names]
        return PackingClassifierCore(floats[0], floats[1], ints[0], ints[1], ints[2], ints[3], False)

    assert core(GOOD).mistakes.tolist() == [3, 1]
    with pytest.raises(ValueError, match=message):
        core(GOOD | changed)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="rank_starts must be sorted"):
        PackingClassifierCore(3, np.array([5, 4]), 1, False)
    with pytest.raises(ValueError, match="there must be at least one packing"):
        PackingClassifierCore(2, np.array([4]), 0, False)
    core = PackingClassifierCore(2, np.array([4]), 1, False)
    with pytest.raises(ValueError, match="rows must have 2 columns, got 3"):
        core.learn(np.zeros((1, 3)), np.zeros(1, dtype=np.int64))
    with pytest.raises(ValueError, match="labels must have 2 entries, got 1"):
        core.learn(np.zeros((2, 2)), np.zeros(1, dtype=np.int64))
    for call in (core.predict, lambda X: core.learn(X, np.zeros(1, dtype=np.int64))):
        with pytest.raises(ValueError, match="coordinates must be finite, got"):
            call(np.full((1, 2), np.inf))
    assert core.mistakes.tolist() == [0]


@settings(max_examples=3)
@given(seeds)
def test_threads_see_the_state_between_calls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, labels, starts = ball(rng, 2000, 2), rng.integers(0, 3, 2000), np.array([50])
    batches = [slice(start, start + 100) for start in range(0, 2000, 100)]
    alone, seen = PackingClassifierCore(2, starts, 3, False), set()
    for part in batches:
        alone.learn(X[part], labels[part])
        seen.add(alone.predict(X[:50]).tobytes())
    shared = PackingClassifierCore(2, starts, 3, False)
    shared.learn(X[batches[0]], labels[batches[0]])
    end = alone.mistakes.tolist()

    def look() -> list[bytes]:
        found = []
        while shared.mistakes.tolist() != end:
            found.append(shared.predict(X[:50]).tobytes())
        return found

    with ThreadPoolExecutor(3) as pool:
        looking = [pool.submit(look) for _ in range(3)]
        for part in batches[1:]:
            shared.learn(X[part], labels[part])
        assert set().union(*(each.result() for each in looking)) <= seen
    assert state(shared) == state(alone)
