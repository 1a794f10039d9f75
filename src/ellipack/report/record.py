"""Record of a run: everything that the report and the terminal show, as plain data that JSON can hold."""

import json
from dataclasses import asdict, dataclass, field
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
    """Errors of the predictions, each made before its label was revealed. None means not defined.

    Attributes
    ----------
    rows : int
        Number of rows learned.
    skipped : int
        Number of rows skipped because they could not be read.
    rmse, mae, r2 : float or None
        Root mean square error, mean absolute error and coefficient of determination.
    skill : float or None
        ``1 - rmse / mean_rmse``.
    mean_rmse : float or None
        RMSE of predicting the mean of all earlier labels.
    last_rmse : float or None
        RMSE of predicting the last label.
    label_mean, label_std : float or None
        Mean and standard deviation of the labels.
    warm_up : int, default 0
        Number of first rows that the errors leave out, also those of the baselines.
    late_rmse, late_mean_rmse, late_last_rmse : float or None
        RMSE over about the last quarter of the rows: of the predictions, the running mean and the last label.
    unlabeled : int, default 0
        Number of rows that came without a label. They are predicted and not learned.
    late_labels : int, default 0
        Number of rows among them that were learned when their labels came later.
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
    unlabeled: int = 0
    late_labels: int = 0
    warm_up: int = 0
    late_rmse: float | None = None
    late_mean_rmse: float | None = None
    late_last_rmse: float | None = None


@dataclass(frozen=True)
class Progress:
    """Errors over bins of consecutive rows, one entry per bin.

    Attributes
    ----------
    end : list of int
        Number of the last row of the bin, counted from 1.
    rmse, mean_rmse, last_rmse : list of float or None
        As in `Summary`, over the bin.
    """

    end: list[int]
    rmse: list[float | None]
    mean_rmse: list[float | None]
    last_rmse: list[float | None]


@dataclass(frozen=True)
class Direction:
    """A direction of the metric.

    Attributes
    ----------
    eigenvalue : float
        Weight of the direction in the metric.
    loadings : list of float
        Entry of the eigenvector for each feature, in standard units.
    """

    eigenvalue: float
    loadings: list[float]


@dataclass(frozen=True)
class PhaseRecord:
    """State of the learner at the end of a phase.

    Attributes
    ----------
    end : int
        Number of the last row of the phase.
    n_centers : int
        Number of centers.
    effective_rank : int
        Effective rank of the metric.
    eigenvalues : list of float
        Eigenvalues of the metric, in decreasing order.
    expert_weights : list of float
        One weight per expert, or empty.
    choice : str
        Candidate that was chosen as the next metric.
    """

    end: int
    n_centers: int
    effective_rank: int
    eigenvalues: list[float]
    expert_weights: list[float]
    choice: str


@dataclass(frozen=True)
class Experts:
    """Names of the experts and their weights at the end. Both are empty for a learner without experts."""

    names: list[str]
    weights: list[float]


@dataclass(frozen=True)
class PastRecord:
    """What the past of the label is worth, and the metric of the learner that sees it.

    Attributes
    ----------
    rmse_without, rmse_with : float
        RMSE of the predictions from the features alone, and of those that also use the past, without outliers.
    features : list of str
        Names of the features that this learner sees: of the past first, then of the rows.
    metric_weights : list of float
        Their shares of its metric; they sum to 1.
    """

    rmse_without: float
    rmse_with: float
    features: list[str]
    metric_weights: list[float]


@dataclass(frozen=True)
class KeysRecord:
    """Errors of one learner per key. Predictions are those of the next row.

    Attributes
    ----------
    name : str
        Name of the keys.
    count, on_disk : int
        Number of keys, and of those whose learners are on disk only.
    rmse, pooled_rmse : float
        RMSE over all keys, and that of the learner of all keys alone.
    names : list of str
        Keys with most rows.
    rows : list of int
        Their numbers of rows.
    key_rmse, key_pooled_rmse : list of float
        Their RMSE, and that of the learner of all keys alone.
    """

    name: str
    count: int
    on_disk: int
    rmse: float
    pooled_rmse: float
    names: list[str]
    rows: list[int]
    key_rmse: list[float]
    key_pooled_rmse: list[float]


@dataclass(frozen=True)
class ColumnShare:
    """Importance of a column, or of strongly correlated columns together. None means too early to say.

    Attributes
    ----------
    columns : list of str
        Names of the columns.
    measurements : int
        Number of rows that were predicted once more with other values.
    rise, rise_std : float or None
        Rise in squared error with values of random earlier rows, and its standard error.
    rmse_rise : float or None
        Rise in RMSE, in units of the label.
    share, share_std : float or None
        Rise relative to the sum over all columns or groups, and its standard error.
    recent_share, recent_share_std : float or None
        The same over recent rows.
    is_driver : bool
        Whether the column matters beyond doubt.
    effect : str
        How the prediction moves with the value, in words; may be empty.
    """

    columns: list[str]
    measurements: int
    rise: float | None
    rise_std: float | None
    rmse_rise: float | None
    share: float | None
    share_std: float | None
    recent_share: float | None
    recent_share_std: float | None
    is_driver: bool = False
    effect: str = ""


@dataclass(frozen=True)
class EffectRecord:
    """How the prediction moves with a value of a column, averaged over recent rows.

    Attributes
    ----------
    column : str
        Name of the column.
    part : str
        Part of it, such as the hour of a time; empty if the effect is of the whole column.
    values : list of float
        The values; if they are no numbers, their places.
    labels : list of str
        The values as text; empty if they are numbers.
    mean, low, high : list of float
        Mean prediction at each value, and its spread over the rows.
    """

    column: str
    part: str
    values: list[float]
    labels: list[str]
    mean: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class TimeShare:
    """What only time explains, what only the features explain, and what is of both; the sum is 1.

    Time is the past of the label, and features that only grow, such as row numbers.
    """

    time: float
    features: float
    both: float
    std: float


@dataclass(frozen=True)
class ImportanceRecord:
    """What drives the predictions, measured by the rise in squared error.

    Attributes
    ----------
    columns : list of ColumnShare
        Each column alone, the most important one first.
    groups : list of ColumnShare
        The same with strongly correlated columns as one, measured together.
    time_columns : list of str
        Columns that only tell how near in time rows are.
    time : TimeShare or None
        Time and features; None if it is too early to say.
    rmse : float
        RMSE of the rounds that were measured.
    effects : list of EffectRecord
        Effects of the columns that matter beyond doubt.
    """

    columns: list[ColumnShare]
    groups: list[ColumnShare]
    time_columns: list[str]
    time: TimeShare | None
    rmse: float
    effects: list[EffectRecord] = field(default_factory=list)


@dataclass(frozen=True)
class IntervalRecord:
    """Prediction intervals of one coverage. Infinite intervals, those of the first two rows, do not count.

    Attributes
    ----------
    coverage : float
        Wanted fraction of labels in the intervals.
    covered : float or None
        Fraction of labels that were in them.
    mean_width : float or None
        Mean width.
    score : float or None
        Mean interval score (Winkler): the width, plus ``2 / (1 - coverage)`` times the distance of labels outside.
    bin_end : list of int
        Number of the last row of each bin.
    bin_covered, bin_width : list of float or None
        Covered fraction and mean width over the bin.
    recent_rows : list of int
        Numbers of the last rows.
    recent_labels : list of float
        Their labels.
    recent_lower, recent_upper : list of float or None
        Ends of their intervals; None if infinite.
    """

    coverage: float
    covered: float | None
    mean_width: float | None
    score: float | None
    bin_end: list[int]
    bin_covered: list[float | None]
    bin_width: list[float | None]
    recent_rows: list[int]
    recent_labels: list[float]
    recent_lower: list[float | None]
    recent_upper: list[float | None]


@dataclass(frozen=True)
class SampledRows:
    """Sample of rows, by number counted from 1, with their predictions and labels.

    Attributes
    ----------
    rows : list of int
        Row numbers.
    predictions, labels : list of float
        Prediction and label of each row.
    times : list of str
        Date of each row in ISO format, in ascending order; empty if rows have no dates, or in another order.
    """

    rows: list[int]
    predictions: list[float]
    labels: list[float]
    times: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ColumnRecord:
    """A column of the table.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : str
        What the column holds, or how it is used.
    note : str
        Remark for the user, may be empty.
    missing : int
        Number of rows without a value.
    """

    name: str
    kind: str
    note: str
    missing: int


@dataclass(frozen=True)
class Record:
    """Results of a run.

    A record consists of plain Python numbers, strings and lists (``array.tolist()``). It checks all types and lengths
    when it is created, so every record can be shown and written.

    Attributes
    ----------
    source, target : str
        Name of the table and of the label column.
    learner : str
        Class of the learner.
    parameters : dict
        Parameters of the learner.
    version : str
        Version of ellipack.
    summary : Summary
        Errors over all rows.
    progress : Progress
        Errors over time.
    features : list of str
        Names of the features.
    importance : ImportanceRecord or None
        What drives the predictions; None for a learner that does not measure it.
    eigenvalues : list of float
        Eigenvalues of the metric at the end, in decreasing order.
    effective_rank, n_centers : int
        Effective rank of the metric and number of centers at the end.
    directions : list of Direction
        Leading directions of the metric at the end.
    phases : list of PhaseRecord
        Phases that have ended, may be empty.
    experts : Experts
        Experts and their weights.
    past : PastRecord or None
        What the past is worth; None for a learner that does not use it.
    residuals : SampledRows
        Sample of predictions and labels.
    columns : list of ColumnRecord
        Columns of the table, may be empty.
    speed : list of (int, float)
        Row number and rows per second, may be empty.
    intervals : list of IntervalRecord
        Prediction intervals of each coverage that was asked for.
    keys : KeysRecord or None
        Errors by key; None unless there is one learner per key.
    """

    source: str
    target: str
    learner: str
    parameters: dict[str, JsonValue]
    version: str
    summary: Summary
    progress: Progress
    features: list[str]
    importance: ImportanceRecord | None
    eigenvalues: list[float]
    effective_rank: int
    n_centers: int
    directions: list[Direction]
    phases: list[PhaseRecord]
    experts: Experts
    past: PastRecord | None
    residuals: SampledRows
    columns: list[ColumnRecord]
    speed: list[tuple[int, float]]
    intervals: list[IntervalRecord] = field(default_factory=list)
    keys: KeysRecord | None = None

    def __post_init__(self) -> None:
        for name, hint in field_types(Record).items():
            parse_value(hint, getattr(self, name), name)
        _check_summary(self.summary)
        _check_progress(self)
        _check_metric(self)
        _check_phases(self)
        _check_intervals(self)
        _check_keys(self)
        _check_effects(self)

    def to_json(self) -> str:
        """Return the record as JSON, without rounding."""
        return json.dumps(asdict(self), allow_nan=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Return the record that `to_json` wrote.

        Parameters
        ----------
        text : str
            JSON text.

        Raises
        ------
        InputError
            If the text is not the JSON of a record.

        Examples
        --------
        >>> Record.from_json("{}")
        Traceback (most recent call last):
            ...
        ellipack.errors.InputError: record must have the field 'source', got only none
        """
        try:
            record: Record = parse_value(cls, json.loads(text, parse_constant=_reject_constant), "record")
        except InputError:
            raise
        except (ValueError, RecursionError) as error:
            raise InputError(f"record must be JSON: {error}") from error
        return record


def _reject_constant(constant: str) -> NoReturn:
    raise NonFiniteError(f"record must contain finite numbers or null, got {constant}")


def _check_summary(summary: Summary) -> None:
    check_non_negative(summary.rows, "summary.rows")
    for name in ("skipped", "unlabeled", "late_labels", "warm_up"):
        check_non_negative(getattr(summary, name), f"summary.{name}")
    for name in ("rmse", "mae", "mean_rmse", "last_rmse", "label_std", "late_rmse", "late_mean_rmse", "late_last_rmse"):
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
    if sample.times:
        check_length(sample.times, "residuals.times", sample.rows, "rows")
    check_increasing([row for row, _ in record.speed], "speed")


def _check_metric(record: Record) -> None:
    check_decreasing(record.eigenvalues, "eigenvalues")
    check_non_negative(record.effective_rank, "effective_rank")
    check_non_negative(record.n_centers, "n_centers")
    if record.past is not None:
        check_non_negative(record.past.rmse_without, "past.rmse_without")
        check_non_negative(record.past.rmse_with, "past.rmse_with")
        check_proportions(record.past.metric_weights, "past.metric_weights", record.past.features, "features")
    for i, direction in enumerate(record.directions):
        check_length(direction.loadings, f"directions[{i}].loadings", record.features, "features")
    for column in record.columns:
        check_non_negative(column.missing, f"columns: {column.name!r} missing")


def _check_keys(record: Record) -> None:
    keys = record.keys
    if keys is None:
        return
    for name in ("count", "on_disk", "rmse", "pooled_rmse"):
        check_non_negative(getattr(keys, name), f"keys.{name}")
    for name in ("rows", "key_rmse", "key_pooled_rmse"):
        check_length(getattr(keys, name), f"keys.{name}", keys.names, "names")
        for each in getattr(keys, name):
            check_non_negative(each, f"keys.{name}")


def _check_intervals(record: Record) -> None:
    for i, each in enumerate(record.intervals):
        check_increasing(each.bin_end, f"intervals[{i}].bin_end")
        check_increasing(each.recent_rows, f"intervals[{i}].recent_rows")
        for name in ("bin_covered", "bin_width"):
            check_length(getattr(each, name), f"intervals[{i}].{name}", each.bin_end, "bins")
        for name in ("recent_labels", "recent_lower", "recent_upper"):
            check_length(getattr(each, name), f"intervals[{i}].{name}", each.recent_rows, "rows")


def _check_effects(record: Record) -> None:
    for i, effect in enumerate([] if record.importance is None else record.importance.effects):
        for name in ("mean", "low", "high", *["labels"] * bool(effect.labels)):
            check_length(getattr(effect, name), f"importance.effects[{i}].{name}", effect.values, "values")


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
