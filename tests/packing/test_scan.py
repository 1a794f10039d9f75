import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.errors import DomainError, NonFiniteError, ShapeError
from ellipack.packing.scan import Scan
from tests import oracles
from tests.packing.clouds import Cloud, cloud, clouds


def check_against_the_oracle(scan: Scan, drawn: Cloud, k: int) -> None:
    positions, distances = scan.nearest(drawn.queries)
    many, far = scan.k_nearest(drawn.queries, k)
    for row, query in enumerate(drawn.queries):
        expected = oracles.neighbors(drawn.points.tolist(), query.tolist())
        assert (distances[row], positions[row]) == expected[0]
        assert list(zip(far[row], many[row], strict=True))[: len(expected)] == expected[:k]
        radius = np.sqrt(expected[len(expected) // 2][0]) + 1e-300
        around = scan.within(query[None], radius)
        expected_within = oracles.within(drawn.points.tolist(), query.tolist(), radius)
        assert list(zip(around.distances, around.positions, strict=True)) == expected_within


@settings(max_examples=60, deadline=None)
@given(clouds(most=400), st.integers(1, 300))
def test_answers_are_the_oracles_bit_for_bit(drawn: Cloud, k: int) -> None:
    check_against_the_oracle(Scan.build(drawn.points), drawn, k)


@pytest.mark.interpreted
@pytest.mark.parametrize("k", [1, 70, 100])
def test_a_small_scan_grown_point_by_point_is_the_oracles_too(k: int) -> None:
    drawn = cloud("grid", 0.1, 90, 5, seed=3)
    scan = Scan.empty(5)
    for point in drawn.points:
        scan.insert(point[None])
    check_against_the_oracle(scan, Cloud(drawn.points, drawn.queries[::5]), k)


def test_missing_neighbours_are_minus_one_at_infinity() -> None:
    scan = Scan.build([[0.0], [1.0]])
    positions, distances = scan.k_nearest([[0.9]], k=4)
    assert positions.tolist() == [[1, 0, -1, -1]]
    assert distances[0, 2:].tolist() == [np.inf, np.inf]
    nobody, nowhere = Scan.empty(1).nearest([[0.0]])
    assert (nobody.tolist(), nowhere.tolist()) == ([-1], [np.inf])


def test_what_breaks_a_rule_is_refused() -> None:
    scan = Scan.build([[0.0, 1.0]])
    with pytest.raises(NonFiniteError, match="points must be finite, got NaN at row 1, column 0"):
        scan.insert([[0.0, 0.0], [np.nan, 0.0]])
    with pytest.raises(ShapeError, match="queries must have 2 columns, got 1"):
        scan.nearest([[0.0]])
    with pytest.raises(DomainError, match="radius must be > 0, got 0"):
        scan.within([[0.0, 0.0]], 0.0)
    with pytest.raises(DomainError, match="k must be a whole number >= 1, got 0"):
        scan.k_nearest([[0.0, 0.0]], 0)
    assert len(scan) == 1
