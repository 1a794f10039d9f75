"""The packing: centres, and the count and the sum of the labels that each has taken in."""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ellipack.packing.index import Index
from ellipack.packing.tree import state
from ellipack.packing.tree.state import POINTS, Tree
from ellipack.validation import Floats, Ints, whole

_Scalar = TypeVar("_Scalar", bound=np.generic)


class Centers(NamedTuple):
    """Centres in order of founding, in flat arrays with room to grow; only the first `size` entries count.

    Attributes
    ----------
    points : where the centres are, in whitened coordinates, in a tree to search them by.
    label_sums, label_counts : of the labels taken in, the paper's ``T_s``; the mean is all that is ever used.
    founded : the round of each founding.
    """

    points: Tree
    label_sums: Floats
    label_counts: Ints
    founded: Ints

    @classmethod
    def init(cls, d: int) -> "Centers":
        """Return no centres yet, of d coordinates."""
        points = state.empty(whole(d, "d", 1))
        room = state.room(points)
        return cls(points, np.zeros(room), np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64))

    @property
    def size(self) -> int:
        """The number of centres."""
        return int(self.points.counters[POINTS])

    @property
    def coordinates(self) -> Floats:
        """The centres, a row each."""
        return Index(self.points).points()

    def grown(self) -> "Centers":
        """Return the same centres with more room."""
        points = state.grow(self.points)
        room = state.room(points)
        return Centers(
            points, padded(self.label_sums, room), padded(self.label_counts, room), padded(self.founded, room)
        )


def padded(array: NDArray[_Scalar], length: int) -> NDArray[_Scalar]:
    """Return `array` with zeros appended up to `length`."""
    out = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    out[: len(array)] = array
    return out
