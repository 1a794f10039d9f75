"""Build the encoders of the columns of a table from its first rows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ellipack.choices import COLUMN_KINDS
from ellipack.errors import DomainError, StreamError
from ellipack.tabular.category_column import MAX_LEVEL_LENGTH, CategoryColumn, LevelOptions
from ellipack.tabular.cell_options import CellOptions
from ellipack.tabular.columns import Column, decode_column, is_numeric_type
from ellipack.tabular.kind_inference import INFERENCE_ROWS, InferredKind, Sample, infer_kind, warn_of_lost_digits
from ellipack.tabular.number_column import NumberColumn, TargetColumn
from ellipack.tabular.number_format import (
    NumberFormat,
    Separators,
    find_number_format,
    find_usual_separators,
)
from ellipack.tabular.table_batch import TableBatch, escape_name, quote_value, replace_missing, to_strings
from ellipack.tabular.target_statistics import STATISTICS
from ellipack.tabular.time_column import TimeColumn, periodic_parts
from ellipack.tabular.time_format import ISO, TimeFormat
from ellipack.tabular.undecided_column import UndecidedColumn


@dataclass(frozen=True)
class ColumnOptions:
    """Options for the columns. See `TableEncoder.from_head`."""

    take: Collection[str] | None = None
    drop: Collection[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    levels: LevelOptions = field(default_factory=LevelOptions)
    cells: CellOptions = field(default_factory=CellOptions)
    min_values: int = 1

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            if kind not in COLUMN_KINDS:
                raise DomainError(f"the kind of column '{name}' must be one of {', '.join(COLUMN_KINDS)}, got {kind!r}")

    def asks_for(self, name: str) -> bool:
        """Return whether a column is used whatever its values are."""
        return name in self.kinds or name in (self.take or ())

    def is_undecided(self, sample: Sample, inferred: InferredKind) -> bool:
        """Return whether the first values are too few to decide the kind of a column."""
        is_open = bool(inferred.question or inferred.warnings or inferred.kind == "category")
        return sample.is_text and is_open and len(sample.values) < self.min_values and sample.name not in self.kinds


class LeftOut(NamedTuple):
    """A column that is not used, unless its values come again, and why."""

    name: str
    reason: str


class BuiltColumns(NamedTuple):
    """Encoders of the columns of a table, the columns that are left out, and warnings for the user."""

    target: TargetColumn
    columns: list[Column]
    left_out: list[LeftOut]
    warnings: list[str]


def build_columns(head: TableBatch, target: str, options: ColumnOptions) -> BuiltColumns:
    """Return the encoders of the target and of the selected columns, in table order."""
    names = _select_columns(head, target, options)
    samples = {name: _sample(head, name, options.cells) for name in [target, *names]}
    usual = _usual_separators(samples, options)
    labels, warnings = _build_target(head, samples[target], options, usual)
    kinds = _infer_kinds(head, [samples[name] for name in names if len(samples[name].values)], options, usual)
    built = BuiltColumns(labels, [], [], warnings)
    width = 0
    for name in names:
        if name in head.unnamed and name not in kinds and not options.asks_for(name):
            built.left_out.append(LeftOut(name, "no name and no values"))
            continue
        if name not in kinds or options.is_undecided(samples[name], kinds[name]):
            given = "time" if name in options.cells.trend else options.kinds.get(name)
            column: Column = UndecidedColumn(name, options.levels, given)
        else:
            built.warnings.extend(kinds[name].warnings)
            is_left_out = bool(kinds[name].left_out) and not options.asks_for(name)
            if is_left_out:
                built.left_out.append(LeftOut(name, kinds[name].left_out))
            if is_left_out and kinds[name].kind != "category":
                continue
            built.warnings.extend([] if is_left_out else _warn_of_use(head, samples[name], kinds[name], options))
            column = make_column(name, target, kinds[name], width, options)
        built.columns.append(column)
        width += len(column.feature_names())
    if not width:
        _use_one_column(head, built, kinds, options)
    return built


def _warn_of_use(head: TableBatch, sample: Sample, inferred: InferredKind, options: ColumnOptions) -> list[str]:
    """Return warnings about a column that is used: its numbers lose digits, or it has no name."""
    warnings = warn_of_lost_digits(sample) if inferred.kind == "number" else []
    if sample.name in head.unnamed and not options.asks_for(sample.name):
        name = sample.name
        warnings.append(f"a column without a name is called '{name}': to leave it out, use --drop '{name}'")
    return warnings


def _use_one_column(
    head: TableBatch, built: BuiltColumns, kinds: Mapping[str, InferredKind], options: ColumnOptions
) -> None:
    """Give features to one of the columns, because a learner needs some; raise StreamError if all are left out."""
    columns = built.columns
    for place, column in enumerate(columns):
        if isinstance(column, TimeColumn):
            columns[place] = TimeColumn(column.name, column.format, periodic_parts(column.format), 0, has_trend=False)
            return
    undecided = [place for place, column in enumerate(columns) if isinstance(column, UndecidedColumn)]
    if not undecided:
        reasons = "; ".join(f"'{escape_name(name)}' is left out ({reason})" for name, reason in built.left_out)
        raise StreamError(
            f"{head.source}: no column is left to predict '{built.target.name}' from: {reasons}: use one with --take"
        )
    place = next((place for place in undecided if columns[place].name in kinds), undecided[0])
    name = columns[place].name
    found = kinds.get(name, InferredKind("category"))
    columns[place] = make_column(name, built.target.name, found, 0, options)
    built.warnings.extend(found.warnings)
    if name not in kinds:
        rows = f"the first {len(head):,} rows"
        built.warnings.append(
            f"column '{escape_name(name)}' has no values in {rows}, as all others, and is treated as text"
        )


def _infer_kinds(
    head: TableBatch, samples: list[Sample], options: ColumnOptions, usual: Separators
) -> dict[str, InferredKind]:
    """Return the kinds of columns. Other columns decide what is not clear; raise StreamError if they do not."""
    kinds = {each.name: infer_kind(each, options.kinds.get(each.name), options.cells, usual) for each in samples}
    usual_times = usual_time_format(
        {each.time_format for each in kinds.values() if each.kind == "time" and not each.question}
    )
    for sample in samples:
        name = sample.name
        if kinds[name].question and usual_times is not None:
            kinds[name] = infer_kind(sample, options.kinds.get(name), options.cells, usual, usual_times)
        if kinds[name].question and not options.is_undecided(sample, kinds[name]):
            raise StreamError(f"{head.source}, {kinds[name].question}")
        if name in options.cells.trend and kinds[name].kind != "time":
            raise StreamError(f"{head.source}, column '{escape_name(name)}' must contain dates, because it is a trend")
    return kinds


def usual_time_format(formats: set[TimeFormat]) -> TimeFormat | None:
    """Return the only format of dates other than ISO 8601; None if there are none or several."""
    others = formats - {ISO}
    return others.pop() if len(others) == 1 else None


def _sample(head: TableBatch, name: str, options: CellOptions) -> Sample:
    """Return the first cells of a column."""
    cells = decode_column(head.table.column(name).slice(0, INFERENCE_ROWS), head.source, name)
    return Sample(name, replace_missing(cells, options.na) if options.na else cells, head.row_numbers)


def _usual_separators(samples: Mapping[str, Sample], options: ColumnOptions) -> Separators:
    """Return the separators of numbers that the text columns have in common."""
    texts = [each for name, each in samples.items() if each.is_text and options.kinds.get(name, "number") == "number"]
    return find_usual_separators(find_number_format(each.values, options.cells.separators) for each in texts)


def _build_target(
    head: TableBatch, sample: Sample, options: ColumnOptions, usual: Separators
) -> tuple[TargetColumn, list[str]]:
    """Return the target column and warnings about it.

    Raises
    ------
    StreamError
        Unless it contains numbers or Booleans, or no values yet.
    """
    kind = options.kinds.get(sample.name)
    if not len(sample.values) and kind is None:
        given = options.cells.separators
        format = NumberFormat(given.decimal or usual.decimal or ".", given.thousands or usual.thousands or "")
        return TargetColumn(sample.name, "number", format), []
    if kind is None and is_numeric_type(sample.cells.type):
        return TargetColumn(sample.name, "number"), []
    inferred = infer_kind(sample, kind, options.cells, usual)
    if kind is None and inferred.kind == "time" and find_number_format(sample.values).share == 1:
        return TargetColumn(sample.name, "number"), []  # compact dates are numbers, too
    if inferred.kind in ("number", "boolean"):
        return TargetColumn(sample.name, inferred.kind, inferred.number_format), inferred.warnings
    found = find_number_format(sample.values, options.cells.separators, usual)
    if found.share:
        column = TargetColumn(sample.name, "number", found.format)
        row = int(column.format.parse(sample.cells).invalid.argmax())
        reason = column.explain_invalid(to_strings(sample.cells.slice(row, 1))[0].as_py())
        bad_row = head.bad_row(row, f"{reason}; the target must contain numbers", sample.name)
        raise bad_row.to_error(head.source)
    value = quote_value(to_strings(sample.values.slice(0, 1))[0]) if len(sample.values) else "no value"
    name = escape_name(sample.name)
    raise StreamError(f"{head.source}: the target '{name}' must contain numbers, got {value}: choose another column")


def _select_columns(head: TableBatch, target: str, options: ColumnOptions) -> list[str]:
    """Return the names of the feature columns; raise StreamError if the options do not fit the table."""
    names = head.table.schema.names
    roles = {target: "the target", **dict.fromkeys(options.kinds, "with a given kind")}
    roles |= dict.fromkeys(options.cells.time_formats, "with a time format") | dict.fromkeys(
        options.cells.trend, "a trend"
    )
    roles |= dict.fromkeys(options.drop, "to drop") | dict.fromkeys(options.take or (), "to take")
    for name, role in roles.items():
        require_column(head, name, role)
    if target in options.drop or target in (options.take or ()):
        raise StreamError(f"{head.source}: the target '{target}' cannot also be taken or dropped")
    if target in options.cells.trend:
        raise StreamError(f"{head.source}: the target '{target}' cannot also be a trend")
    if target in options.cells.time_formats:
        raise StreamError(f"{head.source}: the target '{target}' cannot have a time format")
    taken, dropped = set(names if options.take is None else options.take), {*options.drop, target}
    chosen = [name for name in names if name in taken and name not in dropped]
    if len(names) == 1:
        raise StreamError(f"{head.source}: no column is left to predict '{target}' from: the table has no other column")
    if not chosen:
        raise StreamError(
            f"{head.source}: no column is left to predict '{target}' from: take more columns or drop fewer"
        )
    return chosen


def require_column(batch: TableBatch, name: str, role: str) -> None:
    """Raise StreamError unless a table has exactly one column of a name."""
    encoded = name.encode(errors="surrogatepass")  # a name from the command line need not be valid text
    found = batch.table.schema.get_all_field_indices(encoded)  # by hash, because tables can have many columns
    if len(found) != 1:
        count, names = "several columns" if found else "no column", batch.table.schema.names
        listed = ", ".join(map(escape_name, names[:20])) + (", ..." if len(names) > 20 else "")
        listed += " (if this is a line above the header, remove it)" if batch.is_file and len(names) == 1 else ""
        raise StreamError(f"{batch.source} has {count} named {quote_value(name)} ({role}); its columns are: {listed}")


def make_column(name: str, target: str, inferred: InferredKind, feature: int, options: ColumnOptions) -> Column:
    """Return the encoder of a column."""
    if inferred.kind == "time":
        format, has_trend = inferred.time_format, name in options.cells.trend
        initial = periodic_parts(format) if format.is_time_of_day else ()
        return TimeColumn(name, format, initial, feature, has_trend, inferred.note)
    if inferred.kind == "category":
        count = len(STATISTICS) if inferred.n_levels > options.levels.one_hot or inferred.left_out else 1
        count = 0 if inferred.left_out and not options.asks_for(name) else count
        has_feature = count == 1 and len(inferred.only_level or "") <= MAX_LEVEL_LENGTH
        only_level = inferred.only_level if has_feature else None
        count += only_level is not None
        features = list(range(feature, feature + count))
        return CategoryColumn(name, target, features, options.levels, inferred.note, only_level)
    return NumberColumn(name, inferred.kind, feature, inferred.number_format, inferred.note)
