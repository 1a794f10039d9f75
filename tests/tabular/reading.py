"""Helper of the reader tests."""

from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from ellipack.tabular import TableBatch, open_table


def read_batches(
    reader: ModuleType, path: Path, content: bytes, block: int = 1 << 20, **options: Any
) -> list[TableBatch]:
    """Write a file and read it as a table, with the block size of the reader module replaced."""
    path.write_bytes(content)
    with patch.object(reader, "BLOCK_BYTES", block), open_table(str(path), **options) as stream:
        return list(stream)
