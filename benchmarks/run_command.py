"""Time and memory of `ellipack run` over a long table: ``python -m benchmarks.run_command --rows 1000000``.

The table has ten numeric columns, a text and a time column; it is written into a temporary folder. The command runs in
a process of its own. Reading and encoding are then timed alone, in another process, in batches of the same size.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.command_line import TargetResult, at_most, require_positive, show_activity, targets_table
from ellipack.evaluation.prefetch import prefetch
from ellipack.tabular import INFERENCE_ROWS, TableEncoder, open_table

TARGET = "y"
_NUMBERS, _BLOCK, _BATCH = 10, 50_000, 1024
_MAX_GIB, _MAX_SHARE = 1.0, 1 / 3


class CommandCost(NamedTuple):
    """Time and memory of the command, and the seconds of reading and encoding alone."""

    rows: int
    seconds: float
    gib: float
    reading: float

    @property
    def share(self) -> float:
        """Fraction of the time that reading and encoding take."""
        return self.reading / self.seconds


def write_table(path: Path, rows: int, seed: int = 0) -> None:
    """Write a table whose target depends on three columns."""
    rng = np.random.default_rng(seed)
    writer = None
    for start in range(0, rows, _BLOCK):
        count = min(_BLOCK, rows - start)
        X = rng.normal(size=(count, _NUMBERS)).round(4)
        columns: dict[str, NDArray[Any]] = {f"x{i}": X[:, i] for i in range(_NUMBERS)}
        columns["place"] = rng.choice(["north", "east", "south", "west", "port"], count)
        columns["time"] = np.datetime64("2026-01-01", "s") + 60 * np.arange(start, start + count)
        columns[TARGET] = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=count)).round(4)
        table = pa.table(columns)
        writer = writer or pacsv.CSVWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def run_command(path: Path) -> tuple[int, float, float]:
    """Run the command over a table; return rows, seconds, and peak memory in GiB."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "ellipack", "run", str(path), "--target", TARGET, "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(
        resource.RUSAGE_CHILDREN
    ).ru_maxrss  # of the largest child process so far, in KiB on Linux
    return int(json.loads(done.stdout)["summary"]["rows"]), seconds, peak / (1 << 20)


def read_and_encode(path: Path) -> float:
    """Return the seconds of everything that the command does except learning, predicting and scoring."""
    start = time.perf_counter()
    source = open_table(str(path), batch_rows=_BATCH)
    encoder = TableEncoder.from_head(source.peek(INFERENCE_ROWS), TARGET)
    for batch in prefetch(source):
        encoder.partial_fit_transform(encoder.parse(batch))
    return time.perf_counter() - start


def measure(path: Path) -> CommandCost:
    """Measure the command over a table."""
    rows, seconds, gib = run_command(path)
    command = [sys.executable, "-m", "benchmarks.run_command", "--read", str(path)]
    reading = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return CommandCost(rows, seconds, gib, float(reading.stdout))


def targets(cost: CommandCost) -> Iterator[TargetResult]:
    """Compare memory and the share of reading with their targets."""
    yield at_most("peak memory", cost.gib, _MAX_GIB, " GiB")
    yield at_most("share of reading and encoding in the time", 100 * cost.share, round(100 * _MAX_SHARE, 1), "%")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse and check the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run_command", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the table (default: %(default)s)")
    parser.add_argument("--read", type=Path, metavar="FILE", help="only read and encode a table, and print the seconds")
    options = parser.parse_args(arguments)
    require_positive(parser, options, "rows")
    return options


def main() -> None:
    """Write a table, run the command over it, and print the results."""
    options = parse()
    if options.read is not None:
        print(read_and_encode(options.read))
        return
    console = Console()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        with show_activity(f"writing a table of {options.rows:,} rows"):
            write_table(path, options.rows)
        console.print(f"A CSV file of {options.rows:,} rows and {path.stat().st_size / 1e6:,.0f} MB.", highlight=False)
        with show_activity("running the command"):
            cost = measure(path)
    each = 1e6 * cost.seconds / cost.rows
    console.print(
        f"`ellipack run`: {cost.rows:,} rows in {cost.seconds:,.1f} s ({each:,.0f} us per row), peak memory "
        f"{cost.gib:.2f} GiB. Reading and encoding alone: {cost.reading:,.1f} s.",
        highlight=False,
        soft_wrap=True,
    )
    console.print(targets_table(targets(cost), "The command"))


if __name__ == "__main__":
    main()
