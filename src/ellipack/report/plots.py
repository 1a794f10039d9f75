"""Plots of a learner for Python: axes in, axes out, in the look of `figures`."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from ellipack.errors import InputError, ShapeError
from ellipack.metric import Metric
from ellipack.report.figures import COLOURS, dress, error_over_time, label_ends
from ellipack.report.record import Progress, Record
from ellipack.report.text import clean, shortened
from ellipack.validation import Floats, whole

try:
    from matplotlib import pyplot
    from matplotlib.axes import Axes
    from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"plots need matplotlib ({missing}): pip install 'ellipack[plot]'", name=missing.name
    ) from missing

_LONGEST = 32  # characters of a name beside a bar
_WINDOWS = 20  # how many windows a run has if none is asked for


def plot_spectrum(learner: Any, axes: Axes | None = None) -> Axes:
    """Draw the eigenvalues of a learner's metric, in falling order, on a log scale.

    Parameters
    ----------
    learner : a regressor that has learned, with a `metric_`.
    axes : where to draw; a new figure if not given.
    """
    eigenvalues = _metric(learner).eigenvalues
    places = np.arange(1, len(eigenvalues) + 1)
    drawn = _axes(axes)
    drawn.plot(places, eigenvalues, color=COLOURS[0], linewidth=2, marker="o", markersize=5, label="eigenvalues")
    drawn.set_yscale("log")
    drawn.set_xlim(0.5, len(eigenvalues) + 0.5)
    drawn.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    rank = getattr(learner, "effective_rank_", None)
    counted = "" if rank is None else f" (effective rank {rank:,})"
    dress(drawn, f"Spectrum of the metric{counted}", "direction, the strongest first", "eigenvalue (log scale)")
    return drawn


def plot_progress(
    errors: Record | Mapping[str, ArrayLike] | ArrayLike, axes: Axes | None = None, *, window: int | None = None
) -> Axes:
    """Draw how the error fell.

    Parameters
    ----------
    errors : a `Record`, drawn bin by bin beside the running mean and the last value; or the errors of one learner
        round by round; or those of several by name.
    axes : where to draw; a new figure if not given.
    window : over how many rounds errors are averaged, a twentieth of them if not given; a record has bins of its own.
    """
    if isinstance(errors, Record):
        if window is not None:
            raise InputError(f"window must not be given with a record, which has bins of its own, got {window}")
        return _draw_bins(errors.progress, axes)
    named = dict(errors) if isinstance(errors, Mapping) else {"error": errors}
    longest = max((np.size(values) for values in named.values()), default=0)
    size = max(1, longest // _WINDOWS) if window is None else whole(window, "window", 1)
    return error_over_time(_axes(axes), named, size)


def plot_importances(learner: Any, axes: Axes | None = None, *, top: int = 20) -> Axes:
    """Draw how much each feature counts in a learner's metric, the most important first.

    Parameters
    ----------
    learner : a regressor that has learned, with `feature_importances_` or a `metric_`, whose diagonal then counts.
    axes : where to draw; a new figure if not given.
    top : how many features at most.
    """
    most = whole(top, "top", 1)
    importances = _importances(learner)
    names = getattr(learner, "feature_names_in_", [f"feature {i}" for i in range(len(importances))])
    order = np.argsort(-importances, kind="stable")[:most]
    drawn = _axes(axes)
    drawn.barh(np.arange(len(order)), importances[order], color=COLOURS[0], height=0.7)
    rest = len(importances) - len(order)
    title = "Features that matter" + (f" ({rest:,} more)" if rest else "")
    dress(drawn, title, "share of the metric", "")
    drawn.grid(visible=False, axis="y")
    drawn.grid(axis="x", color="#DDDDDD", linewidth=0.8)
    # A name is text: its dollars are no formula.
    labels = [shortened(clean(str(names[i])), _LONGEST) for i in order]
    drawn.set_yticks(np.arange(len(order)), labels=labels, parse_math=False)
    drawn.set_ylim(len(order) - 0.5, -0.5)
    drawn.xaxis.set_major_formatter(PercentFormatter(xmax=1))
    return drawn


def _draw_bins(progress: Progress, axes: Axes | None) -> Axes:
    series = {"predictions": progress.rmse, "running mean": progress.mean_rmse, "last value": progress.last_rmse}
    there = {name: np.array(values, dtype=np.float64) for name, values in series.items()}
    curves = {name: values for name, values in there.items() if np.isfinite(values).any()}
    if not curves:
        raise ShapeError("errors must have at least one bin with an error, got a record with none")
    drawn = _axes(axes)
    for i, (name, values) in enumerate(curves.items()):
        drawn.plot(progress.end, values, color=COLOURS[i], linewidth=2, label=name)
    drawn.set_xlim(0, progress.end[-1])
    drawn.set_ylim(0, 1.08 * max(float(np.nanmax(values)) for values in curves.values()) or 1.0)
    drawn.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    dress(drawn, "Error over time", "row", "RMSE")
    label_ends(drawn, list(curves), [float(values[np.isfinite(values)][-1]) for values in curves.values()])
    return drawn


def _axes(axes: Axes | None) -> Axes:
    # By way of pyplot, so that a notebook shows it and `pyplot.show` as well.
    return pyplot.subplots(figsize=(7, 4.8), layout="constrained")[1] if axes is None else axes


def _metric(learner: Any) -> Metric:
    try:
        metric = learner.metric_
    except NotFittedError:
        raise
    except AttributeError:
        raise InputError(f"learner must have a metric_, got a {type(learner).__name__}, which has none") from None
    if not isinstance(metric, Metric):
        raise InputError(f"learner's metric_ must be a Metric, got a {type(metric).__name__}")
    return metric


def _importances(learner: Any) -> Floats:
    """Return what a learner says of its features, or else the diagonal of its metric, adding up to 1."""
    if hasattr(learner, "feature_importances_"):
        return np.asarray(learner.feature_importances_, dtype=np.float64)
    diagonal = np.diag(_metric(learner).matrix)
    return np.asarray(diagonal / diagonal.sum())
