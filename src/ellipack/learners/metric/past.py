"""When the learner that sees the past is used.

While the past makes predictions no better, the rounds of a phase only store their rows for it, which is cheap. In the
last eighth of the phase it is tried again. If it makes predictions better there, it is used throughout the next phase.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from ellipack._core import MetricParts, PastFeatures, PastParts
from ellipack.learners.metric.config import MetricConfig
from ellipack.validation import check_integer

DEFAULT_PAST_LABELS: Final = 3
"""Number of last labels that a learner sees by default."""

MAX_PAST_LABELS: Final = PastFeatures.max_labels
"""Largest number of last labels that a learner sees."""

MAX_PAST_VALUE: Final = PastFeatures.largest_value
"""Largest feature of the past in size: a label, a mean of labels, or the error of a prediction."""

_MIN_GAIN = 0.02  # by which the past must reduce the sum of squared errors to be used
_MIN_ROUNDS = 256  # until then, the past is always used
_TRIAL_DIVISOR = 8  # the part of a phase in which the past is tried
# Divisor of the numbers of validation points and of centers in the pool by which the metric of a trial is selected.
_TRIAL_COST_DIVISOR = 16


def past_labels(past: bool | int) -> int:
    """Return the number of last labels that a parameter `past` stands for, or raise `DomainError`.

    Examples
    --------
    >>> past_labels(True), past_labels(False), past_labels(5)
    (3, 0, 5)
    """
    if isinstance(past, bool | np.bool_):
        return DEFAULT_PAST_LABELS if past else 0
    return check_integer(past, "past", 0, MAX_PAST_LABELS)


def is_worthwhile(past: PastParts) -> bool:
    """Return whether the past made the predictions of this phase better."""
    _, without_past, with_past = past.active_errors
    return past.rounds.clock < _MIN_ROUNDS or with_past < (1 - _MIN_GAIN) * without_past


def first_active_round(past: PastParts, start: int, end: int) -> int:
    """Return the round after which the next phase, which lasts from `start` to `end`, uses the past."""
    return start if is_worthwhile(past) else end - max(1, (end - start) // _TRIAL_DIVISOR)


def trial_config(config: MetricConfig) -> MetricConfig:
    """Return a configuration by which the metric of a learner that is only tried is selected at less cost."""
    points = max(8, config.validation_points // _TRIAL_COST_DIVISOR)
    return replace(config, validation_points=points, pool=max(points, config.pool // _TRIAL_COST_DIVISOR))


def with_rounds(past: PastParts, rounds: MetricParts) -> PastParts:
    """Return the state of a learner that sees the past with other rounds."""
    return PastParts(rounds, past.features, past.combination, past.active_from, past.active_errors, past.total_errors)


def with_features(past: PastParts, features: PastFeatures) -> PastParts:
    """Return the state of a learner that sees the past with other features of it."""
    return PastParts(past.rounds, features, past.combination, past.active_from, past.active_errors, past.total_errors)


def past_feature_names(labels: int, by: str | None = None, target: str = "label") -> list[str]:
    """Return the names of the features that summarize the past, in their order.

    Parameters
    ----------
    labels : int
        Number of last labels.
    by : str, optional
        Name of the keys, if rows have keys.
    target : str, default "label"
        Name of the label.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> past_feature_names(1, target="load")
    ['load predicted from the features', 'error of that prediction, 1 row ago', 'load, 1 row ago']
    >>> past_feature_names(1, by="store", target="units")[3:]
    ['error of that prediction, 1 row ago by store', 'units, 1 row ago by store', 'mean of units by store']
    """
    error = "error of that prediction, 1 row ago"
    names = [f"{target} predicted from the features", error, *(_ago(target, k) for k in range(1, labels + 1))]
    if by is not None:
        own = [error, *(_ago(target, k) for k in range(1, max(1, labels - 1) + 1)), f"mean of {target}"]
        names += [f"{name} by {by}" for name in own]
    return names


def _ago(target: str, rows: int) -> str:
    return f"{target}, {rows} row{'s' if rows > 1 else ''} ago"
