import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._core import UnitBox
from ellipack.learners.rescaled import box as boxes

numbers = st.floats(allow_nan=False, allow_infinity=False)
LARGEST = sys.float_info.max


def grown(values: list[list[float]], labels: list[float]) -> list[UnitBox]:
    seen = [boxes.empty(len(values[0]))]
    for x, label in zip(values, labels, strict=True):
        seen.append(boxes.grown(seen[-1], np.array(x), label))
    return seen[1:]


@given(st.lists(st.tuples(st.lists(numbers, min_size=2, max_size=2), numbers), min_size=1, max_size=12))
def test_a_box_holds_all_that_came_and_never_shrinks(stream: list[tuple[list[float], float]]) -> None:
    values, labels = [x for x, _ in stream], [label for _, label in stream]
    seen = grown(values, labels)
    assert seen[-1].first_outside(np.array(values), np.array(labels), 0) == len(stream)
    for before, after in pairwise(seen):
        for old, new in ((before.low, after.high), (after.low, before.high)):
            assert np.all(old <= new)
        assert np.all(np.isfinite(np.concatenate([after.low, after.high, after.label])))
    in_ball = seen[-1].rows_to_units(np.array(values))
    assert np.all(np.linalg.norm(in_ball, axis=1) <= 1 + 1e-12)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(-1e9, 1e9))
def test_a_range_grows_by_tenths_and_no_more_often_than_it_must(low: float, width: float, value: float) -> None:
    high = low + width
    before = UnitBox(np.array([low]), np.array([high]), np.zeros(2))
    after = boxes.grown(before, np.array([value]), 0.0)
    wide, wider = high - low, after.high[0] - after.low[0]
    if low <= value <= high:
        assert (after.low, after.high) == (before.low, before.high)
        return
    steps = np.log(wider / wide) / np.log(1.1)
    assert steps == pytest.approx(round(steps), abs=1e-3)
    assert round(steps) >= 1
    beyond = value - high if value > high else low - value
    assert wider <= 1.1 * (beyond + wide) * (1 + 1e-9)


def test_a_stream_that_drifts_away_changes_units_logarithmically_often() -> None:
    seen = grown([[float(t)] for t in range(10_000)], [0.0] * 10_000)
    assert len({float(box.high[0]) for box in seen}) <= 3 + np.log(10_000) / np.log(1.1)


def test_a_range_as_narrow_as_can_be_grows_all_the_same() -> None:
    seen = grown([[1.0], [np.nextafter(1.0, 2.0)], [2.0], [np.nextafter(1.0, 0.0)], [-3.0]], [0.0] * 5)
    assert seen[-1].low[0] <= -3.0
    assert seen[-1].high[0] >= 2.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=8), st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=8))
def test_a_change_of_units_takes_rows_from_one_box_to_the_other(values: list[float], labels: list[float]) -> None:
    count = min(len(values), len(labels))
    X = np.array([values[:count], values[:count][::-1]]).T.copy()
    seen = grown(X.tolist(), labels[:count])
    early, late, inside = seen[0], seen[-1], X[:1]
    for box in seen[1:-1]:
        change = boxes.change(box, late)
        known = X[: 1 + box.first_outside(X, np.array(labels[:count]), 0)][:2]
        known = np.clip(known, box.low, box.high)
        np.testing.assert_allclose(
            change.slope * box.rows_to_units(known) + change.offset, late.rows_to_units(known), atol=1e-9
        )
    change = boxes.change(early, late)  # from a box of one point
    np.testing.assert_allclose(
        change.slope * early.rows_to_units(inside) + change.offset, late.rows_to_units(inside), atol=1e-9
    )
    old, new = (box.labels_to_units(np.array(labels[:1])) for box in (early, late))
    assert change.label_slope * old[0] + change.label_offset == pytest.approx(new[0], abs=1e-9)


@pytest.mark.parametrize("values", [[-LARGEST, LARGEST, 0.0], [0.0, 5e-324, 1e300], [1.0, 1.0 + 2e-16, -LARGEST]])
def test_the_widest_ranges_are_finite(values: list[float]) -> None:
    seen = grown([[value] for value in values], values)
    for before, after in pairwise(seen):
        assert np.isfinite(np.concatenate([np.ravel(each) for each in boxes.change(before, after)])).all()
    np.testing.assert_array_less(np.abs(seen[-1].rows_to_units(np.array(values)[:, None])), 1 + 1e-12)
