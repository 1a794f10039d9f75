"""The benchmark of reading on tiny tables."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas")
from benchmarks.reading import (
    Reading,
    memory_growth,
    mixed_table,
    numeric_table,
    read_with_ellipack,
    read_with_pandas,
    read_with_pyarrow,
    readings_table,
    targets,
    write_formats,
)


def test_every_reader_reads_every_row(tmp_path: Path) -> None:
    for make in (numeric_table, mixed_table):
        for path in write_formats(make(300, np.random.default_rng(0)), tmp_path, "t"):
            assert [sum(read(path)) for read in (read_with_ellipack, read_with_pyarrow, read_with_pandas)] == [300] * 3
            assert not memory_growth(path) < 0


def test_targets_and_table() -> None:
    readings = [Reading(Path("numbers.csv"), 12.0, 1.0, 2.0, 1.5), Reading(Path("mixed.csv"), 3.0, 1.0, 2.0, 60.0)]
    assert [each.reached for each in targets(readings)] == [False, False]
    assert [each.reached for each in targets([readings[0]._replace(ours=9.0)])] == [True, True]
    assert readings_table(readings, 300).row_count == 2
