"""Saving a learner of a million rows, beside writing as many bytes. Run as ``python -m benchmarks.saving``.

The learner has learned fewer rows (`--learned`), and its arrays are then stretched to a million, so that the run takes
seconds. Saving takes turns with what any durable writer has to do: write the same bytes beside, sync, rename.
"""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console

from benchmarks.command_line import at_most, figures, table_of
from ellipack import MetricRegressor, serialization
from ellipack.synthetic import LowRankStream

ROWS, LEARNED, TURNS = 1_000_000, 5_000, 5
_MOST = 2.0  # times the bare writing: about as long, hashing included


def stretched(learner: MetricRegressor, rows: int) -> serialization.Archive:
    """Return what would be saved of a learner that holds so many rows: what it has for each row, over and over."""
    archive, held = learner.to_archive(), learner.n_centers_
    arrays = {
        name: np.resize(array, (rows, *array.shape[1:])) if array.ndim and len(array) == held else array
        for name, array in archive.arrays.items()
    }
    return serialization.Archive(archive.facts, arrays)


def write_bare(path: Path, data: bytes) -> None:
    """Write bytes as a durable writer has to, and nothing more."""
    beside = path.with_name("beside")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def measure(archive: serialization.Archive, folder: Path, turns: int) -> tuple[list[float], list[float], int]:
    """Return the seconds that saving and bare writing took in each turn, and the bytes."""
    saving, writing = [], []
    model, bare = folder / "model", folder / "bare"
    serialization.write(model, "MetricRegressor", archive)
    data = model.read_bytes()
    write_bare(bare, data)
    for _ in range(turns):
        start = time.perf_counter()
        serialization.write(model, "MetricRegressor", archive)
        saved = time.perf_counter()
        write_bare(bare, data)
        saving.append(saved - start)
        writing.append(time.perf_counter() - saved)
    return saving, writing, len(data)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--learned", type=int, default=LEARNED)
    parser.add_argument("--turns", type=int, default=TURNS)
    given = parser.parse_args(arguments)
    console = Console(width=120)
    with console.status(f"learning {given.learned:,} rows"):
        learner = MetricRegressor().fit(*LowRankStream(random_state=0).draw(given.learned))
    with console.status("saving"), TemporaryDirectory() as folder:
        saving, writing, size = measure(stretched(learner, given.rows), Path(folder), given.turns)
    title = f"Seconds, {given.rows:,} rows of {learner.n_features_in_} features, {size / 1e6:,.0f} MB"
    table = figures(title, ("", "median", "least", "most"))
    for name, seconds in (("saving", saving), ("writing as many bytes", writing)):
        table.add_row(name, *(f"{figure:.2f}" for figure in (np.median(seconds), min(seconds), max(seconds))))
    console.print(table)
    ratio = float(np.median(saving) / np.median(writing))
    console.print(table_of([at_most("saving over bare writing, in the median", ratio, _MOST, "x")], ""))


if __name__ == "__main__":
    main()
