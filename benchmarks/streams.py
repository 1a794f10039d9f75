"""Streams kept as CSV files, and how a learner is scored on one.

A file, plain or compressed by gzip, is a header and then rows in the stream's order: features, and the label ``y`` in
the last column. What files there are, and what they are called, is for the folder to say.
"""

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np

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


def late_nrmse(predictions: Floats, y: Floats) -> float:
    """Return the root mean square error over the second half, over the standard deviation of the labels there."""
    late = slice(len(y) // 2, None)
    return float(np.sqrt(np.mean((predictions[late] - y[late]) ** 2)) / np.std(y[late]))


def _name(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".csv")
