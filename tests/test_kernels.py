import gc
from typing import Any, cast

import numpy as np
import pytest

from ellipack._kernels import kernel, subkernel
from ellipack.packing._kernels import Names
from ellipack.validation import Floats


@subkernel
def doubled(values: Floats) -> float:
    room = np.empty(len(values))
    for k in range(len(values)):
        room[k] = 2.0 * values[k]
    return float(room[0] + room[1])


@subkernel
def both(pair: tuple[Floats, Floats]) -> float:
    return doubled(pair[0]) + doubled(pair[1][1:])


@kernel
def double_both(pair: tuple[Floats, Floats]) -> float:
    return both(pair)


@subkernel
def made(count: int) -> Floats:
    return np.zeros(count)


@kernel
def length_of_made(count: int) -> int:
    return len(made(count))


@pytest.mark.interpreted
def test_parts_of_kernels_do_what_they_would_do_in_python() -> None:
    assert double_both((np.array([1.0, 2.0]), np.array([8.0, 3.0, 4.0]))) == 20.0


def test_parts_of_kernels_are_not_called_from_python() -> None:
    with pytest.raises(TypeError, match="not callable"):
        doubled(np.ones(2))


def test_parts_of_kernels_return_no_arrays() -> None:
    with pytest.raises(TypeError, match="made is a part of kernels: it must not return an array"):
        length_of_made(3)


def test_garbage_is_collected_again_after_compiling() -> None:
    @kernel
    def one() -> float:
        return 1.0

    assert gc.isenabled()
    assert one() == 1.0
    cast(Any, one).recompile()  # if it was found on disk, it was not compiled
    assert gc.isenabled()
    gc.disable()
    try:

        @kernel
        def two() -> float:
            return 2.0

        assert two() == 2.0
        cast(Any, two).recompile()
        assert not gc.isenabled()
    finally:
        gc.enable()


@subkernel
def added(one: int, other: int) -> int:
    return int(one + other)


@kernel
def add_numbers(names: Names) -> int:
    return added(0, 1) + added(2, len(names)) + added(names[0], names[1])


def test_a_part_of_kernels_is_compiled_once_for_whole_numbers_of_any_kind() -> None:
    assert add_numbers(np.array([2**31 - 1, 1], dtype=np.int32)) == 1 + 4 + 2**31
    cast(Any, add_numbers).recompile()  # if it was found on disk, its parts were not needed
    assert len(cast(Any, added).signatures) == 1
