import pyarrow as pa
import pytest

from ellipack.tabular.table_batch import concat_tables, to_strings

LARGE = 2**53


@pytest.mark.parametrize("number", [0, -7, 10**9, 10**10, -12_345_678_901, 10**15, LARGE, -LARGE])
def test_integers_and_floats_give_the_same_strings(number: int) -> None:
    assert to_strings(pa.array([number])).to_pylist() == [str(number)]
    assert to_strings(pa.array([float(number)])).to_pylist() == [str(number)]


def test_other_floats_keep_their_digits() -> None:
    cells = [0.5, None, 1e300, float("inf"), float("nan"), 12_345_678_901.5, 2.0**54]
    assert to_strings(pa.array(cells)).to_pylist()[:4] == ["0.5", None, "1e+300", "inf"]
    assert [float(text) for text in to_strings(pa.array(cells)).to_pylist()[5:]] == cells[5:]
    assert to_strings(pa.array(cells, pa.float32())).to_pylist()[6] == "1.8014399e+16"


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        (pa.array([1, None]), pa.array([2.5]), [1.0, None, 2.5]),
        (pa.array([LARGE + 1]), pa.array([2.5]), ["9007199254740993", "2.5"]),
        (pa.array([LARGE + 1]), pa.array([2**64 - 1], pa.uint64()), ["9007199254740993", "18446744073709551615"]),
        (pa.array([1]), pa.array(["x"]), ["1", "x"]),
        (pa.array([1]), pa.nulls(1), [1, None]),
    ],
)
def test_joined_columns_lose_nothing(first: pa.Array, second: pa.Array, joined: list[object]) -> None:
    tables = [pa.RecordBatch.from_arrays([cells], names=["a"]) for cells in (first, second)]
    assert concat_tables(tables, ["a"]).column("a").to_pylist() == joined
