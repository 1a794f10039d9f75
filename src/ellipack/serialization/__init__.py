"""What outlives a process: a learner's state in one file, with nothing in it that could run."""

from ellipack.serialization.archive import Archive, Json
from ellipack.serialization.file import read, sweep, write

__all__ = ["Archive", "Json", "read", "sweep", "write"]
