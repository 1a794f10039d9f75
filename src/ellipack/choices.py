"""Allowed values of options. This module imports nothing, so that the command line can list them quickly."""

from typing import Final

TABLE_FORMATS: Final = ("csv", "tsv", "ndjson", "parquet")
"""File formats of tables."""

COLUMN_KINDS: Final = ("number", "boolean", "time", "category")
"""Kinds of table columns."""

ON_ERROR_CHOICES: Final = ("stop", "skip")
"""What to do at a bad row."""

LEARNER_NAMES: Final = ("metric", "packing", "phased")
"""Learners of `ellipack run`."""
