"""A file that is only ever appended to, and can be gone on with at any place that was brought to the disk."""

import os
import stat
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from ellipack.errors import StreamError

_CHUNK_BYTES = 1 << 20


class OutputPosition(NamedTuple):
    """How much was position: how many bytes, and their checksum, by which they are known again."""

    size: int = 0
    checksum: int = 0

    def extended_by(self, data: bytes) -> "OutputPosition":
        """Return how much it is with more data behind.

        >>> OutputPosition().extended_by(b"one").extended_by(b"two") == OutputPosition().extended_by(b"onetwo")
        True
        """
        return OutputPosition(self.size + len(data), zlib.crc32(data, self.checksum))


class OutputStream(ABC):
    """Where bytes go: `write` them, and `settle` what was position."""

    position: OutputPosition

    def write(self, data: bytes) -> None:
        """Append data."""
        self._write(data)
        self.position = self.position.extended_by(data)

    @abstractmethod
    def _write(self, data: bytes) -> None: ...

    def sync(self) -> OutputPosition:
        """Bring to the disk what was position, and return how much it is."""
        return self.position

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""


class StandardOutput(OutputStream):
    """Standard output, which is flushed at once: whoever reads may be waiting."""

    def __init__(self, position: OutputPosition) -> None:
        self.position = position

    def _write(self, data: bytes) -> None:
        with _report_write_errors("standard output"):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def close(self) -> None:
        """Do nothing: it is not ours."""


class AppendOnlyFile(OutputStream):
    """A file, cut off behind what was position when it was last known, and then appended to.

    Going on with a file that has not what was position in it is refused, and leaves it as it is.
    """

    def __init__(self, path: str | os.PathLike[str], position: OutputPosition) -> None:
        self._path, self.position = str(path), position
        with _report_write_errors(self._path):
            if position.size and not _is_device(self._path):
                _check_prefix(self._path, position)
                os.truncate(self._path, position.size)
            # Not buffered: what could not be position must not be tried again when the file is closed.
            self._file = FileIO(path, "ab" if position.size else "wb")
            self._is_regular_file = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)

    def _write(self, data: bytes) -> None:
        with _report_write_errors(self._path):
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]

    def sync(self) -> OutputPosition:
        """Bring to the disk what was position."""
        if self._is_regular_file:  # a pipe or a device can't be brought to the disk
            with _report_write_errors(self._path):
                os.fsync(self._file.fileno())
        return self.position

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


@contextmanager
def _report_write_errors(path: str) -> Iterator[None]:
    """Let errors of the system say which file it was; that a reader has gone is nobody's error."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StreamError(f"{path} can't be written: {error.strerror or error}") from error


def _is_device(path: str) -> bool:
    """Return whether there is something that is no file, and has nothing in it to go on with."""
    return os.path.exists(path) and not os.path.isfile(path)


def _check_prefix(path: str, position: OutputPosition) -> None:
    """Raise unless a file begins with what was position."""
    found = OutputPosition()
    try:
        with Path(path).open("rb") as file:
            while found.size < position.size and (chunk := file.read(min(_CHUNK_BYTES, position.size - found.size))):
                found = found.extended_by(chunk)
    except FileNotFoundError:
        pass
    if found != position:
        short = f"has only {found.size:,}" if found.size < position.size else "has others"
        raise StreamError(
            f"{path} must begin with the {position.size:,} bytes of predictions that the saved run wrote, and {short}: "
            "bring that file back, or write to another one by a run from the start"
        )
