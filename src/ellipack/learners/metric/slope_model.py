"""Model of the slopes of the prediction: how it starts, and how it grows with the features."""

import numpy as np

from ellipack.validation import Floats


def empty_slope_model(d: int) -> Floats:
    """Return a model that is not there yet."""
    return np.zeros((0, d))


def with_new_features(model: Floats, count: int) -> Floats:
    """Return a model with new features, whose slopes are 0 and which have no effect on others.

    Examples
    --------
    >>> with_new_features(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 1).tolist()
    [[1.0, 2.0, 0.0], [3.0, 4.0, 0.0], [0.0, 0.0, 0.0], [5.0, 6.0, 0.0]]
    """
    wider = np.pad(model, ((0, 0), (0, count)))
    return np.insert(wider, [len(wider) - 1] * count, 0.0, axis=0) if len(wider) else wider
