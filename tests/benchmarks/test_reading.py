"""The benchmark of reading, on next to nothing."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas")
from benchmarks.reading import Reading, arrow, by_pandas, growth, mixed, numbers, ours, readings_table, verdicts, write


def test_every_reader_reads_every_row(tmp_path: Path) -> None:
    for make in (numbers, mixed):
        for path in write(make(300, np.random.default_rng(0)), tmp_path, "t"):
            assert [sum(read(path)) for read in (ours, arrow, by_pandas)] == [300] * 3
            assert not growth(path) < 0


def test_what_was_measured_is_judged() -> None:
    readings = [Reading(Path("numbers.csv"), 12.0, 1.0, 2.0, 1.5), Reading(Path("mixed.csv"), 3.0, 1.0, 2.0, 60.0)]
    assert [each.reached for each in verdicts(readings)] == [False, False]
    assert [each.reached for each in verdicts([readings[0]._replace(ours=9.0)])] == [True, True]
    assert readings_table(readings, 300).row_count == 2
