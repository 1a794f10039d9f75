"""Scaling by a box, and Algorithm 1 on single scaled rows."""

import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._core import UnitBox
from ellipack.validation import Floats
from tests.core.builds import Core, builds
from tests.reference import unit_box as reference
from tests.strategies import seeds

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-3, 3)
LARGEST = sys.float_info.max
Ranges = tuple[Floats, Floats, Floats]


@st.composite
def boxes(draw: st.DrawFn) -> Ranges:
    """Return lower ends, upper ends and the range of the label; some ranges have no width."""
    d = draw(st.integers(1, 5))
    ends = np.sort([[draw(numbers), draw(numbers)] for _ in range(d + 1)], axis=1)
    return ends[:d, 0].copy(), ends[:d, 1].copy(), ends[d].copy()


@builds
@given(boxes(), st.data())
def test_scaling_equals_the_reference(core: Core, drawn: Ranges, data: st.DataObject) -> None:
    low, high, label = drawn
    box, n = core.UnitBox(low, high, label), data.draw(st.integers(0, 4))
    rows = np.array([[data.draw(numbers) for _ in low] for _ in range(n)]).reshape(n, len(low))
    labels = np.array([data.draw(numbers) for _ in range(n)])
    expected = [reference.row_to_units(row, low.tolist(), high.tolist()) for row in rows.tolist()]
    assert box.rows_to_units(rows).tolist() == expected
    least, most = label.tolist()
    expected_labels = [reference.label_to_units(each, least, most) for each in labels.tolist()]
    assert box.labels_to_units(labels).tolist() == expected_labels
    units = np.linspace(0, 1, 7)
    expected_labels = [reference.label_from_units(each, least, most) for each in units.tolist()]
    assert box.labels_from_units(units).tolist() == expected_labels
    inside = ((low <= rows) & (rows <= high)).all(axis=1) & (label[0] <= labels) & (labels <= label[1])
    for start in range(n + 1):
        outside = [t for t in range(start, n) if not inside[t]]
        assert box.first_outside(rows, labels, start) == (outside[0] if outside else n)


def test_an_empty_box_contains_nothing() -> None:
    box = UnitBox(np.full(2, np.inf), np.full(2, -np.inf), np.array([np.inf, -np.inf]))
    assert box.first_outside(np.zeros((1, 2)), np.zeros(1), 0) == 0
    assert box.rows_to_units(np.ones((1, 2))).tolist() == [[0.0, 0.0]]
    assert box.labels_from_units(np.array([0.3])).tolist() == [0.0]


def test_boxes_are_pickled() -> None:
    box = pickle.loads(pickle.dumps(UnitBox(np.array([-1.0]), np.array([LARGEST]), np.array([0.0, 2.0]))))
    assert (box.low.tolist(), box.high.tolist(), box.label.tolist()) == ([-1.0], [LARGEST], [0.0, 2.0])


def test_invalid_boxes_are_rejected() -> None:
    with pytest.raises(ValueError, match="low and high must have one entry per feature"):
        UnitBox(np.zeros(2), np.zeros(3), np.zeros(2))
    with pytest.raises(ValueError, match="label must have 2 entries, got 1"):
        UnitBox(np.zeros(2), np.zeros(2), np.zeros(1))
    with pytest.raises(ValueError, match="rows must have 1 columns, got 2"):
        UnitBox(np.zeros(1), np.ones(1), np.zeros(2)).rows_to_units(np.zeros((1, 2)))


@builds
@given(st.integers(1, 5), st.booleans(), st.booleans(), seeds)
def test_single_rows_equal_a_batch(core: Core, d: int, keep: bool, asking: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = rng.normal(size=d) - 4, rng.normal(size=d) + 4
    box, directions = core.UnitBox(low, high, np.array([-2.0, 3.0])), rng.normal(size=(d, d)) / d
    X, y = rng.uniform(low, high, size=(80, d)), rng.uniform(-2, 3, size=80)
    starts = np.arange(5, 4 + d)
    batch, single = core.PackingCore(d, starts), core.PackingCore(d, starts)
    rows = core.RescaledPacking(single, box, directions)
    expected = batch.learn(core.project(box.rows_to_units(X), directions), box.labels_to_units(y), keep)
    for row, label, unit in zip(X.tolist(), y.tolist(), expected.tolist(), strict=True):
        if asking:
            assert rows.predict(row) == box.labels_from_units(np.array([unit]))[0] or single.clock == 0
            rows.predict(X[0].tolist() if rng.random() < 0.3 else row)
        assert rows.learn(tuple(row), label, keep)
    assert [np.array(each).tolist() for each in single.to_arrays()] == [
        np.array(each).tolist() for each in batch.to_arrays()
    ]


@builds
def test_a_search_of_an_earlier_round_is_not_reused(core: Core) -> None:
    packing = core.PackingCore(1, np.empty(0, dtype=np.int64))
    box = core.UnitBox(-np.ones(1), np.ones(1), np.array([0.0, 1.0]))
    rows = core.RescaledPacking(packing, box, np.ones((1, 1)))
    rows.learn([-1.0], 0.0, True)
    rows.predict([1.0])  # nearest to the first center
    rows.learn([0.9], 1.0, True)  # adds a second center
    rows.learn([1.0], 1.0, True)
    assert packing.label_counts.tolist() == [1, 2]


@builds
def test_rows_outside_of_the_box_are_not_learned(core: Core) -> None:
    packing = core.PackingCore(1, np.empty(0, dtype=np.int64))
    rows = core.RescaledPacking(packing, core.UnitBox(np.zeros(1), np.ones(1), np.array([0.0, 10.0])), np.ones((1, 1)))
    assert rows.learn([1], 7, True)
    for row, label in (([1.5], 7.0), ([-0.1], 7.0), ([0.5], 10.1), ([0.5], -0.1)):
        assert not rows.learn(row, label, True)
    assert packing.clock == 1
    assert rows.predict([99.0]) == 7.0
    for row in ([], [0.5, 0.5]):
        with pytest.raises(ValueError, match=f"row must have 1 entries, got {len(row)}"):
            rows.predict(row)
        with pytest.raises(ValueError, match=f"row must have 1 entries, got {len(row)}"):
            rows.learn(row, 0.5, True)
    with pytest.raises(ValueError, match="row must be finite"):
        rows.predict([np.nan])


@builds
def test_inconsistent_arguments_are_rejected(core: Core) -> None:
    packing, box = core.PackingCore(2, np.array([4])), core.UnitBox(np.zeros(2), np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match="core, box and directions must have the same dimension"):
        core.RescaledPacking(packing, box, np.ones((2, 3)))
    with pytest.raises(ValueError, match="core, box and directions must have the same dimension"):
        core.RescaledPacking(packing, core.UnitBox(np.zeros(1), np.ones(1), np.zeros(2)), np.ones((1, 1)))
