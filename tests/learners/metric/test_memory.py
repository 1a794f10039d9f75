import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.learners.metric.memory import merges
from ellipack.packing.index import Index
from tests.strategies import seeds


@given(st.integers(2, 300), st.integers(1, 4), st.sampled_from([0.1, 0.25, 0.5]), seeds)
def test_merges_end_in_points_that_stay(n: int, d: int, part: float, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(n, d))
    into, radius = merges(Index.build(points).tree, part)
    assert np.array_equal(into[into], into)
    assert np.all(into <= np.arange(n))
    gone = np.flatnonzero(into != np.arange(n))
    leaves = -(-n // 60)
    assert min(n - leaves, np.ceil(part * n)) - 1 <= len(gone) <= np.ceil(part * n)
    assert radius >= 0


def test_the_closest_go_first() -> None:
    points = np.array([[0.0], [10.0], [20.0], [10.1], [0.001], [31.0], [40.0], [50.0]])
    into, radius = merges(Index.build(points).tree, 0.25)
    assert into.tolist() == [0, 1, 2, 1, 0, 5, 6, 7]
    assert radius == pytest.approx(0.1)


def test_a_chain_of_merges_ends_in_its_first_point() -> None:
    into, _ = merges(Index.build(np.array([[0.0], [1.0], [2.0], [100.0]])).tree, 0.5)
    assert into.tolist() == [0, 0, 0, 3]


def test_piles_of_duplicates_are_merged_at_no_distance() -> None:
    points = np.repeat([[0.0, 0.0], [5.0, 5.0]], 20, axis=0)
    into, radius = merges(Index.build(points).tree, 0.95)
    assert into.tolist() == [0] * 20 + [20] * 20
    assert radius == 0.0
