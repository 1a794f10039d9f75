"""Append-only output that a run can resume at any position that was synced to disk."""

import os
import stat
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from ellipack.errors import StreamError
from ellipack.serialization.atomic_file import sync_directory, try_lock

_CHUNK_BYTES = 1 << 20


class OutputPosition(NamedTuple):
    """Position in an output: the number of bytes written, and their CRC-32 checksum.

    Attributes
    ----------
    size : int, default 0
        Number of bytes.
    checksum : int, default 0
        CRC-32 of these bytes.
    """

    size: int = 0
    checksum: int = 0

    def extended_by(self, data: bytes) -> "OutputPosition":
        """Return the position after more data.

        Examples
        --------
        >>> OutputPosition().extended_by(b"one").extended_by(b"two") == OutputPosition().extended_by(b"onetwo")
        True
        """
        return OutputPosition(self.size + len(data), zlib.crc32(data, self.checksum))


class OutputStream(ABC):
    """Output of bytes. `write` appends, `sync` makes what was written durable.

    Attributes
    ----------
    position : OutputPosition
        Current end of the output.
    """

    position: OutputPosition

    def write(self, data: bytes) -> None:
        """Append data."""
        self._write(data)
        self.position = self.position.extended_by(data)

    @abstractmethod
    def _write(self, data: bytes) -> None:
        """Write all bytes."""

    def sync(self) -> OutputPosition:
        """Sync the output to disk, if it is a file, and return the position."""
        return self.position

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class StandardOutput(OutputStream):
    """Standard output. Every write is flushed, because a reader may be waiting."""

    def __init__(self, position: OutputPosition) -> None:
        self.position = position

    def _write(self, data: bytes) -> None:
        with _report_write_errors("standard output"):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def close(self) -> None:
        """Do nothing; standard output stays open."""


class AppendOnlyFile(OutputStream):
    """File that is truncated to a known position and then appended to.

    Parameters
    ----------
    path : str or os.PathLike
        Path of the file.
    position : OutputPosition
        Where to resume. If its size is 0, the file is overwritten.

    Raises
    ------
    StreamError
        If the file does not start with the bytes up to `position`, or if another process appends to it. The file is
        left unchanged.
    """

    def __init__(self, path: str | os.PathLike[str], position: OutputPosition) -> None:
        self._path, self.position = str(path), position
        with _report_write_errors(self._path):
            if position.size and not _is_device(self._path):
                _check_prefix(self._path, position)
            # Unbuffered: closing the file must not retry a failed write.
            self._file = FileIO(path, "ab")
        try:
            self._is_regular_file = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
            if self._is_regular_file:
                self._lock_and_truncate()
        except BaseException:
            self._file.close()
            raise
        self._is_new = self._is_regular_file

    def _lock_and_truncate(self) -> None:
        with suppress(OSError):  # some file systems have no locks
            if not try_lock(self._file.fileno()):
                raise StreamError(f"{self._path} can't be written: another process writes to it, under another name")
        with _report_write_errors(self._path):
            os.ftruncate(self._file.fileno(), self.position.size)

    def _write(self, data: bytes) -> None:
        with _report_write_errors(self._path):
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]

    def sync(self) -> OutputPosition:
        """Sync the file to disk and return the position."""
        if self._is_regular_file:  # pipes and devices cannot be synced
            with _report_write_errors(self._path):
                os.fsync(self._file.fileno())
                if self._is_new:  # its name is durable only after a sync of the directory
                    sync_directory(Path(os.path.realpath(self._path)).parent)
                    self._is_new = False
        return self.position

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@contextmanager
def _report_write_errors(path: str) -> Iterator[None]:
    """Convert OSError to StreamError with the path. A broken pipe is not an error of the output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StreamError(f"{path} can't be written: {error.strerror or error}") from error


def _is_device(path: str) -> bool:
    """Return whether a path exists but is not a regular file, so that it has no contents to resume."""
    return os.path.exists(path) and not os.path.isfile(path)


def _check_prefix(path: str, position: OutputPosition) -> None:
    """Raise StreamError unless a file starts with the bytes up to `position`."""
    found = read_position(path, position.size)
    if found != position:
        actual = f"it has only {found.size:,}" if found.size < position.size else "it starts with other bytes"
        raise StreamError(
            f"{path} must begin with the {position.size:,} bytes of predictions that the saved run wrote, "
            f"but {actual}: restore that file, or start a new run with another file"
        )


def read_position(path: str | os.PathLike[str], size: int) -> OutputPosition:
    """Return the position after the first `size` bytes of a file, or at its end. A missing file is empty."""
    found = OutputPosition()
    try:
        with Path(path).open("rb") as file:
            while found.size < size and (chunk := file.read(min(_CHUNK_BYTES, size - found.size))):
                found = found.extended_by(chunk)
    except FileNotFoundError:
        pass
    return found
