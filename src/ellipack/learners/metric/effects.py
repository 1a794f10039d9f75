"""Effects: how the prediction moves with the value of a feature, averaged over recent rows (partial dependence)."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ellipack.learners.metric.learner import predict
from ellipack.learners.metric.state import MetricState
from ellipack.validation import Floats

_MAX_ROWS: Final = 200
_GRID_POINTS: Final = 9
_MIN_MONOTONE: Final = 0.8  # net change of a rising or falling effect, relative to the sum of all changes


@dataclass(frozen=True)
class Effect:
    """Partial dependence of the prediction on a feature.

    Attributes
    ----------
    values : array of shape (n,)
        Values of the feature, in ascending order.
    mean : array of shape (n,)
        Mean prediction over recent rows if the feature has this value.
    low, high : array of shape (n,)
        Spread over these rows: the 10 % and 90 % quantiles of the difference from each row's own mean, added to `mean`.
    """

    values: Floats
    mean: Floats
    low: Floats
    high: Floats

    def describe(self) -> str:
        """Return the direction of the effect in words.

        Examples
        --------
        >>> x = np.array([0.0, 1.0, 2.0])
        >>> Effect(x, 3 * x, 3 * x, 3 * x).describe(), Effect(x, x * (2 - x), x, x).describe()
        ('rises with it', 'highest at 1')
        """
        steps = np.diff(self.mean)
        moved, net = np.abs(steps).sum(), self.mean[-1] - self.mean[0]
        if not moved > 0:
            return "no effect"
        if abs(net) >= _MIN_MONOTONE * moved:
            return "rises with it" if net > 0 else "falls with it"
        top, bottom = int(self.mean.argmax()), int(self.mean.argmin())
        if 0 < top < len(self.mean) - 1:
            return f"highest at {self.values[top]:.4g}"
        if 0 < bottom < len(self.mean) - 1:
            return f"lowest at {self.values[bottom]:.4g}"
        return "no single direction"


def partial_dependence(state: MetricState, feature: int, values: Floats | None = None) -> Effect:
    """Return how the prediction moves with a feature, averaged over recent rows.

    Parameters
    ----------
    state : MetricState
        The state, after the first row.
    feature : int
        Number of the feature.
    values : array of shape (n,), optional
        Values of the feature. By default, quantiles of recent rows, from 5 to 95 %.

    Returns
    -------
    effect : Effect
    """
    rows = state.core.parts().plain.centers.rows[-_MAX_ROWS:]
    if values is None:
        values = np.unique(np.quantile(rows[:, feature], np.linspace(0.05, 0.95, _GRID_POINTS)))
    table = np.tile(rows, (len(values), 1))
    table[:, feature] = np.repeat(values, len(rows))
    curves = predict(state, table).reshape(len(values), len(rows))
    mean = curves.mean(axis=1)
    low, high = np.quantile(curves - curves.mean(axis=0), [0.1, 0.9], axis=1) + mean.mean()
    return Effect(values, mean, low, high)
