"""Rows of centers in blocks that copies share (`row_blocks.hpp`), against NumPy arrays.

A block has as many rows as fit in 128 KB: 16 of 1,000 features, and one if there are more than 8,192.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.validation import Floats
from tests.core.builds import Core, builds

ROWS_AND_FEATURES = [(0, 3), (5, 3), (15, 1000), (16, 1000), (17, 1000), (40, 1000), (3, 9000)]


def centers_of(core: Core, rows: Floats) -> Any:
    count = len(rows)
    numbers = np.arange(count, dtype=np.float64)
    return core.CenterMemory(rows, numbers, np.ones(count, dtype=np.int64), numbers + 1, numbers + 2)


def rows_of(rng: np.random.Generator, count: int, d: int) -> Floats:
    return rng.normal(size=(count, d))


@builds
@pytest.mark.parametrize(("count", "d"), ROWS_AND_FEATURES)
def test_rows_are_those_that_were_given(core: Core, count: int, d: int) -> None:
    rows = rows_of(np.random.default_rng(0), count, d)
    centers = centers_of(core, rows)
    assert np.array_equal(centers.rows, rows)
    assert centers.dimension == d


@builds
@given(data=st.data())
def test_changes_of_a_copy_leave_the_others(core: Core, data: st.DataObject) -> None:
    count, d = data.draw(st.sampled_from(ROWS_AND_FEATURES[1:]))
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    states = [(rows := rows_of(rng, count, d), centers_of(core, rows))]
    for _ in range(data.draw(st.integers(1, 4))):
        rows, centers = states[data.draw(st.integers(0, len(states) - 1))]
        more = rows_of(rng, data.draw(st.integers(1, 20)), d)
        if data.draw(st.booleans()):
            states.append((np.vstack([rows, more]), centers.append(centers_of(core, more))))
        else:
            places = rng.permutation(len(rows))[: len(more)]
            replaced = rows.copy()
            replaced[places] = more[: len(places)]
            states.append((replaced, centers.replace(places, centers_of(core, more[: len(places)]))))
        taken = rng.integers(0, len(rows), 7)
        assert np.array_equal(centers.take(taken).rows, rows[taken])
    for rows, centers in states:
        assert np.array_equal(centers.rows, rows)
