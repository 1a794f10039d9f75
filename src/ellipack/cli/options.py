"""Options of ``ellipack run``."""

import os
import shlex
from dataclasses import dataclass

from ellipack.errors import InputError

DEFAULT_LEARNER = "metric"
"""Learner that is used by default."""

DEFAULT_SAVE_EVERY = 100_000
"""Number of rows between saves, by default."""

MAX_WORKERS = 512
"""Largest number of workers on this machine. Each of them is a process, which needs memory of its own."""

DEFAULT_SHARDS = 8
"""Number of shards that workers learn at a time, by default."""

DEFAULT_SHARD_ROWS = 8192
"""Smallest number of rows of a shard, by default."""

DEFAULT_WORKER_TIMEOUT = 600.0
"""Seconds that workers may take for one step, by default."""


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
    decimal: str | None = None
    thousands: str | None = None
    na: tuple[str, ...] = ()
    time_formats: tuple[str, ...] = ()
    trend: tuple[str, ...] = ()
    levels: int | None = None
    level_memory: int | None = None
    by: tuple[str, ...] = ()
    past: bool = True
    keep: tuple[str, ...] = ()
    id_column: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    intervals: tuple[float, ...] = ()
    head: int = 1
    format: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    more_tables: tuple[str, ...] = ()
    predictions: str | None = None
    report: str | None = None
    save: str | None = None
    resume: str | None = None
    save_every: int = DEFAULT_SAVE_EVERY
    on_error: str = "stop"
    complete: bool = False
    as_json: bool = False
    workers: int | None = None
    scheduler: str | None = None
    shards: int = DEFAULT_SHARDS
    shard_rows: int = DEFAULT_SHARD_ROWS
    worker_timeout: float = DEFAULT_WORKER_TIMEOUT

    @property
    def paths(self) -> list[str]:
        """Paths of all files of the table."""
        return [self.table, *self.more_tables]

    @property
    def model_path(self) -> str | None:
        """Path where the run is saved: `save`, or else `resume`."""
        return self.save or self.resume

    @property
    def has_workers(self) -> bool:
        """Whether workers learn the rows together."""
        return self.workers is not None or self.scheduler is not None

    @property
    def starts_new_run(self) -> bool:
        """Whether there is no saved run to resume. A missing file is no error if the run is saved to the same path."""
        return self.resume is None or (self.resume == self.save and not os.path.exists(self.resume))

    def named_columns(self) -> list[str]:
        """Return the columns of the table that options name."""
        kinds = self.column_kinds()
        named = [self.target, self.id_column, *self.keep, *self.by, *self.take, *self.drop, *self.trend]
        named += [*kinds, *self.formats_of_times()]
        return [name for name in named if name is not None]

    def formats_of_times(self) -> dict[str, str]:
        """Return the format of each column given by ``--time-format``."""
        for given in self.time_formats:
            if "=" not in given:
                raise InputError(f"--time-format must be COLUMN=FORMAT, got {given!r}")
        return {column: pattern for column, _, pattern in (given.partition("=") for given in self.time_formats)}

    def column_kinds(self) -> dict[str, str]:
        """Return the kind of each column given by ``--kind``."""
        for given in self.kinds:
            if "=" not in given:
                raise InputError(f"--kind must be COLUMN=KIND, got {given!r}")
        return {column: kind for column, _, kind in (given.rpartition("=") for given in self.kinds)}

    def resume_command(self) -> str:
        """Return the command that resumes the run."""
        command = ["ellipack", "run", self.table, *self.more_tables, "--resume", self.model_path or ""]
        for name in ("format", "delimiter", "sheet", "predictions", "report"):
            value = getattr(self, name)
            command += [f"--{name}", value] if value else []
        command += ["--save-every", str(self.save_every)] if self.save_every != DEFAULT_SAVE_EVERY else []
        command += ["--workers", str(self.workers)] if self.workers is not None else []
        command += ["--scheduler", self.scheduler] if self.scheduler is not None else []
        command += ["--shards", str(self.shards)] if self.shards != DEFAULT_SHARDS else []
        command += ["--shard-rows", str(self.shard_rows)] if self.shard_rows != DEFAULT_SHARD_ROWS else []
        timeout = self.worker_timeout
        command += ["--worker-timeout", f"{timeout:g}"] if timeout != DEFAULT_WORKER_TIMEOUT else []
        command += ["--on-error", self.on_error] if self.on_error != "stop" else []
        return shlex.join(command + ["--complete"] * self.complete + ["--json"] * self.as_json)
