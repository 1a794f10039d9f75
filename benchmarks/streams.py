"""Streams from CSV files, synthetic streams, and the score of a learner on a stream.

A CSV file, plain or compressed by gzip, has a header and then rows in the order of the stream. The last column is the
label ``y``, the others are features. The stream takes its name from the file.
"""

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ellipack.synthetic import LowRankStream
from ellipack.validation import Floats

_ENDINGS = (".csv", ".csv.gz")
_LABEL = "y"


class Stream(NamedTuple):
    """Rows and labels in the order of the stream."""

    name: str
    X: Floats
    y: Floats

    def head(self, count: int | None) -> "Stream":
        """Return the first rows of the stream; all of them if `count` is None."""
        return Stream(self.name, self.X[:count], self.y[:count])


def read_stream(path: Path) -> Stream:
    """Read the stream in a CSV file."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        header = [name.strip().strip('"') for name in next(lines, "").split(",")]
        if len(header) < 2 or header[-1] != _LABEL:
            raise ValueError(f"the last of at least two columns of {path} must be {_LABEL}, got {','.join(header)}")
        table = np.loadtxt(lines, delimiter=",", ndmin=2)
    return Stream(_name(path), np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1]))


def read_folder(folder: Path) -> list[Stream]:
    """Read the streams in a folder, sorted by name."""
    paths = [path for path in folder.iterdir() if path.name.endswith(_ENDINGS)]
    if not paths:
        raise ValueError(f"{folder} must contain files that end in {' or '.join(_ENDINGS)}, got none")
    return [read_stream(path) for path in sorted(paths, key=_name)]


def low_rank_stream(d: int, rank: int, rows: int, seed: int = 0) -> Stream:
    """Return a stream of `d` features whose labels depend on `rank` directions."""
    return Stream(f"low_rank_{d}", *LowRankStream(d=d, rank=rank, random_state=seed).draw(rows))


def noise_stream(d: int, rows: int, seed: int = 0) -> Stream:
    """Return a stream whose labels do not depend on the features."""
    rng = np.random.default_rng(seed)
    return Stream(f"noise, d = {d}", rng.normal(size=(rows, d)), rng.normal(size=rows))


def corner_stream(d: int, rows: int, seed: int = 0) -> Stream:
    """Return rows near the corners of a cube, where Algorithm 1 creates many centers.

    The first two rows are opposite corners, so that a learner that rescales its input sees the whole range at once.
    """
    rng = np.random.default_rng(seed)
    X = np.sign(rng.normal(size=(rows, d))) * rng.uniform(0.8, 1.0, size=(rows, d))
    X[0], X[1] = -1.0, 1.0
    return Stream("corners", X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.normal(size=rows))


def late_nrmse(predictions: Floats, y: Floats) -> float:
    """Return the root mean squared error over the second half, divided by the standard deviation of its labels."""
    late = slice(len(y) // 2, None)
    return float(np.sqrt(np.mean((predictions[late] - y[late]) ** 2)) / np.std(y[late]))


def _name(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".csv")
