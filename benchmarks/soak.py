"""A stream without end, for as long as asked: what memory it takes, how long callers wait, what is no number.

    python -m benchmarks.soak --minutes 10

Features and labels drift in size, each in its own time, over six powers of ten, labels fastest. One thread learns,
others predict all the while. Once the learner's memory is full, what the process takes should grow no more: a line
through its size says by how much it would in an hour. In the first third of the time a copy of the learner now and then
goes ahead, a row at a time, and notes every state that there will be; what the others, who wait for it, then predict
must come from one of them. Copies take memory, so that they are gone by the second half, by which growth is judged.

The exit code is 0 if all is as it should be, 1 if something is not, and 2 if it took too little time to tell.
"""

import argparse
import gc
import math
import resource
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.live import Live
from rich.table import Table

from benchmarks.command_line import Verdict, figures, table_of
from benchmarks.consistency import PROBES, Stretch
from ellipack import MetricRegressor
from ellipack.validation import Floats

BATCH = 64
"""Rows that are learned in a call."""

_D = 6
_SAMPLES = 0.5  # seconds between two looks at the memory
_STRETCHES, _STRETCH = 2.0, 16 * BATCH  # seconds between two whose states are known, and how many rows these have
_LINES = 12  # of the table
_MOST_GROWTH = 1.0  # per cent in an hour
_BINS, _SHORTEST, _STEP = 2000, 1e-6, 0.01  # of waits: the first ends at a microsecond, each next a per cent later

Counts = NDArray[np.int64]


class Drifting:
    """Batches of a stream whose features and labels change their size as it goes."""

    def __init__(self, seed: int = 0) -> None:
        self._rng, self._t = np.random.default_rng(seed), 0
        self._turns = self._rng.uniform(0, 2 * np.pi, _D + 1)

    def draw(self, n: int = BATCH) -> tuple[Floats, Floats]:
        """Return the next rows and labels."""
        t = self._t + np.arange(n)[:, None]
        self._t += n
        sizes = 10.0 ** (3 * np.sin(t / (20_000 * np.arange(_D + 1, 0, -1)) + self._turns))
        X = self._rng.normal(size=(n, _D))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * self._rng.normal(size=n)
        return X * sizes[:, :_D], y * sizes[:, _D]


class Calls:
    """What one thread has seen: how long its calls took, in bins of a per cent each, and what was not as it should be.

    Among that are predictions that are no numbers, and looks at a known state that showed another than there was.

    Counted and not listed: what is measured is whether memory grows.
    """

    def __init__(self) -> None:
        self.waits = np.zeros(_BINS, dtype=np.int64)
        self.predictions = self.odd = self.looks = self.torn = 0

    def add(self, predictions: Floats, seconds: float) -> None:
        """Count a call in."""
        self.waits[min(_BINS - 1, max(0, int(math.log(seconds / _SHORTEST) / _STEP)))] += 1
        self.predictions += len(predictions)
        self.odd += int(np.count_nonzero(~np.isfinite(predictions)))

    def look(self, stretch: Stretch, predictions: Floats) -> None:
        """Count in whether predictions for a stretch's probes are from a state that there was."""
        self.looks += 1
        self.torn += not stretch.has(predictions)


@dataclass(eq=False)
class Soaked:
    """What was seen: the process's size over time, and what each thread has seen, the learning one first."""

    calls: list[Calls]
    started: float = field(default_factory=time.perf_counter)
    rows: int = 0
    stretch: Stretch | None = None  # that is being learned
    going: Event = field(default_factory=Event)  # unless a copy is ahead, for which many threads would be in the way
    full: float | None = None  # seconds after which all centres were there
    sizes: list[tuple[float, float]] = field(default_factory=list)  # seconds and bytes

    @property
    def elapsed(self) -> float:
        """How many seconds it has been."""
        return time.perf_counter() - self.started


def resident() -> float:
    """Return the memory that this process takes now, or at most has taken where the system does not say."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * float(resource.getpagesize())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def growth(sizes: list[tuple[float, float]]) -> tuple[float, float]:
    """Return by how many per cent memory would grow in an hour, by a line through its size, and the error of that.

    The error is twice the standard error, neighbouring samples being taken for as good as one: what is allocated for a
    moment comes and goes in waves.
    """
    if len(sizes) < 8:
        return 0.0, np.inf
    seconds, taken = np.array(sizes).T
    hours = (seconds - seconds.mean()) / 3600
    slope = float(hours @ taken / (hours @ hours))
    rest = taken - taken.mean() - slope * hours
    waves = max(1.0, len(rest) / (1 + np.count_nonzero(np.diff(np.sign(rest)))))
    error = 2 * np.sqrt(waves * np.mean(rest**2) / (hours @ hours))
    return 100 * slope / taken.mean(), float(100 * error / taken.mean())


def batches(
    learner: MetricRegressor, stream: Drifting, soaked: Soaked, until: float
) -> Iterator[tuple[Floats, Floats]]:
    """Yield batches without end, each to be learned at once; until then, know the states of some stretches."""
    due = 0.0
    while True:
        if soaked.elapsed < due or due > until:
            yield stream.draw()
            continue
        X, y = stream.draw(_STRETCH)
        soaked.going.clear()
        try:
            soaked.stretch = Stretch(learner, X, y)
        finally:
            soaked.going.set()
        for start in range(0, _STRETCH, BATCH):
            yield X[start : start + BATCH], y[start : start + BATCH]
        soaked.stretch = None
        due = soaked.elapsed + _STRETCHES


def learn(learner: MetricRegressor, stream: Drifting, soaked: Soaked, seconds: float) -> Iterator[None]:
    """Learn for so long, looking at the memory on the way; yield whenever the table should have a line more."""
    lines = 0
    for X, y in batches(learner, stream, soaked, seconds / 3):
        if soaked.elapsed >= seconds:
            break
        start = time.perf_counter()
        made = learner.progressive(X, y)
        soaked.calls[0].add(made, time.perf_counter() - start)
        soaked.rows += len(y)
        if soaked.full is None and soaked.rows >= 4 * learner.max_centers:  # re-packed a few times by then
            soaked.full = soaked.elapsed
        if soaked.elapsed >= _SAMPLES * len(soaked.sizes):
            gc.collect()  # lest what Python itself puts aside for later be taken for growth
            soaked.sizes.append((soaked.elapsed, resident()))
        if soaked.elapsed >= seconds * (lines + 1) / _LINES:
            lines += 1
            yield


def predict(learner: MetricRegressor, seed: int, soaked: Soaked, over: Event) -> None:
    """Predict a few rows after the other, or the probes of a stretch while there is one, until it is over."""
    X, calls = Drifting(seed).draw(4096)[0], soaked.calls[seed]
    at = 0
    while soaked.going.wait() and not over.is_set():
        stretch = soaked.stretch
        asked = X[at : at + PROBES] if stretch is None else stretch.probes
        start = time.perf_counter()
        made = learner.predict(asked)
        calls.add(made, time.perf_counter() - start)
        if stretch is not None and stretch is soaked.stretch:  # which may have ended in the meantime
            calls.look(stretch, made)
        at = (at + PROBES) % (len(X) - PROBES)


def line(learner: MetricRegressor, soaked: Soaked, before: Counts) -> tuple[list[str], Counts]:
    """Return the table's next line, and the counts of waits that it is up to."""
    counts = np.sum([calls.waits for calls in soaked.calls[1:]], axis=0)
    rising = np.cumsum(counts - before)
    ends = [int(np.searchsorted(rising, part * rising[-1])) for part in (0.5, 0.99, 1.0)]
    waits = [f"{1e3 * _SHORTEST * math.exp(_STEP * (end + 1)):,.2f} ms" for end in ends]
    size = f"{resident() / 2**20:,.1f} MB"
    return [f"{soaked.elapsed:,.0f} s", f"{soaked.rows:,}", f"{learner.n_centers_:,}", size, *waits], counts


def soak(minutes: float, max_centers: int, threads: int, table: Table, live: Live) -> Soaked:
    """Let a learner learn for so long while threads predict; fill in the table as it goes."""
    learner, stream = MetricRegressor(max_centers, n_jobs=1), Drifting()
    learner.fit(*stream.draw(512))  # which compiles what is needed, and is not timed
    learner.predict(stream.draw(PROBES)[0])
    gc.freeze()  # what is there by now need not be looked through again
    soaked, over = Soaked([Calls() for _ in range(threads + 1)]), Event()
    soaked.going.set()
    counts = np.zeros(_BINS, dtype=np.int64)
    with ThreadPoolExecutor(threads) as pool:
        predicting = [pool.submit(predict, learner, i, soaked, over) for i in range(1, threads + 1)]
        try:
            for _ in learn(learner, stream, soaked, 60 * minutes):
                shown, counts = line(learner, soaked, counts)
                table.add_row(*shown)
                live.refresh()
        finally:
            over.set()
        for each in predicting:
            each.result()
    return soaked


def verdicts(soaked: Soaked) -> list[Verdict]:
    """Say whether memory was flat, all predictions were numbers, and each came from a state that there was."""
    # The allocator takes a while to settle: only the second half of the time since then.
    begin = np.inf if soaked.full is None else (soaked.full + soaked.sizes[-1][0]) / 2
    percent, error = growth([each for each in soaked.sizes if each[0] >= begin])
    within = f"{percent:+.2g} % an hour, give or take {error:.2g}"
    unsure = error > _MOST_GROWTH
    rule = f"at most {_MOST_GROWTH:g} % an hour" + ", but this was too short to tell" * unsure
    names = ("odd", "predictions", "torn", "looks")
    odd, predictions, torn, looks = (sum(getattr(calls, name) for calls in soaked.calls) for name in names)
    flat = None if unsure else percent - error <= _MOST_GROWTH
    whole = torn == 0 if looks else None
    return [
        Verdict("growth of memory, all centres there", within, rule, flat),
        Verdict("predictions that are no numbers", f"{odd:,} of {predictions:,}", "none", odd == 0),
        Verdict("predictions from no state that there was", f"{torn:,} of {looks:,} looked at", "none", whole),
    ]


def exit_code(judged: list[Verdict]) -> int:
    """Return 1 if something was missed, else 2 if something can't be told, else 0."""
    words = [each.reached for each in judged]
    return 1 if False in words else 2 if None in words else 0


def main(arguments: list[str] | None = None) -> None:
    """Soak, and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="Learn for a long time.")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long, 1 unless told")
    parser.add_argument("--max-centers", type=int, default=5000, help="how much is remembered, 5000 unless told")
    parser.add_argument("--threads", type=int, default=2, help="threads that predict meanwhile, 2 unless told")
    options = parser.parse_args(arguments)
    console = Console(width=140)
    heads = ("after", "rows learned", "centres", "memory", "predict, median", "p99", "longest")
    table = figures(f"One thread learns, {options.threads} predict {PROBES} rows a call", heads)
    with Live(table, console=console, auto_refresh=False, vertical_overflow="visible") as live:
        soaked = soak(options.minutes, options.max_centers, options.threads, table, live)
    judged = verdicts(soaked)
    console.print()
    console.print(table_of(judged, "Verdicts"))
    sys.exit(exit_code(judged))


if __name__ == "__main__":
    main()
