"""Effects: how the prediction moves with the value of a feature, averaged over recent rows (partial dependence)."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError
from ellipack.learners.metric.predictions import predict
from ellipack.learners.metric.state import MetricState
from ellipack.validation import MAX_ABS_VALUE, Floats, check_vector

_MAX_ROWS: Final = 200
_GRID_POINTS: Final = 9
_MIN_MONOTONE: Final = 0.8  # net change of a rising or falling effect, relative to the sum of all changes


class EffectGrid(NamedTuple):
    """Values of a feature or a column, at which its effect is computed.

    Attributes
    ----------
    name : str
        Name of the feature or column.
    features : list of int
        Features that follow from the value.
    settings : array of shape (n, n_features)
        Values of these features, one row for each entry of `values`.
    values : array of shape (n,)
        The values; if they are no numbers, their places.
    labels : tuple of str
        The values as text; empty if they are numbers.
    """

    name: str
    features: list[int]
    settings: Floats
    values: Floats
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effect:
    """Partial dependence of the prediction on a feature or a column.

    Attributes
    ----------
    values : array of shape (n,)
        The values, in ascending order; if they are no numbers, their places.
    mean : array of shape (n,)
        Mean prediction over recent rows if the feature has this value.
    low, high : array of shape (n,)
        Spread over these rows: the 10 % and 90 % quantiles of the difference from each row's own mean, added to the
        mean of all entries of `mean`.
    name : str, default ""
        Name of the feature or column.
    labels : tuple of str, default ()
        The values as text, such as levels or times of day; empty if they are numbers.
    """

    values: Floats
    mean: Floats
    low: Floats
    high: Floats
    name: str = ""
    labels: tuple[str, ...] = ()

    @property
    def size(self) -> float:
        """Largest mean prediction minus the smallest."""
        return float(self.mean.max() - self.mean.min())

    def describe(self) -> str:
        """Return the direction of the effect in words.

        Examples
        --------
        >>> x = np.array([0.0, 1.0, 2.0])
        >>> Effect(x, 3 * x, 3 * x, 3 * x).describe(), Effect(x, x * (2 - x), x, x).describe()
        ('rises with it', 'highest at 1')
        >>> Effect(x, x, x, x, labels=("red", "green", "blue")).describe()
        'highest for blue, lowest for red'
        """
        top, bottom = int(self.mean.argmax()), int(self.mean.argmin())
        steps = np.diff(self.mean)
        moved, net = np.abs(steps).sum(), self.mean[-1] - self.mean[0]
        if not moved > 0:
            return "no effect"
        if self.labels:
            return f"highest for {self.labels[top]}, lowest for {self.labels[bottom]}"
        if abs(net) >= _MIN_MONOTONE * moved:
            return "rises with it" if net > 0 else "falls with it"
        if 0 < top < len(self.mean) - 1:
            return f"highest at {self.values[top]:.4g}"
        if 0 < bottom < len(self.mean) - 1:
            return f"lowest at {self.values[bottom]:.4g}"
        return "no single direction"


def recent_rows(state: MetricState) -> Floats:
    """Return the rows over which effects are averaged."""
    centers = state.core.parts().plain.centers
    return centers.take(np.arange(max(0, len(centers) - _MAX_ROWS), len(centers))).rows


def quantile_grid(values: Floats) -> Floats:
    """Return quantiles from 5 to 95 %, without duplicates."""
    return np.unique(np.quantile(values, np.linspace(0.05, 0.95, _GRID_POINTS)))


def checked_grid(values: ArrayLike) -> Floats:
    """Return values of a feature that `predict` accepts, or raise `InputError`."""
    grid = check_vector(values, "values")
    largest = np.abs(grid).max()
    if largest > MAX_ABS_VALUE:
        raise DomainError(f"values must be at most {MAX_ABS_VALUE:g} in size, got {largest:g}")
    return grid


def partial_dependence(state: MetricState, grid: EffectGrid, rows: Floats) -> Effect:
    """Return how the prediction moves with a value, averaged over rows.

    Parameters
    ----------
    state : MetricState
        The state, after the first row.
    grid : EffectGrid
        The values.
    rows : array of shape (n, d)
        Rows, at least one.

    Returns
    -------
    effect : Effect
    """
    table = np.tile(rows, (len(grid.values), 1))
    table[:, grid.features] = np.repeat(grid.settings, len(rows), axis=0)
    curves = predict(state, table).reshape(len(grid.values), len(rows))
    mean = curves.mean(axis=1)
    low, high = np.quantile(curves - curves.mean(axis=0), [0.1, 0.9], axis=1) + mean.mean()
    return Effect(grid.values, mean, low, high, grid.name, grid.labels)
