"""Tables read as a stream, from files of any size or from standard input. Needs the extra `cli`."""

from ellipack.stream.sources.batch import BadRow, Batch
from ellipack.stream.sources.cells import MISSING
from ellipack.stream.sources.source import Source, open_source

__all__ = ["MISSING", "BadRow", "Batch", "Source", "open_source"]
