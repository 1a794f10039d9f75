"""Open an input file or standard input, decompress it, detect its format and decode it as UTF-8."""

import codecs
import errno
import lzma
import os
import re
import select
import stat
import sys
import zipfile
import zlib
from io import BufferedReader, BytesIO
from pathlib import PurePath
from time import monotonic
from typing import BinaryIO, Protocol, cast

from ellipack.errors import StreamError
from ellipack.tabular.arrow import pa
from ellipack.tabular.file_types import check_is_readable

BLOCK_BYTES = 1 << 20
"""Number of bytes that a reader parses at once."""

GRACE_SECONDS = 0.1
"""Time after the first row of a pipe in which more rows count as its first rows, by which columns are decided."""

INVALID_UTF8 = "\ufdd0"
"""Replaces bytes that are not valid UTF-8. This code point is a Unicode noncharacter, so it does not occur in text."""

NOT_UTF8 = "is not valid UTF-8: convert the file, with iconv -f CP1252 -t UTF-8 if it was written on Windows"
"""Why a row with bytes that are not valid UTF-8 is unreadable."""

_SURROGATES = re.compile("[\udc80-\udcff]+")  # the surrogateescape handler decodes invalid bytes to these
_REPLACED = re.compile("\ufffd+")  # the replace handler decodes invalid bytes to these
_BOM = codecs.BOM_UTF8
_BOMS_UTF16 = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
_MIN_READ, _MAX_READ = 1 << 16, 1 << 20  # bytes per read


class ReadableFile(Protocol):
    """A binary file that can be read."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes; an empty result means the end of the file."""

    def close(self) -> None:
        """Close the file."""


class LivePipe:
    """Standard input or another pipe. A read returns the bytes that are there, and waits only if there are none.

    Parameters
    ----------
    file : binary file
        Open file with a descriptor.
    keep_open : bool, default False
        Whether closing leaves the file open.
    """

    def __init__(self, file: BufferedReader, keep_open: bool = False) -> None:
        self._file, self._keep_open = file, keep_open

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes; an empty result means the end."""
        return self._file.read1(size) if size >= 0 else self._file.read()

    def wait(self, seconds: float) -> bool:
        """Wait until a read does not block, at most for some seconds; return whether it does not."""
        return bool(select.select([self._file], [], [], max(0.0, seconds))[0])

    def close(self) -> None:
        """Close the file, unless it is kept open."""
        if not self._keep_open:
            self._file.close()


class Utf8Reader:
    """Reads a file as valid UTF-8, without a byte order mark. UTF-16 with a byte order mark is converted.

    A pipe may be alive: its writer may be slow and its end may never come. `read` therefore returns what is there, and
    `wait` says whether more has come.

    `INVALID_UTF8` replaces each run of invalid bytes. Parsers can therefore rely on UTF-8, and the readers find the
    cells that contain invalid bytes.

    Parameters
    ----------
    raw : ReadableFile
        The file, already decompressed.
    source : str
        Name of the source in messages.
    pipe : LivePipe or None, default None
        The pipe that the bytes come from, if it is one.

    Attributes
    ----------
    has_invalid_bytes : bool
        Whether invalid bytes have been found so far.
    is_live : bool
        Whether the bytes come from a pipe.
    """

    def __init__(self, raw: ReadableFile, source: str, pipe: LivePipe | None = None) -> None:
        self._raw, self._source, self._pipe = raw, source, pipe
        self.is_live = pipe is not None
        self._ended, self.has_invalid_bytes = False, False
        head = b""
        while len(head) < len(_BOM) and not self._ended:
            head += self._read_raw(_MIN_READ)
        self._is_utf8 = not head.startswith(_BOMS_UTF16)
        encoding, errors = ("utf-8", "surrogateescape") if self._is_utf8 else ("utf-16", "replace")
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._buffer = self._decode(head).removeprefix(_BOM)

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes without consuming them.

        They are fewer at the end, and if a pipe has no more at the moment. They always contain the first line that is
        not blank, quoted line ends included, if it has at most `size` bytes.
        """
        while len(self._buffer) < size and not self._ended:
            if not self.wait(0) and _has_first_line(self._buffer):
                break
            self._buffer += self._decode_next(min(max(size - len(self._buffer), _MIN_READ), _MAX_READ))
        return self._buffer[:size]

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`; an empty result means the end.

        Fewer are returned at the end, and if a pipe has no more at the moment. If `size` is negative, all are returned.
        """
        limit = sys.maxsize if size < 0 else size
        while len(self._buffer) < limit and not self._ended and (size < 0 or not self._buffer or self.wait(0)):
            self._buffer += self._decode_next(min(max(limit - len(self._buffer), _MIN_READ), _MAX_READ))
        out, self._buffer = self._buffer[:limit], self._buffer[limit:]
        return out

    def read_soon(self, size: int, seconds: float) -> bytes:
        """Return the bytes of a pipe that come within some seconds, at most `size`. A file has no more to wait for."""
        data, deadline = b"", monotonic() + seconds
        while self.is_live and len(data) < size and self.wait(deadline - monotonic()):
            more = self.read(size - len(data))
            if not more:
                break
            data += more
        return data

    def wait(self, seconds: float) -> bool:
        """Wait until a read does not block, at most for some seconds; return whether it does not."""
        return self._ended or self._pipe is None or self._pipe.wait(seconds)

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def _decode_next(self, size: int) -> bytes:
        """Read at most `size` bytes and replace the invalid ones."""
        return self._decode(self._read_raw(size))

    def _read_raw(self, size: int) -> bytes:
        """Read at most `size` bytes."""
        try:
            chunk = self._raw.read(size)
        except OSError as error:
            raise StreamError(f"{self._source} is damaged or cut short ({error}): make or fetch it again") from error
        self._ended = not chunk
        return chunk

    def _decode(self, chunk: bytes) -> bytes:
        """Convert the next bytes to UTF-8 and replace the invalid ones."""
        pending, _ = self._decoder.getstate()
        if self._is_utf8 and chunk.isascii() and not pending:
            return chunk
        text = self._decoder.decode(chunk, final=self._ended)
        marked, count = (_SURROGATES if self._is_utf8 else _REPLACED).subn(INVALID_UTF8, text)
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
    ".feather": "feather",
    ".arrow": "feather",
    ".xlsx": "excel",
}
_COMPRESSED_EXTENSIONS = {".gz", ".zst", ".bz2", ".xz", ".zip"}
_CODEC_BY_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_XZ_MAGIC, _ZIP_MAGIC = b"\xfd7zX", b"PK\x03\x04"
_PARQUET_MAGIC = b"PAR1"
_SNIFFED_BYTES = 4096  # read to detect the format
_REASON_BY_ERRNO = {
    errno.ENOENT: "no such file: check the path",
    errno.ENOTDIR: "no such file: check the path",
    errno.EISDIR: "is a directory: give the path of a file",
    errno.EACCES: "permission denied: check its permissions",
    errno.EPERM: "permission denied: check its permissions",
}


def display_name(path: str) -> str:
    """Return the name of a path in messages, escaped to fit on one line."""
    return "standard input" if path == "-" else path.encode("unicode_escape").decode()


def format_from_extension(path: str) -> str | None:
    """Return the format that belongs to the extension of a path, or None.

    Examples
    --------
    >>> format_from_extension("rides.csv.gz")
    'csv'
    """
    extensions = [extension.lower() for extension in PurePath(path).suffixes]
    while extensions and extensions[-1] in _COMPRESSED_EXTENSIONS:
        extensions.pop()
    return _FORMAT_BY_EXTENSION.get(extensions[-1]) if extensions else None


def open_input(path: str) -> ReadableFile:
    """Open a file for reading, or standard input for ``-``."""
    try:
        if path == "-":
            return _open_standard_input()
        file = open(path, "rb")  # noqa: SIM115  # the reader closes it
        return LivePipe(file) if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode) else file
    except (OSError, ValueError) as error:  # ValueError: the path contains a null byte
        raise _open_error(path, error) from error


def check_is_file(path: str, format: str) -> None:
    """Raise StreamError unless a path is a file that can be read; a library opens it."""
    if path == "-":
        raise StreamError(f"standard input can't be read as {format}: give the path of a file")
    open_input(path).close()


def decompress(file: ReadableFile, path: str) -> Utf8Reader:
    """Return a reader of the contents, decompressed if the first bytes are those of gzip, zstd, bzip2, xz or zip."""
    try:
        head = file.read(4)
        while 0 < len(head) < 4 and (more := file.read(4 - len(head))):  # a pipe may return fewer bytes
            head += more
    except OSError as error:
        file.close()
        raise _open_error(path, error) from error
    name = display_name(path)
    try:
        check_is_readable(head, name)
        raw, is_plain = _decompress(_PrefixedFile(head, file), file, head, name)
        return Utf8Reader(raw, name, file if isinstance(file, LivePipe) and is_plain else None)
    except BaseException:
        file.close()
        raise


def _decompress(raw: ReadableFile, file: ReadableFile, head: bytes, name: str) -> tuple[ReadableFile, bool]:
    """Return the decompressed contents of a file, and whether it is not compressed."""
    if head.startswith(_ZIP_MAGIC):
        return _ZippedFile(file, name), False
    if head.startswith(_XZ_MAGIC):
        return _XzFile(raw), False
    codec = next((codec for magic, codec in _CODEC_BY_MAGIC.items() if head.startswith(magic)), None)
    if codec is not None:
        return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), codec), False
    return raw, True


def detect_format(content: Utf8Reader, path: str) -> str:
    """Return the format of the contents: ``ndjson`` if they start with ``{``, ``json`` for an array, or ``csv``."""
    head = content.peek(_SNIFFED_BYTES)
    if head.startswith(_PARQUET_MAGIC):
        raise StreamError(
            f"{display_name(path)} is Parquet, which can't be read as a stream: give the path of a .parquet file"
        )
    check_is_readable(head, display_name(path))
    if re.match(rb"\s*\[\s*(\{|$)", head):
        return "json"
    return "ndjson" if head.lstrip()[:1] == b"{" else "csv"


def check_is_text(content: Utf8Reader, path: str) -> None:
    """Raise StreamError if the contents are empty or binary."""
    name, head = display_name(path), content.peek(_SNIFFED_BYTES)
    if not head.strip():
        raise StreamError(f"{name} is empty: it needs a header and rows")
    if b"\0" in head:
        utf16 = "if it is UTF-16, convert it with iconv -f UTF-16 -t UTF-8"
        raise StreamError(f"{name} is not text in UTF-8 (it contains null bytes): {utf16}; otherwise give its format")


def _open_standard_input() -> ReadableFile:
    """Return standard input as a file that stays open: a pipe, unless it is redirected from a file."""
    file = sys.stdin.buffer
    try:
        is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, ValueError):  # an object without a descriptor stands in for it
        is_file = True
    return LivePipe(file, keep_open=True) if isinstance(file, BufferedReader) and not is_file else _KeepOpen(file)


def _has_first_line(text: bytes) -> bool:
    """Return whether a text contains a complete line that is not blank. A line end in quotes does not count."""
    unquoted = re.sub(rb'"[^"]*"', b"x", text.lstrip())
    return b"\n" in unquoted and unquoted.partition(b"\n")[0].count(b'"') == 0


def _open_error(path: str, error: Exception) -> StreamError:
    """Return the error for a file that cannot be opened."""
    code = error.errno if isinstance(error, OSError) else None
    reason = _REASON_BY_ERRNO.get(code or 0, f"can't be read ({error})")
    return StreamError(f"{display_name(path)}: {reason}")


class _ZippedFile:
    """Decompresses the only file in a zip archive."""

    def __init__(self, file: ReadableFile, name: str) -> None:
        self._file = file
        try:
            self._archive = zipfile.ZipFile(cast(BinaryIO, file))  # a pipe raises
            members = [each for each in self._archive.namelist() if not each.endswith("/")]
            if len(members) != 1:
                raise StreamError(f"{name} must contain one file, got {len(members):,}: extract the table first")
            self._content = self._archive.open(members[0])
        except (OSError, AttributeError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            raise StreamError(f"{name}: this is a zip archive that can't be read ({error}): extract it") from error

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._content.read(size)
        except (zipfile.BadZipFile, EOFError, zlib.error) as error:
            raise OSError(str(error)) from error

    def close(self) -> None:
        self._content.close()
        self._archive.close()
        self._file.close()


class _XzFile:
    """Decompresses a file in the format xz."""

    def __init__(self, file: ReadableFile) -> None:
        self._file = file
        self._content = lzma.LZMAFile(cast(BinaryIO, file))  # noqa: SIM115  # it needs read alone

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._content.read(size)
        except (lzma.LZMAError, EOFError) as error:
            raise OSError(str(error)) from error

    def close(self) -> None:
        self._content.close()
        self._file.close()


class _KeepOpen:
    """Wraps a file so that closing the wrapper leaves the file open."""

    def __init__(self, file: ReadableFile) -> None:
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        return self._file.read(size)

    def close(self) -> None:
        pass


class _PrefixedFile:
    """Puts bytes that were already read back in front of a file."""

    closed = False

    def __init__(self, head: bytes, file: ReadableFile) -> None:
        self._head, self._file = BytesIO(head), file

    def read(self, size: int = -1, /) -> bytes:
        return self._head.read(size) or self._file.read(size)

    def close(self) -> None:
        self.closed = True
        self._file.close()
