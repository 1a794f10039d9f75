"""Tables read as a stream, and encoded as features while the rows come. Needs the extra `cli`."""

from ellipack.tabular.encoder import Encoding, Part, Rows, Summary
from ellipack.tabular.kind_inference import SNIFFED
from ellipack.tabular.number_column import LARGEST, LARGEST_LABEL
from ellipack.tabular.table_batch import MISSING, BadRow, Batch
from ellipack.tabular.table_stream import Source, open_source

__all__ = [
    "LARGEST",
    "LARGEST_LABEL",
    "MISSING",
    "SNIFFED",
    "BadRow",
    "Batch",
    "Encoding",
    "Part",
    "Rows",
    "Source",
    "Summary",
    "open_source",
]
