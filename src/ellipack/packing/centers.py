"""The packing: centres, and the count and the sum of the labels that each has taken in."""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ellipack.packing._kernels import BLOCK, Points
from ellipack.packing.scan import coordinates_of
from ellipack.validation import Floats, whole

Ints = NDArray[np.int64]

_Scalar = TypeVar("_Scalar", bound=np.generic)

_GROWTH = 1.5  # doubling would leave half of the memory idle


class Centers(NamedTuple):
    """Centres in order of founding, in flat arrays with room to grow; only the first `size` entries count.

    Attributes
    ----------
    points : where the centres are, in whitened coordinates.
    label_sums, label_counts : of the labels taken in, the paper's ``T_s``; the mean is all that is ever used.
    founded : the round of each founding.
    """

    points: Points
    label_sums: Floats
    label_counts: Ints
    founded: Ints

    @classmethod
    def init(cls, d: int) -> "Centers":
        """Return no centres yet, of d coordinates."""
        points = Points(np.zeros((1, whole(d, "d", 1), BLOCK)), np.zeros(1, dtype=np.int64))
        return cls(points, np.zeros(BLOCK), np.zeros(BLOCK, dtype=np.int64), np.zeros(BLOCK, dtype=np.int64))

    @property
    def size(self) -> int:
        """The number of centres."""
        return int(self.points.size[0])

    @property
    def capacity(self) -> int:
        """The number of centres that there is room for."""
        return len(self.founded)

    @property
    def coordinates(self) -> Floats:
        """The centres, a row each."""
        return coordinates_of(self.points)

    def grown(self) -> "Centers":
        """Return the same centres with more room."""
        blocks = max(len(self.points.blocks) + 1, int(_GROWTH * len(self.points.blocks)))
        room = blocks * BLOCK
        return Centers(
            Points(padded(self.points.blocks, blocks), self.points.size),
            padded(self.label_sums, room),
            padded(self.label_counts, room),
            padded(self.founded, room),
        )


def padded(array: NDArray[_Scalar], length: int) -> NDArray[_Scalar]:
    """Return `array` with zeros appended up to `length`."""
    out = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    out[: len(array)] = array
    return out
