import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Event, Thread
from time import sleep
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack import neighbors
from ellipack._core import KdTree
from ellipack.errors import DomainError, InputError, NonFiniteError, ReentrantCallError, ShapeError
from ellipack.neighbors import NeighborIndex
from ellipack.validation import Floats
from tests.core.builds import modules
from tests.fuzz.strategies import n_examples
from tests.interrupts import interrupt_everywhere
from tests.point_clouds import ORDERS, Cloud, arranged, cloud, clouds
from tests.reference import brute_force_neighbors as brute_force


def grown(points: Floats) -> NeighborIndex:
    """Return an index with points inserted one by one."""
    index = NeighborIndex.empty(points.shape[1])
    index.insert(points)
    return index


def grown_tree(points: Floats, built: int = 0) -> KdTree:
    """Return a tree with the first points built in bulk and the others inserted."""
    tree = KdTree.build(points[:built])
    tree.insert(points[built:])
    return tree


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def check_searches(index: NeighborIndex, points: Floats, queries: Floats, ks: tuple[int, ...]) -> None:
    """Check that all searches are bitwise equal to brute force."""
    assert np.array_equal(index.points(), points)
    positions, distances = brute_force.k_nearest(points, queries, max(ks))
    assert same(index.nearest(queries), (positions[:, 0], distances[:, 0]))
    for k in ks:
        assert same(index.k_nearest(queries, k), (positions[:, :k], distances[:, :k]))
    radius = min(float(np.sqrt(np.median(distances[:, 0]))) + 1e-300, 1e300)
    for wider in (1, 3):
        assert same(index.within(queries, wider * radius), brute_force.within(points, queries, wider * radius))


@settings(max_examples=n_examples(30))
@given(clouds(), st.integers(1, 300))
def test_searches_match_brute_force(drawn: Cloud, k: int) -> None:
    for index in (grown(drawn.points), NeighborIndex.build(drawn.points)):
        check_searches(index, drawn.points, drawn.queries, (1, 32, k))


@settings(max_examples=20)
@given(clouds(most=500, widest=12))
def test_k_may_equal_or_exceed_the_number_of_points(drawn: Cloud) -> None:
    size = len(drawn.points)
    check_searches(grown(drawn.points), drawn.points, drawn.queries, (size, size + 1))


@settings(max_examples=40)
@given(clouds(), st.lists(st.integers(0, 3000), max_size=8), st.booleans())
def test_insertions_and_searches_may_alternate(drawn: Cloud, cuts: list[int], bulk: bool) -> None:
    points = drawn.points
    edges = sorted(({min(cut, len(points)) for cut in cuts} | {1, len(points)}) - {0})
    index = NeighborIndex.build(points[:1]) if bulk else grown(points[:1])
    check_searches(index, points[:1], drawn.queries, (2,))
    for start, stop in pairwise(edges):
        index.insert(points[start:stop])
        check_searches(index, points[:stop], drawn.queries, (7,))


def test_a_search_of_a_large_tree_reaches_its_visit_limit() -> None:
    for d, steepness in ((3, 0.0), (10, 0.0), (30, 0.1)):
        drawn = cloud("random", steepness, 40_000, d, seed=d)
        check_searches(NeighborIndex.build(drawn.points), drawn.points, drawn.queries, (1, 40, 600))


@settings(max_examples=40)
@given(clouds(most=2500, widest=6), st.integers(0, 2000))
def test_invariants_of_the_tree_hold(drawn: Cloud, first: int) -> None:
    tree = grown_tree(drawn.points, min(first, len(drawn.points)))
    tree.check()
    held = np.concatenate([tree.leaf_positions(leaf) for leaf in range(tree.leaf_count)])
    assert np.array_equal(np.sort(held), np.arange(len(drawn.points)))


@pytest.mark.parametrize("order", ORDERS)
def test_the_tree_stays_balanced_and_small(order: str) -> None:
    for d in (1, 2, 3, 4, 10):
        tree = KdTree(d)
        points = arranged(order, 12_000, d, np.random.default_rng(d))
        for start in range(0, 12_000, 500):
            tree.insert(points[start : start + 500])
            if len(tree) >= 1000:
                assert tree.memory_bytes <= 2.5 * 8 * d * len(tree)
        tree.check()
        assert tree.depth <= np.log(tree.leaf_count) / np.log(1 / 0.7) + 3


def test_a_bulk_built_tree_of_a_thousand_points_is_small() -> None:
    for d in (1, 2, 3, 20, 100):
        points = np.random.default_rng(0).normal(size=(1000, d))
        tree = KdTree.build(points)
        assert tree.memory_bytes <= 2.5 * 8 * d * 1000
        assert tree.leaf_count == 17
        assert tree.depth == 5


def test_many_duplicates_are_cheap() -> None:
    index = grown(np.tile([[1.0, 2.0]], (50_000, 1)))
    for query in ([[1.0, 2.0]], [[0.0, 0.0]]):
        assert index.nearest(query)[0] == 0
        assert np.array_equal(index.k_nearest(query, 500)[0][0], np.arange(500))
    assert np.array_equal(index.within([[1.0, 2.0]], 0.5).positions, np.arange(50_000))


def test_ties_go_to_the_earliest_point() -> None:
    circle = np.array([[0.0, 5.0], [3.0, 4.0], [-4.0, 3.0], [5.0, 0.0], [0.0, -5.0]])
    for shift in range(5):
        points = np.concatenate([np.full((300, 2), 9.0), np.tile(np.roll(circle, shift, axis=0), (40, 1))])
        for index in (grown(points), NeighborIndex.build(points)):
            assert index.nearest([[0.0, 0.0]])[0] == 300
            assert np.array_equal(index.k_nearest([[0.0, 0.0]], 70)[0][0], np.arange(300, 370))


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e-154, 1e150, 1e160, 1e300])
def test_squares_that_overflow_or_underflow_are_ties(scale: float) -> None:
    points = scale * np.random.default_rng(0).normal(size=(700, 3))
    queries = np.concatenate([points[:5], scale * np.random.default_rng(1).normal(size=(5, 3))])
    check_searches(grown(points), points, queries, (1, 20, 100))
    check_searches(NeighborIndex.build(points), points, queries, (1, 20, 100))


@pytest.mark.parametrize("away", [1e3, 1e7, 1e12, 1e14, 1e16, 1e30, 1e39, 1e150, 1e160])
def test_searches_far_from_the_origin_match_brute_force(away: float) -> None:
    rng = np.random.default_rng(0)
    for count, spread in ((10, 1.0), (10, 1e-4 * away), (3000, 1.0), (3000, 1e-4 * away)):
        points = away + spread * rng.normal(size=(count, 4))
        queries = np.concatenate([points[:5], away + spread * rng.normal(size=(15, 4)), rng.normal(size=(3, 4))])
        for index in (grown(points), NeighborIndex.build(points)):
            check_searches(index, points, queries, (1, 20, 100))


# Filters: they may pass points and leaves that are too far, but never exclude one that is near.


def around(query: Floats, apart: int, rng: np.random.Generator) -> Floats:
    """Return twenty points at distances of many magnitudes from a query."""
    shape = 20, len(query)
    return query + 10.0**apart * rng.normal(size=shape) * 10.0 ** rng.integers(-9, 1, size=shape)


@settings(max_examples=n_examples(60))
@given(st.integers(1, 40), st.integers(-45, 20), st.integers(-45, 20), st.integers(0, 2**32 - 1))
def test_float32_boxes_exclude_no_near_leaf(d: int, size: int, apart: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query = 10.0**size * rng.normal(size=d)
    points = around(query, apart, rng)
    for point, limit in zip(points, brute_force.squared_distances(query, points), strict=True):
        assert KdTree.build(point[None]).near_leaves(query, limit).tolist() == [0]


@settings(max_examples=n_examples(60))
@given(st.integers(1, 40), st.integers(-200, 200), st.integers(-200, 200), st.integers(0, 2**32 - 1), st.booleans())
def test_codes_exclude_no_near_point(d: int, size: int, apart: int, seed: int, bulk: bool) -> None:
    rng = np.random.default_rng(seed)
    query = 10.0**size * rng.normal(size=d)
    with np.errstate(over="ignore"):
        points = around(query, apart, rng)
    tree = grown_tree(points, len(points) if bulk else 0)
    for position, limit in enumerate(brute_force.squared_distances(query, points)):
        assert position in tree.near_in_leaf(0, query, limit)


@settings(max_examples=n_examples(30))
@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_codes_exclude_no_near_point_at_the_edge_of_its_cell(d: int, seed: int) -> None:
    # With queries at the corner of a box and points at the edge of cells, only the slack of the filter is left.
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 40, size=(60, d)) + rng.choice([0.0, 1e-9, 1 - 1e-9], size=(60, d))
    tree = KdTree.build(points)
    for query in points[:20] + rng.choice([-1e-6, 0.0, 1e-6], size=(20, d)):
        for position, limit in enumerate(brute_force.squared_distances(query, points)):
            assert position in tree.near_in_leaf(0, query, limit)


@settings(max_examples=n_examples(30))
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_codes_exclude_most_far_points(d: int, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(60, d)) * 10.0 ** -np.arange(d)
    near = KdTree.build(points).near_in_leaf(0, points[0] + 1e-6, 1e-3)
    assert 1 <= len(near) <= 20


@settings(max_examples=n_examples(30))
@given(st.integers(1, 12), st.floats(0.0, 100.0), st.integers(0, 2**32 - 1))
def test_codes_are_as_precise_as_their_cells(d: int, radius: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.random(size=(60, d))
    cell = 1.125 * np.ptp(points, axis=0).max() / 255
    tree = KdTree.build(points)
    for query in rng.uniform(-4.0, 5.0, size=(20, d)):
        near = tree.near_in_leaf(0, query, (radius * cell) ** 2)
        if len(near) > 1:  # a single point passes without a check of all coordinates
            distances = np.sqrt(brute_force.squared_distances(query, points[near]))
            assert distances.max() <= (radius + 2.001 * np.sqrt(d)) * cell


def test_boxes_exclude_far_leaves() -> None:
    rng = np.random.default_rng(0)
    for d, least, most in ((2, 1, 9), (40, 60, 84)):
        points, query = rng.normal(size=(5000, d)), rng.normal(size=d)
        tree = KdTree.build(points)
        assert tree.leaf_count == 84
        assert least <= len(tree.near_leaves(query, tree.nearest(query[None])[1][0])) <= most
        # With a small limit, few leaves are near.
        tree.insert(query[None] + 1e-3)
        assert len(tree.near_leaves(query, tree.nearest(query[None])[1][0])) <= 9


# Leaves: eviction searches redundant centers in each leaf.


@settings(max_examples=40)
@given(clouds(most=800, widest=8), st.integers(1, 4))
def test_the_nearest_later_point_in_the_same_leaf_is_found(drawn: Cloud, leading: int) -> None:
    points = drawn.points
    tree = KdTree.build(np.ascontiguousarray(points[:, :leading]))
    positions, distances = tree.nearest_later_in_leaf(points)
    for leaf in range(tree.leaf_count):
        held = np.sort(tree.leaf_positions(leaf))
        for i, position in enumerate(held):
            later = brute_force.squared_distances(points[position], points[held[i + 1 :]])
            expected = (
                (held[i + 1 + later.argmin()], later.min()) if len(later) and later.min() < np.inf else (-1, np.inf)
            )
            assert (positions[position], distances[position]) == expected


def test_a_bulk_build_always_makes_the_same_leaves() -> None:
    # Eviction depends on the leaves: other leaves would change the predictions of a learner. If this fails after an
    # intended change of the build, replace the checksum and record in the changelog that predictions change. If it
    # fails on one platform only, the build depends on the platform: correct the build.
    points = np.array([[(7 * i * i) % 101, (i * i * i) % 37, i % 5] for i in range(1000)], dtype=float)
    positions = KdTree.build(points).nearest_later_in_leaf(points)[0]
    assert zlib.crc32(positions.astype("<i8").tobytes()) == 2620231707


# The public class.


@settings(max_examples=20)
@given(clouds(most=800), st.integers(0, 2**32 - 1))
def test_kept_points_get_new_positions(drawn: Cloud, seed: int) -> None:
    mask = np.random.default_rng(seed).random(len(drawn.points)) < 0.5
    kept = grown(drawn.points).keep(mask)
    assert np.array_equal(kept.points(), drawn.points[mask])
    if mask.any():
        check_searches(kept, drawn.points[mask], drawn.queries, (5,))


def test_invalid_masks_are_rejected() -> None:
    index = NeighborIndex.build([[0.0], [1.0]])
    with pytest.raises(ShapeError, match=r"mask must have shape \(2,\), one entry per point, got \(3,\)"):
        index.keep([True, False, True])
    with pytest.raises(InputError, match="mask must hold booleans, got int64"):
        index.keep([0, 1])


def test_searches_change_nothing_and_do_not_depend_on_threads() -> None:
    drawn = cloud("random", 0.2, 3000, 8, seed=1)
    queries = np.random.default_rng(2).normal(size=(101, 8))
    index = grown(drawn.points)

    def search(n_jobs: int) -> tuple[object, ...]:
        within = index.within(queries, 0.7, n_jobs)
        return (*index.nearest(queries, n_jobs), *index.k_nearest(queries, 40, n_jobs), *within)

    alone = search(1)
    for n_jobs in (2, 7, 500, -1):
        assert same(search(n_jobs), alone)
    with ThreadPoolExecutor(4) as pool:
        assert all(same(answers, alone) for answers in pool.map(search, [1] * 8))
    check_searches(index, drawn.points, drawn.queries, (3,))


def test_insertions_wait_for_searches_of_other_threads() -> None:
    points = cloud("random", 0.0, 6000, 4, seed=1).points
    queries = points[::200] + 1e-3
    index = grown(points[:100])
    possible = [brute_force.nearest(points[:size], queries)[0] for size in range(100, 6001, 100)]
    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(index.nearest, queries) for _ in range(60)]
        for start in range(100, 6000, 100):
            index.insert(points[start : start + 100])
        for answer in answers:
            assert any(np.array_equal(answer.result()[0], positions) for positions in possible)
    check_searches(index, points, queries[:10], (3,))


def test_neither_searches_nor_insertions_starve() -> None:
    index, stop, turns = grown(np.zeros((1, 2))), Event(), [0, 0]

    def search() -> None:
        while not stop.is_set():
            index.k_nearest([[0.0, 1.0]], 3)
            turns[0] += 1

    def insert() -> None:
        while not stop.is_set():
            index.insert([[1.0, 1.0]])
            turns[1] += 1

    with ThreadPoolExecutor(5) as pool:
        done = [pool.submit(search) for _ in range(3)] + [pool.submit(insert) for _ in range(2)]
        for _ in range(1000):
            if min(turns) >= 100:
                break
            sleep(0.01)
        stop.set()
        for each in done:
            each.result(timeout=60)
    assert min(turns) >= 100


def test_the_points_of_an_insertion_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbors, "_INSERTED_PER_CALL", 3)
    index = NeighborIndex.empty(1)

    def insert(thread: int) -> None:
        for start in range(0, 1000, 10):
            index.insert(thread * 1000.0 + start + np.arange(10.0)[:, None])

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(insert, thread) for thread in range(3)]:
            done.result(timeout=60)
    batches = index.points().reshape(300, 10)
    assert (np.diff(batches) == 1.0).all()


def calls_of_index(index: NeighborIndex) -> list[Callable[[], object]]:
    """Return calls that insert points or search them."""
    one = np.zeros((1, 2))
    return [
        lambda: index.insert(one),
        lambda: index.nearest(one),
        lambda: index.k_nearest(one, 2, n_jobs=2),
        lambda: index.within(one, 1.0),
        index.points,
        index.copy,
    ]


def test_an_interrupt_at_any_line_leaves_an_index_that_other_threads_can_use() -> None:
    for number in range(len(calls_of_index(NeighborIndex.empty(2)))):

        def use(index: NeighborIndex) -> None:
            for call in calls_of_index(index):
                call()

        def check(index: NeighborIndex) -> None:
            user = Thread(target=use, args=(index,), daemon=True)
            user.start()
            user.join(timeout=10)
            assert not user.is_alive()
            use(index)

        def call(index: NeighborIndex, number: int = number) -> None:
            calls_of_index(index)[number]()

        interrupt_everywhere(("/ellipack/",), lambda: NeighborIndex.build(np.eye(2)), call, check)


def test_a_signal_handler_may_search_but_not_insert_during_an_insertion() -> None:
    index: Any = NeighborIndex.build(np.eye(2))

    class InterruptedTree:
        def insert(self, points: Floats) -> None:
            tree.insert(points)
            found.append(index.nearest([[1.0, 0.0]])[0].tolist())
            with pytest.raises(ReentrantCallError):
                index.insert(points)

        def __len__(self) -> int:
            return len(tree)

        def __getattr__(self, name: str) -> Any:
            return getattr(tree, name)

    tree, found = index._tree, list[Any]()
    index._tree = InterruptedTree()
    index.insert([[1.0, 0.0]])
    assert (found, len(index)) == ([[0]], 3)


FORKS = """
import os, signal, sys, threading, warnings
import numpy as np
from ellipack.neighbors import NeighborIndex

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns that children of threads may hang
sys.setswitchinterval(1e-6)
rows = np.random.default_rng(0).normal(size=(200, 3))
index, finished = NeighborIndex.build(rows), threading.Event()

def insert():
    while not finished.is_set() and len(index) < 200_000:
        index.insert(rows)

def search():
    while not finished.is_set():
        index.k_nearest(rows, 9)

threads = [threading.Thread(target=work, daemon=True) for work in (insert, insert, search, search)]
for thread in threads:
    thread.start()
for _ in range(30):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that hangs
        before = len(index)
        index.insert(rows)
        same = index.points()[:200].tolist() == rows.tolist() and index.nearest(rows)[0].tolist() == list(range(200))
        os._exit(0 if same and before % 200 == 0 and len(index) == before + 200 else 3)
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"the child ended with status {status}"
finished.set()
for thread in threads:
    thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_threads_share_an_index_can_use_it() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_a_copy_is_independent() -> None:
    points = cloud("random", 0.0, 1000, 3, seed=1).points
    index = grown(points)
    copied = index.copy()
    copied.insert(points + 0.5)
    assert (len(index), len(copied)) == (1000, 2000)
    check_searches(index, points, points[:5], (3,))
    check_searches(copied, np.concatenate([points, points + 0.5]), points[:5], (3,))


def test_an_empty_index_finds_nothing() -> None:
    index = NeighborIndex.empty(3)
    assert same(index.nearest([[0.0, 0.0, 0.0]]), ([-1], [np.inf]))
    assert same(index.k_nearest([[0.0, 0.0, 0.0]], 2), ([[-1, -1]], [[np.inf, np.inf]]))
    assert index.within([[0.0, 0.0, 0.0]], 1e9).offsets.tolist() == [0, 0]
    assert index.points().shape == (0, 3)
    assert len(index.keep(np.zeros(0, dtype=bool))) == 0
    assert (len(index), index.d) == (0, 3)
    KdTree(3).check()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_numbers_are_rejected_and_change_nothing(bad: float) -> None:
    index, tree = NeighborIndex.build([[0.0, 1.0]]), KdTree.build(np.array([[0.0, 1.0]]))
    rows = np.array([[0.0, 0.0], [0.0, bad]])
    for refused in (index.insert, index.nearest, NeighborIndex.build):
        with pytest.raises(NonFiniteError, match=r"must be finite, got .* at row 1, column 1"):
            refused(rows)
    calls: list[Callable[[Floats], object]] = [
        tree.insert,
        tree.nearest,
        KdTree.build,
        lambda rows: tree.k_nearest(rows, 1),
        lambda rows: tree.within(rows, 1.0),
        lambda rows: tree.nearest_later_in_leaf(rows[1:]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"must be finite, got .* at row \d, column 1"):
            call(rows)
    assert len(index) == len(tree) == 1


def test_invalid_arguments_are_rejected() -> None:
    index, tree = NeighborIndex.build([[0.0, 1.0]]), KdTree.build(np.array([[0.0, 1.0]]))
    with pytest.raises(ShapeError, match="points must have 2 columns, got 3"):
        index.insert([[0.0, 1.0, 2.0]])
    with pytest.raises(DomainError, match="d must be an integer >= 1, got 0"):
        NeighborIndex.empty(0)
    with pytest.raises(DomainError, match="n_jobs must be >= 1, or -1 for one per core, got 0"):
        index.nearest([[0.0, 1.0]], n_jobs=0)
    for k in (0, 2**31, 2**63):  # count * k would overflow
        with pytest.raises(DomainError, match=f"k must be an integer from 1 to 2147483647, got {k}"):
            index.k_nearest([[0.0, 1.0], [1.0, 0.0]], k)
    with pytest.raises(DomainError, match="radius must be > 0, got -1"):
        index.within([[0.0, 1.0]], -1.0)
    with pytest.raises(ValueError, match="queries must have 2 columns, got 1"):
        tree.nearest(np.array([[0.0]]))
    with pytest.raises(ValueError, match="dimension must be >= 1, got 0"):
        KdTree(0)
    for k in (0, 2**31, 2**63):
        with pytest.raises(ValueError, match=f"k must be from 1 to 2\\^31 - 1, got {k}"):
            tree.k_nearest(np.array([[0.0, 1.0], [1.0, 0.0]]), k)
    with pytest.raises(ValueError, match="radius_squared must be >= 0, got nan"):
        tree.within(np.array([[0.0, 1.0]]), np.nan)
    with pytest.raises(ValueError, match="points must have 1 rows, got 2"):
        tree.nearest_later_in_leaf(np.zeros((2, 2)))
    with pytest.raises(IndexError, match="leaf must be < 1, got 1"):
        tree.leaf_positions(1)
    assert len(index) == len(tree) == 1


@pytest.mark.skipif(len(modules) < 2, reason="there is one build for this processor")
@settings(max_examples=40)
@given(clouds(), st.integers(1, 100))
def test_builds_are_bitwise_equal(drawn: Cloud, k: int) -> None:
    answers = []
    for module in modules:
        tree = module.KdTree(drawn.points.shape[1])
        tree.insert(drawn.points)
        tree.check()
        radius_squared = float(np.median(tree.nearest(drawn.queries)[1]))
        answers.append(
            (
                *tree.nearest(drawn.queries),
                *tree.k_nearest(drawn.queries, k),
                *tree.within(drawn.queries, radius_squared),
                *tree.nearest_later_in_leaf(drawn.points),
                *(tree.near_in_leaf(0, query, radius_squared) for query in drawn.queries),
                *(tree.near_leaves(query, radius_squared) for query in drawn.queries),
                *(tree.leaf_positions(leaf) for leaf in range(tree.leaf_count)),
            )
        )
    assert all(same(answers[0], answer) for answer in answers[1:])
