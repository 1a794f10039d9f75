"""From a path to bytes: what can't be opened, what is compressed, and which format it is."""

import errno
import re
import sys
from io import BytesIO
from pathlib import PurePath

from ellipack.errors import StreamError
from ellipack.stream.arrow import pa
from ellipack.stream.sources.utf8 import Readable, Utf8

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSED = {".gz", ".zst"}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_PARQUET = b"PAR1"
_LOOKED_AT = 4096  # bytes that a format is told by
_REASONS = {
    errno.ENOENT: "there is no such file: check the path",
    errno.ENOTDIR: "there is no such file: check the path",
    errno.EISDIR: "is a directory: give a file in it",
    errno.EACCES: "may not be read: check its permissions",
    errno.EPERM: "may not be read: check its permissions",
}


def name_of(path: str) -> str:
    """Return what messages call a path, on one line whatever is in it."""
    return "standard input" if path == "-" else path.encode("unicode_escape").decode()


def named_format(path: str) -> str | None:
    """Return the format that a file's name tells, if it does.

    >>> named_format("rides.csv.gz")
    'csv'
    """
    endings = [ending.lower() for ending in PurePath(path).suffixes]
    while endings and endings[-1] in _COMPRESSED:
        endings.pop()
    return _ENDINGS.get(endings[-1]) if endings else None


def opened(path: str) -> Readable:
    """Return an open file, or standard input for ``-``."""
    try:
        return _Borrowed(sys.stdin.buffer) if path == "-" else open(path, "rb")
    except (OSError, ValueError) as error:  # a ValueError is a path with a zero byte in it
        raise _refusal(path, error) from error


def decompressed(file: Readable, path: str) -> Utf8:
    """Return what is in a file, decompressed if its first bytes say that it is compressed."""
    try:
        head = file.read(4)
        while 0 < len(head) < 4 and (more := file.read(4 - len(head))):  # a pipe may hand them out one by one
            head += more
    except OSError as error:
        file.close()
        raise _refusal(path, error) from error
    raw: Readable = _Prefixed(head, file)
    codec = next((codec for magic, codec in _MAGIC.items() if head.startswith(magic)), None)
    if codec is not None:
        raw = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), codec)
    return Utf8(raw, name_of(path))


def sniffed_format(content: Utf8, path: str) -> str:
    """Return the format that content looks like: newline-delimited JSON if it starts with ``{``, else CSV."""
    head = content.peek(_LOOKED_AT)
    if head.startswith(_PARQUET):
        raise StreamError(
            f"{name_of(path)} is Parquet, which can't be read as a stream: give the path of a .parquet file"
        )
    return "ndjson" if head.lstrip()[:1] == b"{" else "csv"


def refuse_what_is_not_text(content: Utf8, path: str) -> None:
    """Raise if content is empty, or looks like anything but text in UTF-8."""
    name, head = name_of(path), content.peek(_LOOKED_AT)
    if not head.strip():
        raise StreamError(f"{name} is empty: it needs a header and rows")
    if b"\0" in head:
        raise StreamError(f"{name} is not text in UTF-8 (zero bytes in it): convert it, or say which format it is")
    if re.match(rb"\s*\[\s*\{", head):
        raise StreamError(f"{name} looks like a JSON array: write one object a line instead (jq -c '.[]')")


def _refusal(path: str, error: Exception) -> StreamError:
    number = error.errno if isinstance(error, OSError) else None
    return StreamError(f"{name_of(path)}: {_REASONS.get(number or 0, f'can not be read ({error})')}")


class _Borrowed:
    """A file that is someone else's to close."""

    def __init__(self, file: Readable) -> None:
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        return self._file.read(size)

    def close(self) -> None:
        pass


class _Prefixed:
    """A file whose first bytes were read already."""

    closed = False

    def __init__(self, head: bytes, file: Readable) -> None:
        self._head, self._file = BytesIO(head), file

    def read(self, size: int = -1, /) -> bytes:
        return self._head.read(size) or self._file.read(size)

    def close(self) -> None:
        self.closed = True
        self._file.close()
