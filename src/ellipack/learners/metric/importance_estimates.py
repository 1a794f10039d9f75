"""Estimates of the importance of groups of features, from what the core has measured.

The importance of a group is the rise in squared error when its features are taken from a random earlier row: twice the
variance that is lost without them. The core estimates its mean from the measured rises and from controls, the rises of
cheap surrogates of the prediction, whose means are known from all rounds.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from ellipack._core import FeatureGroup, ImportanceParts
from ellipack.learners.metric.column_correlations import Division
from ellipack.learners.metric.column_groups import COLUMN, TOGETHER, GroupKey, GroupLayout
from ellipack.validation import Floats

MIN_MEASUREMENTS: Final = 6
"""Number of measurements of a group before its importance is estimated."""


_MIN_EFFECTIVE: Final = 2.0  # effective number of measurements; a few are enough, since much comes from the controls
_MIN_EQUAL_ROUNDS: Final = 100  # in which values never differ, before it is said that they do not matter
_UNDIVIDED: Final = Division((1.0,), (0.0,))  # of a column that is alone

Divisions = Mapping[tuple[int, ...], Division]
"""How sets of correlated columns divide their importance; see `divide_groups`."""


class RiseEstimate(NamedTuple):
    """Estimated rise in squared error.

    Attributes
    ----------
    value : float
        The rise, in squared units of the label; NaN if it is too early to say.
    std : float
        Its standard error.
    """

    value: float
    std: float


UNKNOWN: Final = RiseEstimate(math.nan, math.nan)
"""Estimate of a group that has too few measurements."""


class GroupEstimate(NamedTuple):
    """Importance of a group.

    Attributes
    ----------
    key : GroupKey
        The group.
    measurements : int
        Number of measurements.
    total : RiseEstimate
        Rise in squared error over all rounds.
    recent : RiseEstimate
        The same over the recent rounds.
    """

    key: GroupKey
    measurements: int
    total: RiseEstimate
    recent: RiseEstimate

    @property
    def is_known(self) -> bool:
        """Whether there are enough measurements."""
        return not math.isnan(self.total.value)


def estimate_groups(importance: ImportanceParts, layout: GroupLayout) -> list[GroupEstimate]:
    """Return the estimate for each group, in the order of the layout.

    At first, columns are measured equally often. Until all have been measured often enough, it is too early to say
    anything.
    """
    pairs = list(zip(layout.keys, importance.groups, strict=True))
    counts = [group.count for key, group in pairs if key.kind == COLUMN]
    if min(counts) < MIN_MEASUREMENTS and max(counts) < 2 * MIN_MEASUREMENTS:
        return [GroupEstimate(key, group.count, UNKNOWN, UNKNOWN) for key, group in pairs]
    return [GroupEstimate(key, group.count, *_estimates(group)) for key, group in pairs]


def _estimates(group: FeatureGroup) -> tuple[RiseEstimate, RiseEstimate]:
    """Return the estimates over all rounds and over the recent ones."""
    rounds, fraction = group.differing
    if rounds >= _MIN_EQUAL_ROUNDS and fraction == 0:
        return RiseEstimate(0.0, 0.0), RiseEstimate(0.0, 0.0)
    rise, variance, count = group.estimate
    if group.count < MIN_MEASUREMENTS or count < _MIN_EFFECTIVE:
        return UNKNOWN, UNKNOWN
    recent_rise, recent_variance, _ = group.recent_estimate
    return RiseEstimate(rise, math.sqrt(variance)), RiseEstimate(recent_rise, math.sqrt(recent_variance))


class Shares(NamedTuple):
    """Importances that add up to 1, or are all 0 if no rise is positive.

    Attributes
    ----------
    values : array of shape (n,)
        Shares; NaN if it is too early to say.
    stds : array of shape (n,)
        Standard errors.
    """

    values: Floats
    stds: Floats


def to_shares(estimates: Sequence[RiseEstimate]) -> Shares:
    """Return the share of each estimate in their sum. A negative estimate has a share of 0.

    If no estimate is positive, all shares are 0. Their standard errors are relative to the sum of all standard errors.

    Examples
    --------
    >>> to_shares([RiseEstimate(3.0, 0.1), RiseEstimate(1.0, 0.1), RiseEstimate(-0.1, 0.1)]).values.tolist()
    [0.75, 0.25, 0.0]
    """
    values = np.array([each.value for each in estimates])
    stds = np.array([each.std for each in estimates])
    known = ~np.isnan(values)
    positive = np.where(known, np.maximum(values, 0.0), 0.0)
    total = positive.sum() or np.where(known, stds, 0.0).sum() or 1.0
    shares = positive / total
    variances = np.where(known, stds / total, 0.0) ** 2
    # The derivative of a share is (1 - share) / total by its own estimate, and -share / total by another.
    errors = np.sqrt((1 - 2 * shares) * variances + shares**2 * variances.sum())
    return Shares(np.where(known, shares, np.nan), np.where(known, errors, np.nan))


class TimeSplit(NamedTuple):
    """What comes from being near in time, and what from the features.

    Attributes
    ----------
    time : float
        Fraction that only time explains: features that only grow, and the past of the label.
    features : float
        Fraction that only the other features explain.
    both : float
        Fraction that either would explain.
    std : float
        Standard error of the first two, the larger one.
    """

    time: float
    features: float
    both: float
    std: float


def split_time(time: RiseEstimate, features: RiseEstimate, everything: RiseEstimate) -> TimeSplit | None:
    """Return what time and features explain; None if it is too early to say.

    If both together explain more than the sum of what is lost without each, either would do for the rest. If they
    explain less, the excess needs both (an interaction), and each gets half. Differences of less than two standard
    errors do not count.

    Examples
    --------
    >>> split = split_time(RiseEstimate(6.0, 0.1), RiseEstimate(3.0, 0.1), RiseEstimate(10.0, 0.1))
    >>> round(split.time, 2), round(split.features, 2), round(split.both, 2)
    (0.6, 0.3, 0.1)
    """
    by_time, by_features, total = max(0.0, time.value), max(0.0, features.value), everything.value
    excess = by_time + by_features - total
    add_up = abs(excess) <= 2 * math.sqrt(time.std**2 + features.std**2 + everything.std**2)
    is_clear = by_time + by_features > 2 * math.hypot(time.std, features.std)
    if math.isnan(time.value + features.value) or not (total > 2 * everything.std or (add_up and is_clear)):
        return None
    if add_up:
        total = by_time + by_features
    elif excess > 0:
        by_time, by_features = max(0.0, by_time - excess / 2), max(0.0, by_features - excess / 2)
        total = by_time + by_features
    if not total > 0:
        return None
    both = max(0.0, total - by_time - by_features)
    return TimeSplit(by_time / total, by_features / total, both / total, max(time.std, features.std) / total)


def groups_with_shares(estimates: list[GroupEstimate], layout: GroupLayout) -> list[GroupEstimate]:
    """Return the groups that have shares: correlated columns as one, and the other columns.

    Columns of time are not among them, unless all are. Correlated columns count alone until they have been measured
    together often enough.
    """
    time = columns_of_time(layout)
    together = [each for each in estimates if each.key.kind == TOGETHER and each.is_known]
    left_out = time.union(*(each.key.columns for each in together))
    return [*together, *(each for each in estimates if each.key.kind == COLUMN and each.key.columns[0] not in left_out)]


def columns_of_time(layout: GroupLayout) -> set[int]:
    """Return the columns that have only features of time; none if all columns do."""
    columns = set(layout.columns)
    others = {column for feature, column in enumerate(layout.columns) if feature not in set(layout.time)}
    return columns - others if others else set()


class ShareEstimate(NamedTuple):
    """Share of a column and its standard error; NaN if it is too early to say."""

    value: float
    std: float


def divide_shares(groups: list[GroupEstimate], shares: Shares, divisions: Divisions) -> dict[int, ShareEstimate]:
    """Return the share of each column: its part of the share of its group."""
    return {
        column: ShareEstimate(fraction * value, math.hypot(fraction * std, fraction_std * value))
        for group, value, std in zip(groups, shares.values.tolist(), shares.stds.tolist(), strict=True)
        for column, fraction, fraction_std in zip(
            group.key.columns, *divisions.get(group.key.columns, _UNDIVIDED), strict=True
        )
    }


def feature_shares(importance: ImportanceParts, layout: GroupLayout, divisions: Divisions) -> Shares:
    """Return the share of each feature. The features of a column divide its share equally.

    A feature of time has a share of 0, unless all features are. One that was not measured has 0, with an error of NaN.
    """
    groups = groups_with_shares(estimate_groups(importance, layout), layout)
    by_column = divide_shares(groups, to_shares([each.total for each in groups]), divisions)
    values, stds = np.zeros(len(layout.columns)), np.full(len(layout.columns), np.nan)
    for key, group in zip(layout.keys, importance.groups, strict=True):
        share = by_column.get(key.columns[0]) if key.kind == COLUMN else None
        if share is not None and not math.isnan(share.value):
            values[group.features] = share.value / len(group.features)
            stds[group.features] = share.std / len(group.features)
    return Shares(values, stds)
