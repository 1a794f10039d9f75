import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.learners.metric import memory
from ellipack.learners.metric.memory import merges
from tests.strategies import seeds


@given(st.integers(2, 300), st.integers(1, 4), st.sampled_from([0.1, 0.25, 0.5]), seeds)
def test_merges_end_in_points_that_stay(n: int, d: int, part: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    into = merges(rng.normal(size=(n, d)), rng.normal(size=n), part)
    assert np.array_equal(into[into], into)
    assert np.all(into <= np.arange(n))
    gone = np.sum(into != np.arange(n))
    leaves = -(-n // 60)
    assert gone == min(n - leaves, np.ceil(part * n))


def test_the_closest_go_first() -> None:
    points = np.array([[0.0], [10.0], [0.001], [10.1], [20.0], [31.0], [40.0], [50.0]])
    assert merges(points, np.zeros(8), 0.25).tolist() == [0, 1, 0, 1, 4, 5, 6, 7]


def test_labels_that_differ_keep_points_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_AGE", 0.0)
    points = np.array([[0.0], [10.0], [0.001], [10.1], [20.0], [31.0], [40.0], [50.0]])
    labels = np.array([0.0, 0.0, 99.0, 0.1, 1.0, 2.0, 3.0, 4.0])
    into = merges(points, labels, 0.125)
    assert into.tolist() == [0, 1, 2, 1, 4, 5, 6, 7]


def test_of_equal_pairs_the_older_goes() -> None:
    points = np.array([[0.0], [0.5], [100.0], [100.5], [200.0], [200.5]])
    assert merges(points, np.zeros(6), 1 / 6).tolist() == [0, 0, 2, 3, 4, 5]


def test_a_chain_of_merges_ends_in_its_first_point() -> None:
    into = merges(np.array([[0.0], [1.0], [2.0], [100.0]]), np.zeros(4), 0.5)
    assert into.tolist() == [0, 0, 0, 3]


def test_piles_of_duplicates_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_AGE", 0.0)
    points = np.repeat([[0.0, 0.0], [5.0, 5.0]], 20, axis=0)
    assert merges(points, np.zeros(40), 0.95).tolist() == [0] * 20 + [20] * 20
