"""From a path to UTF-8 text: opening, decompressing, and which format it is."""

import codecs
import errno
import re
import sys
from io import BytesIO
from pathlib import PurePath
from typing import Protocol

from ellipack.errors import StreamError
from ellipack.tabular.arrow import pa

MARK = "\ufdd0"
"""Stands where bytes were not UTF-8. Unicode keeps this code point out of all text, so nothing else can be meant."""

_ESCAPED = re.compile("[\udc80-\udcff]+")  # what Python makes of bytes that it can't decode
_BOM = codecs.BOM_UTF8
_LEAST, _MOST = 1 << 16, 1 << 20  # bytes read at once


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return some bytes, none at the end."""

    def close(self) -> None:
        """Let go of it."""


class Utf8:
    """A file to read from, without byte order mark, in which `MARK` stands for what is not UTF-8.

    A parser may so hold what it gets for text, and the cell that can't be read is found by its mark.

    Attributes
    ----------
    marked : whether there is a mark in what was read so far.
    """

    def __init__(self, raw: Readable, source: str) -> None:
        self._raw, self._source = raw, source
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._ahead = b""
        self._ended, self.marked = False, False
        if self.peek(len(_BOM)).startswith(_BOM):
            self._ahead = self._ahead[len(_BOM) :]

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, or all that are left, and leave them to be read."""
        while len(self._ahead) < size and not self._ended:
            self._ahead += self._decoded(min(max(size - len(self._ahead), _LEAST), _MOST))
        return self._ahead[:size]

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, fewer only at the end; all that are left if `size` is negative."""
        size = sys.maxsize if size < 0 else size
        out = self.peek(size)
        self._ahead = self._ahead[size:]
        return out

    def close(self) -> None:
        """Let go of the file."""
        self._raw.close()

    def _decoded(self, size: int) -> bytes:
        try:
            chunk = self._raw.read(size)
        except OSError as error:
            raise StreamError(f"{self._source} is damaged or cut short ({error}): make or fetch it again") from error
        self._ended = not chunk
        pending, _ = self._decoder.getstate()
        if chunk.isascii() and not pending:
            return chunk
        text = self._decoder.decode(chunk, final=self._ended)
        marked, count = _ESCAPED.subn(MARK, text)
        self.marked |= count > 0
        return marked.encode()


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
