"""Importances of columns, for users: shares with standard errors, and time apart from features."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ellipack.learners.metric.column_groups import ALL, COLUMN, FEATURES, TIME, divide_groups
from ellipack.learners.metric.importance_estimates import (
    UNKNOWN,
    GroupEstimate,
    ShareEstimate,
    Shares,
    TimeSplit,
    columns_of_time,
    divide_shares,
    estimate_groups,
    feature_shares,
    groups_with_shares,
    split_time,
    to_shares,
)
from ellipack.learners.metric.state import MetricState, PhaseState

_MIN_SIGNIFICANCE: Final = 3.0  # standard errors by which the importance of a driver is above 0
_MIN_DRIVER_SHARE: Final = 0.05


def is_driver(rise: float, rise_std: float, share: float) -> bool:
    """Return whether a column matters beyond doubt: three standard errors above 0, and a share of at least 5 %."""
    return rise > _MIN_SIGNIFICANCE * rise_std and share >= _MIN_DRIVER_SHARE


@dataclass(frozen=True)
class ColumnImportance:
    """Importance of a column, or of strongly correlated columns together.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    count : int
        Number of measurements.
    rise : float
        Rise in squared error if the values are taken from a random earlier row; NaN if it is too early to say. If
        columns are correlated, replacing one of them raises the error little, because the others stand in for it, or
        makes rows that never occur.
    rise_std : float
        Its standard error.
    rmse_rise : float
        Rise in root mean squared error, in units of the label.
    share : float
        Rise relative to the sum over all columns, where correlated columns count as one. A column among these has a
        part of their share; NaN if it is too early to say.
    share_std : float
        Its standard error.
    recent_share, recent_share_std : float
        The same over recent rounds, about the last quarter.
    """

    columns: tuple[str, ...]
    count: int
    rise: float
    rise_std: float
    rmse_rise: float
    share: float
    share_std: float
    recent_share: float
    recent_share_std: float

    @property
    def is_known(self) -> bool:
        """Whether there are enough measurements; otherwise it is too early to say."""
        return not math.isnan(self.share)

    @property
    def is_driver(self) -> bool:
        """Whether the column matters beyond doubt; see `is_driver`."""
        return is_driver(self.rise, self.rise_std, self.share)


@dataclass(frozen=True)
class Importances:
    """What drives the predictions, measured by the rise in squared error.

    Attributes
    ----------
    columns : tuple of ColumnImportance
        Each column, the most important one first; those that are too early to say last.
    groups : tuple of ColumnImportance
        The same with strongly correlated columns as one.
    time_columns : tuple of str
        Columns that only tell how near in time rows are, such as row numbers.
    split : TimeSplit or None
        What time and features explain; None if it is too early to say.
    rmse : float
        Root mean squared error of the predictions, in all rounds.
    """

    columns: tuple[ColumnImportance, ...]
    groups: tuple[ColumnImportance, ...]
    time_columns: tuple[str, ...]
    split: TimeSplit | None
    rmse: float

    @property
    def drivers(self) -> tuple[ColumnImportance, ...]:
        """Columns that matter beyond doubt, strongly correlated ones as one."""
        return tuple(each for each in self.groups if each.is_driver)


def summarize_importances(state: MetricState, names: Sequence[str]) -> Importances | None:
    """Return the importances; None if they are not measured.

    Parameters
    ----------
    state : MetricState
        The state.
    names : sequence of str
        Name of each column.

    Returns
    -------
    importances : Importances or None
    """
    phase = state.phase
    parts, layout = phase.core.parts(), phase.layout
    measured = parts.importance
    if measured is None:
        return None
    estimates = estimate_groups(measured, layout)
    groups, time = groups_with_shares(estimates, layout), columns_of_time(layout)
    total, recent = (to_shares(rises) for rises in zip(*((each.total, each.recent) for each in groups), strict=True))
    divisions = divide_groups(parts.plain.centers, layout)
    by_column = divide_shares(groups, total, divisions), divide_shares(groups, recent, divisions)
    error, alone = float(measured.errors[1]), [each for each in estimates if each.key.kind == COLUMN]
    columns = [
        _importance(each, names, error, *(shares[each.key.columns[0]] for shares in by_column))
        for each in alone
        if each.key.columns[0] not in time
    ]
    shares = zip(map(ShareEstimate, *total), map(ShareEstimate, *recent), strict=True)
    return Importances(
        _sorted(columns),
        _sorted([_importance(each, names, error, *pair) for each, pair in zip(groups, shares, strict=True)]),
        tuple(names[column] for column in sorted(time)),
        _split(estimates),
        math.sqrt(error),
    )


def summarize_features(phase: PhaseState) -> Shares | None:
    """Return the share of each feature; None if importances are not measured. See `feature_shares`."""
    parts = phase.core.parts()
    if parts.importance is None:
        return None
    return feature_shares(parts.importance, phase.layout, divide_groups(parts.plain.centers, phase.layout))


def _split(estimates: list[GroupEstimate]) -> TimeSplit | None:
    """Return what time and features explain."""
    by_kind = {each.key.kind: each.total for each in estimates}
    return split_time(*(by_kind.get(kind, UNKNOWN) for kind in (TIME, FEATURES, ALL)))


def _importance(
    group: GroupEstimate, names: Sequence[str], error: float, share: ShareEstimate, recent: ShareEstimate
) -> ColumnImportance:
    """Return the importance of a group with the names of its columns."""
    return ColumnImportance(
        tuple(names[column] for column in group.key.columns),
        group.measurements,
        *group.total,
        _rmse_rise(error, group.total.value),
        *map(float, share),
        *map(float, recent),
    )


def _sorted(importances: list[ColumnImportance]) -> tuple[ColumnImportance, ...]:
    """Return the most important columns first, and last those for which it is too early."""
    return tuple(sorted(importances, key=lambda each: (not each.is_known, -each.share if each.is_known else 0.0)))


def _rmse_rise(error: float, rise: float) -> float:
    return math.nan if math.isnan(rise) else math.sqrt(max(0.0, error + rise)) - math.sqrt(error)
