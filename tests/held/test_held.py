import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ellipack._kernels import kernel
from ellipack.held._kernels import Held, entry
from ellipack.validation import Floats, Ints


class Shelf(NamedTuple):
    flat: Floats
    deep: Floats
    names: Ints


class Cupboard(NamedTuple):
    top: Floats
    shelves: tuple[Shelf, Shelf]


@kernel
def add_to_top(held: Held[Cupboard], value: float) -> float:
    cupboard = held.value
    cupboard.top[0] += value
    return float(cupboard.top.sum() + cupboard.shelves[1].flat[0])


@kernel
def weigh_all(held: Held[Cupboard]) -> float:
    total, shelves = float(held.value.top.sum()), held.value.shelves
    for at in range(len(shelves)):
        shelf = shelves[at]
        for k in range(shelf.flat.shape[0]):
            total += shelf.flat[k]
        for i in range(shelf.deep.shape[0]):
            for j in range(shelf.deep.shape[1]):
                total += shelf.deep[i, j] * (1 + j)
        for k in range(shelf.names.shape[0]):
            total += shelf.names[k]
    return total


@pytest.mark.interpreted
def test_what_is_held_is_shared_and_stays_alive() -> None:
    top, last = np.zeros(2), np.full(1, 10.0)
    shelves = [Shelf(flat, np.zeros((1, 1)), np.zeros(1, dtype=np.int64)) for flat in (np.ones(3), last)]
    held = Held(Cupboard(top, (shelves[0], shelves[1])))
    compiled = entry(add_to_top, held, 0.0)
    assert add_to_top(held, 1.5) == compiled(held, 0.5) - 0.5 == 11.5
    last[0] = 20.0
    assert top.tolist() == [2.0, 0.0]
    del top, last, shelves
    assert compiled(held, 0.0) == 22.0


whole = st.integers(-9, 9).map(float)
shelves = st.builds(
    Shelf,
    arrays.arrays(np.float64, st.integers(0, 4), elements=whole),
    arrays.arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(0, 4)), elements=whole),
    arrays.arrays(np.int64, st.integers(0, 4), elements=st.integers(-9, 9)),
)


@pytest.mark.interpreted
@given(shelves, shelves)
def test_kernels_see_every_number_that_is_held(left: Shelf, right: Shelf) -> None:
    expected = 3.0
    for shelf in (left, right):
        expected += shelf.flat.sum() + (shelf.deep * np.arange(1, 1 + shelf.deep.shape[1])).sum() + shelf.names.sum()
    held = Held(Cupboard(np.array([1.0, 2.0]), (left, right)))
    assert entry(weigh_all, held)(held) == expected


@pytest.mark.interpreted
def test_what_is_held_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(Held((np.zeros(1),)))


def test_classes_that_are_called_alike_are_told_apart() -> None:
    one, two = np.full(1, 1.0), np.full(1, 2.0)
    ways: list[Any] = [NamedTuple("Pair", [(name, Floats) for name in names]) for names in ("xy", "yx")]

    @kernel
    def look_at_x(held: Held[Any]) -> float:
        return float(held.value.x[0])

    assert [look_at_x(Held(way(one, two))) for way in ways] == [1.0, 2.0]


def test_only_arrays_and_tuples_are_held() -> None:
    with pytest.raises(TypeError, match="Held tuples have arrays in them, and tuples; got float64"):
        Held((np.ones(2), np.float64(1.0)))
