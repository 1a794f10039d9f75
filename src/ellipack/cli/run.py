"""``ellipack run``: predict and then learn each row of a table; start, resume and save the run."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import click

from ellipack.cli.inspect import write_report
from ellipack.cli.messages import SkippedRows, print_message
from ellipack.cli.options import DEFAULT_LEARNER, Options
from ellipack.cli.output_lock import lock_output
from ellipack.cli.paths import check_paths, model_error
from ellipack.cli.signals import StopSignals
from ellipack.cli.terminal import ProgressLine, make_console, print_record
from ellipack.errors import DomainError, InputError, StreamError
from ellipack.estimators import (
    GradientOuterProduct,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
)
from ellipack.estimators.base import StreamingRegressor
from ellipack.evaluation.append_only_file import OutputPosition
from ellipack.evaluation.prediction_writer import LABELED_COLUMNS, PredictionWriter, open_prediction_writer
from ellipack.evaluation.prefetch import prefetch, run_in_thread
from ellipack.evaluation.run import BatchResult, Run, load_run
from ellipack.metric import LocalSlopes
from ellipack.report.record import Record
from ellipack.report.run_record import build_record
from ellipack.tabular import INFERENCE_ROWS, TableBatch, TableEncoder, TableStream, open_table

_BATCH_ROWS = 1024  # a signal stops the run after a batch, within a fraction of a second

LEARNER_FACTORIES: Final[dict[str, Callable[..., Any]]] = {
    "metric": MetricRegressor,
    "packing": PackingRegressor,
    # Local slopes find directions; the estimator of appendix A does not at practical sizes.
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes())),
}
"""Learners by their names on the command line."""


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
    check_paths(options)
    stop = StopSignals()
    with stop.installed(), lock_output(options.model_path, model_error), lock_output(options.predictions):
        record = _run(options, stop)
    if record is not None:
        _show_result(options, record)
    return 128 + stop.number if stop.number else 0


def _run(options: Options, stop: StopSignals) -> Record | None:
    """Learn the whole table and return the record of the run, or None if a signal stopped it."""
    run, skip_rows = (None, 0) if options.starts_new_run else load_resumed_run(options)
    source = run_in_thread(lambda: _open_stream(options, skip_rows), stop.received)
    if source is None:
        print_message("stopped before the first row; nothing was saved")
        return None
    if run is None:
        run = _new_run(options, source)
        for warning in run.encoder.warnings:
            print_message(f"warning: {warning}")
    output = open_prediction_writer(options.predictions, LABELED_COLUMNS, run.output_position)
    try:
        speed = _learn_table(run, options, source, output, stop)
    finally:
        output.close()
    if stop.number:
        _report_stop(run, options)
        return None
    if not run.scores.n_rows:
        raise StreamError(f"{source.name} has no row to learn from")
    return build_record(run, speed)


def _open_stream(options: Options, skip_rows: int) -> TableStream:
    """Open the table and read enough rows to infer the kinds of its columns."""
    source = open_table(
        options.table,
        batch_rows=min(_BATCH_ROWS, options.save_every),
        format=options.format,
        skip_rows=skip_rows,
        on_error=options.on_error,
    )
    source.peek(INFERENCE_ROWS)
    return source


def _new_run(options: Options, source: TableStream) -> Run:
    """Return a run that has not learned any row."""
    if options.target is None:
        raise InputError(f"--target must be one of the columns of {source.name}: {', '.join(source.columns)}")
    encoder = TableEncoder.from_head(
        source.peek(INFERENCE_ROWS),
        options.target,
        take=options.take or None,
        drop=options.drop,
        kinds=options.column_kinds(),
    )
    return Run(make_learner(options.learner or DEFAULT_LEARNER, options.settings), encoder, options.table)


def _learn_table(
    run: Run, options: Options, source: TableStream, output: PredictionWriter, stop: StopSignals
) -> list[tuple[int, float]]:
    """Learn batch after batch, saving at intervals and at the end; return the speed over time."""
    first_position, saved = run.position, run.scores.n_rows
    skipped, failures = SkippedRows(source.name), list[StreamError]()
    with ProgressLine(run) as progress:
        for result in _learn_batches(run, options, prefetch(source, stop.received), failures):
            output.write(result.row_numbers, result.predictions, result.labels)
            skipped.add(result.bad_rows)
            if options.model_path and run.scores.n_rows - saved >= options.save_every:
                _save(run, options, output)
                saved = run.scores.n_rows
            progress.update()
    skipped.print_total()
    _save(run, options, output)
    output.finish()
    if failures:
        raise _add_resume_hint(failures[0], run, options)
    if run.position == first_position and not stop.number:
        print_message(f"{source.name} has no new rows")
    return progress.speed


def _learn_batches(
    run: Run, options: Options, batches: Iterator[TableBatch], failures: list[StreamError]
) -> Iterator[BatchResult]:
    """Yield the results of batches. If one can't be read, append the error to `failures` and stop."""
    try:
        for batch in batches:
            yield run.learn_batch(batch, options.on_error)
    except StreamError as error:
        failures.append(error)


def _save(run: Run, options: Options, output: PredictionWriter) -> None:
    """Write predictions to disk, then save the run together with their position."""
    run.output_position = output.sync()
    if options.model_path and run.scores.n_rows:
        run.save(options.model_path)


def _add_resume_hint(error: StreamError, run: Run, options: Options) -> StreamError:
    """Return the error with a note that the rows before it are saved, and how to resume."""
    if options.model_path is None or not run.scores.n_rows:
        return error
    return StreamError(
        f"{error} (the {run.position:,} rows before it are saved; to resume: {options.resume_command()})"
    )


def _report_stop(run: Run, options: Options) -> None:
    message = f"stopped after {run.position:,} rows"
    if options.model_path is None:
        print_message(f"{message}; nothing was saved: use --save MODEL to be able to resume")
    elif not run.scores.n_rows:
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


def load_resumed_run(options: Options) -> tuple[Run, int]:
    """Return the run to resume, and the number of rows of the table to skip.

    If the table is the same, the run continues after the last row that it learned. Standard input is assumed to
    continue where it stopped. Any other table is learned from its first row, with predictions of its own.
    """
    run = load_run(str(options.resume))
    _check_options(run, options)
    message = f"resuming {options.resume} ({run.scores.n_rows:,} rows learned)"
    if options.table == run.source == "-":
        run.row_offset = run.position
        print_message(f"{message} from standard input")
        skip_rows = 0
    elif "-" not in (options.table, run.source) and _same_path(options.table, run.source):
        skip_rows = run.position
        print_message(f"{message} after row {skip_rows:,} of {options.table}")
    else:
        print_message(f"{message} from the first row of {options.table}; it was trained on {run.source}")
        run.position, run.output_position, skip_rows = 0, OutputPosition(), 0
    if run.output_position.size and options.predictions is None:
        print_message("warning: the saved run wrote predictions; without --predictions, no more are written")
    run.source = options.table
    return run, skip_rows


def _same_path(one: str, other: str) -> bool:
    return os.path.abspath(one) == os.path.abspath(other)


def _check_options(run: Run, options: Options) -> None:
    """Raise if an option differs from the saved run."""
    _check_equal("--target", options.target, run.encoder.target)
    learner: Any = getattr(run.learner, "regressor", run.learner)
    if options.learner is not None and type(learner) is not type(LEARNER_FACTORIES[options.learner]()):
        raise _mismatch("--learner", type(learner).__name__, options.learner)
    for text in options.settings:
        name, value = parse_setting(text, learner)
        _check_equal(f"--set {name}", value, learner.get_params(deep=False)[name])
    kinds = {column.name: column.kind for column in run.encoder.column_summaries()}
    if options.take and {*options.take} != {*kinds}:
        raise _mismatch("--take", ", ".join(kinds), ", ".join(options.take))
    for name in options.drop:
        if name in kinds:
            raise _mismatch("--drop", f"{name!r} among its columns", repr(name))
    for name, kind in options.column_kinds().items():
        if name != run.encoder.target:
            _check_equal(f"--kind of {name!r}", kind, kinds.get(name))


def _check_equal(option: str, given: Any, has: Any) -> None:
    if given is not None and given != has:
        raise _mismatch(option, repr(has), repr(given))


def _mismatch(option: str, has: str, given: str) -> InputError:
    return InputError(f"{option} must match the resumed run, which has {has}, got {given}; omit the option")


def make_learner(name: str, settings: Sequence[str]) -> StreamingRegressor[Any]:
    """Return a learner by its name, with parameters ``NAME=VALUE``. The paper's learners are rescaled to any data."""
    learner: StreamingRegressor[Any] = LEARNER_FACTORIES[name]()
    for text in settings:
        key, value = parse_setting(text, learner)
        learner.set_params(**{key: value})
    return learner if name == "metric" else RescaledRegressor(learner)


def parse_setting(text: str, learner: StreamingRegressor[Any]) -> tuple[str, Any]:
    """Return name and value of a parameter ``NAME=VALUE``. The learner checks the value itself."""
    parameters = learner.get_params(deep=False)
    names = sorted(name for name, value in parameters.items() if isinstance(value, int | float))
    name, equals, given = text.partition("=")
    if not equals or name not in names:
        raise DomainError(f"--set must be NAME=VALUE with one of the names {', '.join(names)}, got {text!r}")
    value = _parse_json(given)
    if isinstance(parameters[name], bool) and not isinstance(value, bool):
        raise DomainError(f"--set {name} must be true or false, got {given!r}")
    return name, value


def _parse_json(text: str) -> Any:
    """Return the value of a JSON text, or the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text
