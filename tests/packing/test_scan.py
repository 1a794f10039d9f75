import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ellipack.packing._kernels import k_nearest, nearest
from ellipack.packing.scan import coordinates_of, points_of
from ellipack.validation import Floats
from tests.strategies import seeds

pytestmark = pytest.mark.interpreted


def squared_distance(x: Floats, z: Floats) -> float:
    total = 0.0
    for a, b in zip(x.tolist(), z.tolist(), strict=True):
        total += (a - b) * (a - b)
    return total


@st.composite
def clouds(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Return points and a query, in general position or on a lattice, where there are many ties."""
    shape = draw(st.tuples(st.integers(0, 150), st.integers(1, 9)))
    rng = np.random.default_rng(draw(seeds))
    if draw(st.booleans()):
        return rng.normal(size=shape), rng.normal(size=shape[1])
    return rng.integers(-2, 3, size=shape).astype(np.float64), rng.integers(-2, 3, size=shape[1]).astype(np.float64)


@given(clouds())
def test_nearest_is_the_first_of_the_closest(case: tuple[Floats, Floats]) -> None:
    points, query = case
    distances = [squared_distance(point, query) for point in points]
    position, squared = nearest(points_of(points), query)
    best = min(distances, default=math.inf)
    assert (position, squared) == (distances.index(best) if distances else -1, best)


@given(clouds(), st.integers(1, 40))
def test_k_nearest_are_the_closest_in_order_equals_by_age(case: tuple[Floats, Floats], k: int) -> None:
    points, query = case
    expected = sorted((squared_distance(point, query), j) for j, point in enumerate(points))[:k]
    positions, distances = np.empty(k, dtype=np.int64), np.empty(k)
    found = k_nearest(points_of(points), query, positions, distances)
    assert list(zip(distances[:found], positions[:found], strict=True)) == expected


@given(arrays(np.float64, st.tuples(st.integers(0, 200), st.integers(1, 3)), elements=st.floats(-1, 1)))
def test_points_come_back_as_they_went_in(coordinates: Floats) -> None:
    np.testing.assert_array_equal(coordinates_of(points_of(coordinates)), coordinates)
