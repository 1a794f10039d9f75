"""Processes that compile kernels side by side: compiling holds the interpreter's lock, so threads would not do."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import Final

from ellipack.errors import EllipackError
from ellipack.threads import thread_count

TASKS: Final = (
    "practical_learner",
    "algorithm_1",
    "index",
    "any_units",
    "local_slopes",
    "kernel_differences",
)
"""Functions of `ellipack.compiling.tasks`, the longest first: who is done with one takes the next."""


def compile_kernels(n_jobs: int = -1) -> Iterator[str]:
    """Compile every kernel that is not on disk yet, by so many processes (-1: one a core); yield tasks as they end."""
    count = min(thread_count(n_jobs), len(TASKS))
    todo: SimpleQueue[str] = SimpleQueue()
    done: SimpleQueue[str | None] = SimpleQueue()
    for task in TASKS:
        todo.put(task)
    with ThreadPoolExecutor(count) as pool:
        working = [pool.submit(_work, todo, done) for _ in range(count)]
        for _ in range(count):
            yield from iter(done.get, None)
        for each in working:
            each.result()


def _work(todo: "SimpleQueue[str]", done: "SimpleQueue[str | None]") -> None:
    """Have a process do tasks, one after the other, as long as there are any; say None when there are none."""
    command = [sys.executable, "-m", "ellipack.compiling.tasks"]
    try:
        with TemporaryFile() as said, Popen(command, bufsize=0, stdin=PIPE, stdout=PIPE, stderr=said) as worker:
            for task in iter(todo.get_nowait, None):
                if not _does(worker, task):
                    worker.wait()
                    said.seek(0)
                    lines = said.read().decode(errors="replace").strip().splitlines()
                    raise EllipackError(f"{task} can't be compiled: {lines[-1] if lines else 'its process has died'}")
                done.put(task)
    except Empty:
        pass
    finally:
        done.put(None)


def _does(worker: Popen[bytes], task: str) -> bool:
    """Have a process do a task; return whether it says that it has."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(f"{task}\n".encode())
    except BrokenPipeError:
        return False
    return worker.stdout.readline().strip() == task.encode()
