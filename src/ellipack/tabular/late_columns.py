"""Decide the kind of a column after the first rows, when it has had enough values: `decide_column`."""

from collections.abc import Sequence
from typing import NamedTuple

from ellipack.tabular.category_column import CategoryColumn
from ellipack.tabular.cell_options import CellOptions
from ellipack.tabular.column_building import usual_time_format
from ellipack.tabular.column_statement import PLURALS
from ellipack.tabular.columns import Column, LateColumn
from ellipack.tabular.kind_inference import InferredKind, infer_kind
from ellipack.tabular.number_column import NumberColumn, TargetColumn
from ellipack.tabular.number_format import FoundFormat, Separators, find_usual_separators
from ellipack.tabular.table_batch import escape_name
from ellipack.tabular.time_column import TimeColumn, periodic_parts
from ellipack.tabular.undecided_column import UndecidedColumn


class Decision(NamedTuple):
    """What a column is taken for.

    Attributes
    ----------
    column : Column
        Encoder of the column from now on; the undecided column if it is left out.
    scales : list of float
        Typical sizes of its features, which are 0 in all rows before.
    message : str
        What it was taken for, for the user.
    warnings : list of str
        Warnings, for the user.
    """

    column: Column
    scales: list[float]
    message: str
    warnings: list[str]


def decide_column(
    undecided: UndecidedColumn, target: TargetColumn, others: Sequence[Column], feature: int, options: CellOptions
) -> Decision:
    """Decide the kind of a column from its first values.

    A column is left out if it counts the rows, or if the order of day and month is not clear.

    Parameters
    ----------
    undecided : UndecidedColumn
        The column, with enough values.
    target : TargetColumn
        The target.
    others : sequence of Column
        The other columns, which decide what is not clear.
    feature : int
        Index of the first feature of the column.
    options : CellOptions
        How cells are written, as far as it is given.
    """
    usual, sample = _usual_separators(target, others), undecided.sample
    usual_times = usual_time_format({each.format for each in others if isinstance(each, TimeColumn)})
    inferred = infer_kind(sample, undecided.given, options, usual, usual_times)
    name = f"column '{escape_name(undecided.name)}'"
    if inferred.question or (inferred.left_out and inferred.kind != "category" and undecided.given is None):
        undecided.left_out = inferred.question or inferred.left_out
        return Decision(undecided, [], f"{name} is left out: {undecided.left_out}", [])
    column = _make_column(undecided, target, inferred, feature, options)
    scales = column.start_late(sample.cells, undecided.n_missing, feature + len(column.feature_names()))
    format = f" ({column.describe_format()})" if column.describe_format() else ""
    kind = (
        f"left out ({inferred.left_out})"
        if not column.feature_names() and inferred.left_out
        else PLURALS[column.kind] + format
    )
    row = f"from row {sample.row_numbers[-1] + 1:,} on"
    message = f"{name} has its first {len(sample.values)} values: {kind} {row}"
    return Decision(column, scales, message, inferred.warnings)


def _usual_separators(target: TargetColumn, columns: Sequence[Column]) -> Separators:
    """Return the separators of numbers that the other columns have in common."""
    formats = [target.format, *(each.format for each in columns if isinstance(each, NumberColumn))]
    return find_usual_separators(FoundFormat(each, 1.0, is_decisive=True) for each in formats if not each.is_plain)


def _make_column(
    undecided: UndecidedColumn, target: TargetColumn, inferred: InferredKind, feature: int, options: CellOptions
) -> LateColumn:
    """Return the encoder of a column. A column with many levels gets their statistics from its next row on."""
    name = undecided.name
    if inferred.kind == "time":
        format, has_trend = inferred.time_format, name in options.trend
        initial = periodic_parts(format) if format.is_time_of_day else ()
        return TimeColumn(name, format, initial, feature, has_trend, inferred.note)
    if inferred.kind == "category":
        features = [] if inferred.left_out and undecided.given is None else [feature]
        return CategoryColumn(name, target.name, features, undecided.options, inferred.note)
    return NumberColumn(name, inferred.kind, feature, inferred.number_format, inferred.note)
