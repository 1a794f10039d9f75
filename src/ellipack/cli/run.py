"""``ellipack run``: predict, then learn, row after row."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import click

from ellipack.cli.inspect import write_report
from ellipack.cli.messages import SkippedRows, print_message
from ellipack.cli.options import DEFAULT_LEARNER, Options, check_paths
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
from ellipack.serialization import remove_partial_files
from ellipack.tabular import INFERENCE_ROWS, TableBatch, TableEncoder, TableStream, open_table

_BATCH = 1024  # rows, after which a signal is replaced: a fraction of a second


def run_table(options: Options) -> int:
    """Run as the options ask, and show what came of it; return the exit code."""
    stop = StopSignals()
    with stop.installed():
        record = _run(options, stop)
    if record is not None:
        _show_result(options, record)
    return 128 + stop.number if stop.number else 0


def _run(options: Options, stop: StopSignals) -> Record | None:
    """Play the whole stream, or up to a signal; return what there is to show."""
    check_paths(options)
    run, passed = (None, 0) if options.starts_new_run else load_resumed_run(options)
    if options.model_path:
        remove_partial_files(options.model_path)
    source = run_in_thread(lambda: _open_stream(options, passed), stop.received)
    if source is None:
        print_message("stopped before the first row; there is nothing to save")
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
        raise StreamError(f"{source.name} has no row that could be learned from")
    return build_record(run, speed)


def _open_stream(options: Options, passed: int) -> TableStream:
    """Return the stream, with rows enough of it at hand to tell what its columns are."""
    source = open_table(
        options.stream,
        batch_rows=min(_BATCH, options.save_every),
        format=options.format,
        skip_rows=passed,
        on_error=options.on_error,
    )
    source.peek(INFERENCE_ROWS)
    return source


def _new_run(options: Options, source: TableStream) -> Run:
    """Return a run that has seen no row yet."""
    if options.target is None:
        raise InputError(f"--target must be one of the columns of {source.name}: {', '.join(source.columns)}")
    encoder = TableEncoder.from_head(
        source.peek(INFERENCE_ROWS),
        options.target,
        take=options.take or None,
        drop=options.drop,
        kinds=options.column_kinds(),
    )
    return Run(make_learner(options.learner or DEFAULT_LEARNER, options.settings), encoder, options.stream)


def _learn_table(
    run: Run, options: Options, source: TableStream, output: PredictionWriter, stop: StopSignals
) -> list[tuple[int, float]]:
    """Play batch after batch, saving on the way and at the end; return how fast it went."""
    begun, saved = run.position, run.scores.n_rows
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
    if run.position == begun and not stop.number:
        print_message(f"{source.name} has no rows that are new")
    return progress.speed


def _learn_batches(
    run: Run, options: Options, batches: Iterator[TableBatch], failures: list[StreamError]
) -> Iterator[BatchResult]:
    """Yield what becomes of batches, up to one that can't be read, which is taken down."""
    try:
        for batch in batches:
            yield run.learn_batch(batch, options.on_error)
    except StreamError as error:
        failures.append(error)


def _save(run: Run, options: Options, output: PredictionWriter) -> None:
    """Bring predictions to the disk, and then save the run, which knows how many there are."""
    run.output_position = output.sync()
    if options.model_path and run.scores.n_rows:
        run.save(options.model_path)


def _add_resume_hint(error: StreamError, run: Run, options: Options) -> StreamError:
    """Return an error that says what became of the rows before it."""
    if options.model_path is None or not run.scores.n_rows:
        return error
    return StreamError(f"{error} (the {run.position:,} rows before are saved; then: {options.resume_command()})")


def _report_stop(run: Run, options: Options) -> None:
    said = f"stopped after {run.position:,} rows"
    if options.model_path is None:
        print_message(f"{said}; nothing was saved: with --save MODEL one can go on")
    elif not run.scores.n_rows:
        print_message(f"{said}, with nothing learned that could be saved")
    else:
        print_message(f"{said}, and saved; to go on: {options.resume_command()}")


def _show_result(options: Options, record: Record) -> None:
    """Write the page if one is wanted, and print the result."""
    if options.report:
        write_report(record, options.report)
    piped = "-" in (options.predictions, options.report)
    if options.as_json:
        click.echo(record.to_json(), err=piped)
    else:
        print_record(record, make_console(to_error=piped))
    if options.report not in (None, "-"):
        print_message(f"report: {options.report}")


def load_resumed_run(options: Options) -> tuple[Run, int]:
    """Return the run to go on with, and how many rows of the stream to pass over.

    Under the name of the same stream it goes on behind the last row that was learned. Standard input can't be told by
    a name: what comes is taken for what comes next. Another stream is learned from its first row, and its predictions
    are its own.
    """
    run = load_run(str(options.resume))
    _check_options(run, options)
    said = f"going on with {options.resume} ({run.scores.n_rows:,} rows learned)"
    if options.stream == run.source == "-":
        run.row_offset = run.position
        print_message(f"{said}, with what comes on standard input")
        passed = 0
    elif "-" not in (options.stream, run.source) and _same_path(options.stream, run.source):
        passed = run.position
        print_message(f"{said}, behind row {passed:,} of {options.stream}")
    else:
        print_message(f"{said}, from the first row of {options.stream}: what it has learned is from {run.source}")
        run.position, run.output_position, passed = 0, OutputPosition(), 0
    if run.output_position.size and options.predictions is None:
        print_message("warning: no --predictions, though the run has written some: there will be none from here on")
    run.source = options.stream
    return run, passed


def _same_path(one: str, other: str) -> bool:
    return os.path.abspath(one) == os.path.abspath(other)


def _check_options(run: Run, options: Options) -> None:
    """Raise if an option asks for anything else than the saved run has."""
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
    return InputError(f"{option} must be that of the resumed run, which has {has}, got {given}: leave it out")


LEARNER_FACTORIES: Final[dict[str, Callable[..., Any]]] = {
    "metric": MetricRegressor,
    "packing": PackingRegressor,
    # With an estimate that finds directions: appendix A to the letter would find none.
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes())),
}
"""By the names that the command line has for them."""


def make_learner(name: str, settings: Sequence[str]) -> StreamingRegressor[Any]:
    """Return a learner by its name, with settings ``NAME=VALUE``; the paper's for any features and labels."""
    learner: StreamingRegressor[Any] = LEARNER_FACTORIES[name]()
    for text in settings:
        key, value = parse_setting(text, learner)
        learner.set_params(**{key: value})
    return learner if name == "metric" else RescaledRegressor(learner)


def parse_setting(text: str, learner: StreamingRegressor[Any]) -> tuple[str, Any]:
    """Return the name and the value of a setting ``NAME=VALUE``; the learner itself says what values it takes."""
    plain = {name: value for name, value in learner.get_params(deep=False).items() if isinstance(value, int | float)}
    name, equals, given = text.partition("=")
    if not equals or name not in plain:
        raise DomainError(f"--set must be NAME=VALUE with a name of {', '.join(sorted(plain))}, got {text!r}")
    value = _value(given)
    if isinstance(plain[name], bool) and not isinstance(value, bool):
        raise DomainError(f"--set {name} must be true or false, got {given!r}")
    return name, value


def _value(text: str) -> Any:
    """Return the number, boolean or list that a text is in JSON, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text
