"""Bytes on their way to a parser: looked at before they are read, and never anything but UTF-8."""

import codecs
import re
import sys
from typing import Protocol

from ellipack.errors import StreamError

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
