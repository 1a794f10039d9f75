"""Read tables as streams of batches and encode their rows as features. Requires the extra `cli`."""

from ellipack.tabular.category_column import LevelOptions
from ellipack.tabular.cell_options import CellOptions
from ellipack.tabular.column_building import LeftOut
from ellipack.tabular.encoder import ColumnSummary, FeatureBlock, ParsedRows, TableEncoder
from ellipack.tabular.kind_inference import INFERENCE_ROWS, MIN_VALUES
from ellipack.tabular.table_batch import MISSING_VALUES, BadRow, TableBatch, column_text
from ellipack.tabular.table_stream import FileOptions, TableStream, open_table
from ellipack.validation import MAX_ABS_LABEL, MAX_ABS_VALUE

__all__ = [
    "INFERENCE_ROWS",
    "MAX_ABS_LABEL",
    "MAX_ABS_VALUE",
    "MIN_VALUES",
    "MISSING_VALUES",
    "BadRow",
    "CellOptions",
    "ColumnSummary",
    "FeatureBlock",
    "FileOptions",
    "LeftOut",
    "LevelOptions",
    "ParsedRows",
    "TableBatch",
    "TableEncoder",
    "TableStream",
    "column_text",
    "open_table",
]
