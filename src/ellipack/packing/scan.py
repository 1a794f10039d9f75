"""Exact nearest neighbours by looking at every point: what the index is checked against and measured by.

What is promised about distances, ties and rounding is what `ellipack.packing.index` promises.
"""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ellipack.packing import _kernels
from ellipack.packing._kernels import LANES, Blocks, Within
from ellipack.packing.batches import k_nearest_of, nearest_of, within_of
from ellipack.validation import Floats, Ints, rows, whole


def empty(d: int, blocks: int = 1) -> Blocks:
    """Return no points, and room for so many blocks of them."""
    return Blocks(np.full((blocks, d, LANES), np.inf), np.zeros(1, dtype=np.int64))


def grow(scan: Blocks) -> Blocks:
    """Return the same points with room for an eighth more."""
    held = scan.blocks.shape[0]
    larger = empty(scan.blocks.shape[1], held + 1 + held // 8)
    larger.blocks[:held] = scan.blocks
    larger.counters[:] = scan.counters
    return larger


class Scan:
    """Points in the order of their insertion, all of which are looked at for every query.

    >>> scan = Scan.build([[0.0, 0.0], [3.0, 4.0]])
    >>> scan.nearest([[3.0, 3.0]])
    (array([1]), array([1.]))
    """

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks

    @classmethod
    def empty(cls, d: int) -> Self:
        """Return a scan of no points yet, of `d` coordinates each."""
        return cls(empty(whole(d, "d", 1)))

    @classmethod
    def build(cls, points: ArrayLike) -> Self:
        """Return a scan of `points`, one a row."""
        array = rows(points, name="points")
        blocks = empty(array.shape[1], -(-array.shape[0] // LANES))
        _kernels.scan_insert_rows(blocks, array, 0)
        return cls(blocks)

    def __len__(self) -> int:
        return int(self.blocks.counters[0])

    @property
    def d(self) -> int:
        """The number of coordinates."""
        return int(self.blocks.blocks.shape[1])

    def insert(self, points: ArrayLike) -> None:
        """Insert points, one a row, at the next positions."""
        array = rows(points, self.d, "points")
        done = 0
        while (done := _kernels.scan_insert_rows(self.blocks, array, done)) < len(array):
            self.blocks = grow(self.blocks)

    def nearest(self, queries: ArrayLike, n_jobs: int = 1) -> tuple[Ints, Floats]:
        """Answer as `Index.nearest` does."""
        return nearest_of(_kernels.scan_nearest_rows, self.blocks, rows(queries, self.d, "queries"), n_jobs)

    def k_nearest(self, queries: ArrayLike, k: int, n_jobs: int = 1) -> tuple[Ints, Floats]:
        """Answer as `Index.k_nearest` does."""
        array = rows(queries, self.d, "queries")
        return k_nearest_of(_kernels.scan_search_rows, self.blocks, array, k, n_jobs)

    def within(self, queries: ArrayLike, radius: float, n_jobs: int = 1) -> Within:
        """Answer as `Index.within` does."""
        array = rows(queries, self.d, "queries")
        return within_of(_kernels.scan_search_rows, self.blocks, array, radius, n_jobs)
