"""Model of the slopes of the prediction: each slope is a linear function of the row.

The slopes of local fits are noisy. Their regression on the rows has little noise, and belongs to a quadratic function
of the features. The measurement of importance uses this function as a cheap surrogate of the prediction.
"""

from typing import Final

import numpy as np

from ellipack._core import FeatureView, ImportanceParts
from ellipack.validation import Floats

_MAX_FEATURES: Final = 256  # beyond which there is no model, to save time
_MIN_ROWS: Final = 64  # below, slopes are too noisy
_MAX_SLOPE: Final = 1e100  # of a model that is used


def fit_slope_model(importance: ImportanceParts, view: FeatureView) -> Floats:
    """Return the ridge regression of the slopes at earlier rows on these rows.

    Parameters
    ----------
    importance : ImportanceParts
        Earlier rows, and the slopes of the local fits there.
    view : FeatureView
        View of the phase in which the model is used. Rows and slopes are in its units.

    Returns
    -------
    model : array of shape (d + 1, d)
        Coefficients of each feature for all slopes, a symmetric matrix as that of the second derivatives of a function,
        then the intercepts. There are no rows if there is no model.
    """
    d = importance.dimension
    if importance.seen < _MIN_ROWS or d > _MAX_FEATURES:
        return empty_slope_model(d)
    rows, gradients, _ = importance.sample
    count = len(rows)
    standard = view.standardize(rows)
    # Products with centered columns, without centering them: NumPy is slow along the first axis of narrow tables.
    means, mean_gradients = (np.full(count, 1 / count) @ each for each in (standard, gradients))
    # The penalty is that of a prior that weighs as much as the square root of the number of rows.
    gram = standard.T @ standard - count * np.outer(means, means) + np.sqrt(count) * np.eye(d)
    products = standard.T @ gradients - count * np.outer(means, mean_gradients)
    products, mean_slopes = (np.clip(each * view.scale, -_MAX_SLOPE, _MAX_SLOPE) for each in (products, mean_gradients))
    coefficients = np.linalg.solve(gram, products)
    coefficients = (coefficients + coefficients.T) / 2
    return np.vstack([coefficients, mean_slopes - means @ coefficients])


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
