"""What a person looks at: a record of a run, a page about it, plots and figures.

Figures and plots need the extra `plot`, the page the extra `report`; neither is imported before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ellipack.report.record import Record

if TYPE_CHECKING:
    from ellipack.report.plots import plot_importances, plot_progress, plot_spectrum

__all__ = ["Record", "plot_importances", "plot_progress", "plot_spectrum"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("ellipack.report.plots"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
