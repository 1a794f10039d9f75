"""Streams kept as CSV files, streams made up, and how a learner is scored on one.

A file, plain or compressed by gzip, is a header and then rows in the stream's order: features, and the label ``y`` in
the last column. What files there are, and what they are called, is for the folder to say.
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
    """Rows in their order."""

    name: str
    X: Floats
    y: Floats

    def head(self, count: int | None) -> "Stream":
        """Return the stream's first rows; all, if `count` is None."""
        return Stream(self.name, self.X[:count], self.y[:count])


def read(path: Path) -> Stream:
    """Return the stream in a file; it is called what the file is, without the ending."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        header = [name.strip().strip('"') for name in next(lines, "").split(",")]
        if len(header) < 2 or header[-1] != _LABEL:
            raise ValueError(f"the last of two or more columns of {path} must be {_LABEL}, got {','.join(header)}")
        table = np.loadtxt(lines, delimiter=",", ndmin=2)
    return Stream(_name(path), np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1]))


def read_folder(folder: Path) -> list[Stream]:
    """Return the streams in a folder, sorted by name."""
    paths = [path for path in folder.iterdir() if path.name.endswith(_ENDINGS)]
    if not paths:
        raise ValueError(f"{folder} must hold files that end in {' or '.join(_ENDINGS)}, got none")
    return [read(path) for path in sorted(paths, key=_name)]


def low_rank(d: int, rank: int, rows: int, seed: int = 0) -> Stream:
    """Return a stream of `d` features of which so many directions matter."""
    return Stream(f"low_rank_{d}", *LowRankStream(d=d, rank=rank, random_state=seed).draw(rows))


def noise(d: int, rows: int, seed: int = 0) -> Stream:
    """Return a stream of pure noise."""
    rng = np.random.default_rng(seed)
    return Stream(f"noise, d = {d}", rng.normal(size=(rows, d)), rng.normal(size=rows))


def corners(d: int, rows: int, seed: int = 0) -> Stream:
    """Return rows near the corners of a cube, opposite ones first, so that Algorithm 1 founds a centre for each."""
    rng = np.random.default_rng(seed)
    X = np.sign(rng.normal(size=(rows, d))) * rng.uniform(0.8, 1.0, size=(rows, d))
    X[0], X[1] = -1.0, 1.0
    return Stream("corners", X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.normal(size=rows))


def late_nrmse(predictions: Floats, y: Floats) -> float:
    """Return the root mean square error over the second half, over the standard deviation of the labels there."""
    late = slice(len(y) // 2, None)
    return float(np.sqrt(np.mean((predictions[late] - y[late]) ** 2)) / np.std(y[late]))


def _name(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".csv")
