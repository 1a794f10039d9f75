"""All runs of a race: which there are, and two or more of them at a time."""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race.learners import Learner
from benchmarks.race.run import Job, Outcome, run
from benchmarks.race.streams import Source
from benchmarks.streams import Stream

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
