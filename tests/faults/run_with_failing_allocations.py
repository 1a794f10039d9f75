"""Runs of the command in which an allocation fails, and which the same command then completes.

It runs with `allocation_faults.c` preloaded. Its arguments are the path of that library, an empty folder, and for each
kind of run ``NAME=STEP``: the number of allocations from one failure to the next. Each failure happens in a forked
child. The results are printed as a line of JSON for each kind of run: its name, the number of its allocations, how many
runs ended in which way, the number of different states of the files that they left, and what went wrong. The file
``ends`` in the folder gets a line for each failure, and the messages of unusual ones.

The parent has not run the command, so that its children run as a new process does. But it has imported all modules that
a run imports, and found the BLAS libraries, which takes most of the time. Only the runs called "importing" do so
themselves; they also have no options that make a run shorter.
"""

import ctypes
import faulthandler
import importlib
import json
import os
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ellipack.cli import main
from tests.cli.tables import TARGET, rides, write

ROWS, MORE_ROWS, SAVE_EVERY = 6, 2, 4  # a phase ends in both parts
LARGE = 10**9
TIMEOUT = 60
"""Seconds after which a run counts as hanging."""
MAX_PROBLEMS = 20

GIVEN = "--time-format when=iso --kind km=number --kind zone=category --decimal ."
SHORTER = ["--take", "when", "--take", "km", "--take", "zone", *GIVEN.split(), "--thousands", ""]

fail_allocation = ctypes.CDLL(sys.argv[1]).fail_allocation
fail_allocation.argtypes, fail_allocation.restype = [ctypes.c_long], ctypes.c_long


class Kind(NamedTuple):
    """A kind of run: its options, the file of its predictions, and whether it resumes a run of fewer rows."""

    options: list[str]
    predictions: str
    resumes: bool


KINDS = {
    "importing": Kind([], "p.csv", resumes=False),
    "new": Kind([*SHORTER, "--json"], "p.csv", resumes=False),
    "new, Parquet": Kind([*SHORTER, "--json"], "p.parquet", resumes=False),
    "resumed": Kind(SHORTER, "p.csv", resumes=True),
    "resumed, Parquet": Kind(SHORTER, "p.parquet", resumes=True),
}


class End(NamedTuple):
    """How a run ended: its exit code (negative: a signal), and what it wrote to standard error."""

    code: int
    message: str

    def __str__(self) -> str:
        """Return the exit code, and the kind of the error if there is a traceback."""
        if self.waits_in_arrow:
            return "waits in Arrow"
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        if self.is_ended_by_c_library:
            return "ended by the C library"
        last = self.message.splitlines()[-1] if self.message else ""
        if "Traceback" in self.message and not last.startswith("ellipack: "):
            return f"exit code {self.code}, {last.partition(':')[0]}"
        return "completed" if self.code == 0 else f"exit code {self.code}"

    @property
    def is_allowed(self) -> bool:
        """Whether the end is one of those that a lack of memory may have."""
        is_traceback = self.code != 0 and re.search(r"MemoryError:?\s*$", self.message) is not None
        is_ended = (self.code < 0 and self.code != -signal.SIGALRM) or self.is_ended_by_c_library
        return is_ended or self.waits_in_arrow or (self.code in (0, 1, 3, 4) and not is_traceback)

    @property
    def waits_in_arrow(self) -> bool:
        """Whether a call of Arrow has not returned within the time limit. A signal stops the command then."""
        in_arrow = re.search(r'most recent call first\):\n  File "[^"]*/pyarrow/', self.message)
        return self.code == -signal.SIGALRM and in_arrow is not None

    @property
    def is_ended_by_c_library(self) -> bool:
        """Whether the C library has ended the process, because a thread got no memory for its own variables."""
        return self.code == 127 and "cannot allocate memory for thread-local data" in self.message


class Command:
    """Run over a table in a folder, in forked children.

    Parameters
    ----------
    base : Path
        Folder for the folder of the run and for what it prints.
    kind : Kind
        Kind of the run.
    """

    def __init__(self, base: Path, kind: Kind) -> None:
        self._base, self._folder = base, base / "folder"
        outputs = ["--save", "m", "--resume", "m", "--predictions", kind.predictions]
        options = ["-t", TARGET, "--save-every", str(SAVE_EVERY), *kind.options]
        self._arguments = ["ellipack", "run", "rides.csv", *options, *outputs]
        table, rows = base / "rides.csv", rides(ROWS + MORE_ROWS)
        self._files = {table.name: write(table, rows[:ROWS]).read_bytes()}
        if kind.resumes:
            self.start()
            assert self.run().code == 0
            self._files = self.files() | {table.name: write(table, rows).read_bytes()}

    def start(self) -> None:
        """Make the folder what it is before the run."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        for name, data in self._files.items():
            (self._folder / name).write_bytes(data)

    def files(self) -> dict[str, bytes]:
        """Return the contents of all files."""
        return {path.name: path.read_bytes() for path in self._folder.iterdir()}

    def run(self, failing: int = 0) -> End:
        """Run in a child in which an allocation fails; 0: none fails."""
        child = os.fork()
        if child == 0:
            self._enter()
            fail_allocation(failing)
            main()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return End(code, (self._base / "err").read_text(errors="replace"))

    def report(self, value: Callable[[], Any]) -> Any:
        """Run in a child in which nothing fails; return a value that it computes before it exits."""
        leave, path = os._exit, self._base / "report"

        def write_report(code: int) -> None:
            path.write_text(json.dumps(value()))
            leave(code)

        self.start()
        child = os.fork()
        if child == 0:
            self._enter()
            os._exit = write_report  # type: ignore[assignment]
            fail_allocation(LARGE)
            main()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, (self._base / "err").read_text()
        return json.loads(path.read_text())

    def _enter(self) -> None:
        """Prepare a child: its folder, standard streams, arguments and time limit."""
        os.chdir(self._folder)
        for number, name in enumerate(["out", "err"], start=1):
            os.dup2(os.open(f"../{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = self._arguments
        signal.alarm(TIMEOUT)


def import_modules_of(command: Command) -> None:
    """Import what a run imports, and find the BLAS libraries."""
    importlib.import_module("ellipack.cli.run")  # which imports most of it
    for name in command.report(lambda: list(sys.modules)):
        if name not in sys.modules:
            with suppress(ImportError):  # a module that another one makes
                importlib.import_module(name)
    loaded = set(sys.modules)
    missing = command.report(lambda: sorted(set(sys.modules) - loaded))
    assert not missing, missing
    sys.modules["ellipack.linear_algebra"]._controller()
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    # Children do not have the threads of their parent. Runs do not need that of jemalloc, which Arrow comes with.
    assert len(threads) - threads.count("jemalloc_bg_thd") == 1, threads


def state_of(files: dict[str, bytes]) -> frozenset[tuple[str, bytes]]:
    """Return what the next run depends on: temporary files are not read, and locks contain a process and a time."""
    return frozenset(
        (re.sub(r"\.\w+\.partial$", ".partial", name), b"" if name.endswith((".partial", "-lock")) else data)
        for name, data in files.items()
    )


def sweep(command: Command, step: int, log: Path) -> tuple[int, Counter[str], int, list[str]]:
    """Run with one failure after the other. Complete a run from each state of the files that failures leave."""
    total = command.report(lambda: LARGE - fail_allocation(0))
    expected, ends, states, problems = command.files(), Counter[str](), set(), list[str]()
    # The first ones are spread over the whole run, so that a sweep that is stopped has tried all parts of it.
    for failing in sorted(range(1, total + 1, step), key=lambda failing: failing % 97):
        command.start()
        end, files = command.run(failing), command.files()
        place = f"allocation {failing}: {end}"
        found = [] if end.is_allowed else [f"{place}, {end.message}"]
        if end.code == 0 and files != expected:
            found.append(f"{place}, but the files differ: {end.message}")
        if state_of(files) not in states:
            states.add(state_of(files))
            again = command.run()
            if again.code != 0 or command.files() != expected:
                found.append(f"{place}, {end.message}; then {again}, {again.message}")
        ends[str(end)] += 1
        problems += found
        with log.open("a") as file:
            print(place, *(found or [end.message] * (", " in str(end) or end.code < 0)), sep="\n", file=file)
        if len(problems) > MAX_PROBLEMS:
            break
    return total, ends, len(states), problems


def run_script() -> None:
    """Sweep the kinds of runs that the arguments name."""
    faulthandler.enable()  # writes where a crash happened, or what hangs
    faulthandler.register(signal.SIGALRM, chain=True)
    base, is_imported = Path(sys.argv[2]), False
    for argument in sys.argv[3:]:
        name, step = argument.split("=")
        command = Command(base, KINDS[name])
        if name != "importing" and not is_imported:
            import_modules_of(command)
            is_imported = True
        print(json.dumps([name, *sweep(command, int(step), base / "ends")]), flush=True)


run_script()
