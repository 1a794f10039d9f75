"""Learn an endless drifting stream for a long time: memory, latency, and predictions that are wrong.

    python -m benchmarks.soak --minutes 10

Features and labels change their scale over six powers of ten, each with its own period, labels fastest. One thread
learns while others predict. Once all centers are in use, memory should stop growing; a line fitted to it gives the
growth in an hour. In the first third of the time, a copy of the learner sometimes learns the next rows one by one and
records every state, while the other threads wait; their predictions must then come from one of these states. Copies
take memory, so growth is measured in the second half only.

The exit code is 0 if all targets are reached, 1 if one is missed, and 2 if the time was too short for one of them.
"""

import gc
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.live import Live
from rich.table import Table

from benchmarks.command_line import TargetResult, make_parser, new_table, targets_table
from benchmarks.consistency import PROBES, KnownStates
from benchmarks.measurement import memory_bytes
from ellipack import MetricRegressor
from ellipack.validation import Floats

BATCH_ROWS = 64
"""Rows per call of the learning thread."""

_D = 6
_SAMPLE_INTERVAL = 0.5  # seconds between two measurements of memory
_CHECK_INTERVAL, _CHECK_ROWS = 2.0, 16 * BATCH_ROWS  # seconds between checks of consistency, rows of each
_TABLE_ROWS = 12
_MAX_GROWTH = 1.0  # percent per hour
_BINS, _SHORTEST_WAIT, _BIN_WIDTH = 2000, 1e-6, 0.01  # the first bin ends at 1 us, each next 1 % later

Counts = NDArray[np.int64]


class DriftingStream:
    """A stream whose features and labels change their scale."""

    def __init__(self, seed: int = 0) -> None:
        self._rng, self._t = np.random.default_rng(seed), 0
        self._phases = self._rng.uniform(0, 2 * np.pi, _D + 1)

    def draw(self, n: int = BATCH_ROWS) -> tuple[Floats, Floats]:
        """Return the next rows and labels."""
        t = self._t + np.arange(n)[:, None]
        self._t += n
        scales = 10.0 ** (3 * np.sin(t / (20_000 * np.arange(_D + 1, 0, -1)) + self._phases))
        X = self._rng.normal(size=(n, _D))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * self._rng.normal(size=n)
        return X * scales[:, :_D], y * scales[:, _D]


class CallStatistics:
    """Counts of one thread: durations of its calls, and predictions that are not finite or inconsistent.

    Durations are counted in bins, not listed, because the benchmark measures the growth of memory.
    """

    def __init__(self) -> None:
        self.waits = np.zeros(_BINS, dtype=np.int64)
        self.predictions = self.non_finite = self.checked = self.inconsistent = 0

    def add(self, predictions: Floats, seconds: float) -> None:
        """Count a call."""
        self.waits[min(_BINS - 1, max(0, int(math.log(seconds / _SHORTEST_WAIT) / _BIN_WIDTH)))] += 1
        self.predictions += len(predictions)
        self.non_finite += int(np.count_nonzero(~np.isfinite(predictions)))

    def check(self, known_states: KnownStates, predictions: Floats) -> None:
        """Count whether predictions for the probes come from a known state."""
        self.checked += 1
        self.inconsistent += not known_states.contains(predictions)


@dataclass(eq=False)
class SoakState:
    """Measurements so far: memory over time, and the counts of each thread, the learning one first."""

    calls: list[CallStatistics]
    started: float = field(default_factory=time.perf_counter)
    rows: int = 0
    known_states: KnownStates | None = None  # while its rows are being learned
    may_predict: Event = field(default_factory=Event)  # not set while a copy learns
    full_at: float | None = None  # seconds until all centers were in use
    sizes: list[tuple[float, float]] = field(default_factory=list)  # seconds and bytes

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started


def hourly_growth(sizes: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the growth of memory in percent per hour, by a fitted line, and its error.

    The error is twice the standard error. It allows for correlation: temporary allocations come in waves, so a run of
    residuals of the same sign counts as one sample.
    """
    if len(sizes) < 8:
        return 0.0, np.inf
    seconds, taken = np.array(sizes).T
    hours = (seconds - seconds.mean()) / 3600
    slope = float(hours @ taken / (hours @ hours))
    residuals = taken - taken.mean() - slope * hours
    waves = max(1.0, len(residuals) / (1 + np.count_nonzero(np.diff(np.sign(residuals)))))
    error = 2 * np.sqrt(waves * np.mean(residuals**2) / (hours @ hours))
    return 100 * slope / taken.mean(), float(100 * error / taken.mean())


def batches(
    learner: MetricRegressor, stream: DriftingStream, state: SoakState, until: float
) -> Iterator[tuple[Floats, Floats]]:
    """Yield batches without end, each to be learned at once; until `until`, some of them with known states."""
    due = 0.0
    while True:
        if state.elapsed < due or due > until:
            yield stream.draw()
            continue
        X, y = stream.draw(_CHECK_ROWS)
        state.may_predict.clear()
        try:
            state.known_states = KnownStates(learner, X, y)
        finally:
            state.may_predict.set()
        for start in range(0, _CHECK_ROWS, BATCH_ROWS):
            yield X[start : start + BATCH_ROWS], y[start : start + BATCH_ROWS]
        state.known_states = None
        due = state.elapsed + _CHECK_INTERVAL


def learn_stream(learner: MetricRegressor, stream: DriftingStream, state: SoakState, seconds: float) -> Iterator[None]:
    """Learn for so many seconds and measure memory; yield whenever the next row of the table is due."""
    lines = 0
    for X, y in batches(learner, stream, state, seconds / 3):
        if state.elapsed >= seconds:
            break
        start = time.perf_counter()
        predictions = learner.progressive(X, y)
        state.calls[0].add(predictions, time.perf_counter() - start)
        state.rows += len(y)
        if state.full_at is None and state.rows >= 4 * learner.max_centers_:  # centers were evicted several times
            state.full_at = state.elapsed
        if state.elapsed >= _SAMPLE_INTERVAL * len(state.sizes):
            gc.collect()  # so that garbage does not count as growth
            state.sizes.append((state.elapsed, memory_bytes("VmRSS")))
        if state.elapsed >= seconds * (lines + 1) / _TABLE_ROWS:
            lines += 1
            yield


def predict_until(learner: MetricRegressor, seed: int, state: SoakState, stop: Event) -> None:
    """Predict a few rows at a time, or the probes while states are known, until `stop` is set."""
    X, calls = DriftingStream(seed).draw(4096)[0], state.calls[seed]
    at = 0
    while state.may_predict.wait() and not stop.is_set():
        known_states = state.known_states
        rows = X[at : at + PROBES] if known_states is None else known_states.probes
        start = time.perf_counter()
        predictions = learner.predict(rows)
        calls.add(predictions, time.perf_counter() - start)
        if known_states is not None and known_states is state.known_states:  # may have changed meanwhile
            calls.check(known_states, predictions)
        at = (at + PROBES) % (len(X) - PROBES)


def table_row(learner: MetricRegressor, state: SoakState, before: Counts) -> tuple[list[str], Counts]:
    """Return the next row of the table, and the counts of durations so far."""
    counts = np.sum([calls.waits for calls in state.calls[1:]], axis=0)
    rising = np.cumsum(counts - before)
    ends = [int(np.searchsorted(rising, part * rising[-1])) for part in (0.5, 0.99, 1.0)]
    waits = [f"{1e3 * _SHORTEST_WAIT * math.exp(_BIN_WIDTH * (end + 1)):,.2f} ms" for end in ends]
    size = f"{memory_bytes('VmRSS') / 2**20:,.1f} MB"
    return [f"{state.elapsed:,.0f} s", f"{state.rows:,}", f"{learner.n_centers_:,}", size, *waits], counts


def run_soak(minutes: float, max_centers: int, threads: int, table: Table, live: Live) -> SoakState:
    """Learn for so many minutes while threads predict; add rows to the table."""
    learner, stream = MetricRegressor(max_centers, n_jobs=1), DriftingStream()
    learner.fit(*stream.draw(512))  # not timed
    learner.predict(stream.draw(PROBES)[0])
    gc.freeze()  # exclude existing objects from later collections
    state, stop = SoakState([CallStatistics() for _ in range(threads + 1)]), Event()
    state.may_predict.set()
    counts = np.zeros(_BINS, dtype=np.int64)
    with ThreadPoolExecutor(threads) as pool:
        predicting = [pool.submit(predict_until, learner, i, state, stop) for i in range(1, threads + 1)]
        try:
            for _ in learn_stream(learner, stream, state, 60 * minutes):
                shown, counts = table_row(learner, state, counts)
                table.add_row(*shown)
                live.refresh()
        finally:
            stop.set()
        for each in predicting:
            each.result()
    return state


def targets(state: SoakState) -> list[TargetResult]:
    """Compare growth of memory and wrong predictions with their targets."""
    # The allocator takes a while to settle, so only the second half of the time since then counts.
    begin = np.inf if state.full_at is None else (state.full_at + state.sizes[-1][0]) / 2
    percent, error = hourly_growth([each for each in state.sizes if each[0] >= begin])
    within = f"{percent:+.2g} % ± {error:.2g} per hour"
    unsure = error > _MAX_GROWTH
    rule = f"at most {_MAX_GROWTH:g} % per hour" + ", but the run was too short" * unsure
    names = ("non_finite", "predictions", "inconsistent", "checked")
    non_finite, predictions, inconsistent, checked = (
        sum(getattr(calls, name) for calls in state.calls) for name in names
    )
    flat = None if unsure else percent - error <= _MAX_GROWTH
    whole = inconsistent == 0 if checked else None
    return [
        TargetResult("growth of memory with all centers in use", within, rule, flat),
        TargetResult("predictions that are not finite", f"{non_finite:,} of {predictions:,}", "none", non_finite == 0),
        TargetResult("predictions from no known state", f"{inconsistent:,} of {checked:,}", "none", whole),
    ]


def exit_code(results: list[TargetResult]) -> int:
    """Return 1 if a target was missed, else 2 if one is unknown, else 0."""
    outcomes = [each.reached for each in results]
    return 1 if False in outcomes else 2 if None in outcomes else 0


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark and exit with its code."""
    parser = make_parser("soak", __doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="duration (default: %(default)s)")
    parser.add_argument("--max-centers", type=int, default=5000, help="of the learner (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="number of threads that predict (default: %(default)s)")
    options = parser.parse_args(arguments)
    console = Console(width=140)
    headings = ("after", "rows learned", "centers", "memory", "predict, median", "p99", "longest")
    table = new_table(f"One thread learns, {options.threads} predict {PROBES} rows per call", headings)
    with Live(table, console=console, auto_refresh=False, vertical_overflow="visible") as live:
        state = run_soak(options.minutes, options.max_centers, options.threads, table, live)
    results = targets(state)
    console.print()
    console.print(targets_table(results))
    sys.exit(exit_code(results))


if __name__ == "__main__":
    main()
