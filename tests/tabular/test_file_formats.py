"""The same table in every format and compression, in several files, and files that are no tables."""

import bz2
import json
import lzma
import re
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from ellipack.errors import DomainError, InputError, StreamError
from ellipack.tabular import FileOptions, TableEncoder, open_table
from ellipack.tabular.table_batch import to_strings

ROWS = [{"a": i, "b": f"x, {i % 3}", "y": i / 4} for i in range(300)]
TEXT = "a;b;y\n" + "".join(f"{row['a']};{row['b']};{row['y']:g}\n" for row in ROWS)


def write_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/table.csv", TEXT)


def write_sqlite(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("create table rides (a, b, y)")
        connection.executemany("insert into rides values (?, ?, ?)", [tuple(row.values()) for row in ROWS])
        connection.commit()
    connection.close()


WRITERS: dict[str, Callable[[Path], object]] = {
    "t.csv": lambda path: path.write_text(TEXT),
    "bars.txt": lambda path: path.write_text(TEXT.replace(";", "|")),
    "t.csv.bz2": lambda path: path.write_bytes(bz2.compress(TEXT.encode())),
    "t.csv.xz": lambda path: path.write_bytes(lzma.compress(TEXT.encode())),
    "t.zip": write_zip,
    "t.json": lambda path: path.write_text(json.dumps(ROWS, indent=1)),
    "array.ndjson": lambda path: path.write_text(json.dumps(ROWS)),
    "t.feather": lambda path: feather.write_feather(pa.Table.from_pylist(ROWS), path, chunksize=70),
    "t.parquet": lambda path: parquet.write_table(pa.Table.from_pylist(ROWS), path),
    "t.db": write_sqlite,
}


def read(path: str | list[str], **options: str) -> list[tuple[str, ...]]:
    with open_table(path, batch_rows=64, file_options=FileOptions(**options)) as stream:
        return [
            row
            for batch in stream
            for row in zip(*(to_strings(column).to_pylist() for column in batch.table.columns), strict=True)
        ]


EXPECTED = [(str(row["a"]), str(row["b"]), f"{row['y']:g}") for row in ROWS]


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_rows(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    assert read(str(tmp_path / name)) == EXPECTED


def test_several_files_are_one_table_and_rows_count_on(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("t.db", "t.csv", "t.zip")]
    for path in paths:
        WRITERS[Path(path).name](Path(path))
    assert read(paths) == EXPECTED * 3
    with open_table(paths, skip_rows=450, batch_rows=1000) as stream:
        (batch,) = stream
    assert batch.row_numbers.tolist() == list(range(451, 901))
    (tmp_path / "other.csv").write_text("y,a\n1,2\n")
    with pytest.raises(StreamError, match=r"other.csv must have the columns of .*t.db, but it lacks: b"):
        read([paths[0], str(tmp_path / "other.csv")])
    (tmp_path / "short.csv").write_text("y,b,a\n1,2,3\n1,2\n")
    with open_table([paths[0], str(tmp_path / "short.csv")], on_error="skip", batch_rows=1000) as stream:
        (batch,) = stream
    (bad,) = batch.unreadable_rows
    assert bad.describe("").startswith(f"{tmp_path / 'short.csv'}, row 2 (row 302 of all files): has 2 fields")


def test_a_bad_cell_of_several_files_is_named_by_its_file(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{i}.csv") for i in range(4)]
    for i, text in enumerate(["a,y\n1,1\n2,2\n", "a,y\n3,3\n", "a,y\n", "y,a\n4,4\n5,far\n6,far\n"]):
        Path(paths[i]).write_text(text)
    place = rf"^{re.escape(paths[3])}, row 2 \(row 5 of all files\), column 'a': 'far' is not a number"
    for batch_rows in (1, 2, 100):
        with open_table(paths, batch_rows=batch_rows) as stream:
            encoder = TableEncoder.from_head(stream.peek(3), "y")
            parts = [part for batch in stream for part in batch.split([1] if len(batch) > 1 else [])]
        for part in [part for part in parts if part.last_row < 5]:
            encoder.parse(part)
        with pytest.raises(StreamError, match=place):
            encoder.parse(next(part for part in parts if part.last_row >= 5))
    message = r"0.csv, row 2 \(row 2 of all files\), column 'y': 'x' is not a number; the target must contain numbers"
    Path(paths[0]).write_text("a,y\n1,1\n2,x\n")
    with open_table(paths) as stream, pytest.raises(StreamError, match=message):
        TableEncoder.from_head(stream.peek(3), "y")


def test_delimiter_and_sheet_are_chosen(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TEXT.replace(";", ":"))
    assert read(str(tmp_path / "t.csv"), delimiter=":") == EXPECTED
    with pytest.raises(DomainError, match="delimiter must be one ASCII character"):
        FileOptions("::")
    write_sqlite(tmp_path / "t.db")
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("create table other (z)")
    connection.close()
    assert read(str(tmp_path / "t.db"), sheet="rides") == EXPECTED
    with pytest.raises(StreamError, match=r"t.db has 2 tables: choose one with --sheet: rides, other"):
        read(str(tmp_path / "t.db"))
    with pytest.raises(StreamError, match=r"t.db has no table 'x': choose one with --sheet: rides, other"):
        read(str(tmp_path / "t.db"), sheet="x")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("t.csv", "csv"),
        ("t.csv.xz", "csv"),
        ("t.json", "json"),
        ("array.ndjson", "ndjson"),
        ("t.feather", "feather"),
        ("t.parquet", "parquet"),
        ("t.db", "sqlite"),
    ],
)
def test_delimiter_and_sheet_are_refused_where_they_do_not_apply(name: str, format: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    if format != "csv":
        with pytest.raises(InputError, match=f"--delimiter needs a CSV file, but .*{name} is {format}"):
            read(str(path), delimiter=";")
    if format != "sqlite":
        with pytest.raises(InputError, match=f"--sheet needs an Excel file or a database, but .*{name} is {format}"):
            read(str(path), sheet="rides")


def test_excel_files_are_read_if_openpyxl_is_installed(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["a", "b", "y"], *(list(row.values()) for row in ROWS)]:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    assert read(str(tmp_path / "t.xlsx")) == EXPECTED
    whole = (tmp_path / "t.xlsx").read_bytes()
    (tmp_path / "cut.xlsx").write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile(tmp_path / "t.xlsx") as good, zipfile.ZipFile(tmp_path / "bad.xlsx", "w") as bad:
        for name in good.namelist():
            content = good.read(name)
            bad.writestr(name, content[: len(content) // 2] if "sheet1" in name else content)
    for name, message in (("cut.xlsx", "can't be read as excel"), ("bad.xlsx", r"after row \d+: can't be read")):
        with pytest.raises(StreamError, match=f"{name}.*{message}"):
            read(str(tmp_path / name))


def test_duckdb_tables_are_read_if_duckdb_is_installed(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "rides"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table rides (a integer, b varchar, y double)")
        connection.executemany("insert into rides values (?, ?, ?)", [list(row.values()) for row in ROWS])
    assert read(str(path)) == EXPECTED
    with duckdb.connect(str(path)) as connection:
        connection.execute('create view "the ""view""" as select * from rides')
    assert read(str(path), sheet='the "view"') == EXPECTED
    with pytest.raises(StreamError, match=r"rides has 2 tables: choose one with --sheet: rides, the \"view\""):
        read(str(path))
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(StreamError, match="can't be read as duckdb"):
        read(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "this is an Excel file of the old kind"),
        (b"%PDF-1.7", "this is a PDF file: export"),
        (b"<!doctype html><html>", "this is an HTML page, not a table"),
        (b"PK\x03\x04damaged", "this is a zip archive that can't be read"),
        (b"\xfd7zXZ\0damaged", "is damaged or cut short"),
        (b'[{"a": 1}, {"a"', "is a JSON array that is damaged or cut short"),
        (b"SQLite format 3\0damaged", "can't be read as sqlite"),
        (b"ARROW1\0\0damaged", "can't be read as feather"),
    ],
)
def test_files_that_are_no_tables_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(StreamError, match=message):
        read(str(tmp_path / "t"))


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_package(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("ellipack.tabular.whole_table_readers.import_module", no_package)
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "")
    (tmp_path / "t.duckdb").write_bytes(b"checksumDUCK")
    with pytest.raises(StreamError, match=r"this is an Excel file: pip install openpyxl, or export it as CSV"):
        read(str(tmp_path / "t.xlsx"))
    with pytest.raises(StreamError, match=r"this is a DuckDB database: pip install duckdb, or export it as CSV"):
        read(str(tmp_path / "t.duckdb"))


def test_lack_of_memory_is_no_unreadable_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    feather.write_feather(pa.table({"a": [1, 2]}), str(tmp_path / "t.feather"))
    monkeypatch.setattr("ellipack.tabular.whole_table_readers._open_feather", fail)
    with pytest.raises(MemoryError):
        open_table(str(tmp_path / "t.feather"))


def test_empty_rows_above_the_header_of_an_excel_file_and_columns_without_a_name(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in ([None, None, None], [None, None, None], [None, "a", "y"], [0, 1, 2], [1, 2, 3]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    with open_table(str(tmp_path / "t.xlsx")) as stream:
        (batch,) = stream
    assert batch.table.to_pydict() == {"column 1": [0, 1], "a": [1, 2], "y": [2, 3]}
    assert (batch.row_numbers.tolist(), batch.unnamed) == ([1, 2], ("column 1",))


def test_a_column_without_a_name_in_a_database_is_named(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute('create table t ("" integer, y integer)')
        connection.execute("insert into t values (1, 2)")
    with open_table(str(tmp_path / "t.db")) as stream:
        (batch,) = stream
    assert batch.table.to_pydict() == {"column 1": [1], "y": [2]}
