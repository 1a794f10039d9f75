"""Speed and memory of reading and encoding tables, next to pyarrow and pandas: ``python -m benchmarks.reading``.

There are two tables: one of ten numeric columns, and one of numbers, text, dates and booleans with missing values; each
as CSV, gzip-compressed CSV, Parquet and newline-delimited JSON. ellipack reads and encodes; pyarrow and pandas (in
chunks of as many rows) only read. Growth of memory is measured in a separate process, from the tenth batch to the last,
on Linux. All other figures are microseconds per row.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.command_line import TargetResult, at_most, make_parser, new_table, targets_table
from benchmarks.measurement import STATUS_FILE, best_of, memory_bytes
from ellipack.tabular import TableEncoder, open_table
from ellipack.tabular.arrow import csv, pa, parquet
from ellipack.tabular.arrow import json as arrow_json

ROWS, BATCH_ROWS, REPEATS = 300_000, 4096, 3
_MAX_MICROSECONDS, _MAX_MEGABYTES = 10.0, 50.0
_TABLES = ("numbers", "mixed")
_FORMATS = ("csv", "csv.gz", "parquet", "ndjson")


class Reading(NamedTuple):
    """Microseconds per row to read a file with each library, and growth of memory with ellipack."""

    path: Path
    ours: float
    arrow: float
    pandas: float
    megabytes: float


def numeric_table(rows: int, rng: np.random.Generator) -> pa.Table:
    """Return ten numeric columns and a label."""
    X = rng.normal(size=(rows, 10))
    return pa.table({f"x{i}": column for i, column in enumerate(X.T)} | {"y": X @ rng.normal(size=10)})


def mixed_table(rows: int, rng: np.random.Generator) -> pa.Table:
    """Return four numeric, three text, two date and one boolean column, and a label."""
    columns: dict[str, Any] = {f"x{i}": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.01) for i in range(4)}
    for name, count in {"few": 5, "some": 50, "many": 50_000}.items():
        columns[name] = pa.array([f"{name} {level}" for level in rng.integers(count, size=rows)])
    seconds = 1_700_000_000 + np.cumsum(rng.integers(1, 60, rows))
    columns["when"] = pa.array(seconds.astype("M8[s]")).cast(pa.string())
    columns["due"] = pa.array((seconds // 86_400 + rng.integers(1, 30, rows)).astype("M8[D]")).cast(pa.string())
    columns["open"] = pa.array(rng.random(rows) < 0.5)
    return pa.table(columns | {"y": rng.normal(size=rows)})


def write_formats(table: pa.Table, folder: Path, name: str) -> Iterator[Path]:
    """Write a table in each format; yield the paths."""
    for ending in _FORMATS:
        path = folder / f"{name}.{ending}"
        if ending == "parquet":
            parquet.write_table(table, path)
        elif ending == "ndjson":
            _write_ndjson(table, path)
        else:
            with pa.output_stream(path, compression="gzip" if ending == "csv.gz" else None) as sink:
                csv.write_csv(table, sink)
        yield path


def _write_ndjson(table: pa.Table, path: Path) -> None:
    with path.open("w") as sink:
        for batch in table.to_batches(BATCH_ROWS):
            sink.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())


def read_with_ellipack(path: Path) -> Iterator[int]:
    """Read and encode a file; yield the rows of each batch."""
    with open_table(str(path), batch_rows=BATCH_ROWS) as source:
        encoder = TableEncoder.from_head(source.peek(1000), "y")
        for batch in source:
            rows = encoder.parse(batch)
            encoder.partial_fit_transform(rows)
            yield len(rows)


def read_with_pyarrow(path: Path) -> Iterator[int]:
    """Read a file with pyarrow; yield the rows of each batch."""
    if path.suffix == ".parquet":
        batches = parquet.ParquetFile(path).iter_batches(BATCH_ROWS)
    else:
        batches = arrow_json.open_json(path) if path.suffix == ".ndjson" else csv.open_csv(path)
    return (batch.num_rows for batch in batches)


def read_with_pandas(path: Path) -> Iterator[int]:
    """Read a file with pandas, in chunks where possible; yield the rows of each chunk."""
    if path.suffix == ".parquet":
        return iter([len(pd.read_parquet(path))])
    if path.suffix == ".ndjson":
        return (len(chunk) for chunk in pd.read_json(path, lines=True, chunksize=BATCH_ROWS))
    return (len(chunk) for chunk in pd.read_csv(path, chunksize=BATCH_ROWS))


def memory_growth(path: Path) -> float:
    """Return the growth of peak memory from the tenth batch on, in megabytes."""
    peaks = [_peak_megabytes() for _ in read_with_ellipack(path)]
    return peaks[-1] - peaks[min(9, len(peaks) - 1)]


def _peak_megabytes() -> float:
    """Return the peak memory of the process, on Linux; NaN elsewhere."""
    return memory_bytes("VmHWM") / 2**20 if STATUS_FILE.exists() else math.nan


def measure(path: Path, rows: int, repeats: int) -> Reading:
    """Time all readers of a file by turns, and measure the memory of ellipack."""
    readers = (read_with_ellipack, read_with_pyarrow, read_with_pandas)
    seconds = best_of(repeats, *(partial(_read_through, read, path) for read in readers))
    costs = [1e6 * each / rows for each in seconds]
    child = [sys.executable, "-m", "benchmarks.reading", "--growth", str(path)]
    shown = subprocess.run(child, capture_output=True, text=True, check=True).stdout
    return Reading(path, costs[0], costs[1], costs[2], float(shown))


def _read_through(read: Callable[[Path], Iterator[int]], path: Path) -> int:
    return sum(read(path))


def readings_table(readings: Iterable[Reading], rows: int) -> Table:
    """Return a table of measurements, a file in each row."""
    heads = ("file", "rows/s", "us/row", "pyarrow", "pandas", "memory growth, MB")
    table = new_table(f"Reading and encoding {rows:,} rows", heads)
    for path, cost, arrows, pandas, megabytes in readings:
        costs = (f"{each:.2f}" for each in (cost, arrows, pandas))
        table.add_row(path.name, f"{1e6 / cost:,.0f}", *costs, f"{megabytes:.1f}")
    return table


def targets(readings: Iterable[Reading]) -> Iterator[TargetResult]:
    """Compare the cost of the numeric CSV file, and memory, with their targets."""
    for each in readings:
        if each.path.name == "numbers.csv":
            yield at_most("ten numbers as CSV, reading and encoding", each.ours, _MAX_MICROSECONDS, " us per row")
    yield at_most("memory, from the tenth batch on", max(each.megabytes for each in readings), _MAX_MEGABYTES, " MB")


def main() -> None:
    """Write the files, read them, and print the results."""
    parser = make_parser("reading", __doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each table (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="readings of each file (default: %(default)s)")
    parser.add_argument("--growth", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.growth is not None:
        print(memory_growth(options.growth))
        return
    console, readings = Console(), []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in zip(_TABLES, (numeric_table, mixed_table), strict=True):
            table = make(options.rows, np.random.default_rng(0))
            readings += [
                measure(path, options.rows, options.repeats) for path in write_formats(table, Path(folder), name)
            ]
    console.print(readings_table(readings, options.rows), targets_table(targets(readings)), sep="\n")


if __name__ == "__main__":
    main()
