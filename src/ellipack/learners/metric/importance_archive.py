"""Archives of what was measured about the importance of columns."""

from typing import Any

import numpy as np

from ellipack._core import FeatureGroup, ImportanceParts
from ellipack.errors import ModelFileError
from ellipack.learners.metric.column_groups import ALL, COLUMN, FEATURES, TIME, TOGETHER, GroupKey, GroupLayout
from ellipack.serialization import Archive
from ellipack.validation import MAX_ABS_LABEL, MAX_ABS_VALUE, Ints

_MAX_GROUPS = 100_000
_MAX_GRADIENT = 1e150
_MAX_SUM = 1e290  # sums that rounds add to stay finite


def importance_to_archive(importance: ImportanceParts | None, layout: GroupLayout) -> Archive:
    """Return an archive of the measurement; of the columns alone if nothing is measured."""
    arrays: dict[str, Any] = {"columns": np.array(layout.columns, dtype=np.int64)}
    if importance is None:
        return Archive({"measured": False}, arrays)
    facts = {
        "measured": True,
        "seed": importance.seed,
        "seen": importance.seen,
        "kinds": [key.kind for key in layout.keys],
        "group_columns": [list(key.columns) for key in layout.keys],
    }
    arrays["rows"], arrays["gradients"], arrays["past_rows"] = importance.sample
    arrays["errors"], arrays["last_row"] = importance.errors, importance.last_row
    arrays["increases"], arrays["decreases"] = importance.moves
    arrays["slope_model"] = importance.slope_model
    arrays["time"] = np.array(layout.time, dtype=np.int64)
    groups = importance.groups
    arrays["group_features"] = np.concatenate([np.zeros(0, dtype=np.int64), *(group.features for group in groups)])
    arrays["group_sizes"] = np.array([len(group.features) for group in groups], dtype=np.int64)
    arrays["counts"] = np.array([group.count for group in groups], dtype=np.int64)
    arrays["fractions"] = np.array([group.fraction for group in groups])
    arrays["changes"] = np.array([group.change for group in groups])
    arrays["sizes"] = np.array([group.size for group in groups])
    arrays["priorities"] = np.array([group.priority for group in groups])
    arrays["sums"] = np.array([group.sums for group in groups])
    return Archive(facts, arrays)


def importance_from_archive(
    saved: Archive, d: int, past_dimension: int, rounds: int
) -> tuple[ImportanceParts | None, GroupLayout]:
    """Restore the measurement from an archive.

    Parameters
    ----------
    saved : Archive
        The archive.
    d : int
        Number of features.
    past_dimension : int
        Number of features of the past.
    rounds : int
        Number of rounds.

    Returns
    -------
    importance : ImportanceParts or None
        None if nothing is measured.
    layout : GroupLayout
        Groups of features.

    Raises
    ------
    ModelFileError
        If the archive is not valid.
    """
    columns = tuple(saved.ints("columns", d, most=_MAX_GROUPS).tolist())
    if not saved.fact("measured", bool):
        return None, GroupLayout(columns, ())
    keys = _restore_keys(saved, columns)
    time = saved.ints("time", saved.shape("time", 1)[0], most=d - 1)
    if (np.diff(time) <= 0).any():
        raise ModelFileError(f"{saved.prefix}time must be in ascending order")
    others = set(np.delete(np.array(columns), time).tolist())
    for key in keys:
        if key.kind == TOGETHER and not (len(key.columns) == len(set(key.columns)) >= 2 and others >= set(key.columns)):
            raise ModelFileError(
                f"{saved.prefix}group_columns must be two or more different columns of which no one is time, if they "
                f"are correlated, got {list(key.columns)}"
            )
    seen, labels = saved.integer("seen", 0, rounds), (2 * MAX_ABS_LABEL) ** 2
    count, features = min(seen, ImportanceParts.max_rows), 2 * MAX_ABS_VALUE
    arguments: dict[str, Any] = {
        "seed": saved.integer("seed", 0),
        "groups": _restore_groups(saved, keys, d, rounds),
        "seen": seen,
        "sample": (
            saved.floats_between(-features, features, "rows", count, d),
            saved.floats_between(-_MAX_GRADIENT, _MAX_GRADIENT, "gradients", count, d),
            saved.floats_between(-features, features, "past_rows", count, past_dimension),
        ),
        "errors": saved.floats_between(0.0, max(4 * labels, float(rounds)), "errors", 5),
        "last_row": saved.floats_between(-features, features, "last_row", d),
        "moves": (saved.ints("increases", d, most=rounds), saved.ints("decreases", d, most=rounds)),
        "slope_model": saved.floats_between(-_MAX_GRADIENT, _MAX_GRADIENT, "slope_model", _model_size(saved, d), d),
    }
    try:
        importance = ImportanceParts(**arguments)
    except ValueError as error:
        raise ModelFileError(f"{saved.prefix}{error}") from error
    return importance, GroupLayout(columns, keys, tuple(time.tolist()))


def _model_size(saved: Archive, d: int) -> int:
    """Return the number of rows of the model of slopes; there may be none."""
    count = saved.shape("slope_model", 2)[0]
    if count not in (0, d + 1):
        raise ModelFileError(f"{saved.prefix}slope_model must have no rows or {d + 1}, got {count}")
    return count


def _restore_keys(saved: Archive, columns: tuple[int, ...]) -> tuple[GroupKey, ...]:
    """Restore what identifies the groups."""
    kinds, listed = saved.strings("kinds"), saved.fact("group_columns", list)
    known = set(columns)
    valid = len(listed) == len(kinds) <= _MAX_GROUPS and all(
        isinstance(each, list) and all(type(column) is int and column in known for column in each) for each in listed
    )
    if not valid or not set(kinds) <= {COLUMN, TOGETHER, TIME, FEATURES, ALL}:
        raise ModelFileError(f"{saved.prefix}kinds and group_columns must describe groups of the columns")
    keys = tuple(GroupKey(kind, tuple(each)) for kind, each in zip(kinds, listed, strict=True))
    if len(set(keys)) < len(keys) or any((key.kind == COLUMN) != (len(key.columns) == 1) for key in keys):
        raise ModelFileError(f"{saved.prefix}groups must be different, and those of a column must have one")
    return keys


def _restore_groups(saved: Archive, keys: tuple[GroupKey, ...], d: int, rounds: int) -> list[FeatureGroup]:
    """Restore the groups and their sums."""
    count = len(keys)
    sizes = saved.ints("group_sizes", count, most=d)
    features = saved.ints("group_features", int(sizes.sum()), most=d - 1)
    counts = saved.ints("counts", count, most=rounds)
    fractions = saved.floats_between(0.0, 1.0, "fractions", count)
    changes, means = (saved.floats_between(0.0, _MAX_SUM, name, count, 2) for name in ("changes", "sizes"))
    priorities = saved.floats_between(0.0, 1.0, "priorities", count)
    sums = saved.floats_between(-_MAX_SUM, _MAX_SUM, "sums", count, 2, FeatureGroup.sum_count)
    parts: list[Ints] = np.split(features, np.cumsum(sizes)[:-1]) if count else []
    try:
        return [
            FeatureGroup(
                parts[k],
                keys[k].kind in (TIME, ALL),
                priorities[k],
                counts[k],
                fractions[k],
                tuple(changes[k]),
                tuple(means[k]),
                sums[k],
            )
            for k in range(count)
        ]
    except ValueError as error:
        raise ModelFileError(f"{saved.prefix}{error}") from error
