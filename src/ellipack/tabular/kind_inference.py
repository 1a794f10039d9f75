"""Infer the kind of a column, and how its cells are written, from its first cells: `infer_kind`."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.cell_options import CellOptions
from ellipack.tabular.columns import Cells, is_datetime_type, is_numeric_type, is_string_type
from ellipack.tabular.number_column import BOOLEAN_PAIRS
from ellipack.tabular.number_format import PLAIN, FoundFormat, NumberFormat, Separators, find_number_format
from ellipack.tabular.table_batch import MAX_EXACT_FLOAT, escape_name, quote_value, to_clean_strings, to_strings
from ellipack.tabular.time_column import has_varying_part
from ellipack.tabular.time_format import ISO, TIME_OF_DAY, TimeFormat
from ellipack.tabular.time_inference import FoundTimes, find_numeric_times, find_time_format, has_known_format
from ellipack.validation import Ints

INFERENCE_ROWS = 1000
"""Number of rows from which the kind of a column is inferred."""

MIN_VALUES = 20
"""Number of values that are needed to tolerate invalid values, or to find identifiers and row counters."""

_MIN_SHARE = 0.95  # of the values that must parse
_MIN_SIMILAR = 0.5  # share of numbers from which text is said to look like numbers
_MIN_NUMBERS, _MAX_WORDS = 5, 2  # different ones, from which words are taken for spellings of missing values
_SKIP = "--on-error skip skips such rows"
_LONG_INTEGER = "^[-+]?[0-9]{16,300}$"
_DATES = r"(^|[^0-9])(19|20)[0-9]{2}([^0-9]|$)"  # a year, in text that may contain dates
_MIN_DATES = 0.9  # share of values with a year from which text is said to look like dates


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
    values : pyarrow.Array
        Cells that are not missing: numbers, times and Booleans unchanged, others as stripped strings.
    """

    name: str
    cells: pa.Array
    row_numbers: Ints
    values: pa.Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _present_values(self.cells))

    @classmethod
    def of(cls, name: str, cells: pa.Array) -> "Sample":
        """Return the sample of a column that starts in row 1."""
        return cls(name, cells, np.arange(1, len(cells) + 1))

    @property
    def is_text(self) -> bool:
        """Whether the cells have no type other than text."""
        return is_string_type(self.cells.type)

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
    time_format : TimeFormat, default ISO
        How times are written, if the kind is ``time``.
    question : str, default ""
        What the user has to decide, because the values do not.
    note : str, default ""
        Remark for the report.
    warnings : list of str
        Warnings for the user.
    n_levels : int, default 0
        Number of distinct values if the kind is ``category``.
    left_out : str, default ""
        Why the column is not used, unless it is asked for.
    only_level : str or None, default None
        The value of all cells, if the kind is ``category``, there are at least `MIN_VALUES`, and they are all equal.
    """

    kind: str
    number_format: NumberFormat = PLAIN
    time_format: TimeFormat = ISO
    question: str = ""
    note: str = ""
    warnings: list[str] = field(default_factory=list)
    n_levels: int = 0
    left_out: str = ""
    only_level: str | None = None


_NO_OPTIONS, _UNKNOWN = CellOptions(), Separators()
_NOT_SIMILAR = "", ""


def infer_kind(
    sample: Sample,
    kind: str | None = None,
    options: CellOptions = _NO_OPTIONS,
    usual: Separators = _UNKNOWN,
    usual_times: TimeFormat | None = None,
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
    usual_times : TimeFormat or None, default None
        Format of dates in another column.

    Returns
    -------
    InferredKind
        The kind, with a note and warnings.

    Examples
    --------
    >>> infer_kind(Sample.of("sky", pa.array(["clear", "rain", "clear"]))).kind
    'category'
    >>> infer_kind(Sample.of("when", pa.array(["31.5.2024", "1.6.2024"]))).time_format.pattern
    '%d.%m.%Y'
    >>> infer_kind(Sample.of("price", pa.array(["1,50 €", "12,00 €"]))).note
    'decimal comma, in €'
    """
    values, number, times = sample.values, FoundFormat(PLAIN, 0.0), FoundTimes(ISO, 0.0)
    if kind == "number" or (kind is None and sample.is_text):
        number = find_number_format(values, options.separators, usual)
    is_number = is_numeric_type(sample.cells.type) or _is_enough(number.share, len(values))
    if sample.name in options.time_formats:
        kind = "time"
        times = FoundTimes(TimeFormat(options.time_formats[sample.name]).with_zone_of(values), 1.0)
    elif kind == "time" or (kind is None and not is_number):
        times = _find_times(sample, usual_times)
    elif kind is None and (format := find_numeric_times(sample.name, values)):
        kind, times = "time", FoundTimes(format, 1.0)
    found = kind or _detect_kind(sample.cells.type, values, is_number, times)
    if found == "category":
        similar = _find_similar(sample, number, times, options) if kind is None else _NOT_SIMILAR
        return _infer_category(sample, similar)
    if found == "time":
        return _infer_time(sample, times)
    if found == "number":
        return _infer_number(sample, number)
    return InferredKind(found, note=_constant_note(values))


def warn_of_lost_digits(sample: Sample) -> list[str]:
    """Return a warning if the first values of a number column have integers that lose digits as floats.

    Examples
    --------
    >>> (warning,) = warn_of_lost_digits(Sample.of("id", pa.array([1, 9007199254740993])))
    >>> warning.partition(":")[0]
    "column 'id' has whole numbers beyond 2^53, such as '9007199254740993' in row 2, which lose digits as numbers"
    """
    if pa.types.is_floating(sample.cells.type):
        return []
    texts = to_clean_strings(sample.cells)
    long = texts.filter(pc.match_substring_regex(texts, _LONG_INTEGER).fill_null(False))
    large = next((text for text in long.to_pylist() if abs(int(text)) > MAX_EXACT_FLOAT), None)
    if large is None:
        return []
    name, row = escape_name(sample.name), sample.row_numbers[pc.index(texts, large).as_py()]
    numbers = f"whole numbers beyond 2^53, such as {quote_value(large)} in row {row:,}, which lose digits as numbers"
    return [f"column '{name}' has {numbers}: run with --kind '{name}=category' or --drop '{name}'"]


def _find_times(sample: Sample, usual: TimeFormat | None) -> FoundTimes:
    """Return the format of times."""
    kind = sample.cells.type
    if is_datetime_type(kind) or pa.types.is_time(kind):
        return FoundTimes(TIME_OF_DAY if pa.types.is_time(kind) else ISO, 1.0)
    if is_numeric_type(kind):
        return FoundTimes(find_numeric_times("time", sample.values) or ISO, 1.0)
    return find_time_format(to_strings(sample.values), usual) if len(sample.values) else FoundTimes(ISO, 0.0)


def _detect_kind(kind: pa.DataType, values: pa.Array, is_number: bool, times: FoundTimes) -> str:
    """Return the kind for a type and values."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if is_datetime_type(kind) or pa.types.is_time(kind):
        return "time"
    if is_number:
        return "number"
    if any({*pc.unique(pc.utf8_lower(values)).to_pylist()} == {*pair} for pair in BOOLEAN_PAIRS):
        return "boolean"
    return "time" if _is_enough(times.share, len(values)) else "category"


def _is_enough(share: float, count: int) -> bool:
    """Return whether the share of the values that parse is so large that the others are probably errors."""
    return share == 1 or (count >= MIN_VALUES and share >= _MIN_SHARE)


def _infer_time(sample: Sample, found: FoundTimes) -> InferredKind:
    """Infer parts, notes and warnings of a time column."""
    name, format, warnings, question = escape_name(sample.name), found.format, [], ""
    if invalid := sample.describe_invalid(format.parse):
        warnings.append(f"column '{name}' is treated as dates or times, although {invalid}; {_SKIP}")
    if found.rivals:
        example = quote_value(to_strings(sample.values.slice(0, 1))[0].as_py())
        formats = [f"--time-format '{name}={each.pattern}'" for each in (format, *found.rivals)]
        question = (
            f"column '{name}': the order of day and month in {example} is not clear: run with {' or '.join(formats)}"
        )
    varies = (
        format.is_time_of_day or len(sample.values) < MIN_VALUES or has_varying_part(format.parse(sample.cells), format)
    )
    note = "" if varies else "no periodic part varies: --trend uses the days"
    return InferredKind("time", time_format=format, question=question, note=note, warnings=warnings)


def _infer_number(sample: Sample, found: FoundFormat) -> InferredKind:
    """Infer notes and warnings of a number column."""
    name, warnings, numbers = escape_name(sample.name), [], found.format.parse(sample.cells)
    if invalid := sample.describe_invalid(found.format.parse):
        warnings.append(f"column '{name}' is treated as a number, although {invalid}; {_SKIP}")
    if found.is_ambiguous:
        example = next(value for value in sample.values.to_pylist() if "," in value)
        reading = f"{found.format.parse(pa.array([example])).values[0]:.0f}"
        warnings.append(
            f"column '{name}': {example!r} is read as {reading}; if it is a decimal comma, run with --decimal ,"
        )
    left_out = ""
    if len(sample.cells) >= MIN_VALUES and (np.diff(numbers.values) == 1).all():
        left_out = "counts the rows"
    is_shown = found.format.currency or found.format.unit or _has_separator(sample.values, found.format)
    format = found.format.describe() if is_shown else ""  # of numbers without a separator, only other columns tell
    note = "; ".join(filter(None, [format, left_out or _constant_note(sample.values)]))
    return InferredKind("number", found.format, note=note, warnings=warnings, left_out=left_out)


def _has_separator(values: pa.Array, format: NumberFormat) -> bool:
    """Return whether a value has a separator of a format that is not plain."""
    separators = [] if format.is_plain else [format.decimal, format.thousands]
    return any(each in str(value) for each in separators if each for value in values.to_pylist())


def _infer_category(sample: Sample, looks_like: tuple[str, str]) -> InferredKind:
    """Infer notes and warnings of a category column. `looks_like` is a result of `_find_similar`."""
    values, name, warnings = sample.values, escape_name(sample.name), []
    n_distinct = len(pc.unique(values))
    similar, remedy = looks_like
    if similar:
        warnings.append(f"column '{name}' is treated as text, although it looks like {similar}: {remedy}")
    is_identifier = len(values) >= MIN_VALUES and n_distinct >= _MIN_SHARE * len(values)
    counts = f"{n_distinct:,} different values in {len(values):,} rows"
    if is_identifier and n_distinct == len(values):
        note = f"an identifier: {counts}"
        return InferredKind("category", note=note, warnings=warnings, n_levels=n_distinct, left_out=note)
    if is_identifier:
        drop = f"otherwise exclude it with --drop '{name}'"
        warnings.append(f"column '{name}' has {counts}, which help to predict only if they come again: {drop}")
    note = "an identifier at first" if is_identifier else _constant_note(values)
    note = "; ".join(filter(None, [note, f"looks like {similar}" if similar else ""]))
    is_constant = len(values) == len(sample.cells) >= MIN_VALUES and n_distinct == 1
    only_level = str(to_clean_strings(values.slice(0, 1))[0].as_py()) if is_constant else None
    return InferredKind("category", note=note, warnings=warnings, n_levels=n_distinct, only_level=only_level)


def _find_similar(sample: Sample, number: FoundFormat, times: FoundTimes, options: CellOptions) -> tuple[str, str]:
    """Return what text looks like but is not, numbers or dates, and what to do; empty strings if it is like none."""
    name = escape_name(sample.name)
    correct = "correct them, name spellings of missing values with --na"
    if (given := _given_separators(options)) and _is_enough(
        find_number_format(sample.values).share, len(sample.values)
    ):
        invalid = sample.describe_invalid(number.format.parse)
        remedy = f"omit {given}, so that the format of each column is inferred, or run with --drop '{name}'"
        return f"numbers: with {given}, {invalid}", remedy
    if number.share >= _MIN_SIMILAR or _has_few_words(sample.values, number):
        invalid = sample.describe_invalid(number.format.parse)
        return f"numbers: {invalid}", f"{correct}, {_skip_or_drop(name, 'number')}"
    if times.share >= _MIN_SIMILAR:
        invalid = sample.describe_invalid(times.format.parse)
        return f"dates ({times.format.pattern}): {invalid}", f"{correct}, {_skip_or_drop(name, 'time')}"
    if len(sample.values) > 1 and pc.mean(pc.match_substring_regex(sample.values, _DATES)).as_py() >= _MIN_DATES:
        example = quote_value(sample.values[0].as_py())
        if has_known_format(sample.values):
            remedy = f"write all in the same one, or run with --kind '{name}=category' or --drop '{name}'"
            return f"dates in several formats, such as {example}", remedy
        return f"dates, such as {example}", f"run with --time-format '{name}=FORMAT' or --kind '{name}=category'"
    return _NOT_SIMILAR


def _given_separators(options: CellOptions) -> str:
    """Return the options that say how all numbers are written; an empty string if there are none."""
    decimal = [] if options.decimal is None else [f"--decimal '{options.decimal}'"]
    thousands = [] if options.thousands is None else [f"--thousands '{options.thousands}'"]
    return " and ".join(decimal + thousands)


def _skip_or_drop(name: str, kind: str) -> str:
    """Return the options that skip the rows that do not fit a kind, or leave out the column."""
    return f"skip their rows (run with --kind '{name}={kind}' and --on-error skip), or leave it out (--drop '{name}')"


def _has_few_words(values: pa.Array, number: FoundFormat) -> bool:
    """Return whether there are many different numbers, and few words, which may mean missing values."""
    invalid = number.format.parse(values).invalid
    n_words, n_numbers = (len(pc.unique(values.filter(pa.array(rows)))) for rows in (invalid, ~invalid))
    return n_numbers >= _MIN_NUMBERS and n_words <= _MAX_WORDS


def _constant_note(values: pa.Array) -> str:
    """Return a note if all values are equal."""
    return "constant at first" if len(values) > 1 and len(pc.unique(values)) == 1 else ""


def _present_values(cells: pa.Array) -> pa.Array:
    """Return the cells that are not missing: numbers, times and Booleans unchanged, others as stripped strings."""
    kind = cells.type
    if is_numeric_type(kind) or is_datetime_type(kind) or pa.types.is_time(kind) or pa.types.is_boolean(kind):
        return cells.drop_null()
    return to_clean_strings(cells).drop_null()
