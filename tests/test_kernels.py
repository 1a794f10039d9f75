import numpy as np
import pytest

from ellipack._kernels import Held, entry, hold, kernel
from ellipack.validation import Floats


@kernel
def add_to_first(held: Held[tuple[Floats, tuple[Floats, Floats]]], value: float) -> float:
    first, (_, last) = held.value
    first[0] += value
    return float(first.sum() + last[0])


@pytest.mark.interpreted
def test_what_is_held_is_shared_and_stays_alive() -> None:
    first, last = np.zeros(2), np.full(1, 10.0)
    held = hold((first, (np.ones(3), last)))
    compiled = entry(add_to_first, held, 0.0)
    assert add_to_first(held, 1.5) == compiled(held, 0.5) - 0.5 == 11.5
    last[0] = 20.0
    assert first.tolist() == [2.0, 0.0]
    del first, last
    assert compiled(held, 0.0) == 22.0
