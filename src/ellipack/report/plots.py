"""Plots of a learner for Python: axes in, axes out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from ellipack.errors import InputError, ShapeError
from ellipack.metric import Metric
from ellipack.report.formatting import clean, truncate
from ellipack.report.record import Progress, Record
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, as_floats, check_finite, check_integer

try:
    from matplotlib import pyplot
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"plots need matplotlib ({missing}): pip install 'ellipack[plot]'", name=missing.name
    ) from missing

# Okabe and Ito's colors, told apart with any kind of color vision, dark enough on white; no yellow.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
_INK = "#333333"
_FAINT = "#DDDDDD"
_LINE_HEIGHT = 0.06  # of the axes: closer than this, labels at the ends of lines would overlap
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
    drawn.plot(places, eigenvalues, color=COLORS[0], linewidth=2, marker="o", markersize=5, label="eigenvalues")
    drawn.set_yscale("log")
    drawn.set_xlim(0.5, len(eigenvalues) + 0.5)
    drawn.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    rank = getattr(learner, "effective_rank_", None)
    counted = "" if rank is None else f" (effective rank {rank:,})"
    style_axes(drawn, f"Spectrum of the metric{counted}", "direction, the strongest first", "eigenvalue (log scale)")
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
    size = max(1, longest // _WINDOWS) if window is None else check_integer(window, "window", 1)
    return plot_rolling_rmse(_axes(axes), named, size)


def plot_importances(learner: Any, axes: Axes | None = None, *, top: int = 20) -> Axes:
    """Draw how much each feature counts in a learner's metric, the most important first.

    Parameters
    ----------
    learner : a regressor that has learned, with `feature_importances_` or a `metric_`, whose diagonal then counts.
    axes : where to draw; a new figure if not given.
    top : how many features at most.
    """
    most = check_integer(top, "top", 1)
    importances = _importances(learner)
    names = getattr(learner, "feature_names_in_", [f"feature {i}" for i in range(len(importances))])
    order = np.argsort(-importances, kind="stable")[:most]
    drawn = _axes(axes)
    drawn.barh(np.arange(len(order)), importances[order], color=COLORS[0], height=0.7)
    rest = len(importances) - len(order)
    title = "Features that matter" + (f" ({rest:,} more)" if rest else "")
    style_axes(drawn, title, "share of the metric", "")
    drawn.grid(visible=False, axis="y")
    drawn.grid(axis="x", color="#DDDDDD", linewidth=0.8)
    # A name is text: its dollars are no formula.
    labels = [truncate(clean(str(names[i])), _LONGEST) for i in order]
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
        drawn.plot(progress.end, values, color=COLORS[i], linewidth=2, label=name)
    drawn.set_xlim(0, progress.end[-1])
    drawn.set_ylim(0, 1.08 * max(float(np.nanmax(values)) for values in curves.values()) or 1.0)
    drawn.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    style_axes(drawn, "Error over time", "row", "RMSE")
    label_line_ends(drawn, list(curves), [float(values[np.isfinite(values)][-1]) for values in curves.values()])
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


def create_panels(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes side by side."""
    width = 7.0 * check_integer(count, "count", 1)
    figure = Figure(figsize=(width, 4.8), dpi=150, layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.1))
    return figure, list(figure.subplots(1, count, squeeze=False)[0])


def rolling_rmse(errors: ArrayLike, window: int) -> Floats:
    """Return the root mean square of the last `window` errors at each round, of all so far where there are fewer.

    >>> rolling_rmse([3.0, 3.0, 0.0, 0.0], window=2).round(2).tolist()
    [3.0, 3.0, 2.12, 0.0]
    """
    array = check_finite(as_floats(errors, "errors"), "errors")
    if array.ndim != 1 or len(array) == 0:
        raise ShapeError(f"errors must be one-dimensional and not empty, got shape {array.shape}")
    squares = np.square(array)
    size = np.minimum(np.arange(1, len(array) + 1), check_integer(window, "window", 1))
    sums = np.concatenate([[0.0], np.cumsum(squares)])
    ends = np.arange(1, len(array) + 1)
    # A difference of running sums can come out below 0 by rounding.
    return np.asarray(np.sqrt(np.maximum(sums[ends] - sums[ends - size], 0) / size))


def plot_rolling_rmse(axes: Axes, errors: Mapping[str, ArrayLike], window: int, scale: float = 1.0) -> Axes:
    """Draw the running error of several learners, divided by `scale`, the labels' standard deviation.

    Parameters
    ----------
    axes : where to draw.
    errors : for each learner by name, its errors round by round.
    window : over how many rounds an error is averaged.
    scale : the error that counts as 1.
    """
    if not errors:
        raise ShapeError("errors must hold at least one learner, got none")
    curves = {name: rolling_rmse(values, window) / scale for name, values in errors.items()}
    # The first few errors are averages over next to nothing, and would set the scale for all the rest.
    first = min(window, *(len(curve) for curve in curves.values())) // 4
    for color, (name, curve) in zip(_colors(len(curves)), curves.items(), strict=True):
        t = np.arange(1, len(curve) + 1)
        axes.plot(t[first:], curve[first:], color=color, linewidth=2, label=name)
    longest = max(len(curve) for curve in curves.values())
    if scale != 1.0:
        axes.axhline(1, color=_INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.set_xlim(0, longest)
    axes.set_ylim(0, 1.08 * max(float(curve[first:].max()) for curve in curves.values()))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    unit = " (1 = labels' std. dev.)" if scale != 1.0 else ""
    style_axes(axes, "Error over time", "round", f"RMSE, last {window:,} rounds{unit}")
    label_line_ends(axes, list(curves), [float(curve[-1]) for curve in curves.values()])
    return axes


def plot_effective_rank(axes: Axes, spectra: Mapping[str, ArrayLike], horizon: int) -> Axes:
    """Draw how slowly the effective rank grows when a spectrum decays quickly (the paper's figure emd).

    Parameters
    ----------
    axes : where to draw.
    spectra : by name, eigenvalues in falling order, the largest 1.
    horizon : the last round to draw.
    """
    if not spectra:
        raise ShapeError("spectra must hold at least one spectrum, got none")
    t = np.unique(np.geomspace(1, check_integer(horizon, "horizon", 2), 2000).astype(np.int64))
    ranks = {name: effective_rank(eigenvalues, t) for name, eigenvalues in spectra.items()}
    # Ranks are whole numbers, so staircases run on top of each other: each is thinner than the one below it.
    widths = np.linspace(5, 1.5, len(ranks))
    for color, width, (name, rank) in zip(_colors(len(ranks)), widths, ranks.items(), strict=True):
        axes.plot(t, rank, color=color, linewidth=width, drawstyle="steps-post", label=name)
    axes.set_xscale("log")
    axes.set_xlim(1, horizon)
    axes.set_ylim(0, 1.05 * max(int(rank[-1]) for rank in ranks.values()))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    style_axes(axes, "Effective rank over time", "round (log scale)", "effective rank")
    label_line_ends(axes, list(ranks), [float(rank[-1]) for rank in ranks.values()])
    return axes


def _colors(count: int) -> list[str]:
    return [COLORS[i % len(COLORS)] for i in range(count)]


def set_title(axes: Axes, text: str) -> Axes:
    """Write the title, in place of the one there was."""
    axes.set_title(text, loc="left", fontsize=13, fontweight="bold", color=_INK, pad=12)
    return axes


def style_axes(axes: Axes, heading: str, x: str, y: str) -> None:
    """Give axes a title, names and the look that all figures share."""
    set_title(axes, heading)
    axes.set_xlabel(x, fontsize=11, color=_INK)
    axes.set_ylabel(y, fontsize=11, color=_INK)
    axes.grid(axis="y", color=_FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=10, labelcolor=_INK, color=_FAINT)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(_INK)


def label_line_ends(axes: Axes, names: Sequence[str], heights: Sequence[float]) -> None:
    """Write each name where its line ends, in its color: no legend to look up."""
    bottom, top = axes.get_ylim()
    shares = [(height - bottom) / (top - bottom) for height in heights]
    for name, share, color in zip(names, _spread(shares, _LINE_HEIGHT), _colors(len(names)), strict=True):
        axes.annotate(
            name,
            (1.02, share),
            xycoords="axes fraction",
            color=color,
            fontsize=11,
            fontweight="bold",
            verticalalignment="center",
            annotation_clip=False,
        )


def _spread(places: Sequence[float], gap: float) -> list[float]:
    """Return places at least `gap` apart, in the same order, none moved farther than its crowd needs."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    crowds: list[list[int]] = []
    for i in order:
        crowds.append([i])
        while len(crowds) > 1 and _bottom(crowds[-1], places, gap) - _top(crowds[-2], places, gap) < gap:
            last = crowds.pop()
            crowds[-1] += last
    spread = [0.0] * len(places)
    for crowd in crowds:
        for k, i in enumerate(crowd):
            spread[i] = _bottom(crowd, places, gap) + k * gap
    return spread


def _bottom(crowd: Sequence[int], places: Sequence[float], gap: float) -> float:
    """Return where the lowest of a crowd goes, the crowd being centred on the mean of its places."""
    return sum(places[i] for i in crowd) / len(crowd) - gap * (len(crowd) - 1) / 2


def _top(crowd: Sequence[int], places: Sequence[float], gap: float) -> float:
    return _bottom(crowd, places, gap) + gap * (len(crowd) - 1)
