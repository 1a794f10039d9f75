from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import ModelFileError
from ellipack.evaluation.table_fingerprint import WINDOW_ROWS, TableFingerprint
from ellipack.serialization import Archive
from ellipack.tabular import TableBatch, open_table
from ellipack.tabular.arrow import pa

COLUMNS = ["y", "x"]


def table(rows: int) -> pa.Table:
    return pa.table(
        {"x": [str(7 * t % 31) for t in range(rows)], "y": [None if t % 5 == 0 else t for t in range(rows)]}
    )


def fingerprint(rows: int, cuts: list[int] | None = None) -> TableFingerprint:
    found, ends = TableFingerprint(), sorted({cut for cut in cuts or [] if 0 < cut < rows} | {0, rows})
    for start, stop in pairwise(ends):
        found = found.extended_by(
            TableBatch.from_table(table(rows).slice(start, stop - start), first=start + 1), COLUMNS
        )
    return found


@given(st.integers(1, 350), st.lists(st.integers(1, 349)))
def test_fingerprint_does_not_depend_on_batching(rows: int, cuts: list[int]) -> None:
    assert fingerprint(rows, cuts) == fingerprint(rows)
    assert len(fingerprint(rows).first) == len(fingerprint(rows).last) == min(rows, WINDOW_ROWS)


@given(st.integers(1, 250), st.integers(0, 249))
def test_every_row_in_a_window_matters(rows: int, changed: int) -> None:
    known, changed = fingerprint(rows), changed % rows
    values = table(rows).to_pydict()
    values["x"][changed] = "other"
    other = TableBatch.from_table(pa.table(values))
    last = TableBatch(
        other.table.slice(max(0, rows - WINDOW_ROWS)), other.row_numbers[max(0, rows - WINDOW_ROWS) :], ""
    )
    assert known.has_same_start(other, COLUMNS) == (changed >= WINDOW_ROWS)
    assert known.has_same_end(last, COLUMNS) == (changed < rows - WINDOW_ROWS)


def test_shorter_table_has_the_same_start_but_not_the_same_end() -> None:
    known, shorter = fingerprint(50), TableBatch.from_table(table(49))
    assert known.has_same_start(shorter, COLUMNS)
    assert not known.has_same_end(shorter, COLUMNS)
    assert not known.has_same_start(TableBatch.from_table(table(0)), COLUMNS)


def test_archive_restores_it_and_is_checked() -> None:
    archive = fingerprint(130).to_archive()
    assert TableFingerprint.from_archive(archive) == fingerprint(130)
    assert TableFingerprint.from_archive(TableFingerprint().to_archive()) == TableFingerprint()
    long = Archive(archive.facts, {**archive.arrays, "first": np.zeros(101, np.int64)})
    with pytest.raises(ModelFileError, match="at most 100 rows, got 101"):
        TableFingerprint.from_archive(long)


def test_batches_that_are_all_numbered_from_1_do_not_make_it_longer() -> None:
    found = TableFingerprint()
    for _ in range(5):
        found = found.extended_by(TableBatch.from_table(table(60)), COLUMNS)
    assert TableFingerprint.from_archive(found.to_archive()) == found


def test_unreadable_rows_are_left_out(tmp_path: Path) -> None:
    lines = ["x,y", *(f"{t},{t}" if t % 9 else "1,2,3" for t in range(1, 301))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    found = TableFingerprint()
    with open_table(str(tmp_path / "t.csv"), batch_rows=70, on_error="skip") as source:
        for batch in source:
            found = found.extended_by(batch, COLUMNS)
    assert found.position == 300
    with open_table(str(tmp_path / "t.csv"), skip_rows=300 - WINDOW_ROWS) as source:
        rows = source.skip_to(300)
        assert found.has_same_end(rows, COLUMNS)
        assert [number for number, _ in found.last] == [t for t in range(201, 301) if t % 9]
        assert not list(source)
