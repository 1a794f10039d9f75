"""Time to save a learner of a million rows, next to writing as many bytes: ``python -m benchmarks.saving``.

The learner has learned fewer rows (`--learned`). Its arrays are then enlarged to a million rows, so that the benchmark
takes seconds. Saving takes turns with what any durable writer must do: write the bytes to a temporary file, sync,
rename.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console

from benchmarks.command_line import at_most, make_parser, new_table, targets_table
from ellipack import MetricRegressor, serialization
from ellipack.synthetic import LowRankStream

ROWS, LEARNED, REPEATS = 1_000_000, 5_000, 5
_MAX_RATIO = 2.0  # times the time of writing the bytes alone; saving also computes a checksum


def enlarged(learner: MetricRegressor, rows: int) -> serialization.Archive:
    """Return the archive of a learner with so many rows, by repeating the arrays that have an entry for each row."""
    archive, held = learner.to_archive(), learner.n_centers_
    arrays = {
        name: np.resize(array, (rows, *array.shape[1:])) if array.ndim and len(array) == held else array
        for name, array in archive.arrays_by_full_name().items()
    }
    return serialization.Archive.from_full_names(archive.facts, arrays)


def write_bytes_durably(path: Path, data: bytes) -> None:
    """Write bytes to a temporary file, sync it, and rename it."""
    temporary = path.with_name("temporary")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def measure(archive: serialization.Archive, folder: Path, repeats: int) -> tuple[list[float], list[float], int]:
    """Return the seconds of each save, the seconds of each write of the bytes alone, and the number of bytes."""
    saving, writing = [], []
    model, bare = folder / "model", folder / "bare"
    serialization.write(model, "MetricRegressor", archive)
    data = model.read_bytes()
    write_bytes_durably(bare, data)
    for _ in range(repeats):
        start = time.perf_counter()
        serialization.write(model, "MetricRegressor", archive)
        saved = time.perf_counter()
        write_bytes_durably(bare, data)
        saving.append(saved - start)
        writing.append(time.perf_counter() - saved)
    return saving, writing, len(data)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table and the target."""
    parser = make_parser("saving", __doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows to save (default: %(default)s)")
    parser.add_argument("--learned", type=int, default=LEARNED, help="rows to learn (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="number of repeats (default: %(default)s)")
    options = parser.parse_args(arguments)
    console = Console(width=120)
    with console.status(f"learning {options.learned:,} rows"):
        learner = MetricRegressor().fit(*LowRankStream(random_state=0).draw(options.learned))
    with console.status("saving"), TemporaryDirectory() as folder:
        saving, writing, size = measure(enlarged(learner, options.rows), Path(folder), options.repeats)
    title = f"Seconds, {options.rows:,} rows of {learner.n_features_in_} features, {size / 1e6:,.0f} MB"
    table = new_table(title, ("", "median", "least", "largest"))
    for name, seconds in (("saving", saving), ("writing as many bytes", writing)):
        table.add_row(name, *(f"{figure:.2f}" for figure in (np.median(seconds), min(seconds), max(seconds))))
    console.print(table)
    ratio = float(np.median(saving) / np.median(writing))
    console.print(targets_table([at_most("saving over writing the bytes, median", ratio, _MAX_RATIO, "x")]))


if __name__ == "__main__":
    main()
