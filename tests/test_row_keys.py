from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import ShapeError
from ellipack.row_keys import RowKeys, hash_row, hash_rows

values = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text()


@given(st.lists(st.tuples(values, values), min_size=1, max_size=30))
def test_rows_have_the_same_key_if_and_only_if_their_values_are_equal(rows: list[tuple[object, object]]) -> None:
    columns = [np.array([row[k] for row in rows] + [None], dtype=object)[:-1] for k in range(2)]
    keys = hash_rows(columns)
    assert keys.tolist() == [hash_row(row) for row in rows]

    def canonical(value: object) -> object:
        if value is None or value != value:  # noqa: PLR0124 (NaN)
            return None
        return value

    for row, key in zip(rows, keys, strict=True):
        for other, other_key in zip(rows, keys, strict=True):
            same = [canonical(a) == canonical(b) for a, b in zip(row, other, strict=True)]
            assert (key == other_key) == all(same)


def test_keys_of_numbers_do_not_depend_on_their_type() -> None:
    numbers = np.array([3, 0, 5, 3])
    expected = hash_rows([numbers])
    for column in (numbers.astype(np.float32), numbers.tolist(), numbers.astype(object), -1.0 * -numbers):
        assert hash_rows([column]).tolist() == expected.tolist()
    assert len(set(expected.tolist())) == 3


def test_integers_of_any_size_have_keys() -> None:
    large = [10**400, 10**400 + 1, -(10**400), 2**64, 10**5000]
    assert len({hash_row([value]) for value in large}) == len(large)
    assert hash_row([10**400]) == int(hash_rows([np.array([10**400], dtype=object)])[0])


def test_keys_are_the_same_on_every_machine() -> None:
    assert hash_row(["north", 1]) == hash_rows([["north"], [1]])[0] == KNOWN


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ShapeError, match="columns of keys must have the same length, got 2 and 1"):
        hash_rows([[1, 2], [1]])
    with pytest.raises(ShapeError, match="a column of keys must have one dimension"):
        hash_rows([np.zeros((2, 2))])
    assert hash_rows([]).shape == (0,)


KNOWN = 8754876885235246688


def test_names() -> None:
    columns: list[Any] = [np.array([1.0, 0.1, np.nan, 1234567.0]), ["north", None, 3, 2**60]]
    keys = RowKeys.of(columns)
    assert [keys.name(row) for row in range(4)] == [
        "1, north",
        "0.1, missing",
        "missing, 3",
        "1234567, 1152921504606846976",
    ]
    assert keys.part(slice(2, 4)).name(0) == "missing, 3"
    assert (keys.hashes == hash_rows(columns)).all()
    for kind in (np.float32, np.int8, bool):
        assert RowKeys.of([np.ones(1, dtype=kind)]).name(0) == "1"
