"""Resume a saved run: check the options, and find out where to continue in the table."""

import os
from collections.abc import Sequence
from typing import Any

from ellipack.cli.learners import LEARNER_FACTORIES, parse_setting
from ellipack.cli.messages import print_message
from ellipack.cli.options import DEFAULT_LEARNER, Options
from ellipack.errors import InputError, StreamError
from ellipack.evaluation.prediction_options import check_columns
from ellipack.evaluation.prediction_writer import holds_predictions
from ellipack.evaluation.run import Run, load_run
from ellipack.evaluation.table_fingerprint import WINDOW_ROWS
from ellipack.tabular import INFERENCE_ROWS, FileOptions, TableStream, open_table

_BATCH_ROWS = 1024  # predictions are written after a batch, within a fraction of a second
_BATCH_WORK = 4e7  # the same in rows times squared number of columns


def load_resumed_run(options: Options) -> Run:
    """Return the run to resume; raise InputError if the options do not match it."""
    run = load_run(str(options.resume))
    _check_options(run, options)
    return run


def open_stream(
    options: Options, skip_rows: int = 0, later_columns: Sequence[str] = (), run: Run | None = None
) -> TableStream:
    """Open the table of a new run, or of a saved one. A run that is saved may be resumed, and its table may grow."""
    source = open_table(
        options.paths,
        batch_rows=min(_BATCH_ROWS, options.save_every),
        format=options.format,
        skip_rows=skip_rows,
        on_error=options.on_error,
        may_grow=options.model_path is not None and not options.complete,
        later_columns=later_columns,
        file_options=_file_options(options, run),
    )
    source.batch_rows = max(1, min(source.batch_rows, int(_BATCH_WORK / len(source.columns) ** 2)))
    return source


def _file_options(options: Options, run: Run | None) -> FileOptions:
    """Return how the files of a new run, or of a saved one, are read."""
    take, drop = (options.take or None, options.drop) if run is None else (run.encoder.column_names, ())
    return FileOptions(options.delimiter, options.sheet, take, drop)


def open_new_table(options: Options) -> TableStream:
    """Open the table of a new run, and read enough rows to infer the kinds of its columns."""
    source = open_stream(options, later_columns=options.named_columns())
    learner = LEARNER_FACTORIES[options.learner or DEFAULT_LEARNER]()
    # Checked before more rows are read, which takes long if they are wide.
    learner.check_feature_count(
        len(set(options.take or source.columns) - {*options.drop, options.target, options.id_column})
    )
    source.peek(INFERENCE_ROWS, options.head)
    return source


def open_resumed_table(options: Options, run: Run) -> TableStream:
    """Open the table of a resumed run, and check that it has the columns that are kept and the ids."""
    source = _open_where_it_continues(options, run)
    check_columns(run.options, source.columns, source.name)
    return source


def _open_where_it_continues(options: Options, run: Run) -> TableStream:
    """Open the table at the row where the run continues.

    If the table is the one that the run has learned, even under another name, that is the row after the last one that
    it learned. Any other table is learned from its first row.

    Raises
    ------
    StreamError
        If a table of the same name has only the first or only the last ones of these rows, at the same place.
    """
    if "-" in (options.table, run.source):
        return _open_other_table(options, run)
    is_same_name = _is_same_name(options, run)
    has_same_start = _has_same_start(options, run)
    if not has_same_start and not is_same_name:
        return _open_other_table(options, run)
    source = open_stream(options, max(0, run.position - WINDOW_ROWS), run=run)
    try:
        has_same_end = run.fingerprint.has_same_end(source.skip_to(run.position), run.encoder.column_names)
    except BaseException:
        source.close()
        raise
    if has_same_start and has_same_end:
        return source
    source.close()
    if is_same_name and has_same_start:
        raise StreamError(
            f"{source.name} begins with the rows that were learned, but the last ones before row "
            f"{run.position + 1:,} have changed or are missing: restore them, or learn the table under another name"
        )
    if has_same_end:
        raise StreamError(
            f"{source.name} has the last rows that were learned, before row {run.position + 1:,}, but some of its "
            f"first {WINDOW_ROWS} rows have changed: restore them, or learn the table under another name"
        )
    return _open_other_table(options, run)


def _open_other_table(options: Options, run: Run) -> TableStream:
    """Open a table that the run has not learned."""
    named = [*run.encoder.column_names, *run.options.kept_columns, *options.by]
    return open_stream(options, later_columns=named, run=run)


def _is_same_name(options: Options, run: Run) -> bool:
    """Return whether the table has the name of the one that the run has learned."""
    return os.path.abspath(options.table) == os.path.abspath(run.source)


def continue_run(run: Run, options: Options, skipped_rows: int) -> None:
    """Make a run continue with its table, of which `skipped_rows` rows are known, and say so.

    Standard input is assumed to continue where it stopped.
    """
    message = f"resuming {options.resume} ({run.scores.n_rows:,} rows learned)"
    if options.table == run.source == "-":
        run.row_offset = run.position
        print_message(f"{message} from standard input")
    elif skipped_rows:
        print_message(f"{message} after row {skipped_rows:,} of {options.table}")
        run.source = options.table
    else:
        _start_other_table(run, options, message)
    if run.output_position.size and options.predictions is None:
        print_message("warning: the saved run wrote predictions; without --predictions, no more are written")


def _start_other_table(run: Run, options: Options, message: str) -> None:
    reason = f"it was trained on {run.source}"
    if _is_same_name(options, run):
        reason = "its first rows are not those that were learned"
    if holds_predictions(options.predictions, run.output_position):
        raise InputError(
            f"--predictions must be another file for another table ({reason}), got {options.predictions!r}, "
            "which holds the predictions of the saved run"
        )
    print_message(f"{message} from the first row of {options.table}; {reason}")
    run.start_table(options.table)


def _has_same_start(options: Options, run: Run) -> bool:
    """Return whether the table begins with the rows that the run has learned."""
    files = _file_options(options, run)
    with open_table(options.paths, format=options.format, on_error="skip", file_options=files) as head:
        return run.fingerprint.has_same_start(head.peek(WINDOW_ROWS), run.encoder.column_names)


def _check_options(run: Run, options: Options) -> None:
    """Raise if an option differs from the saved run."""
    _check_equal("--target", options.target, run.encoder.target)
    learner: Any = getattr(run.learner, "regressor", run.learner)
    if options.learner is not None and type(learner) is not type(LEARNER_FACTORIES[options.learner]()):
        raise _mismatch("--learner", type(learner).__name__, options.learner)
    if options.by:
        _check_equal("--by", list(options.by), getattr(learner, "by", None))
    if not options.past and getattr(learner, "past", False):
        raise _mismatch("--no-past", "the past", "none")
    for text in options.settings:
        name, value = parse_setting(text, learner)
        _check_equal(f"--set {name}", value, learner.get_params(deep=False)[name])
    kinds = {column.name: column.kind for column in run.encoder.column_summaries()}
    if options.take and {*options.take} != {*kinds}:
        raise _mismatch("--take", ", ".join(kinds), ", ".join(options.take))
    for name in options.drop:
        if name in kinds:
            raise _mismatch("--drop", f"{name!r} among its columns", repr(name))
    _check_equal("--min", options.minimum, run.options.minimum)
    _check_equal("--max", options.maximum, run.options.maximum)
    _check_equal("--interval", options.intervals or None, run.options.coverages)
    _check_equal("--id", options.id_column, run.options.id_column)
    _check_equal("--keep", options.keep or None, run.options.keep)
    _check_equal("--decimal", options.decimal, run.encoder.cell_options.decimal)
    _check_equal("--thousands", options.thousands, run.encoder.cell_options.thousands)
    _check_equal("--na", options.na or None, run.encoder.cell_options.na)
    _check_equal("--time-format", options.formats_of_times() or None, run.encoder.cell_options.time_formats)
    _check_equal("--trend", options.trend or None, run.encoder.cell_options.trend)
    if run.encoder.level_options is not None:
        _check_equal("--levels", options.levels, run.encoder.level_options.one_hot)
        _check_equal("--level-memory", options.level_memory, run.encoder.level_options.remembered)
    for name, kind in options.column_kinds().items():
        if name != run.encoder.target:
            _check_equal(f"--kind of {name!r}", kind, kinds.get(name))


def _check_equal(option: str, given: Any, has: Any) -> None:
    if given is not None and given != has:
        raise _mismatch(option, repr(has), repr(given))


def _mismatch(option: str, has: str, given: str) -> InputError:
    return InputError(f"{option} must match the resumed run, which has {has}, got {given}; omit the option")
