"""What outlives a process: a learner's state in one file, with nothing in it that could run."""

from ellipack.checkpoint.contents import Contents, Json
from ellipack.checkpoint.file import read, sweep, write

__all__ = ["Contents", "Json", "read", "sweep", "write"]
