"""What kernels do is what Python does: by `same`, each runs here compiled and interpreted."""

import math
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from threading import Timer
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._kernels import inlined, kernel, shared, subkernel
from ellipack.validation import Floats, Ints

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan]) | st.floats(-1e6, 1e6)
WHOLE = st.integers(-7, 7)


def interpreted(compiled: Callable[..., Any]) -> Callable[..., Any]:
    return cast(Callable[..., Any], getattr(compiled, "py_func", compiled))


def same(compiled: Callable[..., Any], *arguments: Any) -> None:
    """Check that a kernel returns what Python does, to the bit, and leaves the same behind in arrays."""
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    expected, found = interpreted(compiled)(*copies), compiled(*arguments)
    np.testing.assert_array_equal(
        np.array(found, dtype=np.float64).view(np.int64), np.array(expected, dtype=np.float64).view(np.int64)
    )
    for array, copy in zip(arguments, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@kernel
def items(one: Floats, two: Floats, three: Floats, names: Any, flags: Any, i: int, j: int, k: int) -> float:
    one[i] = two[i, j] + three[i, j, k] + names[j]
    two[j, i] += one[-1] + one[0]
    three[k, 0, i] = names[i] if flags[i] else two[-1, j]
    names[k] = j
    flags[k] = one[j] > two[0, -1]
    return float(one[i] + two[i][j] + three[k][i][j] + three[i, k][j] + len(three[j]) + three[i].shape[1] + flags[i])


@given(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))
def test_items_and_rows_of_arrays(i: int, j: int, k: int) -> None:
    rng = np.random.default_rng(0)
    one, two, three = rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(3, 3, 3))
    names, flags = rng.integers(0, 9, size=3).astype(np.int32), rng.random(3) < 0.5
    same(items, one, two, three, names, flags, i, j, k)


@kernel
def rows_of(two: Floats, i: int) -> float:
    row = two[i]
    row[1] = row[0] + row[-1]
    return float(two[i, 1] + two.shape[0] + row.shape[0] + row.size)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_items_of_arrays_in_any_order(order: Any, step: int) -> None:
    two = np.array(np.random.default_rng(1).normal(size=(6, 4)), order=order)[::step]
    for i in range(len(two)):
        same(rows_of, two, i)


@kernel
def loops(start: int, stop: int, step: int) -> float:
    total = 0.0
    for i in range(stop):
        total += i
    for i in range(start, stop):
        for j in range(i, 3):
            if j == 2:
                continue
            total = total * 1.5 + i * j
        if total > 1e6:
            break
    else:
        total += 0.25
    for i in range(start, stop, step):
        total -= i / 8
    for i in range(stop, start, 2):
        total += i
    again = range(start, stop)
    for i in again:
        total += i
    for i in again:
        total -= 2 * i
    return total


@given(WHOLE, WHOLE, WHOLE.filter(bool))
def test_loops_over_ranges(start: int, stop: int, step: int) -> None:
    same(loops, start, stop, step)


@kernel
def tuples(one: Floats, two: Floats, i: int) -> float:
    pair, total = (one, two), 0.0
    for k in (i, 2, 1):
        total = 2.0 * total + pair[i][k] + min(*(i, k))
    for row in pair:
        total += row[i]
    return total


@given(st.integers(0, 1))
def test_items_of_tuples(i: int) -> None:
    same(tuples, np.array([0.5, -2.0, 3.0]), np.array([7.0, 11.0, -0.0]), i)


@kernel
def variables(a: int, b: int, x: float) -> float:
    low, high = (a, b) if a < b else (b, a)
    found = -1.0
    while low < high:
        low, high = low + 1, high - 1
        if x > low:
            found = x
            x = x / 2
        elif x < -high:
            swap = x
            x = found
            found = swap
        if found > 100:
            break
    if a > 3:
        result = found
    elif b > 3:
        result = x
    else:
        result = float(low - high)
    for i in range(3):
        last = result + i
        result = last * 0.5 if last > 1 else last
    return result + x


@given(WHOLE, WHOLE, st.floats(-1e3, 1e3))
def test_variables_that_change_in_branches_and_loops(a: int, b: int, x: float) -> None:
    same(variables, a, b, x)


@kernel
def extremes(x: float, y: float, z: float, a: int, b: int) -> float:
    return float(min(x, y, z)) if a < b else float(max(x, y, z))


@kernel
def mixed(x: float, a: int, b: int) -> float:
    return float(min(a, b, 3) + max(a, b) + min(x, a) + max(0, x) + int(x) + int(a) + int(x > 0.0))


@given(NUMBERS, NUMBERS, NUMBERS, WHOLE, WHOLE)
def test_least_and_largest_numbers(x: float, y: float, z: float, a: int, b: int) -> None:
    same(extremes, x, y, z, a, b)


@given(st.floats(-1e6, 1e6), WHOLE, WHOLE)
def test_least_and_largest_of_any_kind_and_whole_numbers(x: float, a: int, b: int) -> None:
    same(mixed, x, a, b)


@subkernel
def quotient(x: float, y: float) -> float:
    return x / y


@inlined
def root(x: float) -> float:
    if x < 0.0:
        raise ValueError("no root")
    return math.sqrt(x)


@subkernel
def put_quotient(out: Floats, x: float, y: float) -> None:
    out[0] = quotient(x, y)
    out[1] = root(out[0])


@kernel
def quotients(out: Floats, x: float, y: float) -> float:
    put_quotient(out, x, y)
    out[2] = 1.0
    return float(out[0] + out[1])


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_what_a_part_raises_ends_the_kernel(x: float, y: float) -> None:
    out = np.zeros(3)
    if y == 0.0:
        with pytest.raises(ZeroDivisionError):
            quotients(out, x, y)
        assert not out.any()
    elif x / y < 0.0:
        with pytest.raises(ValueError, match="no root"):
            quotients(out, x, y)
        assert out[2] == 0.0
    else:
        assert quotients(out, x, y) == x / y + math.sqrt(x / y)
        assert out.tolist() == [x / y, math.sqrt(x / y), 1.0]


@shared
def factorial(n: int) -> int:
    if n < 2:
        return 1
    return n * factorial(n - 1)


@kernel
def factorial_of(n: int) -> int:
    return factorial(n)


def test_shared_parts_can_call_themselves() -> None:
    assert [factorial_of(n) for n in (0, 1, 5, 10)] == [1, 1, 120, 3628800]


@subkernel
def mean_square(values: Floats, count: int) -> float:
    room = np.empty((2, len(values)))
    for k in range(len(values)):
        room[k % 2, k] = values[k]
        room[(k + 1) % 2, k] = 0.0
    row = room[count % 2]
    total = 0.0
    for value in row:
        total += value * value
    return total / max(count, 1)


@kernel
def squares(values: Floats, counts: Ints) -> Floats:
    out = np.zeros(len(counts))
    for at in range(len(counts)):
        part = values[: counts[at]]
        if len(part) == 0:
            continue
        out[at] = mean_square(part, len(part))
    return out


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=9), st.lists(st.integers(0, 9), min_size=1, max_size=9))
def test_kernels_that_make_arrays(values: list[float], counts: list[int]) -> None:
    expected = [
        sum(value * value for value in values[:count][min(count, len(values)) % 2 :: 2])
        / max(min(count, len(values)), 1)
        for count in counts
    ]
    assert squares(np.array(values), np.array(counts)).tolist() == expected


@kernel
def counted(times: int, size: int) -> float:
    last = np.zeros(size)
    for _ in range(times):
        fresh = np.empty(size)
        for i in range(size):
            fresh[i] = last[i] + 1.0
        last = fresh
    return float(last[0] + last[-1])


def test_kernels_let_go_of_the_arrays_that_they_make() -> None:
    import_module("numba.core.runtime._nrt_python").memsys_enable_stats()
    runtime = import_module("numba.core.runtime").rtsys
    before = runtime.get_allocation_stats()
    assert len(squares(np.ones(9), np.arange(9))) == 9
    assert counted(100, 5) == 200.0
    after = runtime.get_allocation_stats()
    assert after.free - before.free == after.alloc - before.alloc >= 8 + 1 + 101


@kernel
def count_until(flag: Floats, out: Floats, limit: int) -> int:
    count = 0
    while flag[0] == 0.0 and count < limit:
        count += 1
        out[count % len(out)] = count  # for all that the compiler knows, this may be the flag
    return count


def test_kernels_let_go_of_the_interpreter() -> None:
    flag, out = np.ones(1), np.zeros(3)
    assert count_until(flag, out, 1) == 0
    flag[0] = 0.0
    raising = Timer(0.05, flag.fill, (1.0,))
    raising.start()
    limit = 3_000_000_000  # some seconds: with the lock held, nobody raises the flag before
    assert count_until(flag, out, limit) < limit
    raising.join()


@kernel
def counting(values: Floats) -> float:
    out = np.empty(1)
    out[0] = np.asarray(values)[0]
    return float(out[0])


@kernel
def not_counting(values: Floats) -> float:
    return float(np.asarray(values)[0])


@kernel
def counting_again(values: Floats) -> float:
    out = np.empty(2)
    out[1] = np.asarray(values)[0]
    return float(out[1])


def test_references_are_counted_by_kernels_that_count_whatever_was_compiled_between() -> None:
    values = np.ones(3)
    before = sys.getrefcount(values)
    for each in (counting, not_counting, counting_again):
        assert each(values) == 1.0
        cast(Any, each).recompile()  # if it was found on disk, it was not compiled in this order
        for _ in range(20):
            assert each(values) == 1.0
    assert sys.getrefcount(values) == before


@kernel
def trying(x: float) -> float:
    try:
        return quotient(1.0, x)
    except Exception:
        return 0.0


@kernel
def yielding(x: float) -> Any:
    yield x


@kernel
def printing(x: float) -> None:
    print(x)


@subkernel
def positive(x: float) -> float | None:
    return x if x > 0.0 else None


@kernel
def is_positive(x: float) -> bool:
    return positive(x) is not None


LARGE = np.ones(200_000)


@shared
def from_large(i: int) -> float:
    return float(LARGE[i])


@kernel
def take_from_large(i: int) -> float:
    return from_large(i)


@kernel
def take_square(values: Floats, counts: Ints) -> float:
    return float(squares(values, counts)[0])


@pytest.mark.parametrize(
    ("refused", "arguments", "said"),
    [
        (trying, (1.0,), "trying is a kernel, or a part of kernels: it must not try"),
        (yielding, (1.0,), "yielding is a kernel, or a part of kernels: it must not yield"),
        (printing, (1.0,), "printing is a kernel, or a part of kernels: only with NUMBA_DISABLE_JIT=1 can it print"),
        (is_positive, (1.0,), "positive is a part of kernels: it must return a value, or never any"),
        (take_from_large, (1,), "a part of kernels that is shared can't use what is somewhere else in another process"),
        (take_square, (np.ones(1), np.ones(1, dtype=np.int64)), "take_square makes no arrays, and can't take one"),
    ],
)
def test_what_kernels_must_not_do_is_refused(refused: Callable[..., Any], arguments: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        refused(*arguments)


BEYOND = """
import numpy as np
from ellipack._kernels import kernel

@kernel
def item(values, i):
    return values[i]

for i in (2, 3, -1):
    try:
        print(item(np.arange(3.0), i))
    except IndexError as error:
        print(error)
"""


def test_bounds_are_checked_if_numba_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "beyond.py").write_text(BEYOND)
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    run = [sys.executable, str(tmp_path / "beyond.py")]
    said = subprocess.run(run, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert said.splitlines() == ["2.0", "index is out of bounds", "index is out of bounds"]
