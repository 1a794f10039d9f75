"""Read a JSON array of objects as newline-delimited JSON, without holding the whole array in memory."""

import json
import re

from ellipack.errors import StreamError
from ellipack.tabular.input_file import BLOCK_BYTES, Utf8Reader

_MAX_OBJECT_CHARACTERS = 1 << 24
_SEPARATOR = re.compile(r"[\s,]*")


class JsonArrayFile:
    r"""Contents of a JSON array as a file with one element per line.

    Parameters
    ----------
    content : Utf8Reader
        The array.
    source : str
        Name of the source in messages.

    Examples
    --------
    >>> from io import BytesIO
    >>> JsonArrayFile(Utf8Reader(BytesIO(b'[{"a": 1},\n {"a": 2}]'), "t.json"), "t.json").read()
    b'{"a": 1}\n{"a": 2}\n'
    """

    def __init__(self, content: Utf8Reader, source: str) -> None:
        self._content, self._source = content, source
        self._text, self._ended = content.read(BLOCK_BYTES).decode().lstrip().removeprefix("["), False
        self._decoder = json.JSONDecoder()

    def read(self, size: int = -1, /) -> bytes:
        """Return elements, each on a line. They may be more than `size` bytes; an empty result means the end."""
        lines: list[str] = []
        while (size < 0 or not lines) and not self._ended:
            lines += self._next_lines()
        return "".join(f"{line}\n" for line in lines).encode()

    def close(self) -> None:
        """Close the file."""
        self._content.close()

    def _next_lines(self) -> list[str]:
        """Return the elements that are complete, and read more."""
        lines, start = list[str](), 0
        while True:
            start = _SEPARATOR.match(self._text, start).end()  # type: ignore[union-attr]  # it matches anything
            if self._text.startswith("]", start):
                self._ended = True
                return lines
            try:
                _, end = self._decoder.raw_decode(self._text, start)
            except (ValueError, RecursionError):
                break
            lines.append(self._text[start:end].replace("\n", " ").replace("\r", " "))  # strings have no line ends
            start = end
        more = self._content.read(BLOCK_BYTES).decode()
        self._text = self._text[start:] + more
        if not more or len(self._text) > _MAX_OBJECT_CHARACTERS:
            raise StreamError(f"{self._source} is a JSON array that is damaged or cut short: make or fetch it again")
        return lines
