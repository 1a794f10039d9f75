"""``ellipack predict``: predictions of a saved run for the rows of a table."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ellipack.cli.messages import SkippedRows, print_message
from ellipack.cli.options import DEFAULT_LEARNER
from ellipack.cli.output_lock import lock_output
from ellipack.cli.paths import check_distinct_files, check_writable
from ellipack.errors import InputError, ModelFileError
from ellipack.estimators import MetricRegressor
from ellipack.evaluation.prediction_options import check_columns
from ellipack.evaluation.prediction_writer import UNLABELED_COLUMNS, open_prediction_writer
from ellipack.evaluation.prefetch import prefetch
from ellipack.evaluation.run import Run, load_run
from ellipack.tabular import ParsedRows, TableBatch, TableStream, open_table
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


def predict_table(options: PredictOptions) -> None:
    """Write predictions of a saved run for the rows of a table."""
    check_distinct_files({"MODEL": options.model, "TABLE": options.table}, {"--output": options.output})
    check_writable(options.output)
    with lock_output(options.output):
        _predict_table(options)


def _predict_table(options: PredictOptions) -> None:
    run = load_run(options.model)
    if not run.scores.n_rows:
        raise ModelFileError(f"{options.model} has not learned any row yet: resume its run first")
    source = open_table(options.table, format=options.format, on_error=options.on_error)
    kept = replace(run.options, keep=options.keep, id_column=None)
    check_columns(kept, source.columns, source.name)
    _report_unused_columns(run, source, options)
    predict = _follow(run) if options.follow else lambda _, rows: run.learner.predict(run.encoder.transform(rows))
    writer = open_prediction_writer(options.output, UNLABELED_COLUMNS, keep=options.keep)
    skipped = SkippedRows(source.name)
    try:
        for batch in prefetch(source):
            rows = run.encoder.parse_unlabeled(batch, options.on_error)
            skipped.add(sorted((*batch.unreadable_rows, *rows.bad_rows), key=lambda row: row.row_number))
            if len(rows):
                predictions = kept.bound(predict(batch, rows))
                writer.write(rows.row_numbers, predictions, kept=kept.kept_cells(batch, rows))
        writer.finish()
    finally:
        writer.close()
    skipped.print_total()


def _report_unused_columns(run: Run, source: TableStream, options: PredictOptions) -> None:
    expected = {run.encoder.target, *run.options.kept_columns, *options.keep}
    unused = [name for name in run.encoder.unused_columns(source.columns) if name not in expected]
    if unused:
        print_message(f"columns ignored by the model: {', '.join(unused)}")


def _follow(run: Run) -> Callable[[TableBatch, ParsedRows], Floats]:
    """Return a function that predicts the rows of a table as those that follow the rows of the run."""
    if not isinstance(run.learner, MetricRegressor):
        raise InputError(f"--follow needs a run with --learner {DEFAULT_LEARNER}: the others do not use the past")
    if not run.learner.past:
        raise InputError("--follow needs a run that uses the past: this one was made with --no-past")
    follower = run.learner.follow()

    def predict(batch: TableBatch, rows: ParsedRows) -> Floats:
        labels = run.encoder.known_labels(batch, rows)
        return follower.predict_next(run.encoder.transform(rows), keys=run.row_keys(batch, rows), labels=labels)

    return predict
