"""What the experts are called, in the order in which their predictions stand."""

from typing import Final

GLOBAL: Final = ("running mean", "ridge regression", "Algorithm 1", "fading ridge regression")
"""Experts that need no neighbourhood of their own."""

LOCAL: Final = (
    "mean of 16",
    "local fit, ridge 0.01",
    "local fit, ridge 0.1",
    "kriging, exponential, following",
    "kriging, exponential, smoothing",
    "kriging, Matern, following",
    "kriging, Matern, smoothing",
    "kriging about the ridge regression",
    "kriging, fading slowly",
    "kriging, fading",
    "kriging, fading fast",
)
"""Experts that each view of the features has, all from the same neighbourhood."""


def expert_names(views: int) -> list[str]:
    """Return the names of all experts when there are so many views.

    >>> len(expert_names(1)), expert_names(2)[-1]
    (15, 'kriging, fading fast (view 2)')
    """
    suffixes = [f" (view {v + 1})" if views > 1 else "" for v in range(views)]
    return [*GLOBAL, *(name + suffix for suffix in suffixes for name in LOCAL)]
