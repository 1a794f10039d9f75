"""Checks of all paths of a command before the first row is read."""

import os
import stat
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from tempfile import TemporaryFile

from ellipack.cli.options import Options
from ellipack.errors import EllipackError, InputError, ModelFileError, StreamError
from ellipack.evaluation.prediction_writer import check_prediction_path
from ellipack.serialization.atomic_file import check_is_replaceable

_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR = 0, 1, 2


def check_paths(options: Options) -> None:
    """Raise unless all output files of a run can be written, and are neither each other nor the table."""
    check_distinct_files(
        {"TABLE": options.table} | {f"TABLE {i}": path for i, path in enumerate(options.more_tables, start=2)},
        {
            "--predictions": options.predictions,
            "--report": options.report,
            "--save": options.save,
            "--resume": options.resume,
        },
    )
    if options.predictions == options.report == "-":
        raise InputError("--predictions and --report can't both go to standard output")
    for name, path in (("--save", options.save), ("--resume", options.resume)):
        if path == "-":
            raise InputError(f"{name} must be the path of a file, got '-'")
    if options.predictions is not None:
        check_prediction_path(options.predictions)
    if options.report is not None:
        check_report_path(options.report)
    check_writable(options.predictions)
    check_writable(options.report)
    check_replaceable(options.model_path, model_error)


def check_report_path(path: str) -> None:
    """Raise `InputError` if the extension of a file is not that of an HTML page."""
    file = Path(path)
    if file.suffix.lower() not in (".html", ".htm", "") and (file.is_file() or not file.exists()):
        raise InputError(f"the report must go to a .html file, or to one without an extension, got {path!r}")


def check_writable(path: str | None, error_type: Callable[[str], EllipackError] = StreamError) -> None:
    """Raise unless a file can be written. An existing file is not changed. None and ``-`` need no check."""
    if path in (None, "-"):
        return
    try:
        _check_writable(Path(path))
    except OSError as error:
        raise error_type(f"{path} can't be written: {error.strerror or error}") from error


def check_replaceable(path: str | None, error_type: Callable[[str], EllipackError] = StreamError) -> None:
    """Raise unless a file can be replaced by a new one, which devices and pipes can't."""
    check_writable(path, error_type)
    if path is not None:
        try:
            check_is_replaceable(Path(os.path.realpath(path)))
        except OSError as error:
            raise error_type(f"{path} can't be written: {error}") from error


def check_distinct_files(inputs: Mapping[str, str | None], outputs: Mapping[str, str | None]) -> None:
    """Raise if two of the files that a command uses are the same file, even under two names.

    Standard input, output and error, if redirected, are files, too. Standard output and error may be the same, and so
    may ``--save`` and ``--resume``.
    """
    seen = {_identity("-", _STANDARD_ERROR): "standard error", _identity("-", _STANDARD_OUTPUT): "standard output"}
    paths = {**inputs, **{name: path for name, path in outputs.items() if path != "-"}}
    identities = {
        name: identity
        for name, path in paths.items()
        if path is not None and (identity := _identity(path, _STANDARD_INPUT)) is not None
    }
    _keep_messages_out_of(identities.values())
    for name, identity in identities.items():
        other = seen.setdefault(identity, name)
        if other != name and {other, name} != {"--save", "--resume"}:
            given = "standard input" if paths[name] == "-" else repr(paths[name])
            raise InputError(f"{other} and {name} must be different files, got {given} for both")


def model_error(message: str) -> EllipackError:
    """Return the error of a model that can't be written."""
    return ModelFileError(message)


def _keep_messages_out_of(identities: Collection[object]) -> None:
    """Print messages on standard output if standard error is one of the files; nowhere if standard output is, too."""
    if _identity("-", _STANDARD_ERROR) in identities:
        is_in_use = _identity("-", _STANDARD_OUTPUT) in identities
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8") if is_in_use else sys.stdout


def _check_writable(target: Path) -> None:
    """Raise OSError unless a file can be written."""
    if target.is_dir():
        raise OSError("it is a directory")
    if target.exists() and not target.is_file():
        return  # a device, or a pipe, which must not be opened twice
    if not target.parent.is_dir():
        raise OSError(f"the directory {target.parent} does not exist")
    if target.exists():
        target.open("r+b").close()
    TemporaryFile(dir=target.parent).close()


def _identity(path: str, standard: int) -> object:
    """Return what identifies a file, or None for terminals, pipes and devices.

    Parameters
    ----------
    path : str
        Path of the file.
    standard : int
        Descriptor that the path ``-`` means.
    """
    try:
        found = os.fstat(standard) if path == "-" else os.stat(path)
    except (OSError, ValueError):  # it does not exist, or is closed
        return None if path == "-" else os.path.realpath(path)
    is_device = not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))
    return None if is_device else (found.st_dev, found.st_ino)
