"""Points laid out so that a scan over them runs at the speed of memory."""

import numpy as np

from ellipack.packing._kernels import BLOCK, Points
from ellipack.validation import Floats


def points_of(coordinates: Floats) -> Points:
    """Return points at these coordinates, a row each, in this order."""
    count, d = coordinates.shape
    blocks = -(-count // BLOCK)
    padded = np.zeros((blocks * BLOCK, d))
    padded[:count] = coordinates
    by_block = padded.reshape(blocks, BLOCK, d).transpose(0, 2, 1)
    return Points(np.ascontiguousarray(by_block), np.array([count], dtype=np.int64))


def coordinates_of(points: Points) -> Floats:
    """Return the coordinates of points, a row each, in order; the inverse of `points_of`.

    >>> coordinates_of(points_of(np.array([[1.0, 2.0], [3.0, 4.0]]))).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    by_point = points.blocks.transpose(0, 2, 1)
    return by_point.reshape(-1, by_point.shape[2])[: points.size[0]].copy()
