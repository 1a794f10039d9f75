from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError, ShapeError
from ellipack.metric import Metric
from ellipack.theory import covering_number, largest_packing, packing_number, pairwise_distances, smallest_cover
from ellipack.validation import Floats
from tests.strategies import ball, metrics, seeds

radii = st.floats(0.05, 1.5)


def subsets(n: int) -> list[tuple[int, ...]]:
    return [chosen for size in range(n + 1) for chosen in combinations(range(n), size)]


def is_packing(distances: Floats, chosen: tuple[int, ...], radius: float) -> bool:
    return all(distances[i, j] > radius for i, j in combinations(chosen, 2))


def is_cover(distances: Floats, chosen: tuple[int, ...], radius: float) -> bool:
    return all(any(distances[x, i] <= radius for i in chosen) for x in range(len(distances)))


@given(metrics(max_d=3), st.integers(1, 9), radii, seeds)
def test_numbers_are_those_of_definition_1(metric: Metric, n: int, radius: float, seed: int) -> None:
    points = ball(np.random.default_rng(seed), n, metric.dimension)
    distances = pairwise_distances(points, metric.matrix)
    packings = [chosen for chosen in subsets(n) if is_packing(distances, chosen, radius)]
    covers = [chosen for chosen in subsets(n) if is_cover(distances, chosen, radius)]
    assert packing_number(distances, radius) == max(len(each) for each in packings)
    assert covering_number(distances, radius) == min(len(each) for each in covers)
    assert tuple(largest_packing(distances, radius)) in packings
    assert tuple(smallest_cover(distances, radius)) in covers


def test_numbers_of_graphs_on_which_greedy_choices_fail() -> None:
    # Distances of 1 between neighbors and 2 between others are a metric. The point with the most neighbors is often
    # not in a smallest cover.
    greedy_is_larger = 0
    for seed in range(60):
        near = np.triu(np.random.default_rng(seed).random((9, 9)) < 0.3, 1)
        distances = np.where(near | near.T, 1.0, 2.0) * (1 - np.eye(9))
        smallest = min(len(chosen) for chosen in subsets(9) if is_cover(distances, chosen, 1.0))
        assert covering_number(distances, 1.0) == smallest
        largest = max(len(chosen) for chosen in subsets(9) if is_packing(distances, chosen, 1.0))
        assert packing_number(distances, 1.0) == largest
        uncovered, greedy = np.ones(9, dtype=bool), 0
        while uncovered.any():
            uncovered &= distances[((distances <= 1) & uncovered).sum(axis=1).argmax()] > 1
            greedy += 1
        greedy_is_larger += greedy > smallest
    assert greedy_is_larger > 0


@given(st.integers(1, 3), st.integers(1, 40), radii, seeds)
def test_covers_lie_between_packings(d: int, n: int, radius: float, seed: int) -> None:
    distances = pairwise_distances(ball(np.random.default_rng(seed), n, d))
    covering = covering_number(distances, radius)
    assert packing_number(distances, 2 * radius) <= covering <= packing_number(distances, radius)


def test_both_inequalities_can_be_strict() -> None:
    # A star: the middle covers all, and the ends are packed at the radius, but not at twice the radius.
    star = pairwise_distances([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert (packing_number(star, 2.0), covering_number(star, 1.0), packing_number(star, 1.0)) == (1, 1, 4)
    square = pairwise_distances([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert (packing_number(square, 2.0), covering_number(square, 1.0), packing_number(square, 1.0)) == (1, 2, 2)


@given(metrics(max_d=4), seeds)
def test_distances_are_those_of_the_metric(metric: Metric, seed: int) -> None:
    points = ball(np.random.default_rng(seed), 6, metric.dimension)
    distances = pairwise_distances(points, metric.matrix)
    for i, j in combinations(range(6), 2):
        assert distances[i, j] == pytest.approx(metric.distance(points[i : i + 1], points[j : j + 1])[0], abs=1e-9)


def test_a_line_has_numbers_known_by_hand() -> None:
    # 0, 1, ..., 29: farther than 3 apart are every fourth; a cover takes every seventh.
    line = pairwise_distances(np.arange(30.0)[:, None])
    assert packing_number(line, 3.0) == 8
    assert covering_number(line, 3.0) == 5


@pytest.mark.parametrize(
    ("distances", "error", "message"),
    [
        ([[0.0, 1.0]], ShapeError, r"distances must be square and not empty, got shape \(1, 2\)"),
        ([[0.0, 1.0], [2.0, 0.0]], DomainError, "distances must be >= 0, symmetric, and 0 on the diagonal"),
        ([[0.5]], DomainError, "distances must be >= 0, symmetric, and 0 on the diagonal"),
    ],
)
def test_invalid_distances_are_refused(distances: list[list[float]], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        packing_number(distances, 1.0)
    with pytest.raises(DomainError, match="radius must be > 0, got 0"):
        covering_number([[0.0]], 0.0)
