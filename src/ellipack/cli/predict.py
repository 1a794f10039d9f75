"""``ellipack predict``: predictions of a saved run for the rows of a table."""

from collections.abc import Callable

from ellipack.cli.messages import SkippedRows, print_message
from ellipack.cli.options import DEFAULT_LEARNER
from ellipack.cli.output_lock import lock_output
from ellipack.cli.paths import check_distinct_files, check_writable
from ellipack.errors import InputError, ModelFileError
from ellipack.estimators import MetricRegressor
from ellipack.evaluation.prediction_writer import UNLABELED_COLUMNS, open_prediction_writer
from ellipack.evaluation.prefetch import prefetch
from ellipack.evaluation.run import Run, load_run
from ellipack.tabular import ParsedRows, TableBatch, open_table
from ellipack.validation import Floats


def predict_table(model: str, table: str, output: str, format: str | None, on_error: str, follow: bool) -> None:
    """Write predictions of a saved run for the rows of a table."""
    check_distinct_files({"MODEL": model, "TABLE": table}, {"--output": output})
    check_writable(output)
    with lock_output(output):
        _predict_table(model, table, output, format, on_error, follow)


def _predict_table(model: str, table: str, output: str, format: str | None, on_error: str, follow: bool) -> None:
    run = load_run(model)
    if not run.scores.n_rows:
        raise ModelFileError(f"{model} has not learned any row yet: resume its run first")
    source = open_table(table, format=format, on_error=on_error)
    unused = [name for name in run.encoder.unused_columns(source.columns) if name != run.encoder.target]
    if unused:
        print_message(f"columns ignored by the model: {', '.join(unused)}")
    predict = _follow(run) if follow else lambda _, rows: run.learner.predict(run.encoder.transform(rows))
    skipped, writer = SkippedRows(source.name), open_prediction_writer(output, UNLABELED_COLUMNS)
    try:
        for batch in prefetch(source):
            rows = run.encoder.parse_unlabeled(batch, on_error)
            skipped.add(sorted((*batch.unreadable_rows, *rows.bad_rows), key=lambda row: row.row_number))
            if len(rows):
                writer.write(rows.row_numbers, predict(batch, rows))
        writer.finish()
    finally:
        writer.close()
    skipped.print_total()


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
