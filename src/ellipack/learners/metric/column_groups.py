"""Groups of features whose importance is measured together.

A column of a table becomes one or more features. Each column is a group; so are columns that are strongly correlated,
since each alone stands in for the others. Features that only grow, such as row numbers and dates, tell how near in
time rows are. They form the group of time, together with the past of the label.
"""

from typing import Final, NamedTuple

import numpy as np

from ellipack._core import CenterMemory, CoreParts, FeatureGroup, ImportanceParts
from ellipack.validation import Floats, Ints

COLUMN: Final = "column"
"""Kind of a group: the features of one column, without those of time."""
TOGETHER: Final = "together"
"""Kind of a group: columns that are strongly correlated."""
TIME: Final = "time"
"""Kind of a group: features that only grow, and the past."""
FEATURES: Final = "features"
"""Kind of a group: all features but those of time."""
ALL: Final = "all"
"""Kind of a group: everything."""

_PRIORITY = {COLUMN: 1.0, TOGETHER: 1.0, TIME: 0.25, FEATURES: 0.25, ALL: 0.25}
_MIN_INCREASES = 8  # before a feature counts as time
_MAX_REVERSALS = 0.01  # decreases of such a feature, relative to its increases
_MIN_TIME_CORRELATION = 0.98  # correlation with the row number, by which a feature is time as well
_MIN_TREND = 0.5  # correlation with the row number that a feature of time has at least
_MIN_CORRELATION = 0.8  # correlation from which columns are measured together
_MIN_ROWS, _MAX_ROWS = 30, 500  # centers, evenly spaced, that correlations use
_SMALLEST, _ROUNDING = 1e-300, 1e-9  # of a column that is not 0, and that is not constant
_MAX_FEATURES = 1000  # beyond which correlations are not computed, to save time


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
    empty = ImportanceParts(seed, [], 0, sample, np.zeros(4), np.zeros(d), (none, none))
    return regroup(empty, GroupLayout((), ()), GroupLayout(columns, _keys(columns, ())))


def update_groups(
    parts: CoreParts, importance: ImportanceParts, layout: GroupLayout
) -> tuple[ImportanceParts, GroupLayout]:
    """Return the groups for the next phase: find features of time and correlated columns again."""
    centers = parts.plain.centers
    last = _standardized_rows(centers)
    time = _time_features(importance, last)
    together = _correlated_columns(last[:, 1:], layout.columns, time)
    if time == layout.time and together == tuple(key.columns for key in layout.keys if key.kind == TOGETHER):
        return importance, layout
    return regroup(importance, layout, GroupLayout(layout.columns, _keys(layout.columns, together), time))


def with_columns(
    importance: ImportanceParts, layout: GroupLayout, columns: tuple[int, ...]
) -> tuple[ImportanceParts, GroupLayout]:
    """Return the groups for features of other columns, of which the last may be new features."""
    count = len(columns) - len(layout.columns)
    if count:
        rows, gradients, past_rows = importance.sample
        sample = *(np.pad(each, ((0, 0), (0, count))) for each in (rows, gradients)), past_rows
        increases, decreases = (np.append(each, np.zeros(count, dtype=np.int64)) for each in importance.moves)
        last = np.append(importance.last_row, np.zeros(count))
        importance = _changed(importance, sample=sample, last_row=last, moves=(increases, decreases))
    together = tuple(key.columns for key in layout.keys if key.kind == TOGETHER)
    return regroup(importance, layout, GroupLayout(columns, _keys(columns, together), layout.time))


def regroup(importance: ImportanceParts, old: GroupLayout, new: GroupLayout) -> tuple[ImportanceParts, GroupLayout]:
    """Return the state with other groups. Groups with the same features keep what was measured.

    So do those of all kinds but time and correlated columns if they only got more features, such as new levels.
    """
    measured = dict(zip(old.keys, importance.groups, strict=True))
    groups, of_columns, time = [], _features_of_columns(new.columns), frozenset(new.time)
    for key in new.keys:
        features, before = _features(key, of_columns, time), measured.get(key)
        if before is not None and not _keeps_measurements(key.kind, before.features, features):
            before = None
        groups.append(_group(key, features, before))
    return _changed(importance, groups=groups), new


def _keeps_measurements(kind: str, before: Ints, after: Ints) -> bool:
    more_allowed = kind in (COLUMN, FEATURES, ALL)
    return bool(np.isin(before, after).all()) and (len(before) == len(after) or more_allowed)


def _group(key: GroupKey, features: Ints, before: FeatureGroup | None) -> FeatureGroup:
    count, credit, sums = (
        (0, 0.0, np.zeros((2, FeatureGroup.sum_count)))
        if before is None
        else (before.count, before.credit, before.sums)
    )
    return FeatureGroup(features, key.kind in (TIME, ALL), _PRIORITY[key.kind], count, credit, sums)


def _keys(columns: tuple[int, ...], together: tuple[tuple[int, ...], ...]) -> tuple[GroupKey, ...]:
    alone = [GroupKey(COLUMN, (column,)) for column in dict.fromkeys(columns)]
    groups = [GroupKey(TOGETHER, each) for each in together]
    return (*alone, *groups, GroupKey(TIME), GroupKey(FEATURES), GroupKey(ALL))


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


def _changed(importance: ImportanceParts, **changes: object) -> ImportanceParts:
    names = ("seed", "groups", "seen", "sample", "errors", "last_row", "moves")
    return ImportanceParts(**{name: changes.get(name, getattr(importance, name)) for name in names})  # type: ignore[arg-type]


def _standardized_rows(centers: CenterMemory) -> Floats:
    """Return the rounds and the features of some centers, of mean 0 and length 1 by column; constants become 0."""
    rows = centers.rows
    count, d = rows.shape
    if count < _MIN_ROWS or d > _MAX_FEATURES:
        return np.zeros((0, 1 + d))
    picked = np.linspace(0, count - 1, min(count, _MAX_ROWS)).astype(np.int64)
    rounds = centers.round_sums[picked] / centers.label_counts[picked]
    table = np.column_stack([rounds, rows[picked]])
    table /= np.maximum(np.abs(table).max(axis=0), _SMALLEST)  # so that squares do not overflow
    table -= table.mean(axis=0)
    lengths = np.sqrt((table**2).sum(axis=0))
    return np.asarray(table / np.where(lengths > _ROUNDING, lengths, np.inf))


def _time_features(importance: ImportanceParts, last: Floats) -> tuple[int, ...]:
    """Return the features that only grow or only fall, up to few exceptions."""
    increases, decreases = importance.moves
    most, least = np.maximum(increases, decreases), np.minimum(increases, decreases)
    monotone = (most >= _MIN_INCREASES) & (least <= _MAX_REVERSALS * most)
    if len(last):
        correlations = np.abs(last[:, 0] @ last[:, 1:])
        monotone &= correlations > _MIN_TREND  # an hour of the day grows most of the time, too
        monotone |= correlations > _MIN_TIME_CORRELATION
    return tuple(np.flatnonzero(monotone).tolist())


def _correlated_columns(last: Floats, columns: tuple[int, ...], time: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the sets of columns that are connected by strong correlations of two of their features."""
    if not len(last):
        return ()
    kept = np.setdiff1d(np.arange(len(columns)), time)
    correlations = last[:, kept].T @ last[:, kept]
    group = {columns[k]: {columns[k]} for k in kept.tolist()}
    for i, j in np.argwhere(np.abs(np.triu(correlations, 1)) > _MIN_CORRELATION).tolist():
        first, second = columns[kept[i]], columns[kept[j]]
        if group[first] is not group[second]:
            merged = group[first] | group[second]
            group.update(dict.fromkeys(merged, merged))
    sets = {tuple(sorted(each)) for each in group.values() if 1 < len(each) < len(group)}
    return tuple(sorted(sets))
