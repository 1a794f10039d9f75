"""``ellipack run``: predict, then learn, row after row."""

from collections.abc import Iterator

import click

from ellipack.cli.learners import learner_of
from ellipack.cli.options import DEFAULT, Options, check_places
from ellipack.cli.progress import Ticker
from ellipack.cli.reporting import write_page
from ellipack.cli.resuming import resumed
from ellipack.cli.saying import say
from ellipack.cli.signals import Stops
from ellipack.cli.skipping import Skipped
from ellipack.cli.terminal import screen, show_record
from ellipack.errors import InputError, StreamError
from ellipack.evaluation.prediction_writer import LABELLED, Predictions, open_predictions
from ellipack.evaluation.prefetch import awaited, prefetched
from ellipack.evaluation.run import Played, Run
from ellipack.report.record import Record
from ellipack.report.summary import record_of
from ellipack.serialization import sweep
from ellipack.tabular import SNIFFED, Batch, Encoding, Source, open_source

_BATCH = 1024  # rows, after which a signal is heeded: a fraction of a second


def run_over(options: Options) -> int:
    """Run as the options ask, and show what came of it; return the exit code."""
    stops = Stops()
    with stops.heeded():
        record = _run(options, stops)
    if record is not None:
        _show(options, record)
    return 128 + stops.number if stops.number else 0


def _run(options: Options, stops: Stops) -> Record | None:
    """Play the whole stream, or up to a signal; return what there is to show."""
    check_places(options)
    run, passed = (None, 0) if options.begins_anew else resumed(options)
    if options.model:
        sweep(options.model)
    source = awaited(lambda: _opened(options, passed), stops.wanted)
    if source is None:
        say("stopped before the first row; there is nothing to save")
        return None
    if run is None:
        run = _begun(options, source)
        for warning in run.encoding.warnings:
            say(f"warning: {warning}")
    output = open_predictions(options.predictions, LABELLED, run.written)
    try:
        speed = _play(run, options, source, output, stops)
    finally:
        output.close()
    if stops.number:
        _explain_stop(run, options)
        return None
    if not run.scores.rows:
        raise StreamError(f"{source.name} has no row that could be learned from")
    return record_of(run, speed)


def _opened(options: Options, passed: int) -> Source:
    """Return the stream, with rows enough of it at hand to tell what its columns are."""
    source = open_source(
        options.stream,
        batch_rows=min(_BATCH, options.every),
        format=options.format,
        skip_rows=passed,
        on_error=options.on_error,
    )
    source.peek(SNIFFED)
    return source


def _begun(options: Options, source: Source) -> Run:
    """Return a run that has seen no row yet."""
    if options.target is None:
        raise InputError(f"--target must be one of the columns of {source.name}: {', '.join(source.columns)}")
    encoding = Encoding.begin(
        source.peek(SNIFFED), options.target, take=options.take or None, drop=options.drop, kinds=options.kind_of()
    )
    return Run(learner_of(options.learner or DEFAULT, options.settings), encoding, options.stream)


def _play(run: Run, options: Options, source: Source, output: Predictions, stops: Stops) -> list[tuple[int, float]]:
    """Play batch after batch, saving on the way and at the end; return how fast it went."""
    begun, saved = run.position, run.scores.rows
    skipped, failures = Skipped(source.name), list[StreamError]()
    with Ticker(run) as ticker:
        for played in _playing(run, options, prefetched(source, stops.wanted), failures):
            output.add(played.numbers, played.predictions, played.labels)
            skipped.add(played.bad)
            if options.model and run.scores.rows - saved >= options.every:
                _settle(run, options, output)
                saved = run.scores.rows
            ticker.tick()
    skipped.sum_up()
    _settle(run, options, output)
    output.finish()
    if failures:
        raise _explained(failures[0], run, options)
    if run.position == begun and not stops.number:
        say(f"{source.name} has no rows that are new")
    return ticker.speed


def _playing(run: Run, options: Options, batches: Iterator[Batch], failures: list[StreamError]) -> Iterator[Played]:
    """Yield what becomes of batches, up to one that can't be read, which is taken down."""
    try:
        for batch in batches:
            yield run.play(batch, options.on_error)
    except StreamError as error:
        failures.append(error)


def _settle(run: Run, options: Options, output: Predictions) -> None:
    """Bring predictions to the disk, and then save the run, which knows how many there are."""
    run.written = output.settle()
    if options.model and run.scores.rows:
        run.save(options.model)


def _explained(error: StreamError, run: Run, options: Options) -> StreamError:
    """Return an error that says what became of the rows before it."""
    if options.model is None or not run.scores.rows:
        return error
    return StreamError(f"{error} (the {run.position:,} rows before are saved; then: {options.going_on()})")


def _explain_stop(run: Run, options: Options) -> None:
    said = f"stopped after {run.position:,} rows"
    if options.model is None:
        say(f"{said}; nothing was saved: with --save MODEL one can go on")
    elif not run.scores.rows:
        say(f"{said}, with nothing learned that could be saved")
    else:
        say(f"{said}, and saved; to go on: {options.going_on()}")


def _show(options: Options, record: Record) -> None:
    """Write the page if one is wanted, and print the result."""
    if options.report:
        write_page(record, options.report)
    piped = "-" in (options.predictions, options.report)
    if options.as_json:
        click.echo(record.to_json(), err=piped)
    else:
        show_record(record, screen(to_error=piped))
    if options.report not in (None, "-"):
        say(f"report: {options.report}")
