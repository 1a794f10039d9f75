"""Recognize the type of a binary file by its first bytes, and name the types that can't be read."""

import os
import stat
from typing import Final

from ellipack.errors import StreamError

_FORMATS: Final = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"SQLite format 3\0": "sqlite",
}
_DUCKDB_MAGIC, _DUCKDB_OFFSET = b"DUCK", 8
_ZIP, _EXCEL_MEMBER = b"PK\x03\x04", b"[Content_Types].xml"
_UNREADABLE: Final = {
    b"\xd0\xcf\x11\xe0": "an Excel file of the old kind (.xls): save it as .xlsx or CSV",
    b"%PDF": "a PDF file: export the table as CSV",
    b"\x89HDF": "an HDF5 file: export the table as Parquet or CSV",
    b"ORC": "an ORC file: convert it to Parquet",
    b"Obj\x01": "an Avro file: convert it to Parquet or newline-delimited JSON",
    b"FEA1": "a Feather file of version 1: write it again with a current version of pyarrow",
    b"<stata_dta>": "a Stata file: export the table as CSV",
    b"$FL2": "an SPSS file: export the table as CSV",
    b"RDX": "a file of R: export the table with write.csv",
    b"\x93NUMPY": "a NumPy array without column names: write a table, as CSV or Parquet",
    b"7z\xbc\xaf": "a 7-Zip archive: extract it",
    b"Rar!": "a RAR archive: extract it",
    b"<!DOCTYPE html": "an HTML page, not a table: download the file itself",
    b"<html": "an HTML page, not a table: download the file itself",
    b"<?xml": "an XML file: convert it to CSV or JSON",
}
_SNIFFED_BYTES = 64


def detect_binary_format(path: str, name: str) -> str | None:
    """Return the format of a binary file, or None for text, compressed files and pipes.

    Parameters
    ----------
    path : str
        Path of the file, or ``-`` for standard input.
    name : str
        Name of the file in messages.

    Raises
    ------
    StreamError
        If the file is of a type that is known and can't be read.
    """
    try:
        if path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as file:
            head = file.read(_SNIFFED_BYTES)
    except (OSError, ValueError):  # reported when it is opened
        return None
    check_is_readable(head, name)
    if head.startswith(_ZIP) and _EXCEL_MEMBER in head:
        return "excel"
    if head[_DUCKDB_OFFSET:].startswith(_DUCKDB_MAGIC):
        return "duckdb"
    return next((format for magic, format in _FORMATS.items() if head.startswith(magic)), None)


def check_is_readable(head: bytes, name: str) -> None:
    """Raise StreamError if the first bytes are those of a type that can't be read.

    Examples
    --------
    >>> check_is_readable(b"%PDF-1.7", "table.pdf")
    Traceback (most recent call last):
    ellipack.errors.StreamError: table.pdf: this is a PDF file: export the table as CSV
    """
    for magic, reason in _UNREADABLE.items():
        if head.lstrip()[: len(magic)].lower() == magic.lower():
            raise StreamError(f"{name}: this is {reason}")
