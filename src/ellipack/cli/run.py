"""``ellipack run``: predict and then learn each row of a table; start, resume and save the run."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

import click

from ellipack.cli.inspect import write_report
from ellipack.cli.learners import make_learner, use_folder_of_outputs, use_past
from ellipack.cli.messages import ColumnMessages, SkippedRows, print_message
from ellipack.cli.options import DEFAULT_LEARNER, DEFAULT_SAVE_EVERY, Options
from ellipack.cli.output_lock import lock_output
from ellipack.cli.paths import check_paths, model_error
from ellipack.cli.resume import continue_run, load_resumed_run, open_new_table, open_resumed_table
from ellipack.cli.signals import StopSignals
from ellipack.cli.terminal import ProgressLine, make_console, print_record
from ellipack.cli.workers import check_worker_options, open_workers
from ellipack.errors import InputError, StreamError
from ellipack.evaluation.prediction_options import PredictionOptions, check_columns
from ellipack.evaluation.prediction_writer import LABELED_COLUMNS, PredictionWriter, open_prediction_writer
from ellipack.evaluation.prefetch import prefetch, run_in_thread
from ellipack.evaluation.run import BatchResult, Run
from ellipack.evaluation.worker_batches import worker_batches
from ellipack.learners.metric.sharded_learning import Workers
from ellipack.report.formatting import format_count
from ellipack.report.record import Record
from ellipack.report.run_record import build_record
from ellipack.tabular import (
    INFERENCE_ROWS,
    MIN_VALUES,
    CellOptions,
    LevelOptions,
    TableBatch,
    TableEncoder,
    TableStream,
)
from ellipack.tabular.input_file import format_from_extension
from ellipack.tabular.table_batch import escape_name


def run_table(options: Options) -> int:
    """Run over a table, write and print the results, and return the exit code.

    Parameters
    ----------
    options : Options
        Options of the command line.

    Returns
    -------
    int
        0, or 128 plus the number of the signal that stopped the run.
    """
    check_worker_options(options)
    _check_output_options(options)
    check_paths(options)
    stop = StopSignals()
    with lock_output(options.report):
        with (
            stop.installed(),
            lock_output(options.model_path, model_error),
            lock_output(options.predictions),
            open_workers(options) as workers,
        ):
            record = _run(options, stop, workers)
        if record is not None:
            _show_result(options, record)
    return 128 + stop.number if stop.number else 0


def _check_output_options(options: Options) -> None:
    """Raise InputError if an option needs an output that the run does not have."""
    if options.model_path is not None:
        return
    if options.keep and options.predictions is None:
        raise InputError("--keep needs --predictions, or --save to keep the columns when the run is resumed")
    if options.save_every != DEFAULT_SAVE_EVERY:
        raise InputError("--save-every needs --save or --resume: this run is not saved")
    if options.complete:
        raise InputError("--complete needs --save or --resume: a run that is not saved learns the last line anyway")


def _run(options: Options, stop: StopSignals, workers: Workers | None) -> Record | None:
    """Learn the whole table and return the record of the run, or None if a signal stopped it."""
    run = None if options.starts_new_run else load_resumed_run(options)
    started = run_in_thread(lambda: _start(options, run), stop.received)
    if started is None:
        print_message("stopped before the first row; nothing was saved")
        return None
    run, source = started
    use_folder_of_outputs(run.learner, options.model_path, options.predictions, options.report)
    if options.starts_new_run:
        _report_live_table(source, run.encoder.target)
    else:
        continue_run(run, options, source.skipped_rows)
    run.workers = workers
    kept = run.options.kept_columns
    prediction, label = LABELED_COLUMNS
    names = prediction, *run.options.interval_columns, label
    output = open_prediction_writer(options.predictions, names, run.output_position, kept)
    if options.starts_new_run:
        _describe_columns(run.encoder)
    try:
        speed = _learn_table(run, options, source, output, stop)
    finally:
        output.close()
    if stop.number:
        _report_stop(run, options)
        return None
    if not run.scores.n_rows:
        raise _no_row_error(run, options, source)
    record = build_record(run, speed)
    return replace(record, source=source.name) if options.more_tables else record


def _no_row_error(run: Run, options: Options, source: TableStream) -> StreamError:
    """Return the error of a table of which no row could be learned."""
    message = f"{source.name} has no row to learn from"
    if not run.unlabeled:
        return StreamError(message)
    message += f": all {format_count(run.unlabeled, 'value')} of '{escape_name(run.encoder.target)}' are missing"
    if "excel" in (options.format, format_from_extension(options.table)):
        message += " (formulas need stored values: save the file in a spreadsheet program)"
    return StreamError(message)


def _start(options: Options, saved: Run | None) -> tuple[Run, TableStream]:
    """Open the table, and return the run and the table. With many columns it takes seconds."""
    if saved is not None:
        return saved, open_resumed_table(options, saved)
    source = open_new_table(options)
    try:
        return _new_run(options, source), source
    except BaseException:
        source.close()
        raise


def _new_run(options: Options, source: TableStream) -> Run:
    """Return a run that has not learned any row."""
    if options.target is None:
        raise InputError(f"--target must be one of the columns of {source.name}: {', '.join(source.columns)}")
    prediction_options = PredictionOptions(
        options.minimum, options.maximum, options.keep, options.id_column, options.intervals
    )
    check_columns(prediction_options, source.columns, source.name)
    encoder = TableEncoder.from_head(
        source.peek(INFERENCE_ROWS),
        options.target,
        take=options.take or None,
        drop=options.drop if options.id_column is None else {*options.drop, options.id_column},
        kinds=options.column_kinds(),
        levels=_level_options(options),
        cells=CellOptions(options.decimal, options.thousands, options.na, options.formats_of_times(), options.trend),
        min_values=MIN_VALUES,
    )
    learner = make_learner(options.learner or DEFAULT_LEARNER, options.settings)
    use_past(learner, options, source)
    return Run(learner, encoder, options.table, options=prediction_options)


def _describe_columns(encoder: TableEncoder) -> None:
    """Say what the columns were taken for."""
    if taken_for := encoder.describe_columns():
        print_message(f"columns: {taken_for}")
    for warning in encoder.warnings:
        print_message(f"warning: {warning}")


def _report_live_table(source: TableStream, target: str) -> None:
    """Say from how many rows the columns of a pipe were decided, if they are few."""
    head = source.peek(INFERENCE_ROWS) if source.is_live else None
    if head is not None and len(head) < MIN_VALUES:
        rows = format_count(len(head), "row")
        print_message(f"columns are decided from {rows} of {source.name}; --head N waits for N rows, --kind sets them")
    if head is not None and head.table.column(target).null_count == len(head):
        print_message(f"no row of {source.name} has a value of the target '{target}' yet")


def _level_options(options: Options) -> LevelOptions:
    """Return the options of category columns, with defaults for those that are not given."""
    default = LevelOptions()
    return LevelOptions(
        one_hot=default.one_hot if options.levels is None else options.levels,
        remembered=options.level_memory or default.remembered,
    )


def _learn_table(
    run: Run, options: Options, source: TableStream, output: PredictionWriter, stop: StopSignals
) -> list[tuple[int, float]]:
    """Learn batch after batch, saving at intervals and at the end; return the speed over time."""
    first_position = saved = run.position
    columns = ColumnMessages(run)
    skipped, failures = SkippedRows(source.name), list[StreamError]()
    batches = worker_batches(source, options.shards) if options.has_workers else source
    with ProgressLine(run) as progress:
        for result in _learn_batches(run, options, prefetch(batches, stop.received), stop, failures):
            values = result.predictions, *result.interval_ends.T, result.labels
            output.write(result.row_numbers, *values, kept=result.kept)
            skipped.add(result.bad_rows)
            columns.print_new()
            if options.model_path and run.position - saved >= options.save_every:
                _save(run, options, output)
                saved = run.position
            progress.update()
    skipped.print_total()
    _save(run, options, output)
    output.finish()
    if failures:
        raise _add_resume_hint(failures[0], run, options)
    if run.position == first_position and not stop.number:
        print_message(f"{source.name} has no new rows")
    if source.has_incomplete_row and not stop.number:
        print_message(
            f"the last line of {source.name} has no line end; it may be incomplete and waits until the run is resumed "
            "(with --complete, it is learned now)"
        )
    return progress.speed


def _learn_batches(
    run: Run, options: Options, batches: Iterator[TableBatch], stop: StopSignals, failures: list[StreamError]
) -> Iterator[BatchResult]:
    """Yield the results of batches. If one can't be read, append the error to `failures` and stop.

    A signal ends a batch early, except on workers: how rows are cut into shards depends on batches.
    """
    stoppable = nullcontext if options.has_workers else stop.raising
    try:
        for batch in batches:
            yield run.learn_batch(batch, options.on_error, stoppable)
    except StreamError as error:
        failures.append(error)


def _save(run: Run, options: Options, output: PredictionWriter) -> None:
    """Write predictions to disk, then save the run together with their position."""
    run.output_position = output.sync()
    if options.model_path and _has_rows_to_save(run):
        run.save(options.model_path)


def _has_rows_to_save(run: Run) -> bool:
    """Return whether a run has learned a row, and has read one of its present table.

    Otherwise, the saved run stays as it is: it knows up to which row it has learned the table before.
    """
    return run.scores.n_rows > 0 and run.position > 0


def _add_resume_hint(error: StreamError, run: Run, options: Options) -> StreamError:
    """Return the error with a note that the rows before it are saved, and how to resume."""
    if options.model_path is None or not _has_rows_to_save(run):
        return error
    return StreamError(
        f"{error} (the {run.position:,} rows before it are saved; to resume: {options.resume_command()})"
    )


def _report_stop(run: Run, options: Options) -> None:
    message = f"stopped after {run.position:,} rows"
    if options.model_path is None:
        print_message(f"{message}; nothing was saved: use --save MODEL to be able to resume")
    elif not _has_rows_to_save(run):
        print_message(f"{message}; nothing was learned, so nothing was saved")
    else:
        print_message(f"{message} and saved; to resume: {options.resume_command()}")


def _show_result(options: Options, record: Record) -> None:
    """Write the report if requested, and print the result."""
    if options.report:
        write_report(record, options.report)
    stdout_taken = "-" in (options.predictions, options.report)
    if options.as_json:
        click.echo(record.to_json(), err=stdout_taken)
    else:
        print_record(record, make_console(to_error=stdout_taken))
    if options.report not in (None, "-"):
        print_message(f"report: {options.report}")
