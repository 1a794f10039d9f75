"""The index against a NumPy scan, SciPy's kd-tree and HNSW: one run, one thread. Run as ``python -m benchmarks.index``.

"Effective dimension e" means d coordinates of which the first e have standard deviation 1 and the rest `TINY`;
d is 10, or e if that is more. Queries are drawn as the points are. SciPy's kd-tree and the index are timed by turns,
and so are, for the exponent, all numbers of centres; the least time of each counts, since whatever else runs on the
machine can only add to it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import hnswlib  # type: ignore[import-not-found,import-untyped,unused-ignore]
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.spatial import cKDTree

from benchmarks import numpy_baselines
from ellipack.neighbors import NeighborIndex
from ellipack.validation import Floats, Ints

TINY = 1e-6
"""Small beside the gaps between centres, those of the largest number on a line included: 2.5e-5 where they are densest.
At 1e-4 they would see through it, and effective dimension 1 would not be what it says: its exponent is then 0.23."""

COUNTS = (1_000, 10_000, 100_000)
EFFECTIVE = (1, 2, 3, 5, 10, 20)
WIDER = (32, 100)
RATIOS = {1: 2.0, 2: 2.0, 3: 2.0, 5: 2.0, 10: 4.0, 20: 10.0}
"""How many times as fast as SciPy's kd-tree the nearest is to be, with the most centres."""

K_RATIO = 1.5
"""The same of 32 nearest, at effective dimension 3."""

EXPONENTS = {1: 0.2, 2: 0.2, 3: 0.2, 5: 0.3, 10: 0.6}
SECONDS, PASSES, TURNS = 0.1, 5, 3
SHORT_TURNS = 40
"""Turns of all that exponents are fitted to: what a single turn says is mostly noise."""


@dataclass(frozen=True)
class Row:
    """What was measured at one effective dimension and number of centres, in microseconds a query or an insert."""

    effective: int
    count: int
    scan: float
    """NumPy's time for the nearest, looking at every point."""
    nearest: tuple[float, float]
    """The time of SciPy's kd-tree and the index's."""
    k_nearest: tuple[float, float]
    """The same for the 32 nearest."""
    insert: tuple[float, float]
    """The same for an insert."""
    hnsw: tuple[float, float, float]
    """Query, insert, recall."""
    memory: float
    """Bytes of the index for each byte of coordinates."""

    @property
    def ratio(self) -> float:
        """How many times as fast as SciPy's kd-tree the nearest is."""
        return self.nearest[0] / self.nearest[1]

    @property
    def k_ratio(self) -> float:
        """The same for the 32 nearest."""
        return self.k_nearest[0] / self.k_nearest[1]


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


def check(index: NeighborIndex, columns: Floats, queries: Floats) -> None:
    """Raise unless the index finds the 32 nearest points that a scan finds, at the same distances."""
    positions, distances = index.k_nearest(queries, 32)
    for row, query in enumerate(queries):
        squared = numpy_baselines.squared_distances(columns, query)
        order = np.argsort(squared, kind="stable")[:32]
        if not (np.array_equal(positions[row], order) and np.array_equal(distances[row], squared[order])):
            raise AssertionError("the index and the scan differ")


def measure(effective: int, count: int, with_hnsw: bool) -> Row:
    """Measure one effective dimension and number of centres."""
    rng = np.random.default_rng(effective * 1_000_003 + count)
    points, queries = draw(count, effective, rng), draw(2000, effective, rng)
    columns, tree, index = np.ascontiguousarray(points.T), cKDTree(points), NeighborIndex.empty(points.shape[1])
    insert = seconds(lambda: index.insert(points))
    check(index, columns, queries[:20])
    asked = queries[: 2000 if effective < 10 else 200]
    return Row(
        effective,
        count,
        least(lambda part: [numpy_baselines.squared_distances(columns, query).argmin() for query in part], queries),
        duel(tree.query, index.nearest, queries),
        duel(lambda part: tree.query(part, 32), lambda part: index.k_nearest(part, 32), queries),
        (1e6 * scipy_insert(points) / count, 1e6 * insert / count),
        hnsw(points, asked, index.nearest(asked)[0]) if with_hnsw else (np.nan, np.nan, np.nan),
        index.nbytes / points.nbytes,
    )


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
        index = NeighborIndex.empty(max(10, effective))
        index.insert(draw(count, effective, rng))
        asked.append((index.nearest, draw(2000, effective, rng)))
    turns = [[least(*each) for each in asked] for _ in track(range(SHORT_TURNS), "growing", console=console)]
    spent = np.reshape(np.min(turns, axis=0), (len(EXPONENTS), len(COUNTS)))
    return [Growth(effective, tuple(each.tolist())) for effective, each in zip(EXPONENTS, spent, strict=True)]


def table_of(rows: list[Row]) -> Table:
    """Lay out what was measured."""
    table = Table(title="microseconds a query (nearest; K = 32) and an insert; one thread")
    heads = (
        "e d centres scan kd-tree index ratio K:kd-tree K:index K:ratio kd:insert insert hnsw hnsw:insert recall memory"
    )
    for head in heads.split():
        table.add_column(head, justify="right")
    for row in rows:
        searches = (row.scan, *row.nearest, row.ratio, *row.k_nearest, row.k_ratio)
        numbers = (*searches, *row.insert, *row.hnsw, row.memory)
        cells = ["-" if np.isnan(number) else f"{number:.3g}" for number in numbers]
        table.add_row(str(row.effective), str(max(10, row.effective)), f"{row.count:,}", *cells)
    return table


def verdicts(rows: list[Row], growths: list[Growth]) -> list[tuple[bool, str]]:
    """Say of each target whether it was reached."""
    said = []
    largest = {row.effective: row for row in rows if row.count == max(COUNTS)}
    for effective, wanted in RATIOS.items():
        ratio = largest[effective].ratio
        text = f"{ratio:.1f}x SciPy's kd-tree at effective dimension {effective}"
        said.append((ratio >= wanted, f"{text}: {wanted:g} wanted"))
    for growth in growths:
        most, spent = EXPONENTS[growth.effective], ", ".join(f"{each:.2g}" for each in growth.spent)
        text = f"exponent {growth.exponent:.2f} at effective dimension {growth.effective} ({spent} us)"
        said.append((growth.exponent <= most, f"{text}: at most {most} wanted"))
    ratio = largest[3].k_ratio
    said.append(
        (ratio >= K_RATIO, f"K = 32: {ratio:.1f}x SciPy's kd-tree at effective dimension 3: {K_RATIO:g} wanted")
    )
    worst = min(rows, key=lambda row: min(row.ratio, row.k_ratio))
    ratio, where = min(worst.ratio, worst.k_ratio), f"effective dimension {worst.effective}, {worst.count:,} centres"
    said.append((ratio >= 1, f"at worst {ratio:.2f}x SciPy's kd-tree ({where}): 1 wanted"))
    memory = max(row.memory for row in rows)
    said.append((memory <= 2.5, f"at most {memory:.2f} times the bytes of the coordinates: 2.5 wanted"))
    return said


def main() -> None:
    """Measure, print, and say which targets were reached."""
    console = Console(width=170)
    cases = [(e, count, True) for e in EFFECTIVE for count in COUNTS] + [(e, c, False) for e in WIDER for c in COUNTS]
    rows = [measure(*case) for case in track(cases, "measuring", console=console)]
    console.print(table_of(rows))
    for reached, text in verdicts(rows, grow(console)):
        console.print(f"[{'green' if reached else 'red'}]{'reached' if reached else 'NOT reached':>12}[/]  {text}")


if __name__ == "__main__":
    main()
