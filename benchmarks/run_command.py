"""The command over a table of many rows: its time, its memory, and the part of reading and encoding in its time.

Run as ``python -m benchmarks.run_command --rows 1000000``.
The table has ten columns of numbers, a text and a time, and is
made in a temporary folder. The command runs as from a shell; reading and encoding are then timed by themselves, in a
process of their own, with the batches that the command takes.
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

from benchmarks.command_line import Verdict, at_most, table_of, telling
from ellipack.evaluation.prefetch import prefetch
from ellipack.tabular import INFERENCE_ROWS, TableEncoder, open_table

TARGET = "y"
_NUMBERS, _BLOCK, _BATCH = 10, 50_000, 1024
_MOST_GIB, _MOST_SHARE = 1.0, 1 / 3


class Cost(NamedTuple):
    """What the command took."""

    rows: int
    seconds: float
    gib: float
    reading: float

    @property
    def share(self) -> float:
        """The part of reading and encoding."""
        return self.reading / self.seconds


def write_table(path: Path, rows: int, seed: int = 0) -> None:
    """Write a table whose target depends on three of its columns."""
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
    """Run the command over a table; return rows, seconds, and the most memory that it had, in GiB."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "ellipack", "run", str(path), "--target", TARGET, "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # of the largest child so far, in KiB on Linux
    return int(json.loads(done.stdout)["summary"]["rows"]), seconds, peak / (1 << 20)


def read_and_encode(path: Path) -> float:
    """Return the seconds that it takes to do all that the command does but learn, predict and score."""
    start = time.perf_counter()
    source = open_table(str(path), batch_rows=_BATCH)
    encoder = TableEncoder.from_head(source.peek(INFERENCE_ROWS), TARGET)
    for batch in prefetch(source):
        encoder.partial_fit_transform(encoder.parse(batch))
    return time.perf_counter() - start


def measure(path: Path) -> Cost:
    """Return what the command takes over a table."""
    rows, seconds, gib = run_command(path)
    alone = [sys.executable, "-m", "benchmarks.run_command", "--read", str(path)]
    reading = subprocess.run(alone, check=True, stdout=subprocess.PIPE, text=True)
    return Cost(rows, seconds, gib, float(reading.stdout))


def verdicts(cost: Cost) -> Iterator[Verdict]:
    """Judge what the command took."""
    yield at_most("peak memory", cost.gib, _MOST_GIB, " GiB")
    yield at_most("reading and encoding, of the whole time", 100 * cost.share, round(100 * _MOST_SHARE, 1), "%")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run_command", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--rows", type=int, default=100_000, help="how long the table is (default: %(default)s)")
    parser.add_argument("--read", type=Path, metavar="FILE", help="only read and encode a table; print the seconds")
    options = parser.parse_args(arguments)
    if options.rows < 1:
        parser.error(f"--rows must be >= 1, got {options.rows}")
    return options


def main() -> None:
    """Run the benchmark as the command line asks."""
    options = parse()
    if options.read is not None:
        print(read_and_encode(options.read))
        return
    screen = Console()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        with telling(f"making a table of {options.rows:,} rows"):
            write_table(path, options.rows)
        screen.print(f"A CSV file of {options.rows:,} rows and {path.stat().st_size / 1e6:,.0f} MB.", highlight=False)
        with telling("running the command, which has kernels to compile if this is the first time"):
            cost = measure(path)
    each = 1e6 * cost.seconds / cost.rows
    screen.print(
        f"`ellipack run`: {cost.rows:,} rows in {cost.seconds:,.1f} s ({each:,.0f} us a row), at most {cost.gib:.2f} "
        f"GiB of memory. Reading and encoding alone: {cost.reading:,.1f} s.",
        highlight=False,
        soft_wrap=True,
    )
    screen.print(table_of(verdicts(cost), "The command"))


if __name__ == "__main__":
    main()
