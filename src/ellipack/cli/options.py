"""What the command line asks of a run, and whether that can be done: looked at before a row is read."""

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from ellipack.errors import CheckpointError, EllipackError, InputError, StreamError

DEFAULT_LEARNER = "metric"
"""Who learns, if nobody else is asked for."""

DEFAULT_SAVE_EVERY = 100_000
"""Rows between two savings, if nothing else is asked for."""


@dataclass(frozen=True)
class Options:
    """What is asked of a run, as `ellipack run --help` has it."""

    stream: str
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
        """Where the run is saved: `save`, or where it was resumed from."""
        return self.save or self.resume

    @property
    def starts_new_run(self) -> bool:
        """Whether there is no saved run to go on with, which is no error where the run is to be saved just there."""
        return self.resume is None or (self.resume == self.save and not os.path.exists(self.resume))

    def column_kinds(self) -> dict[str, str]:
        """Return the kinds that columns are to be taken for."""
        for given in self.kinds:
            if "=" not in given:
                raise InputError(f"--kind must be COLUMN=KIND, got {given!r}")
        return {column: kind for column, _, kind in (given.rpartition("=") for given in self.kinds)}

    def resume_command(self) -> str:
        """Return the command by which a run that was stopped goes on."""
        words = ["ellipack", "run", self.stream, "--resume", self.model_path or ""]
        for name in ("format", "predictions", "report"):
            value = getattr(self, name)
            words += [f"--{name}", value] if value else []
        words += ["--save-every", str(self.save_every)] if self.save_every != DEFAULT_SAVE_EVERY else []
        words += ["--on-error", self.on_error] if self.on_error != "stop" else []
        return shlex.join(words + ["--json"] * self.as_json)


def check_paths(options: Options) -> None:
    """Raise unless all that is to be written can be: not after an hour, but now."""
    given = {
        "STREAM": options.stream,
        "--predictions": options.predictions,
        "--report": options.report,
        "--save": options.save,
        "--resume": options.resume,
    }
    check_distinct_paths(given)
    if options.predictions == options.report == "-":
        raise InputError("--predictions and --report can't both go to standard output")
    for path, failure in (
        (options.predictions, StreamError),
        (options.report, StreamError),
        (options.model_path, _model_error),
    ):
        if path not in (None, "-"):
            check_writable(path, failure)


def check_writable(path: str, failure: Callable[[str], EllipackError] = StreamError) -> None:
    """Raise unless a file can be written there; one that is there is not touched."""
    target = Path(path)
    if target.is_dir():
        raise failure(f"{path} can't be written: it is a folder: give the name of a file in it")
    if target.exists() and not target.is_file():
        return  # a device, or a pipe that must not be opened twice
    if not target.parent.is_dir():
        raise failure(f"{path} can't be written: there is no folder {target.parent}: make it first")
    try:
        if target.exists():
            target.open("r+b").close()
        TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise failure(f"{path} can't be written: {error.strerror or error}") from error


def check_distinct_paths(given: Mapping[str, str | None]) -> None:
    """Raise if a file is to be written that is also read, or written as something else."""
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
    return CheckpointError(message)
