"""From tables to features, as the rows come. Needs the extra `cli`."""

from ellipack.stream.encoding.encoding import Encoding
from ellipack.stream.encoding.kinds import SNIFFED
from ellipack.stream.encoding.numbers import LARGEST, LARGEST_LABEL
from ellipack.stream.encoding.parts import Part, Rows, Summary

__all__ = ["LARGEST", "LARGEST_LABEL", "SNIFFED", "Encoding", "Part", "Rows", "Summary"]
