"""From a file to features: rows a second beside those of others, and memory. Run as ``python -m benchmarks.reading``.

Two tables are made here: one of ten numbers, and one of numbers, texts, dates and what is yes or no, some of it
missing; each as CSV, as CSV in gzip, as Parquet and as newline-delimited JSON. Ours reads and encodes, its peers only
read: pyarrow's own readers, and pandas in chunks of as many rows. By how much memory grows is measured in a process of
its own, from the tenth batch to the last, on Linux. All figures but those are microseconds a row.
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

from benchmarks.command_line import Verdict, at_most, figures, table_of
from benchmarks.timing import best_of
from ellipack.tabular import TableEncoder, open_table
from ellipack.tabular.arrow import csv, pa, parquet
from ellipack.tabular.arrow import json as arrow_json

ROWS, BATCH, TURNS = 300_000, 4096, 3
_MICROSECONDS, _MEGABYTES = 10.0, 50.0
_STATUS = Path("/proc/self/status")
_TABLES = ("numbers", "mixed")
_FORMATS = ("csv", "csv.gz", "parquet", "ndjson")


class Reading(NamedTuple):
    """What it took to read a file: microseconds a row, and megabytes that memory grew by."""

    path: Path
    ours: float
    arrow: float
    pandas: float
    megabytes: float


def numbers(rows: int, rng: np.random.Generator) -> pa.Table:
    """Return ten columns of numbers and a label."""
    X = rng.normal(size=(rows, 10))
    return pa.table({f"x{i}": column for i, column in enumerate(X.T)} | {"y": X @ rng.normal(size=10)})


def mixed(rows: int, rng: np.random.Generator) -> pa.Table:
    """Return four columns of numbers, three of texts, two of dates, one of yes and no, and a label."""
    columns: dict[str, Any] = {f"x{i}": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.01) for i in range(4)}
    for name, count in {"few": 5, "some": 50, "many": 50_000}.items():
        columns[name] = pa.array([f"{name} {level}" for level in rng.integers(count, size=rows)])
    seconds = 1_700_000_000 + np.cumsum(rng.integers(1, 60, rows))
    columns["when"] = pa.array(seconds.astype("M8[s]")).cast(pa.string())
    columns["due"] = pa.array((seconds // 86_400 + rng.integers(1, 30, rows)).astype("M8[D]")).cast(pa.string())
    columns["open"] = pa.array(rng.random(rows) < 0.5)
    return pa.table(columns | {"y": rng.normal(size=rows)})


def write(table: pa.Table, folder: Path, name: str) -> Iterator[Path]:
    """Yield a table as a file of each format."""
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
        for batch in table.to_batches(BATCH):
            sink.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())


def ours(path: Path) -> Iterator[int]:
    """Read and encode a file, yielding after each batch."""
    with open_table(str(path), batch_rows=BATCH) as source:
        encoder = TableEncoder.from_head(source.peek(1000), "y")
        for batch in source:
            rows = encoder.parse(batch)
            encoder.partial_fit_transform(rows)
            yield len(rows)


def arrow(path: Path) -> Iterator[int]:
    """Read a file by pyarrow alone."""
    if path.suffix == ".parquet":
        batches = parquet.ParquetFile(path).iter_batches(BATCH)
    else:
        batches = arrow_json.open_json(path) if path.suffix == ".ndjson" else csv.open_csv(path)
    return (batch.num_rows for batch in batches)


def by_pandas(path: Path) -> Iterator[int]:
    """Read a file by pandas, in chunks where it can."""
    if path.suffix == ".parquet":
        return iter([len(pd.read_parquet(path))])
    if path.suffix == ".ndjson":
        return (len(chunk) for chunk in pd.read_json(path, lines=True, chunksize=BATCH))
    return (len(chunk) for chunk in pd.read_csv(path, chunksize=BATCH))


def growth(path: Path) -> float:
    """Return by how many megabytes the most memory in use grows from the tenth batch on."""
    peaks = [_peak() for _ in ours(path)]
    return peaks[-1] - peaks[min(9, len(peaks) - 1)]


def _peak() -> float:
    """Return the most megabytes that the process had so far, on Linux; what `resource` says may be its parent's."""
    if not _STATUS.exists():
        return math.nan
    return next(float(line.split()[1]) / 1024 for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))


def measure(path: Path, rows: int, turns: int) -> Reading:
    """Time a file's readers in turns, and see what memory ours needs."""
    readers = (ours, arrow, by_pandas)
    seconds = best_of(turns, *(partial(_read_through, read, path) for read in readers))
    costs = [1e6 * each / rows for each in seconds]
    child = [sys.executable, "-m", "benchmarks.reading", "--growth", str(path)]
    shown = subprocess.run(child, capture_output=True, text=True, check=True).stdout
    return Reading(path, costs[0], costs[1], costs[2], float(shown))


def _read_through(read: Callable[[Path], Iterator[int]], path: Path) -> int:
    return sum(read(path))


def readings_table(readings: Iterable[Reading], rows: int) -> Table:
    """Lay out what was measured, a file a row."""
    heads = ("file", "rows/s", "us/row", "pyarrow", "pandas", "MB more")
    table = figures(f"Reading and encoding {rows:,} rows", heads)
    for path, cost, arrows, pandas, megabytes in readings:
        costs = (f"{each:.2f}" for each in (cost, arrows, pandas))
        table.add_row(path.name, f"{1e6 / cost:,.0f}", *costs, f"{megabytes:.1f}")
    return table


def verdicts(readings: Iterable[Reading]) -> Iterator[Verdict]:
    """Judge the cost of numbers as CSV, and memory in all."""
    for each in readings:
        if each.path.name == "numbers.csv":
            yield at_most("ten numbers as CSV, reading and encoding", each.ours, _MICROSECONDS, " us a row")
    yield at_most("memory, from the tenth batch on", max(each.megabytes for each in readings), _MEGABYTES, " MB")


def main() -> None:
    """Make the files, read them, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--growth", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.growth is not None:
        print(growth(asked.growth))
        return
    console, readings = Console(), []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in zip(_TABLES, (numbers, mixed), strict=True):
            table = make(asked.rows, np.random.default_rng(0))
            readings += [measure(path, asked.rows, asked.turns) for path in write(table, Path(folder), name)]
    console.print(readings_table(readings, asked.rows), table_of(verdicts(readings), "What it is to be"), sep="\n")


if __name__ == "__main__":
    main()
