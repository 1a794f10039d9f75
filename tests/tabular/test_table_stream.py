import gzip
import json
import os
import subprocess
import sys
import threading
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from ellipack.errors import DomainError, StreamError
from ellipack.tabular import TableBatch, open_table

ROWS = [{"when": f"2024-01-{1 + i % 28:02d}", "size": i / 4, "sky": ["blue", None, "grey"][i % 3]} for i in range(500)]


def as_csv(delimiter: str = ",") -> bytes:
    lines = [delimiter.join("" if cell is None else str(cell) for cell in row.values()) for row in ROWS]
    return "\n".join([delimiter.join(ROWS[0]), *lines, ""]).encode()


def as_ndjson() -> bytes:
    return "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def as_parquet() -> bytes:
    sink = BytesIO()
    parquet.write_table(pa.Table.from_pylist(ROWS), sink, row_group_size=70)
    return sink.getvalue()


FILES = {
    "t.csv": as_csv(),
    "t.tsv": as_csv("\t"),
    "semicolons.csv": as_csv(";"),
    "t.CSV.gz": gzip.compress(as_csv()),
    "two.csv.gz": gzip.compress(as_csv()[:1000]) + gzip.compress(as_csv()[1000:]),
    "t.csv.zst": pa.compress(as_csv(), "zstd", asbytes=True),
    "pack": gzip.compress(as_csv()),
    "t.ndjson": as_ndjson(),
    "t.jsonl.gz": gzip.compress(as_ndjson()),
    "unnamed": as_ndjson(),
    "bom.csv": b"\xef\xbb\xbf" + as_csv(),
    "returns.csv": as_csv().replace(b"\n", b"\r\n"),
    "t.parquet": as_parquet(),
}


def rows_of(batches: list[TableBatch]) -> list[dict[str, object]]:
    """Return the rows of batches, with numbers converted to floats."""
    rows = [row for batch in batches for row in batch.table.to_pylist()]
    return [{**row, "size": float(row["size"])} for row in rows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables")
    for name, content in FILES.items():
        (path / name).write_bytes(content)
    return path


@pytest.mark.parametrize("name", FILES)
@given(batch_rows=st.integers(1, 600), skip_rows=st.integers(0, 520), seen=st.integers(1, 600))
def test_all_formats_give_the_same_rows_in_equal_batches(
    folder: Path, name: str, batch_rows: int, skip_rows: int, seen: int
) -> None:
    with open_table(str(folder / name), batch_rows=batch_rows, skip_rows=skip_rows) as source:
        head = source.peek(seen)
        batches = list(source)
    expected = ROWS[skip_rows:]
    assert source.columns == ["when", "size", "sky"]
    assert rows_of(batches) == expected
    assert rows_of([head]) == expected[:seen]
    assert [len(batch) for batch in batches[:-1]] == [batch_rows] * (len(batches) - 1)
    numbers = np.concatenate([np.empty(0, np.int64), *(batch.row_numbers for batch in batches)])
    np.testing.assert_array_equal(numbers, np.arange(skip_rows, len(ROWS)) + 1)
    assert all(batch.last_row == batch.row_numbers[-1] and batch.source == str(folder / name) for batch in batches)


@pytest.mark.parametrize("name", [name for name in FILES if name != "t.parquet"])
def test_format_of_standard_input_is_detected(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    reading, writing = os.pipe()
    content = FILES[name]

    def write_in_pieces() -> None:
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            for start in range(0, len(content), 997):
                pipe.write(content[start : start + 997])

    writer = threading.Thread(target=write_in_pieces)
    writer.start()
    with os.fdopen(reading) as pipe, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", pipe)
        with open_table("-", format="tsv" if "tsv" in name else None) as source:
            batches = list(source)
        writer.join()
    assert rows_of(batches) == ROWS
    assert source.name == "standard input"


def test_standard_input_may_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    class FakeStdin:
        buffer = BytesIO(as_csv())

    monkeypatch.setattr(sys, "stdin", FakeStdin())
    with open_table("-") as source:
        assert rows_of(list(source)) == ROWS


def test_parquet_on_standard_input_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    class FakeStdin:
        buffer = BytesIO(as_parquet())

    monkeypatch.setattr(sys, "stdin", FakeStdin())
    with pytest.raises(StreamError, match=r"standard input is Parquet, .*: give the path of a .parquet file"):
        open_table("-")


def test_partly_read_files_are_closed(folder: Path) -> None:
    for name in FILES:
        with open_table(str(folder / name), batch_rows=10) as source:
            assert len(next(source)) == 10


def test_interpreter_exits_with_a_partly_read_stream() -> None:
    code = "from ellipack.tabular import open_table; print(len(next(open_table('-'))))"
    content = b"a,b\n" + b"1,2\n" * 3_000_000
    left = subprocess.run([sys.executable, "-c", code], input=content, capture_output=True, check=True)
    assert left.stdout == b"4096\n"


BAD = {
    "nothing.csv": (b"", "is empty: it needs a header and rows"),
    "blank.csv": (b"\n \n", "is empty: it needs a header and rows"),
    "header.csv": (b"a,b\n", "has columns but no rows"),
    "unended.csv": (b"a,b", "has columns but no rows"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "two columns are called 'a': rename one of them"),
    "twice_with_space.csv": (b"a,b, a\n1,2,3\n", "two columns are called 'a': rename one of them"),
    "nameless.csv": (b",,\n1,2,3\n", "the first line contains no names: remove the lines above the header"),
    "numbers.csv": (b"1.5,,3\n1,2,3\n", "the first row contains numbers, not names: add a header row"),
    "nameless.ndjson": (b'{"": 1, "a": 2}\n', "column 1 of 2 has no name: name it in the header"),
    "headless.csv": (b"5.1,3.5\n4.9,3.0\n", "the first row contains numbers, not names: add a header row"),
    "short.csv": (b"a,b\n1,2\n3\n", "row 2: has 1 fields where the header has 2: '3': fix it, or run with --on-error"),
    "long.csv": (b"a,b\n1,2\n\n3,4,5\n", "row 2: has 3 fields where the header has 2: '3,4,5': fix it, or run"),
    "latin.csv": (
        "a,b\n1,2\n3,é\n".encode("latin1"),
        "row 2, column 'b': is not valid UTF-8: convert the file, with iconv -f CP1252 -t UTF-8",
    ),
    "latin_header.csv": ("a,é\n1,2\n".encode("latin1"), "the header is not valid UTF-8: convert the file, with iconv"),
    "utf16.csv": ("a,b\n1,2\n".encode("utf-16-le"), "is not text in UTF-8 .* iconv -f UTF-16 -t UTF-8"),
    "comments.csv": (
        b"# My export\n# of 2026\na,b,y\n1,2,3\n",
        "row 2: has 3 fields where the header has 1 .are there lines above the header. remove them.: 'a,b,y'",
    ),
    "title.csv": (b"My export\n\na,b,y\n1,2,3\n", "row 1: has 3 fields where the header has 1 .are there lines above"),
    "picture.csv": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, "is not text in UTF-8"),
    "open.csv": (b'a,b\n1,2\n3,"4\n5,6\n', "row 2: opens a quote that is never closed: fix it"),
    "open_at_the_end.csv": (b'a\n1\n"2', "row 2: opens a quote that is never closed: fix it"),
    "open_and_missing.csv": (b'a,b\n1,2\n3,"NA', "row 2: opens a quote that is never closed: fix it"),
    "open_and_short.csv": (b'a,b\n1,2\n"3,4\n5,6\n', "row 2: opens a quote that is never closed: fix it"),
    "open_for_long.csv": (
        b'a,b\n1,"2\n' + b"3,4\n" * 999_999,
        "row 1: is longer than 1,048,576 bytes: is a quote open and",
    ),
    "open_too_long.csv": (
        b'a,b\n1,"2\n3,"4,5\n',
        "row 1: has 3 fields where the header has 2 .is a quote left open..: '1,",
    ),
    "cut.csv.gz": (gzip.compress(as_csv())[:-9], "is damaged or cut short .Truncated .*: make or fetch it again"),
    "cut_early.csv.gz": (gzip.compress(as_csv())[:12], "is damaged or cut short .*: make or fetch it again"),
    "rotten.csv.gz": (gzip.compress(as_csv())[:-6] + b"\0" * 6, "is damaged or cut short .*: make or fetch it again"),
    "cut.csv.zst": (pa.compress(as_csv(), "zstd", asbytes=True)[:-9], "is damaged or cut short"),
    "nothing.parquet": (b"", "can't be read as Parquet"),
    "not.parquet": (as_csv(), "can't be read as Parquet"),
    "cut.parquet": (as_parquet()[:-9], "can't be read as Parquet"),
    "holed.parquet": (as_parquet()[:100] + b"\0" * 900 + as_parquet()[1000:], "can't be read as Parquet"),
}


@pytest.mark.parametrize("name", BAD)
def test_unreadable_files_raise_with_a_one_line_message(tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(StreamError, match=message) as caught, open_table(str(path)) as source:
        list(source)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_opened_raise(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, message in {
        tmp_path / "none.csv": "no such file: check the path",
        tmp_path / "file" / "none.csv": "no such file: check the path",
        tmp_path: "is a directory: give the path of a file",
        tmp_path / "none.parquet": "no such file: check the path",
        tmp_path / "zero\0.csv": "can't be read",
    }.items():
        with pytest.raises(StreamError, match=message):
            open_table(str(path))


def test_permission_denied_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)  # root can read any file
    with pytest.raises(StreamError, match=r"t.csv: permission denied: check its permissions"):
        open_table("t.csv")


def test_invalid_parameters_raise(folder: Path) -> None:
    path = str(folder / "t.csv")
    with pytest.raises(DomainError, match="batch_rows must be an integer >= 1, got 0"):
        open_table(path, batch_rows=0)
    with pytest.raises(DomainError, match="skip_rows must be an integer >= 0, got -1"):
        open_table(path, skip_rows=-1)
    with pytest.raises(DomainError, match=r"format must be one of csv, tsv, json, ndjson, parquet, .*, got 'xls'"):
        open_table(path, format="xls")
    with pytest.raises(DomainError, match="on_error must be one of stop, skip, got 'infer_kind'"):
        open_table(path, on_error="infer_kind")


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_only_tables_need_pyarrow_and_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import ellipack, ellipack.synthetic\n"
        "try:\n    import ellipack.tabular\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    assert run(code).endswith("pip install 'ellipack[cli]'\n")


@pytest.mark.parametrize(
    ("header", "columns", "unnamed"),
    [
        (",a,y", ["column 1", "a", "y"], ("column 1",)),
        ("a, ,y,", ["a", "column 2", "y", "column 4"], ("column 2", "column 4")),
        ("column 2,,y", ["column 2", "column 2 (2)", "y"], ("column 2 (2)",)),
    ],
)
def test_columns_without_a_name_are_named_by_their_position(
    tmp_path: Path, header: str, columns: list[str], unnamed: tuple[str, ...]
) -> None:
    row = ",".join("123456789"[: len(columns)])
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(f"{header}\n{row}\n{row}\n")
    for path in (str(tmp_path / "a.csv"), [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]):
        with open_table(path, batch_rows=1) as stream:
            assert stream.columns == columns
            for batch in stream:
                assert batch.unnamed == unnamed
                assert list(batch.table.to_pylist()[0].values()) == row.split(",")
