"""Record of a run, a report page about it, and plots.

Plots need the extra `plot`, the page needs the extra `report`. Both are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ellipack.report.record import Record

if TYPE_CHECKING:
    from ellipack.report.plots import plot_effect, plot_importances, plot_progress, plot_spectrum

__all__ = ["Record", "plot_effect", "plot_importances", "plot_progress", "plot_spectrum"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("ellipack.report.plots"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
