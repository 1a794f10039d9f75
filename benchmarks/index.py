"""NeighborIndex against a NumPy scan, SciPy's kd-tree and HNSW, on one thread: ``python -m benchmarks.index``.

"Effective dimension e" means that of d coordinates the first e have standard deviation 1 and the rest `NEGLIGIBLE`;
d is 10, or e if that is more. Queries have the distribution of the points. SciPy's kd-tree and the index take turns;
so do, for the exponent, all numbers of centers. The least time counts, because other work can only add time.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import hnswlib  # type: ignore[import-not-found,import-untyped,unused-ignore]
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.spatial import cKDTree

from benchmarks import numpy_baselines
from benchmarks.command_line import TargetResult, at_least, at_most, new_table, targets_table, track_progress
from ellipack.neighbors import NeighborIndex
from ellipack.validation import Floats, Ints

NEGLIGIBLE = 1e-6
"""Standard deviation of the other coordinates, small against the least gap of centers on a line, about 2.5e-5.

With 1e-4 they would matter at effective dimension 1, where the exponent is then 0.23."""

COUNTS = (1_000, 10_000, 100_000)
EFFECTIVE = (1, 2, 3, 5, 10, 20)
WIDE = (32, 100)
MIN_RATIOS = {1: 2.0, 2: 2.0, 3: 2.0, 5: 2.0, 10: 4.0, 20: 10.0}
"""Target for the nearest neighbor with the most centers: how many times as fast as SciPy's kd-tree."""

MIN_K_RATIO = 1.5
"""The same for the 32 nearest, at effective dimension 3."""

MAX_EXPONENTS = {1: 0.2, 2: 0.2, 3: 0.2, 5: 0.3, 10: 0.6}
SECONDS, PASSES, TURNS = 0.1, 5, 3
GROWTH_TURNS = 40
"""Turns for the exponents; single turns are noisy."""


@dataclass(frozen=True)
class IndexMeasurement:
    """Microseconds per query and per insert at one effective dimension and number of centers."""

    effective: int
    count: int
    scan: float
    """Nearest neighbor by a NumPy scan."""
    nearest: tuple[float, float]
    """Nearest neighbor: SciPy's kd-tree, and the index."""
    k_nearest: tuple[float, float]
    """The same for the 32 nearest."""
    insert: tuple[float, float]
    """The same for an insert."""
    hnsw: tuple[float, float, float]
    """Query, insert, recall."""
    memory: float
    """Bytes of the index per byte of coordinates."""

    @property
    def ratio(self) -> float:
        """How many times as fast as SciPy's kd-tree the search for the nearest is."""
        return self.nearest[0] / self.nearest[1]

    @property
    def k_ratio(self) -> float:
        """The same for the 32 nearest."""
        return self.k_nearest[0] / self.k_nearest[1]


def seconds(task: Callable[[], object]) -> float:
    """Return the seconds that a task takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def draw(count: int, effective: int, rng: np.random.Generator) -> Floats:
    """Return Gaussian points of an effective dimension."""
    d = max(10, effective)
    return rng.normal(size=(count, d)) * np.where(np.arange(d) < effective, 1.0, NEGLIGIBLE)


def least_microseconds(search: Callable[[Floats], object], queries: Floats) -> float:
    """Return the least microseconds per query over a few passes, each limited in time."""
    start = time.perf_counter()
    search(queries[:16])
    once = (time.perf_counter() - start) / 16
    part = queries[: max(4, min(len(queries), int(SECONDS / PASSES / once)))]
    spent = []
    for _ in range(PASSES):
        start = time.perf_counter()
        search(part)
        spent.append(time.perf_counter() - start)
    return 1e6 * min(spent) / len(part)


def time_by_turns(
    one: Callable[[Floats], object], other: Callable[[Floats], object], queries: Floats
) -> tuple[float, float]:
    """Return the least microseconds per query of two searches that take turns."""
    turns = [(least_microseconds(one, queries), least_microseconds(other, queries)) for _ in range(TURNS)]
    return min(turn[0] for turn in turns), min(turn[1] for turn in turns)


def scipy_insert(points: Floats) -> float:
    """Return the seconds to insert all points into SciPy's tree when it is rebuilt at each doubling."""
    spent, size = seconds(lambda: cKDTree(points)), 1
    while size < len(points):
        start = time.perf_counter()
        cKDTree(points[:size])
        spent += time.perf_counter() - start
        size *= 2
    return spent


def measure_hnsw(points: Floats, queries: Floats, truth: Ints) -> tuple[float, float, float]:
    """Return the microseconds per query and per insert of HNSW, and its recall."""
    graph = hnswlib.Index(space="l2", dim=points.shape[1])
    graph.init_index(max_elements=len(points), ef_construction=50, M=8)
    graph.set_num_threads(1)
    build = seconds(lambda: graph.add_items(points))
    graph.set_ef(32)
    spent = min(seconds(lambda: graph.knn_query(queries, k=1)) for _ in range(2))
    found = graph.knn_query(queries, k=1)[0][:, 0]
    return 1e6 * spent / len(queries), 1e6 * build / len(points), float((found == truth).mean())


def assert_exact(index: NeighborIndex, columns: Floats, queries: Floats) -> None:
    """Raise unless the index finds the same 32 nearest points and distances as a scan."""
    positions, distances = index.k_nearest(queries, 32)
    for row, query in enumerate(queries):
        squared = numpy_baselines.squared_distances(columns, query)
        order = np.argsort(squared, kind="stable")[:32]
        if not (np.array_equal(positions[row], order) and np.array_equal(distances[row], squared[order])):
            raise AssertionError("the index and the scan differ")


def measure(effective: int, count: int, with_hnsw: bool) -> IndexMeasurement:
    """Measure one effective dimension and number of centers."""
    rng = np.random.default_rng(effective * 1_000_003 + count)
    points, queries = draw(count, effective, rng), draw(2000, effective, rng)
    columns, tree, index = np.ascontiguousarray(points.T), cKDTree(points), NeighborIndex.empty(points.shape[1])
    insert = seconds(lambda: index.insert(points))
    assert_exact(index, columns, queries[:20])
    some = queries[: 2000 if effective < 10 else 200]
    return IndexMeasurement(
        effective,
        count,
        least_microseconds(
            lambda part: [numpy_baselines.squared_distances(columns, query).argmin() for query in part], queries
        ),
        time_by_turns(tree.query, index.nearest, queries),
        time_by_turns(lambda part: tree.query(part, 32), lambda part: index.k_nearest(part, 32), queries),
        (1e6 * scipy_insert(points) / count, 1e6 * insert / count),
        measure_hnsw(points, some, index.nearest(some)[0]) if with_hnsw else (np.nan, np.nan, np.nan),
        index.nbytes / points.nbytes,
    )


@dataclass(frozen=True)
class CostGrowth:
    """Microseconds per search for the nearest, for each number of centers in `COUNTS`."""

    effective: int
    spent: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """Slope of the logarithm of cost in that of the number of centers."""
        return float(np.polyfit(np.log(COUNTS), np.log(self.spent), 1)[0])


def measure_growth() -> list[CostGrowth]:
    """Measure the growth of cost at each effective dimension; all cases take turns."""
    cases = [(effective, count) for effective in MAX_EXPONENTS for count in COUNTS]
    searches = []
    for effective, count in cases:
        rng = np.random.default_rng(effective * 1_000_003 + count)
        index = NeighborIndex.empty(max(10, effective))
        index.insert(draw(count, effective, rng))
        searches.append((index.nearest, draw(2000, effective, rng)))
    turns = [
        [least_microseconds(*each) for each in searches]
        for _ in track_progress(("growth of the cost", turn) for turn in range(GROWTH_TURNS))
    ]
    spent = np.reshape(np.min(turns, axis=0), (len(MAX_EXPONENTS), len(COUNTS)))
    return [CostGrowth(effective, tuple(each.tolist())) for effective, each in zip(MAX_EXPONENTS, spent, strict=True)]


def measurements_table(rows: list[IndexMeasurement]) -> Table:
    """Return a table of measurements."""
    headings = (
        "e d centers scan kd-tree index ratio K:kd-tree K:index K:ratio kd:insert insert hnsw hnsw:insert recall memory"
    )
    table = new_table("Microseconds per query (nearest; K = 32) and per insert; one thread", headings.split())
    for row in rows:
        searches = (row.scan, *row.nearest, row.ratio, *row.k_nearest, row.k_ratio)
        numbers = (*searches, *row.insert, *row.hnsw, row.memory)
        cells = ["-" if np.isnan(number) else f"{number:.3g}" for number in numbers]
        table.add_row(str(row.effective), str(max(10, row.effective)), f"{row.count:,}", *cells)
    return table


def targets(rows: list[IndexMeasurement], growths: list[CostGrowth]) -> Iterator[TargetResult]:
    """Compare the measurements with their targets."""
    speed = "speed relative to SciPy's kd-tree"
    largest = {row.effective: row for row in rows if row.count == max(COUNTS)}
    for effective, least in MIN_RATIOS.items():
        yield at_least(f"{speed}, effective dimension {effective}", largest[effective].ratio, least, "x")
    for growth in growths:
        spent = ", ".join(f"{each:.2g}" for each in growth.spent)
        name = f"exponent of the cost, effective dimension {growth.effective} ({spent} us)"
        yield at_most(name, growth.exponent, MAX_EXPONENTS[growth.effective])
    yield at_least(f"{speed}, K = 32, effective dimension 3", largest[3].k_ratio, MIN_K_RATIO, "x")
    worst = min(rows, key=lambda row: min(row.ratio, row.k_ratio))
    where = f"effective dimension {worst.effective}, {worst.count:,} centers"
    yield at_least(f"{speed}, worst case ({where})", min(worst.ratio, worst.k_ratio), 1, "x")
    yield at_most("bytes of the index over those of the coordinates", max(row.memory for row in rows), 2.5, "x")


def main() -> None:
    """Measure, and print a table and the targets."""
    console = Console(width=170)
    cases = [(e, count, True) for e in EFFECTIVE for count in COUNTS] + [(e, c, False) for e in WIDE for c in COUNTS]
    rows = [
        measure(*case) for case in track_progress((f"dimension {e}, {n:,} centers", (e, n, h)) for e, n, h in cases)
    ]
    console.print(measurements_table(rows), targets_table(targets(rows, measure_growth())), sep="\n")


if __name__ == "__main__":
    main()
