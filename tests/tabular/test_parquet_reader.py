import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from ellipack.errors import StreamError
from ellipack.tabular import TableEncoder, open_table


def test_skipped_row_groups_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(
        pa.table({"a": range(1000)}), path, row_group_size=100, compression="none", use_dictionary=False
    )
    content = bytearray(path.read_bytes())
    content[4:600] = b"\xff" * 596  # overwrite the first row group
    path.write_bytes(content)
    with open_table(str(path), skip_rows=130) as source:
        assert [n for batch in source for n in batch.table.column("a").to_pylist()] == list(range(130, 1000))
    with pytest.raises(StreamError, match="can't be read as Parquet"), open_table(str(path), skip_rows=99) as source:
        list(source)


def test_table_without_rows_raises(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "t.parquet")
    with pytest.raises(StreamError, match="has columns but no rows"):
        open_table(str(tmp_path / "t.parquet"))


def test_duplicate_column_names_raise(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(StreamError, match="two columns are called 'a'"):
        open_table(str(tmp_path / "t.parquet"))


ROWS = 20
COLUMNS = {
    "decimal32": pa.array([Decimal("1.25")] * ROWS, pa.decimal32(5, 2)),
    "decimal64": pa.array([Decimal("1.25")] * ROWS, pa.decimal64(10, 2)),
    "string_view": pa.array(["a", "b"] * (ROWS // 2), pa.string_view()),
    "far date": pa.array([2**31 - 1, -(2**31)] * (ROWS // 2), pa.int32()).view(pa.date32()),
    "far timestamp": pa.array([2**62, -(2**62)] * (ROWS // 2), pa.int64()).view(pa.timestamp("us")),
    "unknown time zone": pa.array([10**15] * ROWS, pa.int64()).view(pa.timestamp("us", "No/Where")),
    "invalid time zone": pa.array([2**62] * ROWS, pa.int64()).view(pa.timestamp("us", "+99:99")),
    "invalid UTF-8": pa.array([b"\xff"] * ROWS).view(pa.string()),
}


@pytest.mark.parametrize("kind", [None, "category", "number", "time"])
@pytest.mark.parametrize("target", ["x", "y"])
@pytest.mark.parametrize("name", COLUMNS)
def test_unusual_types_are_read_or_raise(name: str, target: str, kind: str | None, tmp_path: Path) -> None:
    """No other exception than StreamError is raised."""
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"x": COLUMNS[name], "y": np.arange(ROWS) / 7}), path)
    try:
        with open_table(str(path)) as source:
            batch = next(source)
        encoder = TableEncoder.from_head(batch, target, kinds={"x": kind} if kind else None)
        encoder.partial_fit_transform(encoder.parse(batch, "skip"))
        encoder.parse(batch)
    except StreamError:
        assert name != "decimal32" or kind == "time" or (target, kind) == ("x", "category")


def test_decimals_and_time_zones_have_the_expected_features(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    zoned = pa.array([10**15] * ROWS, pa.int64())
    columns = {
        "d": COLUMNS["decimal32"],
        "bad": zoned.view(pa.timestamp("us", "No/Where")),
        "utc": zoned.view(pa.timestamp("us", "UTC")),
    }
    parquet.write_table(pa.table({**columns, "y": np.arange(ROWS) / 7}), path)
    with open_table(str(path)) as source:
        batch = next(source)
    encoder = TableEncoder.from_head(batch, "y")
    X = encoder.partial_fit_transform(encoder.parse(batch))[0].X
    assert X[:, 0].tolist() == [1.25] * ROWS
    np.testing.assert_array_equal(X[:, 1:8], X[:, 8:15])


def test_a_file_that_is_truncated_while_it_is_read_raises(tmp_path: Path) -> None:
    """A memory map would kill the process."""
    path = tmp_path / "t.parquet"
    values = np.random.default_rng(0).normal(size=(400_000, 2))
    parquet.write_table(pa.table({"a": values[:, 0], "y": values[:, 1]}), path, row_group_size=100_000)

    def read_truncated() -> None:
        with open_table(str(path)) as source:
            next(source)
            with path.open("r+b") as file:
                file.truncate(1000)
            list(source)

    with pytest.raises(StreamError, match="can't be read as Parquet"):
        read_truncated()


def test_paths_that_are_not_utf8_can_be_read(tmp_path: Path) -> None:
    path = os.path.join(tmp_path, os.fsdecode(b"t\xff.parquet"))
    parquet.write_table(pa.table({"a": [1.0]}), tmp_path / "t.parquet")
    os.rename(tmp_path / "t.parquet", path)
    with open_table(path) as source:
        assert len(next(source)) == 1


@pytest.mark.parametrize("name", ["__init__", "iter_batches"])
@pytest.mark.parametrize("error", [pa.ArrowMemoryError("malloc of size 64 failed"), OSError("thrift: std::bad_alloc")])
def test_lack_of_memory_is_no_unreadable_table(
    error: Exception, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    parquet.write_table(pa.table({"a": [1, 2]}), tmp_path / "t.parquet")
    monkeypatch.setattr(parquet.ParquetFile, name, fail)
    with pytest.raises(MemoryError), open_table(str(tmp_path / "t.parquet")) as source:
        list(source)
