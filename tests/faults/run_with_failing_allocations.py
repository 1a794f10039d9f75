"""Runs of the command in which an allocation fails, and which the same command then completes.

It runs with `allocation_faults.c` preloaded. Its arguments are the path of that library, a folder, and for each kind of
run ``NAME=STEP``: the number of allocations from one failure to the next. Each failure happens in a forked child. The
results are printed as a line of JSON for each kind of run: its name, the number of its allocations, how many runs ended
in which way, the number of different states of the files that they left, and what went wrong. The file ``NAME.ends`` in
the folder gets a line for each failure, and the messages of unusual ones. A script that was stopped continues there.

A run without a failure forks at its allocations, and waits for each child. This takes much less time than runs from the
start. Where a run has several threads, of which a child would have only one, it forks before that part.

The parent has not run the command, so that its children run as a new process does. But it has imported all modules that
a run imports, and found the BLAS libraries, which takes most of the time. Only the runs called "importing" do so
themselves; they also have no options that make a run shorter.
"""

import ctypes
import faulthandler
import gc
import importlib
import json
import mmap
import os
import re
import shutil
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ellipack.cli import main
from tests.cli.tables import TARGET, rides, write

ROWS, MORE_ROWS, SAVE_EVERY = 6, 2, 4  # a phase ends in both parts
LARGE = 10**9
TIMEOUT = 60
"""Seconds after which a run counts as hanging."""
MAX_PROBLEMS = 20
NO_MEMORY = "memory ran out; a run that was saved with --save can be resumed from there"
"""End of the line that a run prints."""

GIVEN = "--time-format when=iso --kind km=number --kind zone=category --decimal ."
SHORTER = ["--take", "when", "--take", "km", "--take", "zone", *GIVEN.split(), "--thousands", ""]

library = ctypes.CDLL(sys.argv[1])
fail_allocation = library.fail_allocation
fail_allocation.argtypes, fail_allocation.restype = [ctypes.c_long], ctypes.c_long
record = mmap.mmap(-1, 10**7)  # shared with children
"""Of the allocations of a run without a failure: 1 where it has one thread, 0 where it has several."""


class Kind(NamedTuple):
    """A kind of run: its options, the file of its predictions, and whether it resumes a run of fewer rows.

    A run that imports modules does not fork: children that were forked while Arrow is imported did not end.
    """

    options: list[str]
    predictions: str
    resumes: bool
    forks: bool = True


KINDS = {
    "importing": Kind([], "p.csv", resumes=False, forks=False),
    "new": Kind([*SHORTER, "--json"], "p.csv", resumes=False),
    "new, Parquet": Kind([*SHORTER, "--json"], "p.parquet", resumes=False),
    "resumed": Kind(SHORTER, "p.csv", resumes=True),
    "resumed, Parquet": Kind(SHORTER, "p.parquet", resumes=True),
}


class End(NamedTuple):
    """How a run ended: its exit code (negative: a signal), and what it wrote to standard error."""

    code: int
    message: str

    @staticmethod
    def of(status: int, base: Path) -> "End":
        """Return the end of a process that has written its errors to a folder, from its status."""
        return End(os.waitstatus_to_exitcode(status), (base / "err").read_text(errors="replace"))

    def __str__(self) -> str:
        """Return the exit code, and the kind of the error if there is a traceback."""
        if self.waits_in_arrow:
            return "waits in Arrow"
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        if self.ended_by:
            return f"ended by {self.ended_by}"
        last = self.message.splitlines()[-1] if self.message else ""
        if "Traceback" in self.message and not last.startswith("ellipack: "):
            return f"exit code {self.code}, {last.partition(':')[0]}"
        return "completed" if self.code == 0 else f"exit code {self.code}"

    @property
    def is_allowed(self) -> bool:
        """Whether the end is one of those that a lack of memory may have."""
        is_line = self.code == 1 and re.search(f"ellipack: .*{NO_MEMORY}", self.message) is not None
        is_ended = (self.code < 0 and self.code != -signal.SIGALRM) or self.ended_by is not None
        return self.code == 0 or is_line or is_ended or self.waits_in_arrow

    @property
    def waits_in_arrow(self) -> bool:
        """Whether a call of Arrow has not returned within the time limit. A signal stops the command then."""
        in_arrow = re.search(r'most recent call first\):\n  File "[^"]*/pyarrow/', self.message)
        return self.code == -signal.SIGALRM and in_arrow is not None

    @property
    def ended_by(self) -> str | None:
        """The library that has ended the process, and not by a signal: the C library if a thread got no memory."""
        if self.code == 127 and "cannot allocate memory for thread-local data" in self.message:
            return "the C library"
        return "OpenMP" if self.code == 1 and "\nlibgomp: Out of memory" in self.message else None


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
        self.forks = kind.forks
        self._base, self._folder, self._moved = base, base / "folder", base / "moved"
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
        for folder in (self._folder, self._moved):
            shutil.rmtree(folder, ignore_errors=True)
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
            run_main()
        return End.of(os.waitpid(child, 0)[1], self._base)

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
            library.record_allocations(ctypes.byref(ctypes.c_char.from_buffer(record)), len(record))
            main()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, (self._base / "err").read_text()
        return json.loads(path.read_text())

    def fork_at(self, forks: list[tuple[int, int]]) -> Iterator[tuple[int, End]]:
        """Run without a failure, and fork children. Yield which allocation fails in a child, and how it has ended.

        While this waits, the folder has the files of the child.

        Parameters
        ----------
        forks : list of tuple
            For each child, the number of the allocation at which to fork, and of the one that fails, sorted. Where the
            run has several threads this time, there is no fork.
        """
        self.start()
        (requests, to_parent), (answers, to_child) = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            self._enter()
            signal.alarm(0)
            paths = os.fsencode(self._folder), os.fsencode(self._moved)
            library.fork_at_allocations(*paths, TIMEOUT, to_parent, answers)
            run_main()
        os.close(to_parent)
        os.close(answers)
        with os.fdopen(requests, "rb", buffering=0) as receiving, os.fdopen(to_child, "wb", buffering=0) as sending:
            remaining = deque(forks)
            while request := receiving.read(8):
                at = int.from_bytes(request, sys.byteorder)
                while remaining and remaining[0][0] <= at:
                    start, failing = remaining.popleft()
                    if start == at:
                        with self._copied():
                            sending.write((at - failing).to_bytes(8, sys.byteorder, signed=True))
                            status = int.from_bytes(receiving.read(8), sys.byteorder)
                            yield failing, End.of(status, self._base)
                sending.write((remaining[0][0] if remaining else LARGE).to_bytes(8, sys.byteorder))
        end = End.of(os.waitpid(child, 0)[1], self._base)
        assert end.code == 0, end.message

    @contextmanager
    def _copied(self) -> Iterator[None]:
        """Move the folder away, and put a copy in its place. Move it back in the end."""
        messages = (self._base / "err").read_bytes()
        self._folder.rename(self._moved)
        shutil.copytree(self._moved, self._folder)
        yield
        shutil.rmtree(self._folder)
        self._moved.rename(self._folder)
        (self._base / "err").write_bytes(messages)

    def _enter(self) -> None:
        """Prepare a child: its folder, standard streams, arguments and time limit."""
        os.chdir(self._folder)
        for number, name in enumerate(["out", "err"], start=1):
            os.dup2(os.open(f"../{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = self._arguments
        signal.alarm(TIMEOUT)


def run_main() -> NoReturn:
    """Run the command and end the process. An error ends it as Python does, but without the time for its shutdown."""
    try:
        main()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


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
    gc.collect()
    gc.freeze()  # collections in children would copy all pages of the parent
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    # Children do not have the threads of their parent. Runs do not need that of jemalloc, which Arrow comes with.
    assert len(threads) - threads.count("jemalloc_bg_thd") == 1, threads


def state_of(files: dict[str, bytes]) -> frozenset[tuple[str, bytes]]:
    """Return what the next run depends on: temporary files are not read, and locks contain a process and a time."""
    return frozenset(
        (re.sub(r"\.\w+\.partial$", ".partial", name), b"" if name.endswith((".partial", "-lock")) else data)
        for name, data in files.items()
    )


def let_fail(command: Command, numbers: list[int], can_fork: bytes) -> Iterator[tuple[int, End]]:
    """Let allocations fail. Yield each with the end of its run, whose files are in the folder then."""
    remaining = set(numbers)
    if command.forks:
        for number, end in command.fork_at([(can_fork.rindex(b"1", 0, number) + 1, number) for number in numbers]):
            remaining.remove(number)
            yield number, end
    for number in sorted(remaining):  # or where the run had several threads, but not when they were counted
        command.start()
        yield number, command.run(number)


def sweep(command: Command, step: int, log: Path) -> tuple[int, Counter[str], int, list[str]]:
    """Run with one failure after the other. Complete a run from each state of the files that failures leave."""
    total = command.report(library.allocations)
    can_fork = record[:total]
    expected, states = command.files(), set()
    problems = re.findall(r"(?m)^problem: (.*)$", log.read_text()) if log.exists() else []
    done = {int(number) for number, _ in ends_in(log)}
    numbers = [number for number in range(1, total + 1, step) if number not in done]
    for failing, end in let_fail(command, numbers, can_fork):
        files = command.files()
        place = f"allocation {failing}: {end}"
        found = [] if end.is_allowed else [f"{place}, {end.message}"]
        if end.code == 0 and files != expected:
            found.append(f"{place}, but the files differ: {end.message}")
        if state_of(files) not in states:
            states.add(state_of(files))
            again = command.run()
            if again.code != 0 or command.files() != expected:
                found.append(f"{place}, {end.message}; then {again}, {again.message}")
        problems += found
        with log.open("a") as file:
            print(
                place,
                *([f"problem: {problem}" for problem in found] or [end.message] * (", " in str(end) or end.code < 0)),
                sep="\n",
                file=file,
            )
        if len(problems) > MAX_PROBLEMS:
            break
    return total, Counter(end for _, end in ends_in(log)), len(states), problems


def ends_in(log: Path) -> list[tuple[str, str]]:
    """Return the number of each allocation in a file of ends, and how its run ended."""
    return re.findall(r"(?m)^allocation (\d+): (.*)$", log.read_text()) if log.exists() else []


def run_script() -> None:
    """Sweep the kinds of runs that the arguments name."""
    faulthandler.enable()  # writes where a crash happened, or what hangs
    faulthandler.register(signal.SIGALRM, chain=True)
    base, is_imported = Path(sys.argv[2]).resolve(), False
    for argument in sys.argv[3:]:
        name, step = argument.split("=")
        command = Command(base, KINDS[name])
        if name != "importing" and not is_imported:
            import_modules_of(command)
            is_imported = True
        print(json.dumps([name, *sweep(command, int(step), base / f"{name}.ends")]), flush=True)


run_script()
