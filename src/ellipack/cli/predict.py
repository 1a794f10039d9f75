"""``ellipack predict``: predictions for the rows of a file, by a saved run."""

from ellipack.cli.messages import SkippedRows, print_message
from ellipack.cli.options import check_distinct_paths, check_writable
from ellipack.errors import CheckpointError
from ellipack.evaluation.prediction_writer import UNLABELED_COLUMNS, open_prediction_writer
from ellipack.evaluation.prefetch import prefetch
from ellipack.evaluation.run import load_run
from ellipack.tabular import open_table


def predict(model: str, file: str, output: str, format: str | None, on_error: str) -> None:
    """Predict the rows of a file with the run saved in a model."""
    check_distinct_paths({"MODEL": model, "FILE": file, "--output": output})
    if output != "-":
        check_writable(output)
    run = load_run(model)
    if not run.scores.n_rows:
        raise CheckpointError(f"{model} has learned nothing yet: go on with its run first")
    source = open_table(file, format=format, on_error=on_error)
    unused = [name for name in run.encoder.unused_columns(source.columns) if name != run.encoder.target]
    if unused:
        print_message(f"columns that the model does not use: {', '.join(unused)}")
    skipped, out = SkippedRows(source.name), open_prediction_writer(output, UNLABELED_COLUMNS)
    try:
        for batch in prefetch(source):
            rows = run.encoder.parse_unlabeled(batch, on_error)
            skipped.add(sorted((*batch.unreadable_rows, *rows.bad_rows), key=lambda row: row.row_number))
            if len(rows):
                out.write(rows.row_numbers, run.learner.predict(run.encoder.transform(rows)))
        out.finish()
    finally:
        out.close()
    skipped.print_total()
