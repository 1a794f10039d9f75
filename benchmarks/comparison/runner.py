"""One learner on one stream with one seed, in a process of its own.

A process each, so that what one takes of memory is seen by itself, and what goes wrong in one stays there. Each has one
thread; costs are the processor's time, not the clock's, so that what else the machine does hardly shows.
"""

import ctypes
import gc
import multiprocessing
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from benchmarks.comparison.adapters import FIRST, Player
from benchmarks.comparison.datasets import Source
from benchmarks.comparison.models import CAPYMOA, LEARNERS, OURS, PAPER, Learner
from benchmarks.streams import Stream, late_nrmse
from ellipack.validation import Floats

POINTS = 40
"""In how many parts of the stream the error is kept."""

_WARM_UP = {OURS: 400, PAPER: 400}  # rows: enough for all that there is to compile
_LEAST_WARM_UP = FIRST + 10
_IMPORTED = (
    "benchmarks.comparison.__main__", "lightgbm", "river.forest", "river.linear_model", "river.neighbors",
    "river.preprocessing", "river.tree", "sklearn.ensemble", "sklearn.linear_model", "sklearn.neural_network",
)  # fmt: skip
_STATUS = Path("/proc/self/status")

Outcome = dict[str, Any]


class Job(NamedTuple):
    """What to run."""

    stream: str
    learner: str
    seed: int


def play(player: Player, X: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return a learner's prediction and the seconds for each row, each played by itself or as many as there is room."""
    predictions, seconds = np.empty(len(y)), np.empty(len(y))
    done = 0
    while done < len(y):
        part = slice(done, min(len(y), done + player.room()))
        start = time.process_time()
        predictions[part] = player.play(X[part], y[part])
        seconds[part] = (time.process_time() - start) / (part.stop - done)
        done = part.stop
    return predictions, seconds


def outcome(learner: str, seed: int, X: Floats, y: Floats) -> Outcome:
    """Play a stream and return all figures."""
    kind, _, make, _ = {**LEARNERS, **CAPYMOA}[learner]
    warm_up = _WARM_UP.get(kind, _LEAST_WARM_UP)
    play(make(seed), X[:warm_up], y[:warm_up])  # compiles, imports and allocates what is no part of the model
    before, player = _forget_peak(), make(seed)
    predictions, seconds = play(player, X, y)
    peak = _memory("VmHWM")
    if not np.isfinite(predictions).all():
        return {"failed": "predictions that are no numbers"}
    with np.errstate(all="ignore"):  # errors beyond all numbers, or labels that do not vary
        errors: Outcome = {
            "late": _short(late_nrmse(predictions, y)),
            "whole": _short(float(np.sqrt(np.mean((predictions - y) ** 2)) / np.std(y))),
            "curve": curve(predictions, y),
        }
    if not np.isfinite([errors["late"], errors["whole"], *errors["curve"]]).all():
        return {"failed": "an error that is no number"}
    micros = 1e6 * seconds
    return {
        **errors,
        "median_us": _short(float(np.median(micros))),
        "p99_us": _short(float(np.quantile(micros, 0.99))),
        "mean_us": _short(float(np.mean(micros))),
        "peak_bytes": max(0, peak - before),
        "saved_bytes": player.saved(),
    }


def curve(predictions: Floats, y: Floats) -> list[float]:
    """Return the root mean square error in each part of the stream, over the deviation of all its labels."""
    parts = np.array_split((predictions - y) ** 2, min(POINTS, len(y)))
    return [_short(float(np.sqrt(part.mean()) / np.std(y))) for part in parts]


def run(job: Job, path: Path, seconds: float) -> Outcome:
    """Run a job on rows that are kept in a file, in a process of its own; say why it failed if it did."""
    ours, theirs = _processes().Pipe(duplex=False)
    process = _processes().Process(target=_answer, args=(job, path, theirs))
    process.start()
    theirs.close()
    try:
        found: Outcome = ours.recv() if ours.poll(seconds) else {"failed": f"not done after {seconds:,.0f} s"}
    except EOFError:
        process.join()
        found = {"failed": f"its process ended with {process.exitcode}"}
    process.kill()
    process.join()
    return found


@cache
def _processes() -> Any:
    """Return how processes are made: out of one that has imported everything and done nothing, where that can be."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    return context


def _answer(job: Job, path: Path, answer: Connection) -> None:
    """Send the outcome of a job, or why there is none."""
    warnings.simplefilter("ignore")
    with np.load(path) as stream:
        X, y = stream["X"], stream["y"]
    # Rows are checked once, here, and not by scikit-learn in every call, which would take most of a round.
    sklearn.set_config(assume_finite=bool(np.isfinite(X).all()), skip_parameter_validation=True)
    try:
        with threadpool_limits(1):
            found = outcome(job.learner, job.seed, X, y)
    except Exception as error:  # whatever it is, it is this learner's, and the others go on
        found = {"failed": f"{type(error).__name__}: {error}"[:200]}
    answer.send(found)


def _short(figure: float) -> float:
    """Return a figure to four digits: no more is known, and the file stays small."""
    return float(f"{figure:.4g}")


def _forget_peak() -> int:
    """Give back what is free, and let the system forget what was taken at most, where it can; return what is taken."""
    gc.collect()
    with suppress(AttributeError, OSError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _memory("VmHWM")  # it can't: what is taken beyond the peak so far is all that can be told
    return _memory("VmRSS")


def _memory(field: str) -> int:
    """Return the bytes that this process takes now (VmRSS) or took at most (VmHWM)."""
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith(f"{field}:"):
                return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


Results = dict[str, dict[str, dict[str, Outcome]]]
"""Outcomes by stream, learner and seed."""

Shown = Callable[[str], None]


def jobs(sources: Mapping[str, Source], learners: Mapping[str, Learner], seeds: int) -> list[Job]:
    """Return what is to be run; once, where the seed changes nothing."""
    return [
        Job(stream, learner, seed)
        for stream, source in sources.items()
        for learner, each in learners.items()
        for seed in range(seeds if source.seeded or each.seeded else 1)
    ]


def race(sources: Mapping[str, Source], todo: Iterable[Job], rows: int, limits: tuple[int, float], done: Shown) -> Any:
    """Run jobs; return outcomes, and each stream's rows and features.

    Interrupted by the keyboard, it returns the outcomes on the streams that it is through with.

    Parameters
    ----------
    sources : the streams, by name.
    todo : the jobs.
    rows : the most rows of a stream that are played.
    limits : how many jobs run at a time, and the seconds that one may take.
    done : is told after each job which it was.
    """
    workers, seconds = limits
    results: Results = {}
    shapes: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        paths: dict[tuple[str, int], Path] = {}
        waiting = {}
        try:
            for job in todo:
                seed = job.seed if sources[job.stream].seeded else 0
                if (job.stream, seed) not in paths:
                    stream = sources[job.stream].draw(seed, rows)
                    shapes[job.stream] = stream.X.shape
                    paths[job.stream, seed] = _write(stream, Path(folder, f"{len(paths)}.npz"))
                waiting[pool.submit(run, job, paths[job.stream, seed], seconds)] = job
            for future in as_completed(waiting):
                name, learner, number = waiting[future]
                results.setdefault(name, {}).setdefault(learner, {})[str(number)] = future.result()
                done(f"{name}, {learner}")
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    return whole(results, waiting.values()), shapes


def whole(results: Results, todo: Iterable[Job]) -> Results:
    """Return the outcomes on those streams where every job was done: all, unless the race was interrupted."""
    missing = {name for name, learner, seed in todo if str(seed) not in results.get(name, {}).get(learner, {})}
    return {name: found for name, found in results.items() if name not in missing}


def _write(stream: Stream, path: Path) -> Path:
    np.savez(path, X=stream.X, y=stream.y)
    return path
