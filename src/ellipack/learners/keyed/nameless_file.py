"""Temporary files without a name, to which packed learners are appended.

The system removes such a file when no process has it open any more, however the processes end. A forked child keeps
the files of its parent open. Bytes that were written never change, so that the child reads the ones from before the
fork, whatever the parent appends.
"""

import os
import sys
import weakref
from tempfile import TemporaryFile
from typing import NamedTuple


class NamelessFile:
    """New temporary file without a name. Only the process that created it appends to it.

    Parameters
    ----------
    folder : str or None
        Folder on whose disk the file is; None for that of the system for temporary files.

    Attributes
    ----------
    folder : str or None
        The same.
    process : int
        Number of the process that created it.
    size : int
        Number of bytes.
    """

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self.process = os.getpid()
        self.size = 0
        with TemporaryFile(dir=folder, prefix=".ellipack-") as file:
            self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)

    def append(self, data: bytes) -> "Place":
        """Append bytes. If that fails, the file has the same contents as before."""
        done, rest = 0, memoryview(data)
        while done < len(data):
            done += self._write_at(self.size + done, rest[done:])
        place = Place(self, self.size, len(data))
        self.size += len(data)
        return place

    def read(self, start: int, size: int) -> bytes:
        """Return some bytes; raise OSError if the disk does not have them."""
        parts = list[bytes]()
        while size:
            part = self._read_at(start, size)
            if not part:
                raise OSError("the file was truncated")
            parts.append(part)
            start, size = start + len(part), size - len(part)
        return b"".join(parts)

    # A forked child shares the position of the file with its parent, so that each call states where it reads or writes.
    # On Windows there are no such calls, and no forks.

    def _read_at(self, start: int, size: int) -> bytes:
        if sys.platform != "win32":
            return os.pread(self._descriptor, size, start)
        os.lseek(self._descriptor, start, os.SEEK_SET)
        return os.read(self._descriptor, size)

    def _write_at(self, start: int, data: memoryview) -> int:
        if sys.platform != "win32":
            return os.pwrite(self._descriptor, data, start)
        os.lseek(self._descriptor, start, os.SEEK_SET)
        return os.write(self._descriptor, data)


class Place(NamedTuple):
    """Place of appended bytes.

    Attributes
    ----------
    file : NamelessFile
        The file.
    start : int
        Position of the first byte.
    size : int
        Number of bytes.
    """

    file: NamelessFile
    start: int
    size: int

    def read(self) -> bytes:
        """Return the bytes; raise OSError if they can't be read."""
        return self.file.read(self.start, self.size)
