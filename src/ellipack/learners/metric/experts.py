"""Names of the experts of `MetricRegressor`, in the order of their predictions.

The compiled core computes the predictions (``cpp/metric_rounds.cpp`` and ``cpp/local_models.cpp``). Reports show the
names.
"""

from typing import Final

GLOBAL_EXPERTS: Final = ("running mean", "ridge regression", "Algorithm 1", "ridge regression with forgetting")
"""Experts that do not use neighbors.

The ridge regression with forgetting weights recent rounds more than old ones.
"""

LOCAL_EXPERTS: Final = (
    "mean of 16 neighbors",
    "local linear, ridge 0.01",
    "local linear, ridge 0.1",
    "kriging, exponential, short range",
    "kriging, exponential, long range",
    "kriging, Matern 3/2, short range",
    "kriging, Matern 3/2, long range",
    "regression kriging",
    "space-time kriging, slow decay",
    "space-time kriging, medium decay",
    "space-time kriging, fast decay",
)
"""Experts that use the nearest neighbors in a view of the features.

Kriging of a short range has a small nugget and follows the labels; kriging of a long range has a large nugget and
smooths them. Regression kriging predicts the residuals of the ridge regression. Space-time kriging predicts those of
the ridge regression with forgetting, by correlations that also decay with age, for streams that drift.
"""


def expert_names(views: int) -> list[str]:
    """Return the names of all experts.

    Parameters
    ----------
    views : int
        Number of views of the features. Each has its own local experts.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> len(expert_names(1)), expert_names(2)[-1]
    (15, 'space-time kriging, fast decay (view 2)')
    """
    suffixes = [f" (view {v + 1})" if views > 1 else "" for v in range(views)]
    return [*GLOBAL_EXPERTS, *(name + suffix for suffix in suffixes for name in LOCAL_EXPERTS)]
