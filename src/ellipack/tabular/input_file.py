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

INVALID_UTF8 = "\ufdd0"
"""Stands where bytes were not UTF-8. Unicode keeps this code point out of all text, so nothing else can be meant."""

_SURROGATES = re.compile("[\udc80-\udcff]+")  # what Python makes of bytes that it can't decode
_BOM = codecs.BOM_UTF8
_MIN_READ, _MAX_READ = 1 << 16, 1 << 20  # bytes read at once


class ReadableFile(Protocol):
    """What bytes are read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return some bytes, none at the end."""

    def close(self) -> None:
        """Let go of it."""


class Utf8Reader:
    """A file to read from, without byte order mark, in which `INVALID_UTF8` stands for what is not UTF-8.

    A parser may so hold what it gets for text, and the cell that can't be read is found by its mark.

    Attributes
    ----------
    marked : whether there is a mark in what was read so far.
    """

    def __init__(self, raw: ReadableFile, source: str) -> None:
        self._raw, self._source = raw, source
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._buffer = b""
        self._ended, self.has_invalid_bytes = False, False
        if self.peek(len(_BOM)).startswith(_BOM):
            self._buffer = self._buffer[len(_BOM) :]

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, or all that are left, and leave them to be read."""
        while len(self._buffer) < size and not self._ended:
            self._buffer += self._decode_next(min(max(size - len(self._buffer), _MIN_READ), _MAX_READ))
        return self._buffer[:size]

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, fewer only at the end; all that are left if `size` is negative."""
        size = sys.maxsize if size < 0 else size
        out = self.peek(size)
        self._buffer = self._buffer[size:]
        return out

    def close(self) -> None:
        """Let go of the file."""
        self._raw.close()

    def _decode_next(self, size: int) -> bytes:
        try:
            chunk = self._raw.read(size)
        except OSError as error:
            raise StreamError(f"{self._source} is damaged or cut short ({error}): make or fetch it again") from error
        self._ended = not chunk
        pending, _ = self._decoder.getstate()
        if chunk.isascii() and not pending:
            return chunk
        text = self._decoder.decode(chunk, final=self._ended)
        marked, count = _SURROGATES.subn(INVALID_UTF8, text)
        self.has_invalid_bytes |= count > 0
        return marked.encode()


_FORMAT_BY_EXTENSION = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSED_EXTENSIONS = {".gz", ".zst"}
_CODEC_BY_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_PARQUET_MAGIC = b"PAR1"
_SNIFFED_BYTES = 4096  # bytes that a format is told by
_REASON_BY_ERRNO = {
    errno.ENOENT: "there is no such file: check the path",
    errno.ENOTDIR: "there is no such file: check the path",
    errno.EISDIR: "is a directory: give a file in it",
    errno.EACCES: "may not be read: check its permissions",
    errno.EPERM: "may not be read: check its permissions",
}


def display_name(path: str) -> str:
    """Return what messages call a path, on one line whatever is in it."""
    return "standard input" if path == "-" else path.encode("unicode_escape").decode()


def format_from_extension(path: str) -> str | None:
    """Return the format that a file's name tells, if it does.

    >>> format_from_extension("rides.csv.gz")
    'csv'
    """
    extensions = [extension.lower() for extension in PurePath(path).suffixes]
    while extensions and extensions[-1] in _COMPRESSED_EXTENSIONS:
        extensions.pop()
    return _FORMAT_BY_EXTENSION.get(extensions[-1]) if extensions else None


def open_input(path: str) -> ReadableFile:
    """Return an open file, or standard input for ``-``."""
    try:
        return _KeepOpen(sys.stdin.buffer) if path == "-" else open(path, "rb")
    except (OSError, ValueError) as error:  # a ValueError is a path with a zero byte in it
        raise _open_error(path, error) from error


def decompress(file: ReadableFile, path: str) -> Utf8Reader:
    """Return what is in a file, decompress if its first bytes say that it is compressed."""
    try:
        head = file.read(4)
        while 0 < len(head) < 4 and (more := file.read(4 - len(head))):  # a pipe may hand them out one by one
            head += more
    except OSError as error:
        file.close()
        raise _open_error(path, error) from error
    raw: ReadableFile = _PrefixedFile(head, file)
    codec = next((codec for magic, codec in _CODEC_BY_MAGIC.items() if head.startswith(magic)), None)
    if codec is not None:
        raw = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), codec)
    return Utf8Reader(raw, display_name(path))


def detect_format(content: Utf8Reader, path: str) -> str:
    """Return the format that content looks like: newline-delimited JSON if it starts with ``{``, else CSV."""
    head = content.peek(_SNIFFED_BYTES)
    if head.startswith(_PARQUET_MAGIC):
        raise StreamError(
            f"{display_name(path)} is Parquet, which can't be read as a stream: give the path of a .parquet file"
        )
    return "ndjson" if head.lstrip()[:1] == b"{" else "csv"


def check_is_text(content: Utf8Reader, path: str) -> None:
    """Raise if content is empty, or looks like anything but text in UTF-8."""
    name, head = display_name(path), content.peek(_SNIFFED_BYTES)
    if not head.strip():
        raise StreamError(f"{name} is empty: it needs a header and rows")
    if b"\0" in head:
        raise StreamError(f"{name} is not text in UTF-8 (zero bytes in it): convert it, or say which format it is")
    if re.match(rb"\s*\[\s*\{", head):
        raise StreamError(f"{name} looks like a JSON array: write one object a line instead (jq -c '.[]')")


def _open_error(path: str, error: Exception) -> StreamError:
    number = error.errno if isinstance(error, OSError) else None
    return StreamError(f"{display_name(path)}: {_REASON_BY_ERRNO.get(number or 0, f'can not be read ({error})')}")


class _KeepOpen:
    """A file that is someone else's to close."""

    def __init__(self, file: ReadableFile) -> None:
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        return self._file.read(size)

    def close(self) -> None:
        pass


class _PrefixedFile:
    """A file whose first bytes were read already."""

    closed = False

    def __init__(self, head: bytes, file: ReadableFile) -> None:
        self._head, self._file = BytesIO(head), file

    def read(self, size: int = -1, /) -> bytes:
        return self._head.read(size) or self._file.read(size)

    def close(self) -> None:
        self.closed = True
        self._file.close()
