"""Groups of features whose importance is measured together.

A column of a table becomes one or more features. Each column is a group; so are columns that are strongly correlated,
since each alone stands in for the others. Features that only grow, such as row numbers and dates, tell how near in
time rows are. They form the group of time, together with the past of the label. If there is neither, nothing is to be
told from time.
"""

from typing import Final, NamedTuple

import numpy as np

from ellipack._core import CenterMemory, FeatureGroup, ImportanceParts
from ellipack.learners.metric.column_correlations import (
    Division,
    StandardizedCenters,
    correlated_columns,
    divide_importance,
    standardize_centers,
    trend_correlations,
)
from ellipack.learners.metric.slope_model import empty_slope_model, with_new_features
from ellipack.validation import Ints

COLUMN: Final = "column"
"""Kind of a group: the features of one column, without those of time."""
TOGETHER: Final = "together"
"""Kind of a group: columns that are strongly correlated."""
TIME: Final = "time"
"""Kind of a group: features that only grow, and the past."""
FEATURES: Final = "features"
"""Kind of a group: all features but those of time, if there is a group of time."""
ALL: Final = "all"
"""Kind of a group: everything, if there is a group of time."""

_COVERED_PRIORITY = 0.25  # of a column that has no share of its own: it is time, or one of correlated columns
_SPLIT_PRIORITY, _TIMELESS_PRIORITY = 0.5, 0.2  # of groups that tell time from features; the second if none is time
_MIN_INCREASES = 8  # before a feature counts as time
_MAX_REVERSALS = 0.01  # decreases of such a feature, relative to its increases
_MIN_TIME_CORRELATION = 0.98  # correlation with the row number, by which a feature is time as well
_MIN_TREND = 0.5  # correlation with the row number that a feature of time has at least


class GroupKey(NamedTuple):
    """What identifies a group.

    Attributes
    ----------
    kind : str
        `COLUMN`, `TOGETHER`, `TIME`, `FEATURES` or `ALL`.
    columns : tuple of int
        Numbers of its columns; empty for the last three kinds.
    """

    kind: str
    columns: tuple[int, ...] = ()


class GroupLayout(NamedTuple):
    """Columns and groups.

    Attributes
    ----------
    columns : tuple of int
        Number of the column of each feature.
    keys : tuple of GroupKey
        Groups, in the order of `ImportanceParts.groups`.
    time : tuple of int
        Features that only grow.
    """

    columns: tuple[int, ...]
    keys: tuple[GroupKey, ...]
    time: tuple[int, ...] = ()

    @property
    def together(self) -> tuple[tuple[int, ...], ...]:
        """Sets of correlated columns."""
        return tuple(key.columns for key in self.keys if key.kind == TOGETHER)


def initial_importance(columns: tuple[int, ...], past_dimension: int, seed: int) -> tuple[ImportanceParts, GroupLayout]:
    """Return the initial state of the measurement, and its groups.

    Parameters
    ----------
    columns : tuple of int
        Number of the column of each feature.
    past_dimension : int
        Number of features of the past.
    seed : int
        Random seed.

    Returns
    -------
    parts : ImportanceParts
    layout : GroupLayout
    """
    d = len(columns)
    none = np.zeros(d, dtype=np.int64)
    sample = np.zeros((0, d)), np.zeros((0, d)), np.zeros((0, past_dimension))
    errors, model = np.array([0.0, 0.0, 0.0, 0.0, 1.0]), empty_slope_model(d)
    empty = ImportanceParts(seed, [], 0, sample, errors, np.zeros(d), (none, none), model)
    return regroup(empty, GroupLayout((), ()), GroupLayout(columns, _keys(columns, (), _has_past(empty))))


def update_groups(
    centers: CenterMemory, importance: ImportanceParts, layout: GroupLayout
) -> tuple[ImportanceParts, GroupLayout]:
    """Return the groups for the next phase: find features of time and correlated columns again."""
    found = standardize_centers(centers)
    time = _time_features(importance, found)
    features = found.features
    if time:
        features = features.copy()
        features[:, list(time)] = 0
    together = correlated_columns(features, layout.columns, layout.together)
    if time == layout.time and together == layout.together:
        return importance, layout
    keys = _keys(layout.columns, together, bool(time) or _has_past(importance))
    return regroup(importance, layout, GroupLayout(layout.columns, keys, time))


def divide_groups(centers: CenterMemory, layout: GroupLayout) -> dict[tuple[int, ...], Division]:
    """Return how each set of correlated columns divides its importance among them."""
    if not layout.together:
        return {}
    found, of_columns = standardize_centers(centers), _features_of_columns(layout.columns)
    return {
        columns: divide_importance(
            found, [[k for k in of_columns[column] if k not in layout.time] for column in columns]
        )
        for columns in layout.together
    }


def with_columns(
    importance: ImportanceParts, layout: GroupLayout, columns: tuple[int, ...]
) -> tuple[ImportanceParts, GroupLayout]:
    """Return the groups for features of other columns, of which the last may be new features."""
    count = len(columns) - len(layout.columns)
    if count:
        rows, gradients, past_rows = importance.sample
        wider = ((0, 0), (0, count))
        sample = np.pad(rows, wider), np.pad(gradients, wider), past_rows
        increases, decreases = (np.append(each, np.zeros(count, dtype=np.int64)) for each in importance.moves)
        last = np.append(importance.last_row, np.zeros(count))
        model = with_new_features(importance.slope_model, count)
        importance = ImportanceParts(
            importance.seed,
            importance.groups,
            importance.seen,
            sample,
            importance.errors,
            last,
            (increases, decreases),
            model,
        )
    keys = _keys(columns, layout.together, bool(layout.time) or _has_past(importance))
    return regroup(importance, layout, GroupLayout(columns, keys, layout.time))


def regroup(importance: ImportanceParts, old: GroupLayout, new: GroupLayout) -> tuple[ImportanceParts, GroupLayout]:
    """Return the state with other groups. Groups with the same features keep what was measured.

    So do those of all kinds but time and correlated columns if they only got more features, such as new levels.
    """
    measured = dict(zip(old.keys, importance.groups, strict=True))
    groups, of_columns, time = [], _features_of_columns(new.columns), frozenset(new.time)
    covered = frozenset(column for columns in new.together for column in columns)
    for key in new.keys:
        features, before = _features(key, of_columns, time), measured.get(key)
        # Without memory, NumPy takes the result of compiled code for an object. This raises an error then.
        if before is not None and not _keeps_measurements(key.kind, np.asarray(before.features, np.int64), features):
            before = None
        groups.append(_group(key, features, _priority(key, features, time, covered), before))
    return importance.with_groups(groups), new


def _priority(key: GroupKey, features: Ints, time: frozenset[int], covered: frozenset[int]) -> float:
    """Return how much the standard error of a group matters. `covered` columns belong to a group of correlated ones."""
    if key.kind in (TIME, FEATURES, ALL):
        return _SPLIT_PRIORITY if time else _TIMELESS_PRIORITY
    has_no_share = key.kind == COLUMN and (key.columns[0] in covered or time.issuperset(features.tolist()))
    return _COVERED_PRIORITY if has_no_share else 1.0


def _keeps_measurements(kind: str, before: Ints, after: Ints) -> bool:
    more_allowed = kind in (COLUMN, FEATURES, ALL)
    return set(before.tolist()).issubset(after.tolist()) and (len(before) == len(after) or more_allowed)


def _group(key: GroupKey, features: Ints, priority: float, before: FeatureGroup | None) -> FeatureGroup:
    """Return a group, which keeps what was measured before. Fractions of 0 are found again."""
    count, change, size, sums = (
        (0, (0.0, 0.0), (0.0, 0.0), np.zeros((2, FeatureGroup.sum_count)))
        if before is None
        else (before.count, before.change, before.size, before.sums)
    )
    return FeatureGroup(features, key.kind in (TIME, ALL), priority, count, 0.0, change, size, sums)


def _keys(columns: tuple[int, ...], together: tuple[tuple[int, ...], ...], has_time: bool) -> tuple[GroupKey, ...]:
    alone = [GroupKey(COLUMN, (column,)) for column in dict.fromkeys(columns)]
    groups = [GroupKey(TOGETHER, each) for each in together]
    return (*alone, *groups, *(GroupKey(kind) for kind in (TIME, FEATURES, ALL) if has_time))


def _has_past(importance: ImportanceParts) -> bool:
    """Return whether there are features of the past."""
    return bool(importance.past_dimension)


def _features_of_columns(columns: tuple[int, ...]) -> dict[int, list[int]]:
    """Return the features of each column."""
    found: dict[int, list[int]] = {}
    for feature, column in enumerate(columns):
        found.setdefault(column, []).append(feature)
    return found


def _features(key: GroupKey, of_columns: dict[int, list[int]], time: frozenset[int]) -> Ints:
    """Return the features of a group. Features of time belong to a column only if it has no others."""
    if key.kind == TIME:
        chosen = sorted(time)
    else:
        columns = key.columns if key.kind in (COLUMN, TOGETHER) else of_columns
        own = sorted(feature for column in columns for feature in of_columns.get(column, ()))
        chosen = own
        if key.kind != ALL:
            chosen = [k for k in own if k not in time] or (own if key.kind == COLUMN else [])
    return np.array(chosen, dtype=np.int64)


def _time_features(importance: ImportanceParts, centers: StandardizedCenters) -> tuple[int, ...]:
    """Return the features that only grow or only fall, up to few exceptions."""
    increases, decreases = importance.moves
    most, least = np.maximum(increases, decreases), np.minimum(increases, decreases)
    monotone = (most >= _MIN_INCREASES) & (least <= _MAX_REVERSALS * most)
    if len(centers.rounds):
        correlations = trend_correlations(centers)
        monotone &= correlations > _MIN_TREND  # an hour of the day grows most of the time, too
        monotone |= correlations > _MIN_TIME_CORRELATION
    return tuple(np.flatnonzero(monotone).tolist())
