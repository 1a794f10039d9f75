"""``ellipack inspect`` and ``ellipack report``: show a saved run, a saved learner or the JSON of a run."""

import sys
from pathlib import Path
from typing import Any

import click

from ellipack.cli.messages import print_message
from ellipack.cli.output_lock import lock_output
from ellipack.cli.paths import check_distinct_files, check_report_path, check_writable
from ellipack.cli.terminal import make_console, print_model
from ellipack.errors import InputError, ModelFileError
from ellipack.estimators.base import StreamingRegressor
from ellipack.report.page import render_page, write_page
from ellipack.report.record import Record
from ellipack.report.run_record import RunInfo, build_learner_record
from ellipack.tables.loading import load
from ellipack.tables.regressor import TableRegressor


def inspect_model(model: str, as_json: bool) -> None:
    """Print what a model has learned."""
    check_distinct_files({"MODEL": model}, {})
    record = read_record(model)
    if as_json:
        click.echo(record.to_json())
    else:
        print_model(record, make_console())


def report_model(model: str, output: str | None) -> None:
    """Write the report page of a model or of the JSON of a run."""
    path = output or ("-" if model == "-" else f"{model}.html")
    check_distinct_files({"MODEL": model}, {"--output": path})
    check_report_path(path)
    check_writable(path)
    with lock_output(path):
        write_report(read_record(model), path)
    if path != "-":
        print_message(f"report: {path}")


def write_report(record: Record, path: str) -> None:
    """Write the report page of a record to a file, or to standard output (``-``)."""
    if path == "-":
        click.echo(render_page(record), nl=False)
    else:
        write_page(record, path)


def read_record(path: str) -> Record:
    """Return the record of a saved run, a saved learner or a JSON file. Standard input (``-``) must be JSON."""
    if path == "-":
        return _parse_record(sys.stdin.buffer.read(), "standard input")
    if _first_bytes(path).lstrip().startswith(b"{"):
        return _parse_record(Path(path).read_bytes(), path)
    model = load(path)
    if not isinstance(model, TableRegressor | StreamingRegressor):
        raise ModelFileError(f"{path} must hold a regressor, got a {type(model).__name__}")
    if not model.__sklearn_is_fitted__():
        raise ModelFileError(f"{path} holds a learner that is not fitted yet")
    try:
        return model.record_ if isinstance(model, TableRegressor) else _learner_record(model, path)
    except InputError as error:  # the record checks more than loading does
        raise ModelFileError(f"{path} cannot be reported: {error}") from error


def _parse_record(data: bytes, source: str) -> Record:
    try:
        return Record.from_json(data.decode())
    except (InputError, UnicodeDecodeError) as error:
        raise ModelFileError(f"{source} is not the output of `ellipack run --json`: {error}") from error


def _learner_record(learner: StreamingRegressor[Any], path: str) -> Record:
    """Return the record of a learner that was saved without a run."""
    names = getattr(learner, "feature_names_in_", None)
    features = [f"x{i}" for i in range(learner.n_features_in_)] if names is None else list(names)
    return build_learner_record(learner, features, RunInfo(path, "y"))


def _first_bytes(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(64)
    except OSError as error:
        raise ModelFileError(f"{path} can't be read: {error.strerror or error}") from error
