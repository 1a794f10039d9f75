from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from ellipack.errors import StreamError
from ellipack.tabular import open_table


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
