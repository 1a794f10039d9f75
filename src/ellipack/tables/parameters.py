"""Parameters of `TableRegressor` in a standard form, after a check of each: `TableParameters`."""

import math
from collections.abc import Collection, Mapping, Set
from numbers import Real
from reprlib import repr as short_repr
from typing import Any, NamedTuple, Self

import numpy as np

from ellipack.choices import COLUMN_KINDS, ON_ERROR_CHOICES
from ellipack.errors import DomainError, InputError
from ellipack.estimators import KeyedRegressor, MetricRegressor
from ellipack.estimators.base import StreamingRegressor
from ellipack.learners.metric.sharded_learning import Workers
from ellipack.tabular import CellOptions, LevelOptions
from ellipack.validation import check_integer


class TableParameters(NamedTuple):
    """Parameters of `TableRegressor`, with names of columns as text. See there."""

    target: str | None
    learner: StreamingRegressor[Any] | None
    by: tuple[str, ...] | None
    take: tuple[str, ...] | None
    drop: tuple[str, ...]
    kinds: dict[str, str]
    levels: LevelOptions
    cells: CellOptions
    minimum: float | None
    maximum: float | None
    id_column: str | None
    on_error: str

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Check parameters by name; raise `InputError` at the first one that breaks a rule.

        Examples
        --------
        >>> given = {"target": 4, "drop": "url", "levels": 8}
        >>> checked = TableParameters.of(dict.fromkeys(TableParameters._fields) | {"on_error": "stop"} | given)
        >>> checked.target, checked.drop, checked.levels.one_hot
        ('4', ('url',), 8)
        """
        return cls(
            target=_optional_name(given["target"], "target"),
            learner=_learner(given["learner"], has_keys=given["by"] is not None),
            by=None if given["by"] is None else column_names(given["by"], "by"),
            take=None if given["take"] is None else column_names(given["take"], "take"),
            drop=() if given["drop"] is None else column_names(given["drop"], "drop"),
            kinds=_kinds(given["kinds"]),
            levels=_levels(given["levels"]),
            cells=_cells(given["cells"]),
            minimum=_bound(given["minimum"], "minimum"),
            maximum=_bound(given["maximum"], "maximum"),
            id_column=_optional_name(given["id_column"], "id_column"),
            on_error=_on_error(given["on_error"]),
        )


def column_name(value: Any, parameter: str) -> str:
    """Return the name of a column as text, as tables have it: an integer is the name of a column of a data frame."""
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{parameter} must be the name of a column, got {short_repr(value)}")


def column_names(value: Any, parameter: str) -> tuple[str, ...]:
    """Return names of columns as text; a single name counts as a list of one.

    Examples
    --------
    >>> column_names("url", "drop"), column_names(["url", 3], "drop")
    (('url',), ('url', '3'))
    >>> column_names({"store", "item"}, "by")
    ('item', 'store')
    """
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool):
        return (str(value),)
    if isinstance(value, Collection) and not isinstance(value, Mapping | bytes):
        names = sorted(value, key=str) if isinstance(value, Set) else list(value)  # the order of a set may change
        if all(isinstance(name, str | int | np.integer) and not isinstance(name, bool) for name in names):
            return tuple(map(str, names))
    raise InputError(f"{parameter} must be the name of a column, or a list of names, got {short_repr(value)}")


def check_workers(workers: Any) -> Workers | None:
    """Return workers or None; raise `InputError` for anything else."""
    if isinstance(workers, Workers | None):
        return workers
    raise InputError(f"workers must be ellipack.Workers(executor) or None, got {short_repr(workers)}")


def _optional_name(value: Any, parameter: str) -> str | None:
    return None if value is None else column_name(value, parameter)


def _learner(value: Any, *, has_keys: bool) -> StreamingRegressor[Any] | None:
    if not isinstance(value, StreamingRegressor | None):
        rule = "a regressor of ellipack, such as MetricRegressor(), or None"
        raise InputError(f"learner must be {rule}, got {short_repr(value)}")
    if has_keys and not isinstance(value, MetricRegressor | KeyedRegressor | None):
        raise InputError(f"by needs a MetricRegressor or a KeyedRegressor as learner, got a {type(value).__name__}")
    return value


def _kinds(value: Any) -> dict[str, str]:
    rule = f"a dictionary from names of columns to kinds, which are {', '.join(COLUMN_KINDS)}"
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(kind, str) for kind in value.values()):
        raise InputError(f"kinds must be {rule}, got {short_repr(value)}")
    return {column_name(name, "kinds, for each key,"): kind for name, kind in value.items()}


def _levels(value: Any) -> LevelOptions:
    if value is None or isinstance(value, LevelOptions):
        return value or LevelOptions()
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return LevelOptions(one_hot=check_integer(int(value), "levels", 0))
    raise InputError(f"levels must be an integer >= 0, LevelOptions or None, got {short_repr(value)}")


def _cells(value: Any) -> CellOptions:
    if not isinstance(value, CellOptions | None):
        raise InputError(f'cells must be CellOptions, such as CellOptions(decimal=","), or None, got {value!r}')
    return value or CellOptions()


def _bound(value: Any, parameter: str) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number:
        raise DomainError(f"{parameter} must be a number or None, got {short_repr(value)}")
    try:
        return float(value)
    except OverflowError:  # an integer beyond the largest float
        return math.inf if value > 0 else -math.inf


def _on_error(value: Any) -> str:
    if not isinstance(value, str) or value not in ON_ERROR_CHOICES:
        raise DomainError(f"on_error must be one of {', '.join(ON_ERROR_CHOICES)}, got {short_repr(value)}")
    return value
