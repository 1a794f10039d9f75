"""When the learner that sees the past is used.

While the past makes predictions no better, the rounds of a phase only store their rows for it, which is cheap. In the
last eighth of the phase it is tried again. If it makes predictions better there, it is used throughout the next phase.
"""

from dataclasses import replace
from typing import Final

from ellipack._core import MetricParts, PastParts
from ellipack.learners.metric.config import MetricConfig

DEFAULT_PAST_LABELS: Final = 3
"""Number of last labels that a learner sees by default."""

_MIN_GAIN = 0.02  # by which the past must reduce the sum of squared errors to be used
_MIN_ROUNDS = 256  # until then, the past is always used
_TRIAL_DIVISOR = 8  # the part of a phase in which the past is tried
_TRIAL_COST_DIVISOR = (
    4  # of the numbers of validation points and of centers, by which the metric of a trial is selected
)


def is_worthwhile(past: PastParts) -> bool:
    """Return whether the past made the predictions of this phase better."""
    without_past, with_past = past.active_errors
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


def past_feature_names(labels: int, keyed: bool) -> list[str]:
    """Return the names of the features that summarize the past, in their order.

    Parameters
    ----------
    labels : int
        Number of last labels.
    keyed : bool
        Whether rows have keys.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> past_feature_names(2, keyed=False)
    ['prediction from the features', 'last error', 'label, 1 row ago', 'label, 2 rows ago']
    """
    names = ["prediction from the features", "last error", *(_ago(k) for k in range(1, labels + 1))]
    if keyed:
        by_key = ["last error", *(_ago(k) for k in range(1, max(1, labels - 1) + 1)), "mean label"]
        names += [f"{name}, same key" for name in by_key]
    return names


def _ago(rows: int) -> str:
    return f"label, {rows} row{'s' if rows > 1 else ''} ago"
