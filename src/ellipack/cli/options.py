"""Options of ``ellipack run``, and checks of all paths before the first row is read."""

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from ellipack.errors import EllipackError, InputError, ModelFileError, StreamError

DEFAULT_LEARNER = "metric"
"""Learner that is used by default."""

DEFAULT_SAVE_EVERY = 100_000
"""Number of rows between saves, by default."""


@dataclass(frozen=True)
class Options:
    """Options of a run. See ``ellipack run --help``."""

    table: str
    target: str | None = None
    learner: str | None = None
    settings: tuple[str, ...] = ()
    take: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    format: str | None = None
    predictions: str | None = None
    report: str | None = None
    save: str | None = None
    resume: str | None = None
    save_every: int = DEFAULT_SAVE_EVERY
    on_error: str = "stop"
    as_json: bool = False

    @property
    def model_path(self) -> str | None:
        """Path where the run is saved: `save`, or else `resume`."""
        return self.save or self.resume

    @property
    def starts_new_run(self) -> bool:
        """Whether there is no saved run to resume. A missing file is no error if the run is saved to the same path."""
        return self.resume is None or (self.resume == self.save and not os.path.exists(self.resume))

    def column_kinds(self) -> dict[str, str]:
        """Return the kind of each column given by ``--kind``."""
        for given in self.kinds:
            if "=" not in given:
                raise InputError(f"--kind must be COLUMN=KIND, got {given!r}")
        return {column: kind for column, _, kind in (given.rpartition("=") for given in self.kinds)}

    def resume_command(self) -> str:
        """Return the command that resumes the run."""
        command = ["ellipack", "run", self.table, "--resume", self.model_path or ""]
        for name in ("format", "predictions", "report"):
            value = getattr(self, name)
            command += [f"--{name}", value] if value else []
        command += ["--save-every", str(self.save_every)] if self.save_every != DEFAULT_SAVE_EVERY else []
        command += ["--on-error", self.on_error] if self.on_error != "stop" else []
        return shlex.join(command + ["--json"] * self.as_json)


def check_paths(options: Options) -> None:
    """Raise unless all output files can be written."""
    given = {
        "TABLE": options.table,
        "--predictions": options.predictions,
        "--report": options.report,
        "--save": options.save,
        "--resume": options.resume,
    }
    check_distinct_paths(given)
    if options.predictions == options.report == "-":
        raise InputError("--predictions and --report can't both go to standard output")
    for path, error_type in (
        (options.predictions, StreamError),
        (options.report, StreamError),
        (options.model_path, _model_error),
    ):
        if path not in (None, "-"):
            check_writable(path, error_type)


def check_writable(path: str, error_type: Callable[[str], EllipackError] = StreamError) -> None:
    """Raise unless a file can be written. An existing file is not changed."""
    target = Path(path)
    if target.is_dir():
        raise error_type(f"{path} can't be written: it is a directory")
    if target.exists() and not target.is_file():
        return  # a device, or a pipe, which must not be opened twice
    if not target.parent.is_dir():
        raise error_type(f"{path} can't be written: the directory {target.parent} does not exist")
    try:
        if target.exists():
            target.open("r+b").close()
        TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise error_type(f"{path} can't be written: {error.strerror or error}") from error


def check_distinct_paths(given: Mapping[str, str | None]) -> None:
    """Raise if two options name the same file. Only ``--save`` and ``--resume`` may."""
    seen: dict[str, str] = {}
    for name, path in given.items():
        if path is None or path == "-" or _is_device(path):
            continue
        other = seen.setdefault(os.path.realpath(path), name)
        if other != name and {other, name} != {"--save", "--resume"}:
            raise InputError(f"{other} and {name} must be different files, got {path!r} for both")


def _is_device(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _model_error(message: str) -> EllipackError:
    return ModelFileError(message)
