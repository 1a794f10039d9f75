"""Latency of `ellipack run -`: rows come through a pipe one by one, and the time to each prediction is measured."""

import argparse
import subprocess
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from ellipack.synthetic import LowRankStream
from ellipack.validation import Floats

_FIRST = 3  # rows that are not measured: the process starts, and columns are decided


def main(arguments: list[str] | None = None) -> None:
    """Print the latency of predictions."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--rows", type=int, default=100, help="number of rows (default 100)")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between rows (default 0.05)")
    given = parser.parse_args(arguments)
    delays = 1000 * measure_latency(given.rows, given.pause)
    table = Table(title=f"Milliseconds from a row to its prediction, {given.rows} rows, one every {given.pause:g} s")
    table.add_column("")
    table.add_column("ms", justify="right")
    for name, value in (
        ("median", np.median(delays)),
        ("99th percentile", np.quantile(delays, 0.99)),
        ("largest", delays.max()),
    ):
        table.add_row(name, f"{value:.1f}")
    Console().print(table)


def measure_latency(rows: int, pause: float) -> Floats:
    """Return the seconds from sending each row to receiving its prediction."""
    X, y = LowRankStream(random_state=0).draw(rows)
    command = [sys.executable, "-m", "ellipack", "run", "-", "--target", "y", "--predictions", "-"]
    pipe, delays = subprocess.PIPE, []
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process has no pipes")
        process.stdin.write((",".join([*(f"x{i}" for i in range(X.shape[1])), "y"]) + "\n").encode())
        for i, cells in enumerate(np.column_stack([X, y]).tolist()):
            began = time.perf_counter()
            process.stdin.write((",".join(map(repr, cells)) + "\n").encode())
            for _ in range(2 if i == 0 else 1):  # before the first prediction comes the header
                process.stdout.readline()
            delays.append(time.perf_counter() - began)
            time.sleep(pause)
        process.stdin.close()
    return np.array(delays[_FIRST:])


if __name__ == "__main__":
    main()
