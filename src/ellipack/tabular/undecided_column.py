"""Columns whose kind is not decided yet, because they have had too few values: `UndecidedColumn`."""

import math
from copy import copy
from dataclasses import asdict, dataclass

import numpy as np

from ellipack.learners.metric.effects import EffectGrid
from ellipack.tabular.arrow import pa
from ellipack.tabular.category_column import LevelOptions
from ellipack.tabular.columns import (
    Bools,
    JsonDict,
    NewFeature,
    get_bool,
    get_entry,
    get_int,
    get_ints,
    get_optional_str,
    get_str,
    get_strs,
    invalid_entry,
    is_numeric_type,
)
from ellipack.tabular.kind_inference import MIN_VALUES, Sample
from ellipack.tabular.table_batch import to_clean_strings
from ellipack.validation import Floats, Ints


@dataclass(frozen=True)
class UndecidedCells:
    """Cells of an undecided column, of which only the mask of missing values is known."""

    missing: Bools

    @property
    def invalid(self) -> Bools:
        """Mask of the invalid cells: all false."""
        return np.zeros(len(self.missing), dtype=bool)

    def filter(self, rows: Bools) -> "UndecidedCells":
        """Return the cells of the rows where the mask is true."""
        return UndecidedCells(self.missing[rows])


class UndecidedColumn:
    """Column that waits for its first `MIN_VALUES` values, from which its kind is decided. It has no features.

    Parameters
    ----------
    name : str
        Name of the column.
    levels : LevelOptions
        Options of the column, if it becomes one of categories.
    given : str or None, default None
        Kind that the user has set. How the cells are written is open all the same.

    Attributes
    ----------
    n_missing : int
        Number of missing values so far.
    left_out : str
        Why the column is not used although it had enough values; empty before.

    Examples
    --------
    >>> column = UndecidedColumn("wind", LevelOptions())
    >>> column.remember(pa.array(["", "3", None]), np.array([1, 2, 3]))
    >>> column.note
    '1 value so far; its kind is decided from 20 values'
    """

    kind = "undecided"

    def __init__(self, name: str, levels: LevelOptions, given: str | None = None) -> None:
        self.name, self.options, self.given = name, levels, given
        self.n_missing, self.left_out = 0, ""
        self._values, self._rows, self._is_numeric = list[str](), list[int](), True

    @property
    def note(self) -> str:
        """Remark for the report."""
        if self.left_out:
            return f"left out: {self.left_out}"
        count = len(self._values)
        found = f"{count} {'value' if count == 1 else 'values'} so far" if count else "no values so far"
        return f"{found}; its kind is decided from {MIN_VALUES} values"

    def describe_format(self) -> str:
        """Return an empty string: nothing is known."""
        return ""

    def n_rows_needed(self, cells: pa.Array) -> int | None:
        """Return how many of these cells are needed to decide the kind; None if all are not enough."""
        (present,) = to_clean_strings(cells).is_valid().to_numpy(zero_copy_only=False).nonzero()
        needed = MIN_VALUES - len(self._values)
        return None if self.left_out or len(present) < needed else int(present[needed - 1]) + 1

    def remember(self, cells: pa.Array, row_numbers: Ints) -> None:
        """Remember the values among the next cells, up to `MIN_VALUES`."""
        texts = to_clean_strings(cells).to_pylist()
        found = [(text, row) for text, row in zip(texts, row_numbers.tolist(), strict=True) if text is not None]
        for text, row in found[: MIN_VALUES - len(self._values)]:
            self._values.append(text)
            self._rows.append(row)
            self._is_numeric &= is_numeric_type(cells.type)

    @property
    def sample(self) -> Sample:
        """The values so far: numbers if all had a type of numbers, otherwise text."""
        cells = pa.array(self._values, pa.string())
        return Sample(self.name, cells.cast(pa.float64()) if self._is_numeric else cells, np.array(self._rows))

    def parse(self, column: pa.Array) -> UndecidedCells:
        """Find the missing values."""
        return UndecidedCells(to_clean_strings(column).is_null().to_numpy(zero_copy_only=False))

    def explain_invalid(self, value: str) -> str:
        """Return an empty string: any value is valid."""
        return ""

    def draft(self) -> "UndecidedColumn":
        """Return the same column, which can be changed without effect on this one."""
        own = copy(self)
        own._values, own._rows = list(self._values), list(self._rows)
        return own

    def partial_fit_transform(self, cells: UndecidedCells, labels: Floats) -> tuple[None, list[NewFeature]]:
        """Count missing values. There are no features."""
        self.n_missing += int(np.count_nonzero(cells.missing))
        return None, []

    def transform(self, cells: UndecidedCells) -> None:
        """Do nothing: there are no features."""

    def write_features(self, encoded: None, X: Floats) -> None:
        """Do nothing: there are no features."""

    def add_feature(self, feature: int) -> None:
        """Do nothing: there are no features."""

    def feature_names(self) -> dict[int, str]:
        """Return an empty dictionary: there are no features."""
        return {}

    def effect_grids(self, rows: Floats) -> list[EffectGrid]:
        """Return an empty list: there are no features."""
        return []

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        own = {"name": self.name, "kind": self.kind, "given": self.given, "options": asdict(self.options)}
        values = {"values": list(self._values), "rows": list(self._rows), "is_numeric": self._is_numeric}
        return own | values | {"missing": self.n_missing, "left_out": self.left_out}

    @classmethod
    def from_dict(cls, data: JsonDict) -> "UndecidedColumn":
        """Restore the state from `to_dict`; raise ModelFileError if it is invalid."""
        options = LevelOptions.from_dict(get_entry(data, "options"))
        column = cls(get_str(data, "name"), options, get_optional_str(data, "given"))
        column.n_missing, column.left_out = get_int(data, "missing"), get_str(data, "left_out")
        column._values, column._rows = get_strs(data, "values"), get_ints(data, "rows")
        column._is_numeric = get_bool(data, "is_numeric")
        most = MIN_VALUES if column.left_out else MIN_VALUES - 1
        if len(column._values) != len(column._rows) or len(column._values) > most:
            raise invalid_entry("values", f"at most {most} values, with their rows", len(column._values))
        if column._is_numeric and not all(map(_is_number, column._values)):
            raise invalid_entry("is_numeric", "false, because values are text", column._is_numeric)
        return column


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
