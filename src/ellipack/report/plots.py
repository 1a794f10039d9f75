"""Plots with matplotlib: error over time, spectrum of the metric, feature importances and effective rank."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from ellipack.errors import InputError, ShapeError
from ellipack.learners.metric.effects import Effect
from ellipack.learners.metric.importances import Importances
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
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"plots need matplotlib ({error}): pip install 'ellipack[plot]'", name=error.name
    ) from error

# The palette of Okabe and Ito, which people with any kind of color vision can tell apart, without its yellow.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
_TEXT_COLOR = "#333333"
_GRID_COLOR = "#DDDDDD"
_LABEL_HEIGHT = 0.06  # of the axes; labels closer than this would overlap
_MAX_NAME_LENGTH = 32  # of a feature name beside a bar
_DEFAULT_WINDOWS = 20  # number of windows per run, by default


def plot_spectrum(learner: Any, axes: Axes | None = None) -> Axes:
    """Plot the eigenvalues of a learner's metric in decreasing order, on a log scale.

    Parameters
    ----------
    learner : estimator
        Fitted regressor with the attribute ``metric_``.
    axes : matplotlib.axes.Axes or None, default None
        Axes to draw on. If None, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from ellipack import MetricRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> plot_spectrum(MetricRegressor().fit(X, X[:, 0])).get_ylabel()
    'eigenvalue (log scale)'
    """
    eigenvalues = _metric(learner).eigenvalues
    positions = np.arange(1, len(eigenvalues) + 1)
    drawn = _axes(axes)
    drawn.plot(positions, eigenvalues, color=COLORS[0], linewidth=2, marker="o", markersize=5, label="eigenvalues")
    drawn.set_yscale("log")
    drawn.set_xlim(0.5, len(eigenvalues) + 0.5)
    drawn.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    rank = getattr(learner, "effective_rank_", None)
    suffix = "" if rank is None else f" (effective rank {rank:,})"
    style_axes(drawn, f"Spectrum of the metric{suffix}", "direction, strongest first", "eigenvalue (log scale)")
    return drawn


def plot_progress(
    errors: Record | Mapping[str, ArrayLike] | ArrayLike, axes: Axes | None = None, *, window: int | None = None
) -> Axes:
    """Plot the error over time.

    Parameters
    ----------
    errors : Record, array-like of shape (n_rounds,), or dict of such arrays
        Record of a run, whose bins are plotted with those of the running mean and the last value; or the errors of
        one learner in each round; or those of several learners by name.
    axes : matplotlib.axes.Axes or None, default None
        Axes to draw on. If None, a new figure is created.
    window : int or None, default None
        Number of rounds over which errors are averaged. If None, a twentieth of the rounds. Not allowed with a
        record, which is already binned.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with the plot.

    Examples
    --------
    >>> plot_progress([0.5, 0.3, 0.2, 0.1], window=2).get_ylabel()
    'RMSE, last 2 rounds'
    """
    if isinstance(errors, Record):
        if window is not None:
            raise InputError(f"window must be None with a record, which is already binned, got {window}")
        return _plot_bins(errors.progress, axes)
    named = dict(errors) if isinstance(errors, Mapping) else {"error": errors}
    longest = max((np.size(values) for values in named.values()), default=0)
    size = max(1, longest // _DEFAULT_WINDOWS) if window is None else check_integer(window, "window", 1)
    return plot_rolling_rmse(_axes(axes), named, size)


def plot_importances(learner: Any, axes: Axes | None = None, *, top: int = 20) -> Axes:
    """Plot the importance of each feature with its standard error, the most important first.

    Parameters
    ----------
    learner : estimator
        Fitted `MetricRegressor`, or any regressor with the attributes ``feature_importances_`` and
        ``feature_importances_std_``; or fitted `TableRegressor`, whose columns are drawn, such as the ``model`` of the
        result of `ellipack.run`.
    axes : matplotlib.axes.Axes or None, default None
        Axes to draw on. If None, a new figure is created.
    top : int, default 20
        Maximum number of features.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from ellipack import MetricRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> len(plot_importances(MetricRegressor().fit(X, X[:, 0]), top=2).patches)
    2
    """
    n_shown = check_integer(top, "top", 1)
    names, importances, errors = _importances(learner)
    order = np.argsort(-importances, kind="stable")[:n_shown]
    drawn = _axes(axes)
    drawn.barh(np.arange(len(order)), importances[order], xerr=errors[order], color=COLORS[0], height=0.7)
    rest = len(importances) - len(order)
    title = "Most important features" + (f" ({rest:,} more)" if rest else "")
    style_axes(drawn, title, "share of the rise in squared error", "")
    drawn.grid(visible=False, axis="y")
    drawn.grid(axis="x", color="#DDDDDD", linewidth=0.8)
    # Dollar signs in a name do not start a formula.
    labels = [truncate(clean(str(names[i])), _MAX_NAME_LENGTH) for i in order]
    drawn.set_yticks(np.arange(len(order)), labels=labels, parse_math=False)
    drawn.set_ylim(len(order) - 0.5, -0.5)
    drawn.xaxis.set_major_formatter(PercentFormatter(xmax=1))
    return drawn


def plot_effect(effect: Effect, axes: Axes | None = None) -> Axes:
    """Plot how the prediction moves with a value, with the spread over recent rows.

    Parameters
    ----------
    effect : Effect
        Effect of a feature, from `MetricRegressor.partial_dependence`, or of a column, from
        `TableRegressor.partial_dependence`.
    axes : matplotlib.axes.Axes or None, default None
        Axes to draw on. If None, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with the plot.

    Examples
    --------
    >>> import numpy as np
    >>> from ellipack import MetricRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> plot_effect(MetricRegressor().fit(X, X[:, 0]).partial_dependence(0)).get_ylabel()
    'mean prediction'
    """
    drawn = _axes(axes)
    drawn.fill_between(effect.values, effect.low, effect.high, color=COLORS[5], alpha=0.3, label="10 to 90% of rows")
    drawn.plot(effect.values, effect.mean, color=COLORS[0], linewidth=2, marker="o", markersize=4, label="mean")
    style_axes(drawn, "Effect on the prediction", "", "mean prediction")
    # Dollar signs in a name do not start a formula.
    drawn.set_xlabel(truncate(clean(effect.name), _MAX_NAME_LENGTH), parse_math=False)
    if effect.labels:
        labels = [truncate(clean(label), _MAX_NAME_LENGTH) for label in effect.labels]
        drawn.set_xticks(effect.values, labels=labels, rotation=45, ha="right", parse_math=False)
    drawn.legend(frameon=False)
    return drawn


def _plot_bins(progress: Progress, axes: Axes | None) -> Axes:
    """Plot the errors of a record bin by bin."""
    series = {"predictions": progress.rmse, "running mean": progress.mean_rmse, "last value": progress.last_rmse}
    arrays = {name: np.array(values, dtype=np.float64) for name, values in series.items()}
    curves = {name: values for name, values in arrays.items() if np.isfinite(values).any()}
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
    # Use pyplot, so that notebooks and `pyplot.show` show the figure.
    return pyplot.subplots(figsize=(7, 4.8), layout="constrained")[1] if axes is None else axes


def _metric(learner: Any) -> Metric:
    try:
        metric = learner.metric_
    except NotFittedError:
        raise
    except AttributeError:
        raise InputError(f"learner must have a metric_, got a {type(learner).__name__} without one") from None
    if not isinstance(metric, Metric):
        raise InputError(f"learner's metric_ must be a Metric, got a {type(metric).__name__}")
    return metric


def _importances(learner: Any) -> tuple[Sequence[str], Floats, Floats]:
    """Return names of features, or of the columns of a table, their importances, and the standard errors.

    What is not known is 0.
    """
    if hasattr(type(learner), "feature_importances_std_"):
        values = np.asarray(learner.feature_importances_, dtype=np.float64)
        errors = np.asarray(learner.feature_importances_std_, dtype=np.float64)
        names = getattr(learner, "feature_names_in_", [f"feature {i}" for i in range(len(values))])
        return names, values, np.nan_to_num(errors)
    found = learner.importances_ if hasattr(type(learner), "importances_") else None
    if not isinstance(found, Importances):
        accepted = "a MetricRegressor, or a TableRegressor that learns with one, such as result.model"
        raise InputError(f"learner must measure the importance of features: {accepted}, got a {type(learner).__name__}")
    shares, errors = np.array([(each.share, each.share_std) for each in found.columns], dtype=np.float64).T
    return [", ".join(each.columns) for each in found.columns], np.nan_to_num(shares), np.nan_to_num(errors)


def create_panels(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` axes side by side."""
    width = 7.0 * check_integer(count, "count", 1)
    figure = Figure(figsize=(width, 4.8), dpi=150, layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.1))
    return figure, list(figure.subplots(1, count, squeeze=False)[0])


def rolling_rmse(errors: ArrayLike, window: int) -> Floats:
    """Return the root mean square of the last `window` errors in each round, or of all so far if there are fewer.

    Parameters
    ----------
    errors : array-like of shape (n_rounds,)
        Errors in each round.
    window : int
        Number of rounds to average over.

    Returns
    -------
    ndarray of shape (n_rounds,)
        Rolling RMSE.

    Examples
    --------
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
    # Rounding can make a difference of cumulative sums negative.
    return np.asarray(np.sqrt(np.maximum(sums[ends] - sums[ends - size], 0) / size))


def plot_rolling_rmse(axes: Axes, errors: Mapping[str, ArrayLike], window: int, scale: float = 1.0) -> Axes:
    """Plot the rolling RMSE of several learners.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes to draw on.
    errors : dict of array-likes of shape (n_rounds,)
        Errors of each learner in each round, by its name.
    window : int
        Number of rounds to average over.
    scale : float, default 1.0
        Divisor of the errors, usually the standard deviation of the labels.

    Returns
    -------
    matplotlib.axes.Axes
        The same axes.
    """
    if not errors:
        raise ShapeError("errors must contain at least one learner, got none")
    curves = {name: rolling_rmse(values, window) / scale for name, values in errors.items()}
    # The first averages are over very few rounds, and would dominate the vertical scale.
    first = min(window, *(len(curve) for curve in curves.values())) // 4
    for color, (name, curve) in zip(_colors(len(curves)), curves.items(), strict=True):
        t = np.arange(1, len(curve) + 1)
        axes.plot(t[first:], curve[first:], color=color, linewidth=2, label=name)
    longest = max(len(curve) for curve in curves.values())
    if scale != 1.0:
        axes.axhline(1, color=_TEXT_COLOR, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.set_xlim(0, longest)
    axes.set_ylim(0, 1.08 * max(float(curve[first:].max()) for curve in curves.values()))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    unit = " (1 = label std. dev.)" if scale != 1.0 else ""
    style_axes(axes, "Error over time", "round", f"RMSE, last {window:,} rounds{unit}")
    label_line_ends(axes, list(curves), [float(curve[-1]) for curve in curves.values()])
    return axes


def plot_effective_rank(axes: Axes, spectra: Mapping[str, ArrayLike], horizon: int) -> Axes:
    """Plot the effective rank over time for several spectra (the paper's figure ``emd``).

    The faster a spectrum decays, the more slowly its effective rank grows.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes to draw on.
    spectra : dict of array-likes
        Eigenvalues in decreasing order, the largest 1, by name.
    horizon : int
        Last round to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The same axes.
    """
    if not spectra:
        raise ShapeError("spectra must contain at least one spectrum, got none")
    t = np.unique(np.geomspace(1, check_integer(horizon, "horizon", 2), 2000).astype(np.int64))
    ranks = {name: effective_rank(eigenvalues, t) for name, eigenvalues in spectra.items()}
    # Ranks are integers, so lines overlap. Each line is thinner than the one below it.
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
    """Set the title of axes."""
    axes.set_title(text, loc="left", fontsize=13, fontweight="bold", color=_TEXT_COLOR, pad=12)
    return axes


def style_axes(axes: Axes, heading: str, x: str, y: str) -> None:
    """Set title and axis labels, in the style that all plots share."""
    set_title(axes, heading)
    axes.set_xlabel(x, fontsize=11, color=_TEXT_COLOR)
    axes.set_ylabel(y, fontsize=11, color=_TEXT_COLOR)
    axes.grid(axis="y", color=_GRID_COLOR, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=10, labelcolor=_TEXT_COLOR, color=_GRID_COLOR)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(_TEXT_COLOR)


def label_line_ends(axes: Axes, names: Sequence[str], heights: Sequence[float]) -> None:
    """Write the name of each line at its right end, in its color, in place of a legend."""
    bottom, top = axes.get_ylim()
    positions = [(height - bottom) / (top - bottom) for height in heights]
    for name, position, color in zip(names, _spread(positions, _LABEL_HEIGHT), _colors(len(names)), strict=True):
        axes.annotate(
            name,
            (1.02, position),
            xycoords="axes fraction",
            color=color,
            fontsize=11,
            fontweight="bold",
            verticalalignment="center",
            annotation_clip=False,
        )


def _spread(positions: Sequence[float], gap: float) -> list[float]:
    """Return positions at least `gap` apart, in the same order, moved as little as necessary."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    groups: list[list[int]] = []
    for i in order:
        groups.append([i])
        while len(groups) > 1 and _bottom(groups[-1], positions, gap) - _top(groups[-2], positions, gap) < gap:
            last = groups.pop()
            groups[-1] += last
    spread = [0.0] * len(positions)
    for group in groups:
        for k, i in enumerate(group):
            spread[i] = _bottom(group, positions, gap) + k * gap
    return spread


def _bottom(group: Sequence[int], positions: Sequence[float], gap: float) -> float:
    """Return the lowest position of a group that is centered at the mean of its positions."""
    return sum(positions[i] for i in group) / len(group) - gap * (len(group) - 1) / 2


def _top(group: Sequence[int], positions: Sequence[float], gap: float) -> float:
    return _bottom(group, positions, gap) + gap * (len(group) - 1)
