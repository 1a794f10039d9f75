"""``ellipack predict``: predictions of a saved run for the rows of a table."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ellipack.cli.learners import use_folder_of_outputs
from ellipack.cli.messages import SkippedRows, print_message
from ellipack.cli.options import DEFAULT_LEARNER
from ellipack.cli.output_lock import lock_output
from ellipack.cli.paths import check_distinct_files, check_writable
from ellipack.errors import InputError, ModelFileError, StreamError
from ellipack.estimators import MetricRegressor
from ellipack.evaluation.prediction_options import PredictionOptions, check_columns
from ellipack.evaluation.prediction_writer import UNLABELED_COLUMNS, check_prediction_path, open_prediction_writer
from ellipack.evaluation.prefetch import prefetch
from ellipack.evaluation.run import Run, load_run
from ellipack.tabular import FileOptions, ParsedRows, TableBatch, TableStream, open_table
from ellipack.validation import Floats


@dataclass(frozen=True)
class PredictOptions:
    """Options of ``ellipack predict``. See ``ellipack predict --help``."""

    model: str
    table: str
    output: str = "-"
    format: str | None = None
    on_error: str = "stop"
    follow: bool = False
    keep: tuple[str, ...] = ()
    intervals: tuple[float, ...] = ()
    delimiter: str | None = None
    sheet: str | None = None
    more_tables: tuple[str, ...] = ()


def predict_table(options: PredictOptions) -> None:
    """Write predictions of a saved run for the rows of a table."""
    tables = {f"TABLE {i}": path for i, path in enumerate(options.more_tables, start=2)}
    check_distinct_files({"MODEL": options.model, "TABLE": options.table, **tables}, {"--output": options.output})
    check_prediction_path(options.output)
    check_writable(options.output)
    with lock_output(options.output):
        try:
            _predict_table(options)
        except StreamError as error:
            raise StreamError(to_predict(str(error))) from error


def to_predict(message: str) -> str:
    """Return a message with what can be done after a model was learned, in place of options of ``ellipack run``.

    Examples
    --------
    >>> to_predict("if all numbers of the table are written like this one, run with --decimal , from the first row")
    'if all numbers of the table are written like this one, convert them, or learn a new model with --decimal ,'
    """
    message = re.sub(r"run with (--.+?) from the first row", r"convert them, or learn a new model with \1", message)
    return re.sub(r"run with (--(?!on-error))", r"convert it, or learn a new model with \1", message)


def _predict_table(options: PredictOptions) -> None:
    run = load_run(options.model)
    if not run.scores.n_rows:
        raise ModelFileError(f"{options.model} has not learned any row yet: resume its run first")
    use_folder_of_outputs(run.learner, options.output)
    source = open_table(
        [options.table, *options.more_tables],
        format=options.format,
        on_error=options.on_error,
        file_options=FileOptions(options.delimiter, options.sheet, run.encoder.column_names),
    )
    kept = replace(run.options, keep=options.keep, id_column=None, coverages=options.intervals)
    check_columns(kept, source.columns, source.name)
    _report_unused_columns(run, source, options)
    predict = _follow(run, kept) if options.follow else _predict_apart(run, kept)
    writer = open_prediction_writer(options.output, (*UNLABELED_COLUMNS, *kept.interval_columns), keep=options.keep)
    skipped = SkippedRows(source.name, to_predict)
    try:
        for batch in prefetch(source):
            rows = run.encoder.parse_unlabeled(batch, options.on_error)
            skipped.add(sorted((*batch.unreadable_rows, *rows.bad_rows), key=lambda row: row.row_number))
            if len(rows):
                predictions, ends = predict(batch, rows)
                writer.write(rows.row_numbers, kept.bound(predictions), *ends.T, kept=kept.kept_cells(batch, rows))
        writer.finish()
    finally:
        writer.close()
    skipped.print_total()


def _report_unused_columns(run: Run, source: TableStream, options: PredictOptions) -> None:
    expected = {run.encoder.target, *run.options.kept_columns, *options.keep}
    unused = [name for name in run.encoder.unused_columns(source.columns) if name not in expected]
    if unused:
        print_message(f"columns ignored by the model: {', '.join(unused)}")


Predict = Callable[[TableBatch, ParsedRows], tuple[Floats, Floats]]
"""Function that returns the predictions of rows, and the ends of their intervals."""


def _predict_apart(run: Run, options: PredictionOptions) -> Predict:
    """Return a function that predicts rows that need not follow those of the run."""

    def predict(batch: TableBatch, rows: ParsedRows) -> tuple[Floats, Floats]:
        X, keys = run.encoder.transform(rows), run.predict_keys(batch, rows)
        predictions = run.learner.predict(X, **keys)
        if not options.coverages:
            return predictions, np.empty((len(rows), 0))
        return predictions, options.interval_ends(run.learner.predict_interval(X, options.coverages, **keys))

    return predict


def _follow(run: Run, options: PredictionOptions) -> Predict:
    """Return a function that predicts the rows of a table as those that follow the rows of the run."""
    if not isinstance(run.learner, MetricRegressor):
        raise InputError(f"--follow needs a run with --learner {DEFAULT_LEARNER}: the others do not use the past")
    if not run.learner.past:
        raise InputError("--follow needs a run that uses the past: this one was made with --no-past")
    follower = run.learner.follow()

    def predict(batch: TableBatch, rows: ParsedRows) -> tuple[Floats, Floats]:
        X, keys, labels = run.encoder.transform(rows), run.row_keys(batch, rows), run.encoder.known_labels(batch, rows)
        if not options.coverages:
            return follower.predict_next(X, keys=keys, labels=labels), np.empty((len(rows), 0))
        predictions, intervals = follower.predict_next(X, coverage=options.coverages, keys=keys, labels=labels)
        return predictions, options.interval_ends(intervals)

    return predict
