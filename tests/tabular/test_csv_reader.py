import csv
import io
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.errors import StreamError
from ellipack.tabular import MISSING_VALUES, csv_reader
from tests.fuzz.strategies import mutated_bytes, n_examples
from tests.tabular.reading import read_batches

cells = st.text(st.sampled_from("ab1é\u2028\U0001f600 ,;\t\"'\n"), max_size=6) | st.sampled_from(MISSING_VALUES)


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    width = draw(st.integers(1, 4))
    return draw(st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=30))


def written(rows: list[list[str]], width: int) -> str:
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow([f"column {i}" for i in range(width)])
    writer.writerows(rows)
    return sink.getvalue()


read = partial(read_batches, csv_reader)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("csv") / "table.csv"


@given(tables(), st.integers(1, 40), st.integers(200, 1000))
def test_reads_what_the_csv_module_writes(path: Path, rows: list[list[str]], batch_rows: int, block: int) -> None:
    width = len(rows[0])
    batches = read(path, written(rows, width).encode(), block, batch_rows=batch_rows)
    found = [list(row.values()) for batch in batches for row in batch.table.to_pylist()]
    expected = [[None if cell in MISSING_VALUES else cell for cell in row] for row in rows]
    # Spellings such as "-" may be left to the columns.
    assert [[None if cell in MISSING_VALUES else cell for cell in row] for row in found] == expected


@given(st.lists(st.sampled_from(["1,2", "", "3", "4,5,6", "\xff,7", ""]), min_size=1, max_size=60), st.data())
def test_unreadable_rows_are_reported_and_keep_row_numbers(path: Path, lines: list[str], data: st.DataObject) -> None:
    content = "\n".join(["a,b", "0,0", *lines, ""]).encode("latin1")
    numbered = dict(enumerate(["0,0", *(line for line in lines if line)], start=1))
    good = [number for number, line in numbered.items() if line in ("0,0", "1,2")]
    bad = [number for number in numbered if number not in good]
    options = {"batch_rows": data.draw(st.integers(1, 70)), "block": data.draw(st.integers(20, 200))}
    batches = read(path, content, on_error="skip", **options)
    assert np.concatenate([batch.row_numbers for batch in batches]).tolist() == good
    assert [row.row_number for batch in batches for row in batch.unreadable_rows] == bad
    for batch in batches[:-1]:
        assert all(row.row_number < batch.row_numbers[-1] for row in batch.unreadable_rows)

    skipped = data.draw(st.sampled_from([0, *(batch.last_row for batch in batches)]))
    rest = read(path, content, on_error="skip", skip_rows=skipped, **options)
    assert [number for batch in rest for number in batch.row_numbers] == [number for number in good if number > skipped]
    assert [row.row_number for batch in rest for row in batch.unreadable_rows] == [row for row in bad if row > skipped]

    if bad:
        with pytest.raises(StreamError, match=f"row {bad[0]}[,:]"):
            read(path, content, **options)
        assert read(path, content, skip_rows=bad[-1], **options) or max(numbered) == bad[-1]


def test_too_many_ragged_rows_raise(path: Path) -> None:
    with pytest.raises(
        StreamError, match=r"rows from row 1 on can't be read; the first one has 1 fields .*: is it a table"
    ):
        read(path, b"a,b\n" + b"1\n" * 100_000, on_error="skip")


@pytest.mark.parametrize(
    ("end", "is_open"),
    [
        (b'3,"x\n4,5\n', True),
        (b'3,"a ""b"" c\n', True),
        (b'3,"a ""b""\n', True),
        (b'3,"', True),
        (b'3,"NA\n', True),
        (b'3,4"\n5,6\n', False),
        (b'3,"4"\n', False),
        (b'3,"4"', False),
        (b'3,""', False),
        (b'"3",4"', False),
        (b'3,"a ""b"""\n', False),
        (b'"x\n,",4\n', False),
    ],
)
def test_only_a_quote_open_at_the_end_is_unreadable(path: Path, end: bytes, is_open: bool) -> None:
    batches = read(path, b"a,b\n1,2\n" + end, on_error="skip")
    reasons = [row.reason for batch in batches for row in batch.unreadable_rows]
    assert reasons == (["opens a quote that is never closed"] if is_open else [])


@given(st.text(st.sampled_from('ab"\n\r,'), max_size=120), st.integers(8, 40))
def test_result_does_not_depend_on_block_size(path: Path, text: str, block: int) -> None:
    def found(block: int) -> list[object]:
        try:
            batches = read(path, b"a,b\n1,2\n" + text.encode(), block, on_error="skip")
        except StreamError as error:
            return [str(error)]
        rows = [list(row.values()) for batch in batches for row in batch.table.to_pylist()]
        return [rows, [row for batch in batches for row in batch.unreadable_rows], batches[-1].last_row]

    whole, cut = found(1 << 20), found(block)
    assert cut == whole or "is longer than" in str(cut[0])


def test_increasing_integers_are_valid_column_names(path: Path) -> None:
    assert read(path, b"0,1,2\n5,1,4\n")[0].table.schema.names == ["0", "1", "2"]
    for header in (b"5,1,4\n", b"0.5,1,2\n", b"1e3,2e3\n"):
        with pytest.raises(StreamError, match="the first row contains numbers, not names"):
            read(path, header * 2)


def test_column_names_are_stripped(path: Path) -> None:
    assert read(path, b"a, b ,c\n1,2,3\n")[0].table.schema.names == ["a", "b", "c"]


VALID = ("a,b,c\n" + "".join(f'{i},"x, {i}",2024-01-{1 + i % 28:02d}\n' for i in range(40))).encode()


@settings(max_examples=n_examples(150))
@given(mutated_bytes(VALID), st.sampled_from(["stop", "skip"]), st.sampled_from(["csv", "ndjson", "parquet"]))
def test_mutated_bytes_give_rows_or_a_clear_error(path: Path, content: bytes, on_error: str, format: str) -> None:
    explain_invalid = ""
    try:
        batches = read(path, content, on_error=on_error, format=format, batch_rows=7)
    except StreamError as error:
        batches, explain_invalid = [], str(error)
    assert batches or explain_invalid.startswith(str(path))
    assert "\n" not in explain_invalid
    numbers = [number for batch in batches for number in batch.row_numbers.tolist()]
    bad = [row.row_number for batch in batches for row in batch.unreadable_rows]
    assert sorted(numbers + bad) == list(range(1, len(numbers) + len(bad) + 1))


@pytest.mark.parametrize("first", ["sep=;\n", "sep=;\r\n", '"sep=;"\n'])
def test_a_first_line_may_name_the_delimiter(path: Path, first: str) -> None:
    (batch,) = read(path, f"{first}a, ,;y\n1,5;2\n".encode())
    assert batch.table.to_pydict() == {"a, ,": ["1,5"], "y": ["2"]}
    assert batch.row_numbers.tolist() == [1]


def test_utf16_gives_the_same_rows(path: Path) -> None:
    (batch,) = read(path, "a\ty\né\t2\n".encode("utf-16"))
    assert batch.table.to_pydict() == {"a": ["é"], "y": ["2"]}
