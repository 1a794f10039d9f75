"""Importances of columns, for users: shares with standard errors, and time apart from features."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ellipack.learners.metric.column_groups import ALL, COLUMN, FEATURES, TIME, TOGETHER, GroupKey
from ellipack.learners.metric.importance_estimates import (
    UNKNOWN,
    GroupEstimate,
    TimeSplit,
    estimate_groups,
    split_time,
    to_shares,
)
from ellipack.learners.metric.state import MetricState

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
        Rise in squared error if the values are taken from a random earlier row; NaN if it is too early to say.
    rise_std : float
        Its standard error.
    rmse_rise : float
        Rise in root mean squared error, in units of the label.
    share : float
        Rise relative to the sum over all columns, or over all groups of columns.
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
        return not math.isnan(self.rise)

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
        Each column alone, the most important one first; those that are too early to say last.
    groups : tuple of ColumnImportance
        The same with strongly correlated columns as one, measured together.
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
    measured, layout = phase.core.importance(), phase.layout
    if measured is None:
        return None
    estimates = {each.key: each for each in estimate_groups(measured, layout)}
    only_time = set(layout.columns) - {layout.columns[k] for k in range(len(layout.columns)) if k not in layout.time}
    if len(only_time) == len(set(layout.columns)):
        only_time = set()
    alone = [each for key, each in estimates.items() if key.kind == COLUMN and not only_time.intersection(key.columns)]
    together = [each for key, each in estimates.items() if key.kind == TOGETHER and each.is_known]
    covered = {column for each in together for column in each.key.columns}
    groups = [*together, *(each for each in alone if each.key.columns[0] not in covered)]
    error = float(measured.errors[1])
    parts = [
        estimates[GroupKey(kind)].total if GroupKey(kind) in estimates else UNKNOWN for kind in (TIME, FEATURES, ALL)
    ]
    return Importances(
        _with_shares(alone, names, error),
        _with_shares(groups, names, error),
        tuple(names[column] for column in sorted(only_time)),
        split_time(*parts),
        math.sqrt(error),
    )


def _with_shares(groups: list[GroupEstimate], names: Sequence[str], error: float) -> tuple[ColumnImportance, ...]:
    """Return the importances of groups with shares in their sum, the most important first."""
    total, recent = to_shares([each.total for each in groups]), to_shares([each.recent for each in groups])
    made = [
        ColumnImportance(
            tuple(names[column] for column in group.key.columns),
            group.measurements,
            *group.total,
            _rmse_rise(error, group.total.value),
            float(total.values[k]),
            float(total.stds[k]),
            float(recent.values[k]),
            float(recent.stds[k]),
        )
        for k, group in enumerate(groups)
    ]
    return tuple(sorted(made, key=lambda each: (not each.is_known, -each.share if each.is_known else 0.0)))


def _rmse_rise(error: float, rise: float) -> float:
    return math.nan if math.isnan(rise) else math.sqrt(max(0.0, error + rise)) - math.sqrt(error)
