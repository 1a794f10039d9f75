"""Allowed and default values of options. It imports nothing, so that the command line can list them quickly."""

from typing import Final

TABLE_FORMATS: Final = ("csv", "tsv", "json", "ndjson", "parquet", "feather", "excel", "sqlite", "duckdb")
"""File formats of tables."""

COLUMN_KINDS: Final = ("number", "boolean", "time", "category")
"""Kinds of table columns."""

ON_ERROR_CHOICES: Final = ("stop", "skip")
"""What to do at a bad row."""

LEARNER_NAMES: Final = ("metric", "keyed", "packing", "phased")
"""Learners of `ellipack run`."""

DEFAULT_LEVELS: Final = 32
"""Number of levels up to which a text column is one-hot encoded, by default."""

DEFAULT_LEVEL_MEMORY: Final = 50_000
"""Number of levels of a text column that are remembered, by default."""
