"""``ellipack predict``: predictions of a saved run for the rows of a table."""

from ellipack.cli.messages import SkippedRows, print_message
from ellipack.cli.output_lock import lock_output
from ellipack.cli.paths import check_distinct_files, check_writable
from ellipack.errors import ModelFileError
from ellipack.evaluation.prediction_writer import UNLABELED_COLUMNS, open_prediction_writer
from ellipack.evaluation.prefetch import prefetch
from ellipack.evaluation.run import load_run
from ellipack.tabular import open_table


def predict_table(model: str, table: str, output: str, format: str | None, on_error: str) -> None:
    """Write predictions of a saved run for the rows of a table."""
    check_distinct_files({"MODEL": model, "TABLE": table}, {"--output": output})
    check_writable(output)
    with lock_output(output):
        _predict_table(model, table, output, format, on_error)


def _predict_table(model: str, table: str, output: str, format: str | None, on_error: str) -> None:
    run = load_run(model)
    if not run.scores.n_rows:
        raise ModelFileError(f"{model} has not learned any row yet: resume its run first")
    source = open_table(table, format=format, on_error=on_error)
    unused = [name for name in run.encoder.unused_columns(source.columns) if name != run.encoder.target]
    if unused:
        print_message(f"columns ignored by the model: {', '.join(unused)}")
    skipped, writer = SkippedRows(source.name), open_prediction_writer(output, UNLABELED_COLUMNS)
    try:
        for batch in prefetch(source):
            rows = run.encoder.parse_unlabeled(batch, on_error)
            skipped.add(sorted((*batch.unreadable_rows, *rows.bad_rows), key=lambda row: row.row_number))
            if len(rows):
                writer.write(rows.row_numbers, run.learner.predict(run.encoder.transform(rows)))
        writer.finish()
    finally:
        writer.close()
    skipped.print_total()
