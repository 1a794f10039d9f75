"""Names of the experts, in the order of their predictions."""

from typing import Final

GLOBAL_EXPERTS: Final = ("running mean", "ridge regression", "Algorithm 1", "forgetting ridge regression")
"""Experts that need no neighbors."""

LOCAL_EXPERTS: Final = (
    "mean of 16",
    "local fit, ridge 0.01",
    "local fit, ridge 0.1",
    "kriging, exponential, following",
    "kriging, exponential, smoothing",
    "kriging, Matern, following",
    "kriging, Matern, smoothing",
    "kriging about the ridge regression",
    "kriging, forgetting slowly",
    "kriging, forgetting",
    "kriging, forgetting fast",
)
"""Experts that each view of the features has, all from the same neighbors."""


def expert_names(views: int) -> list[str]:
    """Return the names of all experts for a number of views.

    >>> len(expert_names(1)), expert_names(2)[-1]
    (15, 'kriging, forgetting fast (view 2)')
    """
    suffixes = [f" (view {v + 1})" if views > 1 else "" for v in range(views)]
    return [*GLOBAL_EXPERTS, *(name + suffix for suffix in suffixes for name in LOCAL_EXPERTS)]
