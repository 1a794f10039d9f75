import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ellipack.learners.metric.memory import spared
from tests.strategies import seeds


def going(points: list[float], labels: list[float], part: float) -> list[int]:
    return np.flatnonzero(spared(np.array(points)[:, None], np.array(labels), part)).tolist()


@given(st.integers(2, 300), st.integers(1, 4), st.sampled_from([0.1, 0.25, 0.5]), seeds)
def test_as_many_go_as_are_asked_for_but_one_of_each_leaf_stays(n: int, d: int, part: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gone = spared(rng.normal(size=(n, d)), rng.normal(size=n), part)
    leaves = -(-n // 60)
    assert gone.sum() == min(n - leaves, np.ceil(part * n))
    assert not gone[-1]


def test_those_go_first_that_are_close_to_a_later_one_and_old() -> None:
    assert going([0.0, 10.0, 0.001, 10.1, 20.0, 31.0, 40.0, 50.0], [0.0] * 8, 0.25) == [0, 1]
    assert going([55.0, 0.0, 31.0, 20.0, 0.001, 75.0, 90.0, 120.0], [0.0] * 8, 0.125) == [1]


def test_labels_that_differ_keep_points_apart() -> None:
    places, alike = [0.0, 10.0, 0.001, 10.1, 20.0, 31.0, 40.0, 50.0], [0.0, 0.0, 0.0, 0.1, 1.0, 2.0, 3.0, 4.0]
    assert going(places, alike, 0.125) == [0]
    assert going(places, [0.0, 0.0, 99.0, 0.1, 1.0, 2.0, 3.0, 4.0], 0.125) == [1]


def test_of_equal_pairs_the_older_goes() -> None:
    assert going([0.0, 0.5, 100.0, 100.5, 200.0, 200.5], [0.0] * 6, 1 / 6) == [0]


def test_of_a_pile_of_duplicates_the_last_stays() -> None:
    assert going([0.0] * 20 + [5.0] * 20, [0.0] * 40, 0.5) == [*range(19), 20]
