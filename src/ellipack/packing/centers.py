"""The packing: centres, and the count and the sum of the labels that each has taken in."""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ellipack.checkpoint import Contents
from ellipack.errors import CheckpointError
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

    @classmethod
    def restore(cls, contents: Contents, d: int, rounds: int) -> "Centers":
        """Return the centres that were saved as these contents after so many rounds.

        Which tree holds them makes no difference.
        """
        count = contents.shape("coordinates", 2)[0]
        coordinates = contents.floats("coordinates", count, d)
        counts = contents.counts("label_counts", count, rounds)
        founded = contents.ints("founded", count, least=1, most=rounds)
        if (np.diff(founded) <= 0).any():
            raise CheckpointError(f"{contents.place}founded must rise")
        return cls(state.empty(d), contents.floats("label_sums", count), counts, founded).re_embedded(coordinates)

    def contents(self) -> Contents:
        """Return what is saved."""
        arrays = {"label_sums": self.label_sums, "label_counts": self.label_counts, "founded": self.founded}
        held = {name: array[: self.size] for name, array in arrays.items()}
        return Contents(arrays={"coordinates": self.coordinates, **held})

    @property
    def size(self) -> int:
        """The number of centres."""
        return int(self.points.counters[POINTS])

    @property
    def coordinates(self) -> Floats:
        """The centres, a row each."""
        return Index(self.points).points()

    def means(self, active: Ints) -> Floats:
        """Return the mean labels of centres: 1/2 for none (-1), and for one that has taken in no label."""
        counts = self.label_counts[active]
        means = np.full(len(active), 0.5)
        np.divide(self.label_sums[active], counts, out=means, where=(active >= 0) & (counts > 0))
        return means

    def grown(self) -> "Centers":
        """Return the same centres with more room."""
        points = state.grow(self.points)
        room = state.room(points)
        return Centers(
            points, padded(self.label_sums, room), padded(self.label_counts, room), padded(self.founded, room)
        )

    def re_embedded(self, coordinates: Floats) -> "Centers":
        """Return the same centres at other coordinates, a row each, of as many entries as there are from now on."""
        if len(coordinates) == 0:
            return Centers.init(coordinates.shape[1])
        points, size = Index.build(coordinates).tree, len(coordinates)
        room = state.room(points)
        sums, counts = padded(self.label_sums[:size], room), padded(self.label_counts[:size], room)
        return Centers(points, sums, counts, padded(self.founded[:size], room))


def padded(array: NDArray[_Scalar], length: int) -> NDArray[_Scalar]:
    """Return `array` with zeros appended up to `length`."""
    out = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    out[: len(array)] = array
    return out
