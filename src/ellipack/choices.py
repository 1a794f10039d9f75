"""Words that the shell and the library share; here, below everything, so that the shell knows them at once."""

from typing import Final

TABLE_FORMATS: Final = ("csv", "tsv", "ndjson", "parquet")
"""What a table can be written as."""

COLUMN_KINDS: Final = ("number", "boolean", "time", "category")
"""What a column of a table can hold."""

ON_ERROR_CHOICES: Final = ("stop", "skip")
"""What to do at a row that can't be read."""

LEARNER_NAMES: Final = ("metric", "packing", "phased")
"""Who can learn a table."""
