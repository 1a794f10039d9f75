"""Plain data of a run, the whole of what is shown of it; JSON in and out."""

import json
from dataclasses import asdict, dataclass
from typing import NoReturn

from ellipack.errors import InputError, NonFiniteError
from ellipack.report.schema import (
    JsonValue,
    check_decreasing,
    check_increasing,
    check_length,
    check_non_negative,
    check_proportions,
    field_types,
    parse_value,
)


@dataclass(frozen=True)
class Summary:
    """How good the predictions were, each made before its label was seen. None: not defined.

    Attributes
    ----------
    rows, skipped : how many rows were played, and how many were left out.
    rmse, mae, r2 : of the predictions.
    skill : 1 - rmse / mean_rmse.
    mean_rmse, last_rmse : of predicting the running mean, or the last label again.
    label_mean, label_std : of the labels.
    """

    rows: int
    skipped: int
    rmse: float | None
    mae: float | None
    r2: float | None
    skill: float | None
    mean_rmse: float | None
    last_rmse: float | None
    label_mean: float | None
    label_std: float | None


@dataclass(frozen=True)
class Progress:
    """Errors over bins of consecutive rows, an entry a bin.

    Attributes
    ----------
    end : the number of the last row, counted from 1.
    rmse, mean_rmse, last_rmse : as in `Summary`, over the bin.
    """

    end: list[int]
    rmse: list[float | None]
    mean_rmse: list[float | None]
    last_rmse: list[float | None]


@dataclass(frozen=True)
class Direction:
    """A direction of the metric: its eigenvalue, and for each feature, in standard units, how much it takes part."""

    eigenvalue: float
    loadings: list[float]


@dataclass(frozen=True)
class Phase:
    """What was known at the end of a phase.

    Attributes
    ----------
    end : the number of its last row.
    n_centers, effective_rank, eigenvalues : of the packing and the metric, the eigenvalues falling.
    expert_weights : in the order of the experts' names, or empty.
    choice : which candidate for the metric was chosen.
    """

    end: int
    n_centers: int
    effective_rank: int
    eigenvalues: list[float]
    expert_weights: list[float]
    choice: str


@dataclass(frozen=True)
class Experts:
    """The experts' names and their weights at the end; both empty where a learner has none."""

    names: list[str]
    weights: list[float]


@dataclass(frozen=True)
class Residuals:
    """A sample of rows (numbers counted from 1), with what was predicted and what the label was."""

    rows: list[int]
    predictions: list[float]
    labels: list[float]


@dataclass(frozen=True)
class Column:
    """What a column of the table was taken for, and in how many rows it was missing."""

    name: str
    kind: str
    note: str
    missing: int


@dataclass(frozen=True)
class Record:
    """The whole of what is shown of a run.

    Making one checks every type and length, so a record that exists can be shown and written. Build it out of plain
    Python numbers and lists (`array.tolist()`).

    Attributes
    ----------
    source, target : where rows came from, and the name of the label.
    learner, parameters, version : the learner's class, its settings, and the version of ellipack.
    summary, progress : how good the predictions were, in all and over time.
    features, importances : the names, and how much each counts, adding up to 1.
    eigenvalues, effective_rank, directions : of the metric at the end; the leading few directions.
    n_centers : at the end.
    phases, experts, residuals, columns : see there; each may be empty.
    speed : pairs of a row's number and rows per second there; may be empty.
    """

    source: str
    target: str
    learner: str
    parameters: dict[str, JsonValue]
    version: str
    summary: Summary
    progress: Progress
    features: list[str]
    importances: list[float]
    eigenvalues: list[float]
    effective_rank: int
    n_centers: int
    directions: list[Direction]
    phases: list[Phase]
    experts: Experts
    residuals: Residuals
    columns: list[Column]
    speed: list[tuple[int, float]]

    def __post_init__(self) -> None:
        for name, hint in field_types(Record).items():
            parse_value(hint, getattr(self, name), name)
        _check_summary(self.summary)
        _check_progress(self)
        _check_metric(self)
        _check_phases(self)

    def to_json(self) -> str:
        """Return the record as JSON, with all digits."""
        return json.dumps(asdict(self), allow_nan=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Return the record that `to_json` wrote, or say what of it is not one.

        >>> Record.from_json("{}")
        Traceback (most recent call last):
            ...
        ellipack.errors.InputError: record must have the field 'source', got only none
        """
        try:
            made: Record = parse_value(cls, json.loads(text, parse_constant=_refuse_constant), "record")
        except InputError:
            raise
        except (ValueError, RecursionError) as error:
            raise InputError(f"record must be JSON: {error}") from error
        return made


def _refuse_constant(constant: str) -> NoReturn:
    raise NonFiniteError(f"record must hold finite numbers or null, got {constant}")


def _check_summary(summary: Summary) -> None:
    check_non_negative(summary.rows, "summary.rows")
    check_non_negative(summary.skipped, "summary.skipped")
    for name in ("rmse", "mae", "mean_rmse", "last_rmse", "label_std"):
        value = getattr(summary, name)
        if value is not None:
            check_non_negative(value, f"summary.{name}")


def _check_progress(record: Record) -> None:
    bins = record.progress
    for name in ("rmse", "mean_rmse", "last_rmse"):
        check_length(getattr(bins, name), f"progress.{name}", bins.end, "bins")
    check_increasing(bins.end, "progress.end")
    sample = record.residuals
    check_length(sample.predictions, "residuals.predictions", sample.rows, "rows")
    check_length(sample.labels, "residuals.labels", sample.rows, "rows")
    check_increasing([row for row, _ in record.speed], "speed")


def _check_metric(record: Record) -> None:
    check_proportions(record.importances, "importances", record.features, "features")
    check_decreasing(record.eigenvalues, "eigenvalues")
    check_non_negative(record.effective_rank, "effective_rank")
    check_non_negative(record.n_centers, "n_centers")
    for i, direction in enumerate(record.directions):
        check_length(direction.loadings, f"directions[{i}].loadings", record.features, "features")
    for column in record.columns:
        check_non_negative(column.missing, f"columns: {column.name!r} missing")


def _check_phases(record: Record) -> None:
    names = record.experts.names
    check_proportions(record.experts.weights, "experts.weights", names, "experts")
    check_increasing([phase.end for phase in record.phases], "phases: end")
    for i, phase in enumerate(record.phases):
        check_decreasing(phase.eigenvalues, f"phases[{i}].eigenvalues")
        check_non_negative(phase.effective_rank, f"phases[{i}].effective_rank")
        check_non_negative(phase.n_centers, f"phases[{i}].n_centers")
        if phase.expert_weights:
            check_proportions(phase.expert_weights, f"phases[{i}].expert_weights", names, "experts")
