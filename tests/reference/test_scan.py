import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracles
from tests.packing.clouds import Cloud, clouds
from tests.reference.scan import Scan


@settings(max_examples=40, deadline=None)
@given(clouds(most=300), st.integers(1, 300))
def test_answers_are_those_of_python_loops_bit_for_bit(drawn: Cloud, k: int) -> None:
    scan = Scan(drawn.points)
    positions, distances = scan.nearest(drawn.queries)
    many, far = scan.k_nearest(drawn.queries, k)
    for row, query in enumerate(drawn.queries):
        expected = oracles.neighbors(drawn.points.tolist(), query.tolist())
        assert (distances[row], positions[row]) == expected[0]
        assert list(zip(far[row], many[row], strict=True))[: len(expected)] == expected[:k]
        radius = float(np.sqrt(expected[len(expected) // 2][0])) + 1e-300
        around = scan.within(query[None], radius)
        expected_within = oracles.within(drawn.points.tolist(), query.tolist(), radius)
        assert list(zip(around.distances, around.positions, strict=True)) == expected_within


def test_missing_neighbors_are_minus_one_at_infinity() -> None:
    positions, distances = Scan(np.array([[0.0], [1.0]])).k_nearest(np.array([[0.9]]), k=4)
    assert positions.tolist() == [[1, 0, -1, -1]]
    assert distances[0, 2:].tolist() == [np.inf, np.inf]
