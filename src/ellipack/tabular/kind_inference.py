"""Infer the kind of a column, and how its cells are written, from its first cells: `infer_kind`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.cell_options import CellOptions
from ellipack.tabular.columns import Cells, is_datetime_type, is_numeric_type, is_string_type
from ellipack.tabular.number_column import BOOLEAN_PAIRS
from ellipack.tabular.number_format import PLAIN, FoundFormat, NumberFormat, Separators, find_number_format
from ellipack.tabular.table_batch import escape_name, quote_value, to_clean_strings, to_strings
from ellipack.tabular.time_column import TimeCells, parse_datetimes, parse_times_of_day
from ellipack.validation import Ints

INFERENCE_ROWS = 1000
"""Number of rows from which the kind of a column is inferred."""

_MIN_SHARE = 0.95  # of the values that must parse
_MIN_SIMILAR = 0.5  # share of numbers from which text is said to look like numbers
_MIN_VALUES = 20  # needed to tolerate invalid values, or to find identifiers and row counters
_PREVIEW_VALUES = 20  # parsed first, to reject a kind early
_DAY = 86_400 * 10**6


@dataclass(frozen=True)
class Sample:
    """The first cells of a column.

    Attributes
    ----------
    name : str
        Name of the column.
    cells : pyarrow.Array
        The cells.
    row_numbers : ndarray of int
        Their row numbers.
    """

    name: str
    cells: pa.Array
    row_numbers: Ints

    @classmethod
    def of(cls, name: str, cells: pa.Array) -> "Sample":
        """Return the sample of a column that starts in row 1."""
        return cls(name, cells, np.arange(1, len(cells) + 1))

    @property
    def is_text(self) -> bool:
        """Whether the cells have no type other than text."""
        return is_string_type(self.cells.type)

    @cached_property
    def values(self) -> pa.Array:
        """Cells that are not missing: numbers, times and Booleans unchanged, others as stripped strings."""
        kind = self.cells.type
        if is_numeric_type(kind) or is_datetime_type(kind) or pa.types.is_time(kind) or pa.types.is_boolean(kind):
            return self.cells.drop_null()
        return to_clean_strings(self.cells).drop_null()

    def describe_invalid(self, parse: Callable[[pa.Array], Cells]) -> str:
        """Return how many cells do not parse, and which is the first; an empty string if all do."""
        invalid = np.flatnonzero(parse(self.cells).invalid)
        if not len(invalid):
            return ""
        value = quote_value(to_strings(self.cells.slice(invalid[0], 1))[0].as_py())
        row = f"{value} in row {self.row_numbers[invalid[0]]:,}"
        return f"{len(invalid):,} of its first {len(self.cells):,} values are not, such as {row}"


@dataclass(frozen=True)
class InferredKind:
    """Inferred kind of a column.

    Attributes
    ----------
    kind : str
        One of `ellipack.choices.COLUMN_KINDS`.
    number_format : NumberFormat, default PLAIN
        How numbers are written, if the kind is ``number``.
    form : str, default ""
        One of `TIME_FORMS` if the kind is ``time``.
    note : str, default ""
        Remark for the report.
    warnings : list of str
        Warnings for the user.
    n_levels : int, default 0
        Number of distinct values if the kind is ``category``.
    left_out : str, default ""
        Why the column is not used, unless it is asked for.
    """

    kind: str
    number_format: NumberFormat = PLAIN
    form: str = ""
    note: str = ""
    warnings: list[str] = field(default_factory=list)
    n_levels: int = 0
    left_out: str = ""


_NO_OPTIONS, _UNKNOWN = CellOptions(), Separators()


def infer_kind(
    sample: Sample, kind: str | None = None, options: CellOptions = _NO_OPTIONS, usual: Separators = _UNKNOWN
) -> InferredKind:
    """Infer the kind of a column from its first values.

    Parameters
    ----------
    sample : Sample
        The first cells of the column.
    kind : str or None, default None
        Kind, if it is given and not inferred.
    options : CellOptions, default CellOptions()
        What is given and not inferred.
    usual : Separators, default Separators()
        Separators of numbers in the other columns.

    Returns
    -------
    InferredKind
        The kind, with a note and warnings.

    Examples
    --------
    >>> infer_kind(Sample.of("sky", pa.array(["clear", "rain", "clear"]))).kind
    'category'
    >>> infer_kind(Sample.of("when", pa.array(["2024-05-31", "2024-06-01"]))).form
    'date'
    >>> infer_kind(Sample.of("price", pa.array(["1,50 €", "12,00 €"]))).note
    'decimal comma, in €'
    """
    values, number = sample.values, FoundFormat(PLAIN, 0.0)
    if kind == "number" or (kind is None and sample.is_text):
        number = find_number_format(values, options.separators, usual) if len(values) else number
    found = kind or _detect_kind(sample.cells.type, values, number)
    if not len(values):
        rows = f"the first {len(sample.cells):,} rows"
        warning = f"column '{sample.name}' has no values in {rows} and is treated as {found}"
        form = _time_form(values) if found == "time" else ""
        return InferredKind(found, form=form, note="no values at first", warnings=[warning])
    if found == "category":
        return _infer_category(sample, number, is_given=kind is not None)
    if found == "time":
        return InferredKind("time", form=_time_form(values), note=_constant_note(values))
    if found == "number":
        return _infer_number(sample, number)
    return InferredKind(found, note=_constant_note(values))


def _detect_kind(kind: pa.DataType, values: pa.Array, number: FoundFormat) -> str:
    """Return the kind for a type and values."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if is_datetime_type(kind) or pa.types.is_time(kind):
        return "time"
    if is_numeric_type(kind) or (len(values) and _is_enough(number.share, len(values))):
        return "number"
    if any({*pc.utf8_lower(values).unique().to_pylist()} == {*pair} for pair in BOOLEAN_PAIRS):
        return "boolean"
    return (
        "time" if _mostly_parses(parse_datetimes, values) or _mostly_parses(parse_times_of_day, values) else "category"
    )


def _mostly_parses(parse: Callable[[pa.Array], Cells], values: pa.Array) -> bool:
    """Return whether all values parse, or enough of them that the others are probably errors."""
    if not len(values) or parse(values.slice(0, _PREVIEW_VALUES)).invalid.mean() > 0.5:
        return False
    return _is_enough(1 - float(parse(values).invalid.mean()), len(values))


def _is_enough(share: float, count: int) -> bool:
    """Return whether the share of the values that parse is so large that the others are probably errors."""
    return share == 1 or (count >= _MIN_VALUES and share >= _MIN_SHARE)


def _time_form(values: pa.Array) -> str:
    """Return the form of a time column, one of `TIME_FORMS`."""
    if pa.types.is_time(values.type) or (
        not is_datetime_type(values.type) and _mostly_parses(parse_times_of_day, values)
    ):
        return "time of day"
    cells: TimeCells = parse_datetimes(values)
    return "datetime" if (cells.values[~cells.invalid] % _DAY).any() else "date"


def _infer_number(sample: Sample, found: FoundFormat) -> InferredKind:
    """Infer notes and warnings of a number column."""
    name, warnings, numbers = escape_name(sample.name), [], found.format.parse(sample.cells)
    if invalid := sample.describe_invalid(found.format.parse):
        warnings.append(f"column '{name}' is treated as number, although {invalid}")
    if found.is_ambiguous:
        example = next(value for value in sample.values.to_pylist() if "," in value)
        reading = f"{found.format.parse(pa.array([example])).values[0]:.0f}"
        warnings.append(
            f"column '{name}': {example!r} is read as {reading}; if it is a decimal comma, run with --decimal ,"
        )
    left_out = ""
    if len(sample.cells) >= _MIN_VALUES and (np.diff(numbers.values) == 1).all():
        left_out = "counts the rows"
    note = "; ".join(filter(None, [found.format.describe(), left_out or _constant_note(sample.values)]))
    return InferredKind("number", found.format, note=note, warnings=warnings, left_out=left_out)


def _infer_category(sample: Sample, number: FoundFormat, *, is_given: bool) -> InferredKind:
    """Infer notes and warnings of a category column."""
    values, name, warnings = sample.values, escape_name(sample.name), []
    n_distinct = len(values.unique())
    if not is_given and number.share >= _MIN_SIMILAR:
        invalid = sample.describe_invalid(number.format.parse)
        remedy = f"correct them, name spellings of missing values with --na, or run with --kind '{name}=number'"
        warnings.append(f"column '{name}' is treated as text, although it looks like numbers: {invalid}: {remedy}")
    is_identifier = len(values) >= _MIN_VALUES and n_distinct >= _MIN_SHARE * len(values)
    counts = f"{n_distinct:,} different values in {len(values):,} rows"
    if is_identifier and n_distinct == len(sample.cells):
        note = f"an identifier: {counts}"
        return InferredKind("category", note=note, warnings=warnings, n_levels=n_distinct, left_out=note)
    if is_identifier:
        drop = f"otherwise exclude it with --drop '{name}'"
        warnings.append(f"column '{name}' has {counts}, which help to predict only if they come again: {drop}")
    note = "an identifier at first" if is_identifier else _constant_note(values)
    return InferredKind("category", note=note, warnings=warnings, n_levels=n_distinct)


def _constant_note(values: pa.Array) -> str:
    """Return a note if all values are equal."""
    return "constant at first" if len(values) > 1 and len(values.unique()) == 1 else ""
