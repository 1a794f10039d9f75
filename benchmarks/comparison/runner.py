"""Runs of the comparison: one model on one stream with one seed, each in a process of its own.

Separate processes measure the memory of each model alone, and a failure affects one run only. Each process uses one
thread. Costs are processor time, so that other work on the machine hardly matters.
"""

import ctypes
import gc
import multiprocessing
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

from benchmarks.comparison.adapters import FIRST_TRAINING, PrequentialModel
from benchmarks.comparison.datasets import Dataset
from benchmarks.comparison.models import CAPYMOA_MODELS, MODELS, OURS, PAPER, Model
from benchmarks.measurement import memory_bytes, reset_peak_memory
from benchmarks.streams import Stream, late_nrmse
from ellipack.validation import Floats

CURVE_POINTS = 40
"""Number of parts of a stream for which the error is stored."""

_WARM_UP_ROWS = {OURS: 400, PAPER: 400}
_LEAST_WARM_UP_ROWS = FIRST_TRAINING + 10
_PRELOADED = (
    "benchmarks.comparison.__main__", "lightgbm", "river.forest", "river.linear_model", "river.neighbors",
    "river.preprocessing", "river.tree", "sklearn.ensemble", "sklearn.linear_model", "sklearn.neural_network",
)  # fmt: skip

Outcome = dict[str, Any]
"""The figures of a run, or the reason of its failure under the key "failed"."""

Outcomes = dict[str, dict[str, dict[str, Outcome]]]
"""Outcomes by stream, model and seed."""


class Job(NamedTuple):
    """A run to do."""

    stream: str
    learner: str
    seed: int


def run_model(model: PrequentialModel, X: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the predictions of a model, and the seconds for each row."""
    predictions, seconds = np.empty(len(y)), np.empty(len(y))
    done = 0
    while done < len(y):
        part = slice(done, min(len(y), done + model.rows_per_call()))
        start = time.process_time()
        predictions[part] = model.predict_then_learn(X[part], y[part])
        seconds[part] = (time.process_time() - start) / (part.stop - done)
        done = part.stop
    return predictions, seconds


def measure_model(name: str, seed: int, X: Floats, y: Floats) -> Outcome:
    """Run a model over a stream and return all figures."""
    kind, _, make, _ = {**MODELS, **CAPYMOA_MODELS}[name]
    warm_up = _WARM_UP_ROWS.get(kind, _LEAST_WARM_UP_ROWS)
    run_model(make(seed), X[:warm_up], y[:warm_up])  # imports and allocates what does not belong to the model
    before, model = _settle_memory(), make(seed)
    predictions, seconds = run_model(model, X, y)
    peak = memory_bytes("VmHWM")
    if not np.isfinite(predictions).all():
        return {"failed": "predictions are not finite"}
    with np.errstate(all="ignore"):  # errors may overflow, labels may be constant
        errors: Outcome = {
            "late_nrmse": _rounded(late_nrmse(predictions, y)),
            "nrmse": _rounded(float(np.sqrt(np.mean((predictions - y) ** 2)) / np.std(y))),
            "error_curve": error_curve(predictions, y),
        }
    if not np.isfinite([errors["late_nrmse"], errors["nrmse"], *errors["error_curve"]]).all():
        return {"failed": "an error is not finite"}
    micros = 1e6 * seconds
    return {
        **errors,
        "median_us": _rounded(float(np.median(micros))),
        "p99_us": _rounded(float(np.quantile(micros, 0.99))),
        "mean_us": _rounded(float(np.mean(micros))),
        "peak_bytes": max(0, peak - before),
        "saved_bytes": model.saved_bytes(),
    }


def error_curve(predictions: Floats, y: Floats) -> list[float]:
    """Return the root mean squared error in each part of the stream, divided by the deviation of all labels."""
    parts = np.array_split((predictions - y) ** 2, min(CURVE_POINTS, len(y)))
    return [_rounded(float(np.sqrt(part.mean()) / np.std(y))) for part in parts]


def run_job(job: Job, path: Path, timeout: float) -> Outcome:
    """Run a job in a new process on the stream in a file; return its figures, or why it failed."""
    receiver, sender = _process_context().Pipe(duplex=False)
    process = _process_context().Process(target=_run_in_process, args=(job, path, sender))
    process.start()
    sender.close()
    try:
        found: Outcome = (
            receiver.recv() if receiver.poll(timeout) else {"failed": f"not finished after {timeout:,.0f} s"}
        )
    except EOFError:
        process.join()
        found = {"failed": f"its process ended with exit code {process.exitcode}"}
    process.kill()
    process.join()
    return found


def list_jobs(datasets: Mapping[str, Dataset], models: Mapping[str, Model], seeds: int) -> list[Job]:
    """Return all runs; a single one where the seed changes nothing."""
    return [
        Job(stream, learner, seed)
        for stream, dataset in datasets.items()
        for learner, model in models.items()
        for seed in range(seeds if dataset.seeded or model.seeded else 1)
    ]


def run_jobs(
    datasets: Mapping[str, Dataset],
    jobs: Iterable[Job],
    rows: int,
    limits: tuple[int, float],
    on_done: Callable[[str], None],
) -> tuple[Outcomes, dict[str, tuple[int, int]]]:
    """Run jobs, several at a time; return their outcomes, and the rows and features of each stream.

    After a keyboard interrupt, return the outcomes of those streams on which all jobs are done.

    Parameters
    ----------
    datasets : mapping
        The streams by name.
    jobs : iterable of Job
        The runs.
    rows : int
        Maximal number of rows of a stream.
    limits : tuple of int and float
        Number of jobs at a time, and the maximal seconds of one job.
    on_done : callable
        Called with the name of each job after it.
    """
    workers, timeout = limits
    outcomes: Outcomes = {}
    shapes: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        paths: dict[tuple[str, int], Path] = {}
        waiting = {}
        try:
            for job in jobs:
                seed = job.seed if datasets[job.stream].seeded else 0
                if (job.stream, seed) not in paths:
                    stream = datasets[job.stream].draw(seed, rows)
                    n, d = stream.X.shape
                    shapes[job.stream] = n, d
                    paths[job.stream, seed] = _write_stream(stream, Path(folder, f"{len(paths)}.npz"))
                waiting[pool.submit(run_job, job, paths[job.stream, seed], timeout)] = job
            for future in as_completed(waiting):
                name, learner, number = waiting[future]
                outcomes.setdefault(name, {}).setdefault(learner, {})[str(number)] = future.result()
                on_done(f"{name}, {learner}")
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    return complete_streams(outcomes, waiting.values()), shapes


def complete_streams(outcomes: Outcomes, jobs: Iterable[Job]) -> Outcomes:
    """Return the outcomes on those streams on which all jobs are done."""
    missing = {name for name, learner, seed in jobs if str(seed) not in outcomes.get(name, {}).get(learner, {})}
    return {name: found for name, found in outcomes.items() if name not in missing}


@cache
def _process_context() -> Any:
    """Return a context whose processes fork from a server that has imported everything, or else are spawned."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    return context


def _run_in_process(job: Job, path: Path, sender: Connection) -> None:
    """Send the outcome of a job."""
    warnings.simplefilter("ignore")
    with np.load(path) as stream:
        X, y = stream["X"], stream["y"]
    # Check the rows once, here. Otherwise scikit-learn's checks in every call take most of the time of a round.
    sklearn.set_config(assume_finite=bool(np.isfinite(X).all()), skip_parameter_validation=True)
    try:
        with threadpool_limits(1):
            found = measure_model(job.learner, job.seed, X, y)
    except Exception as error:  # a failure of one model must not stop the others
        found = {"failed": f"{type(error).__name__}: {error}"[:200]}
    sender.send(found)


def _rounded(figure: float) -> float:
    """Round a figure to four digits, to keep the file of results small."""
    return float(f"{figure:.4g}")


def _settle_memory() -> int:
    """Return free memory to the system, reset the peak where possible, and return what peaks are compared with."""
    gc.collect()
    with suppress(AttributeError, OSError):  # glibc only
        ctypes.CDLL(None).malloc_trim(0)
    # Without a reset, only memory beyond the peak so far can be seen.
    return memory_bytes("VmRSS" if reset_peak_memory() else "VmHWM")


def _write_stream(stream: Stream, path: Path) -> Path:
    np.savez(path, X=stream.X, y=stream.y)
    return path
