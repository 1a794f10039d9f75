"""The index against a scan, SciPy's kd-tree and HNSW: one run, one thread. Run as ``python -m benchmarks.index``.

"Effective dimension e" means d coordinates of which the first e have standard deviation 1 and the rest `TINY`;
d is 10, or e if that is more. Queries are drawn as the points are. What is compared is timed by turns, the scan and the
index, and for the exponent all numbers of centres; the least time of each counts, since whatever else runs on the
machine can only add to it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import hnswlib  # type: ignore[import-not-found,import-untyped,unused-ignore]
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.spatial import cKDTree

from benchmarks._kernels import scan_rounds
from ellipack.learners import packing
from ellipack.metric import Metric
from ellipack.packing import scan
from ellipack.packing._kernels import LANES
from ellipack.packing.index import Index
from ellipack.packing.scan import Scan
from ellipack.stream import LowRankStream
from ellipack.theory import rank_starts
from ellipack.threads import thread_count
from ellipack.validation import Floats, Ints, in_unit_ball

TINY = 1e-6
"""Small beside the gaps between centres, those of the largest number on a line included: 2.5e-5 where they are densest.
At 1e-4 they would see through it, and effective dimension 1 would not be what it says: its exponent is then 0.23."""

COUNTS = (1_000, 10_000, 100_000)
EFFECTIVE = (1, 2, 3, 5, 10, 20)
WIDER = (32, 100)
RATIOS = {1: 60.0, 2: 60.0, 3: 60.0, 5: 25.0, 10: 3.0}
EXPONENTS = {1: 0.2, 2: 0.2, 3: 0.2, 5: 0.3, 10: 0.6}
SLOWEST = 1.25
SECONDS, PASSES, TURNS = 0.1, 5, 3
LONG_TURNS, SHORT_TURNS = 8, 40
"""Turns of Algorithm 1, and of all that exponents are fitted to: what a single turn says is mostly noise."""


@dataclass(frozen=True)
class Row:
    """What was measured at one effective dimension and number of centres, in microseconds a query or an insert."""

    effective: int
    count: int
    nearest: tuple[float, float]
    """The scan's time and the index's."""
    insert: float
    k_nearest: tuple[float, float]
    """The scan's time and the index's."""
    peers: tuple[float, ...]
    """SciPy's tree: query, insert; HNSW: query, insert, recall."""
    memory: float
    """Bytes of the index for each byte of coordinates."""

    @property
    def ratio(self) -> float:
        """How many times as fast as the scan the nearest is."""
        return self.nearest[0] / self.nearest[1]


def seconds(task: Callable[[], object]) -> float:
    """Return how long a task takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def draw(count: int, effective: int, rng: np.random.Generator) -> Floats:
    """Return Gaussian points of an effective dimension."""
    d = max(10, effective)
    return rng.normal(size=(count, d)) * np.where(np.arange(d) < effective, 1.0, TINY)


def least(ask: Callable[[Floats], object], queries: Floats) -> float:
    """Return the least microseconds a query over a few passes, with as many queries as there is time for."""
    start = time.perf_counter()
    ask(queries[:16])
    once = (time.perf_counter() - start) / 16
    part = queries[: max(4, min(len(queries), int(SECONDS / PASSES / once)))]
    spent = []
    for _ in range(PASSES):
        start = time.perf_counter()
        ask(part)
        spent.append(time.perf_counter() - start)
    return 1e6 * min(spent) / len(part)


def duel(one: Callable[[Floats], object], other: Callable[[Floats], object], queries: Floats) -> tuple[float, float]:
    """Return the least microseconds a query of both, timed by turns."""
    turns = [(least(one, queries), least(other, queries)) for _ in range(TURNS)]
    return min(turn[0] for turn in turns), min(turn[1] for turn in turns)


def scipy_insert(points: Floats) -> float:
    """Return the seconds that SciPy's tree takes to take in all points, when it is rebuilt at each doubling."""
    spent, size = seconds(lambda: cKDTree(points)), 1
    while size < len(points):
        start = time.perf_counter()
        cKDTree(points[:size])
        spent += time.perf_counter() - start
        size *= 2
    return spent


def hnsw(points: Floats, queries: Floats, truth: Ints) -> tuple[float, float, float]:
    """Return microseconds a query and an insert, and the share of queries that HNSW answers rightly."""
    graph = hnswlib.Index(space="l2", dim=points.shape[1])
    graph.init_index(max_elements=len(points), ef_construction=50, M=8)
    graph.set_num_threads(1)
    build = seconds(lambda: graph.add_items(points))
    graph.set_ef(32)
    spent = min(seconds(lambda: graph.knn_query(queries, k=1)) for _ in range(2))
    found = graph.knn_query(queries, k=1)[0][:, 0]
    return 1e6 * spent / len(queries), 1e6 * build / len(points), float((found == truth).mean())


def measure(effective: int, count: int, peers: bool) -> Row:
    """Measure one effective dimension and number of centres."""
    rng = np.random.default_rng(effective * 1_000_003 + count)
    points, queries = draw(count, effective, rng), draw(2000, effective, rng)
    every, index = Scan.build(points), Index.empty(points.shape[1])
    insert = 1e6 * seconds(lambda: index.insert(points)) / count
    check = queries[:20]
    if not all(map(np.array_equal, index.k_nearest(check, 32), every.k_nearest(check, 32))):
        raise AssertionError("the index and the scan differ")
    times = duel(every.nearest, index.nearest, queries)
    k_times = duel(lambda part: every.k_nearest(part, 32), lambda part: index.k_nearest(part, 32), queries)
    memory = index.nbytes / points.nbytes
    others: tuple[float, ...] = (np.nan,) * 5
    if peers:
        asked = queries[: 2000 if effective < 10 else 200]
        tree = cKDTree(points)
        spent = 1e6 * seconds(lambda: tree.query(asked)) / len(asked)
        truth = index.nearest(asked)[0]
        others = (spent, 1e6 * scipy_insert(points) / count, *hnsw(points, asked, truth))
    return Row(effective, count, times, insert, k_times, others, memory)


@dataclass(frozen=True)
class Growth:
    """How the cost of the nearest grows with the number of centres: microseconds for each of `COUNTS`."""

    effective: int
    spent: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The slope of log cost in log number of centres."""
        return float(np.polyfit(np.log(COUNTS), np.log(self.spent), 1)[0])


def grow(console: Console) -> list[Growth]:
    """Measure how cost grows at each effective dimension, all of these and all numbers of centres by turns."""
    cases = [(effective, count) for effective in EXPONENTS for count in COUNTS]
    asked = []
    for effective, count in cases:
        rng = np.random.default_rng(effective * 1_000_003 + count)
        index = Index.empty(max(10, effective))
        index.insert(draw(count, effective, rng))
        asked.append((index.nearest, draw(2000, effective, rng)))
    turns = [[least(*each) for each in asked] for _ in track(range(SHORT_TURNS), "growing", console=console)]
    spent = np.reshape(np.min(turns, axis=0), (len(EXPONENTS), len(COUNTS)))
    return [Growth(effective, tuple(each.tolist())) for effective, each in zip(EXPONENTS, spent, strict=True)]


def table_of(rows: list[Row]) -> Table:
    """Lay out what was measured."""
    table = Table(title="microseconds a query (nearest; K = 32) and an insert; one thread")
    heads = (
        "e d centres scan index ratio insert K:scan K:index K:ratio kd-tree kd:insert hnsw hnsw:insert recall memory"
    )
    for head in heads.split():
        table.add_column(head, justify="right")
    for row in rows:
        many = (*row.k_nearest, row.k_nearest[0] / row.k_nearest[1])
        numbers = (*row.nearest, row.ratio, row.insert, *many, *row.peers, row.memory)
        cells = ["-" if np.isnan(number) else f"{number:.3g}" for number in numbers]
        table.add_row(str(row.effective), str(max(10, row.effective)), f"{row.count:,}", *cells)
    return table


def verdicts(rows: list[Row], growths: list[Growth]) -> list[tuple[bool, str]]:
    """Say of each target whether it was reached."""
    said = []
    largest = {row.effective: row for row in rows if row.count == max(COUNTS)}
    for effective, wanted in RATIOS.items():
        ratio = largest[effective].ratio
        said.append((ratio >= wanted, f"{ratio:.1f}x the scan at effective dimension {effective}: {wanted:g} wanted"))
    for growth in growths:
        most, spent = EXPONENTS[growth.effective], ", ".join(f"{each:.2g}" for each in growth.spent)
        text = f"exponent {growth.exponent:.2f} at effective dimension {growth.effective} ({spent} us)"
        said.append((growth.exponent <= most, f"{text}: at most {most} wanted"))
    ratio = largest[3].k_nearest[0] / largest[3].k_nearest[1]
    said.append((ratio >= 20, f"K = 32: {ratio:.1f}x the scan at effective dimension 3: 20 wanted"))
    worst = min(rows, key=lambda row: row.ratio)
    slow = 1 / worst.ratio
    where = f"effective dimension {worst.effective}, {worst.count:,} centres"
    said.append((slow <= SLOWEST, f"at worst {slow:.2f} times the scan's time ({where}): at most {SLOWEST} wanted"))
    memory = max(row.memory for row in rows)
    said.append((memory <= 2.5, f"at most {memory:.2f} times the bytes of the coordinates: 2.5 wanted"))
    return said


def algorithm_1(rounds: int = 200_000) -> tuple[bool, str]:
    """Say how much faster Algorithm 1 is with the index than with the scan, all that a call does included in both."""
    metric = Metric.from_diagonal([1.0] * 3 + [1e-8] * 7)
    starts = rank_starts(metric.eigenvalues)
    # Evenly from a ball of 3 dimensions, the other 7 coordinates small, as in all that is measured here.
    ball, y = LowRankStream(d=3, rank=3, random_state=1).draw(rounds)
    X = np.hstack([0.99 * ball, TINY * np.random.default_rng(0).normal(size=(rounds, 7))])

    def with_index(rows: int) -> int:
        state = packing.init(metric)
        packing.learn(state, X[:rows], y[:rows])
        return state.centers.size

    def with_scan(rows: int) -> int:
        coordinates = metric.whiten(in_unit_ball(X[:rows]))
        sums, counts, made = np.zeros(rows), np.zeros(rows), np.empty(rows)
        blocks = scan.empty(10, room)
        scan_rounds(blocks, starts, sums, counts, coordinates, y[:rows], made)
        return int(blocks.counters[0])

    centers = with_index(rounds)
    room = -(-centers // LANES) + 1
    if with_scan(rounds // 10) != with_index(rounds // 10):  # compiled by now
        raise AssertionError("Algorithm 1 differs with the scan")
    turns = [(seconds(lambda: with_index(rounds)), seconds(lambda: with_scan(rounds))) for _ in range(LONG_TURNS)]
    ours, theirs = (min(turn[k] for turn in turns) for k in (0, 1))
    text = f"Algorithm 1, d = 10, effective dimension 3, {rounds:,} rounds, {centers:,} centres: "
    return theirs / ours >= 20, f"{text}{ours:.3f} s, {theirs / ours:.1f}x the scan: 20 wanted"


def compile_cold(jobs: int, cache: str) -> None:
    """Compile every kernel of the package by so many processes, none of them being in that folder."""
    compiling = f"from ellipack.compiling.workers import compile_kernels; list(compile_kernels({jobs}))"
    subprocess.run([sys.executable, "-c", compiling], env={**os.environ, "NUMBA_CACHE_DIR": cache}, check=True)


def start_up() -> list[tuple[bool, str]]:
    """Say how long a new process takes to its first answers, with every kernel to compile and with none."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        together = seconds(lambda: compile_cold(-1, cache))
        shutil.rmtree(cache)
        alone = seconds(lambda: compile_cold(1, cache))
        run = [sys.executable, "-m", "benchmarks.first_answers"]
        asked = subprocess.run(run, env=environment, check=True, capture_output=True)
        whole = seconds(lambda: subprocess.run(run, env=environment, check=True, capture_output=True))
        warm = float(asked.stdout)
    cores = thread_count(-1)
    return [
        (alone < 20, f"all kernels compiled, cold, in {alone:.1f} s by one process: 20 wanted"),
        (together < 20, f"all kernels compiled, cold, in {together:.1f} s by {cores} processes: 20 wanted"),
        (
            warm < 1,
            f"first answers of the index after {warm:.2f} s with a warm cache: 1 wanted ({whole:.1f} s with imports)",
        ),
    ]


def main() -> None:
    """Measure, print, and say which targets were reached."""
    console = Console(width=170)
    cases = [(e, count, True) for e in EFFECTIVE for count in COUNTS] + [(e, c, False) for e in WIDER for c in COUNTS]
    rows = [measure(*case) for case in track(cases, "measuring", console=console)]
    console.print(table_of(rows))
    for reached, text in [*verdicts(rows, grow(console)), algorithm_1(), *start_up()]:
        console.print(f"[{'green' if reached else 'red'}]{'reached' if reached else 'NOT reached':>12}[/]  {text}")


if __name__ == "__main__":
    main()
