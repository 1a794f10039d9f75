from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack._kernels import kernel
from ellipack.errors import DomainError, InputError, NonFiniteError, ShapeError
from ellipack.lanes._kernels import MANY, Singles
from ellipack.packing.index import Index
from ellipack.packing.tree._kernels import TRAIL, nearest
from ellipack.packing.tree.coded._kernels import near_lanes, root_of
from ellipack.packing.tree.growth._kernels import insert_rows, make_room, put
from ellipack.packing.tree.rounded._kernels import length, near_leaves, reach
from ellipack.packing.tree.state import AXIS, FIRST, LEAVES, LEFT, PARENT, RIGHT, ROOT, SIZE, Tree, grow
from ellipack.validation import Floats
from tests.packing.clouds import ORDERS, Cloud, arranged, cloud, clouds
from tests.reference.scan import Scan


def grown(points: Floats) -> Index:
    index = Index.empty(points.shape[1])
    index.insert(points)
    return index


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def check_against_the_scan(index: Index, points: Floats, queries: Floats, ks: tuple[int, ...]) -> None:
    scan = Scan(points)
    assert same(index.nearest(queries), scan.nearest(queries))
    for k in ks:
        assert same(index.k_nearest(queries, k), scan.k_nearest(queries, k))
    radius = min(float(np.sqrt(np.median(scan.nearest(queries)[1]))) + 1e-300, 1e300)
    for wider in (1, 3):
        assert same(index.within(queries, wider * radius), scan.within(queries, wider * radius))


def check_structure(tree: Tree, points: Floats) -> int:
    """Check all that a tree has to be, below its root; return its depth."""
    leaves, seen = 0, 0
    deepest = 0
    todo = [(int(tree.counters[ROOT]), -1, 0)]
    while todo:
        node, parent, depth = todo.pop()
        deepest = max(deepest, depth)
        below = points_below(tree, node)
        assert tree.links[node, PARENT] == parent
        assert tree.links[node, FIRST] == below.min()
        assert np.array_equal(tree.boxes[node, :, 0], points[below].min(axis=0))
        assert np.array_equal(tree.boxes[node, :, 1], points[below].max(axis=0))
        if node & 1:
            left, right, axis = tree.links[node, [LEFT, RIGHT, AXIS]].tolist()
            split = tree.splits[node >> 1]
            assert points[points_below(tree, left), axis].max() <= split
            assert points[points_below(tree, right), axis].min() >= split
            todo += [(left, node, depth + 1), (right, node, depth + 1)]
        else:
            leaves += 1
            seen += len(below)
            count = tree.links[node, SIZE]
            assert np.array_equal(tree.points[node >> 1, :count], points[below])
            check_codes(tree, node >> 1, points[below])
            check_fence(tree, node, points[below].astype(np.float32))
    assert (leaves, seen) == (tree.counters[LEAVES], len(points))
    return deepest


def check_codes(tree: Tree, leaf: int, held: Floats) -> None:
    """Check on which steps of a leaf's rulers its points are said to be."""
    steps, starts = tree.rulers[leaf, 0], tree.rulers[leaf, 1:]
    codes = tree.codes[leaf].T
    if steps > 0:  # a leaf without rulers has no codes to speak of
        assert np.array_equal(codes[: len(held)], np.floor((held - starts) * steps))
        assert (codes[len(held) :] == codes[0]).all()


def check_fence(tree: Tree, node: int, held: Singles) -> None:
    """Check the rounded copy of a leaf's box."""
    group, place = divmod(node >> 1, MANY)
    assert np.array_equal(tree.fences[group, 0::2, place], held.min(axis=0))
    assert np.array_equal(tree.fences[group, 1::2, place], held.max(axis=0))


def points_below(tree: Tree, node: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    if node & 1:
        return np.concatenate([points_below(tree, int(tree.links[node, side])) for side in (LEFT, RIGHT)])
    return tree.positions[node >> 1, : tree.links[node, SIZE]]


@settings(max_examples=120, deadline=None)
@given(clouds(), st.integers(1, 600))
def test_answers_are_the_scans_bit_for_bit_grown_or_built(drawn: Cloud, k: int) -> None:
    for index in (grown(drawn.points), Index.build(drawn.points)):
        assert np.array_equal(index.points(), drawn.points)
        check_against_the_scan(index, drawn.points, drawn.queries, (1, 32, k))


@settings(max_examples=20, deadline=None)
@given(clouds(most=500, widest=12))
def test_k_may_be_all(drawn: Cloud) -> None:
    check_against_the_scan(grown(drawn.points), drawn.points, drawn.queries, (len(drawn.points), len(drawn.points) + 1))


@settings(max_examples=40, deadline=None)
@given(clouds(), st.lists(st.integers(0, 3000), max_size=8), st.booleans())
def test_inserts_and_queries_may_alternate(drawn: Cloud, cuts: list[int], bulk: bool) -> None:
    points = drawn.points
    edges = sorted(({min(cut, len(points)) for cut in cuts} | {1, len(points)}) - {0})
    index = Index.build(points[:1]) if bulk else grown(points[:1])
    check_against_the_scan(index, points[:1], drawn.queries, (2,))
    for start, stop in pairwise(edges):
        index.insert(points[start:stop])
        check_against_the_scan(index, points[:stop], drawn.queries, (7,))


@pytest.mark.interpreted
@pytest.mark.parametrize("order", ["random", "grid"])
def test_a_small_index_is_the_scan_too(order: str) -> None:
    drawn = cloud(order, 0.1, 150, 3, seed=5)
    for index in (grown(drawn.points), Index.build(drawn.points)):
        check_structure(index.tree, drawn.points)
        check_against_the_scan(index, drawn.points, drawn.queries[::6], (3, 70))


@settings(max_examples=40, deadline=None)
@given(clouds(most=2500, widest=6), st.integers(0, 2000))
def test_the_tree_is_what_it_has_to_be(drawn: Cloud, first: int) -> None:
    index = Index.build(drawn.points[: first + 1])
    if first + 1 < len(drawn.points):
        index.insert(drawn.points[first + 1 :])
    check_structure(index.tree, drawn.points)


@pytest.mark.parametrize("order", ORDERS)
def test_it_stays_balanced_and_lean(order: str) -> None:
    for d in (1, 2, 3, 4, 10):
        index = Index.empty(d)
        points = arranged(order, 12_000, d, np.random.default_rng(d))
        for start in range(0, 12_000, 500):
            index.insert(points[start : start + 500])
            if len(index) >= 1000:
                assert index.nbytes <= 2.5 * 8 * d * len(index)
        depth = check_structure(index.tree, points)
        assert depth <= np.log(index.tree.counters[LEAVES]) / np.log(1 / 0.7) + 3


def test_built_in_bulk_it_is_lean_from_a_thousand_points_on() -> None:
    for d in (1, 2, 3, 20, 100):
        assert Index.build(np.random.default_rng(0).normal(size=(1000, d))).nbytes <= 2.5 * 8 * d * 1000


def test_duplicates_without_end_cost_nothing() -> None:
    points = np.tile([[1.0, 2.0]], (50_000, 1))
    index = grown(points)
    for query in ([[1.0, 2.0]], [[0.0, 0.0]]):
        assert index.nearest(query)[0] == 0
        assert np.array_equal(index.k_nearest(query, 500)[0][0], np.arange(500))
    assert np.array_equal(index.within([[1.0, 2.0]], 0.5).positions, np.arange(50_000))


def test_of_equally_near_points_the_earliest_wins() -> None:
    circle = np.array([[0.0, 5.0], [3.0, 4.0], [-4.0, 3.0], [5.0, 0.0], [0.0, -5.0]])
    for shift in range(5):
        points = np.concatenate([np.full((300, 2), 9.0), np.tile(np.roll(circle, shift, axis=0), (40, 1))])
        assert grown(points).nearest([[0.0, 0.0]])[0] == 300


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e-154, 1e150, 1e160, 1e300])
def test_squares_beyond_the_range_of_floats_are_ties(scale: float) -> None:
    points = scale * np.random.default_rng(0).normal(size=(700, 3))
    queries = np.concatenate([points[:5], scale * np.random.default_rng(1).normal(size=(5, 3))])
    check_against_the_scan(grown(points), points, queries, (1, 20, 100))
    check_against_the_scan(Index.build(points), points, queries, (1, 20, 100))


@kernel
def leaves_within(tree: Tree, query: Floats, limit: float) -> int:
    """Return how many leaves a sweep would visit."""
    leaves, count = tree.counters[LEAVES], 0
    for group in range(tree.fences.shape[0]):
        size = min(MANY, leaves - group * MANY)
        bits = near_leaves(tree.fences, group, size, query, reach(limit, length(query), query.shape[0]))
        while bits != 0:
            count += 1
            bits &= bits - 1
    return count


def test_a_sweep_passes_by_what_is_far() -> None:
    rng = np.random.default_rng(0)
    for d, least, most in ((2, 1, 9), (40, 60, 84)):
        points = rng.normal(size=(5000, d))
        index = Index.build(points)
        query = rng.normal(size=d)
        best = index.nearest(query[None])[1][0]
        assert index.tree.counters[LEAVES] == 84
        assert least <= leaves_within(index.tree, query, best) <= most
        # Once there is a point close by, few leaves are as near.
        index.insert(query[None] + 1e-3)
        assert leaves_within(index.tree, query, index.nearest(query[None])[1][0]) <= 9


@kernel
def rounded_distances(points: Singles, query: Floats, out: Floats) -> None:
    """Fill in squared distances of points as they are in single precision."""
    for row in range(points.shape[0]):
        total = np.float32(0.0)
        for k in range(query.shape[0]):
            gap = np.float32(query[k]) - points[row, k]
            total += gap * gap
        out[row] = total


@kernel
def reach_of(query: Floats, limit: float) -> float:
    return float(reach(limit, length(query), query.shape[0]))


@kernel
def near_in_first_leaf(tree: Tree, query: Floats, limit: float) -> int:
    return near_lanes(tree.rulers, tree.codes, 0, tree.links[0, SIZE], query, root_of(limit))


def around(query: Floats, apart: int, rng: np.random.Generator) -> Floats:
    """Return twenty points at distances of many sizes from a query."""
    shape = 20, len(query)
    return query + 10.0**apart * rng.normal(size=shape) * 10.0 ** rng.integers(-9, 1, size=shape)


@pytest.mark.interpreted
@settings(max_examples=300, deadline=None)
@given(st.integers(1, 40), st.integers(-45, 20), st.integers(-45, 20), st.integers(0, 2**32 - 1))
def test_no_rounding_takes_a_point_out_of_reach(d: int, size: int, apart: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query = 10.0**size * rng.normal(size=d)
    points, rounded = around(query, apart, rng), np.empty(20)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        rounded_distances(points.astype(np.float32), query, rounded)
        for row, limit in enumerate(Scan(points).distances(query[None])[0].tolist()):
            assert rounded[row] <= reach_of(query, limit)


@pytest.mark.interpreted
@settings(max_examples=300, deadline=None)
@given(st.integers(1, 40), st.integers(-200, 200), st.integers(-200, 200), st.integers(0, 2**32 - 1), st.booleans())
def test_no_code_takes_a_point_out_of_reach(d: int, size: int, apart: int, seed: int, grow_it: bool) -> None:
    rng = np.random.default_rng(seed)
    query = 10.0**size * rng.normal(size=d)
    points = around(query, apart, rng)
    with np.errstate(over="ignore", under="ignore"):
        index = grown(points) if grow_it else Index.build(points)
        limits = Scan(points).distances(query[None])[0].tolist()
        for lane, position in enumerate(index.tree.positions[0, :20]):
            assert near_in_first_leaf(index.tree, query, limits[position]) >> lane & 1


@pytest.mark.interpreted
@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_codes_pass_by_most_points_that_are_far(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(MANY - 4, d)) * 10.0 ** -np.arange(d)
    index, query = Index.build(points), points[0] + 1e-6
    assert near_in_first_leaf(index.tree, query, 1e-3).bit_count() <= 20


@pytest.mark.parametrize("away", [1e3, 1e7, 1e12, 1e14, 1e16, 1e30, 1e39, 1e150, 1e160])
def test_far_from_the_origin_answers_are_the_scans_too(away: float) -> None:
    rng = np.random.default_rng(0)
    for count, spread in ((10, 1.0), (10, 1e-4 * away), (3000, 1.0), (3000, 1e-4 * away)):
        points = away + spread * rng.normal(size=(count, 4))
        queries = np.concatenate([points[:5], away + spread * rng.normal(size=(15, 4)), rng.normal(size=(3, 4))])
        for index in (grown(points), Index.build(points)):
            check_against_the_scan(index, points, queries, (1, 20, 100))


@settings(max_examples=20, deadline=None)
@given(clouds(most=800), st.integers(0, 2**32 - 1))
def test_what_a_mask_keeps_is_numbered_anew(drawn: Cloud, seed: int) -> None:
    mask = np.random.default_rng(seed).random(len(drawn.points)) < 0.5
    kept = grown(drawn.points).keep(mask)
    assert np.array_equal(kept.points(), drawn.points[mask])
    if mask.any():
        check_against_the_scan(kept, drawn.points[mask], drawn.queries, (5,))


def test_a_mask_that_does_not_fit_is_refused() -> None:
    index = Index.build([[0.0], [1.0]])
    with pytest.raises(ShapeError, match=r"mask must have shape \(2,\), one entry a point, got \(3,\)"):
        index.keep([True, False, True])
    with pytest.raises(InputError, match="mask must hold booleans, got int64"):
        index.keep([0, 1])


def test_queries_change_nothing_and_threads_change_no_bit() -> None:
    drawn = cloud("random", 0.2, 3000, 8, seed=1)
    queries = np.random.default_rng(2).normal(size=(101, 8))
    index = grown(drawn.points)
    before = index.copy()

    def ask(n_jobs: int) -> list[object]:
        around = index.within(queries, 0.7, n_jobs)
        return [*index.nearest(queries, n_jobs), *index.k_nearest(queries, 40, n_jobs), *around]

    alone = ask(1)
    for n_jobs in (2, 7, 500, -1):
        assert same(tuple(ask(n_jobs)), tuple(alone))
    with ThreadPoolExecutor(4) as pool:
        assert all(same(tuple(answers), tuple(alone)) for answers in pool.map(ask, [1] * 8))
    assert same(index.tree, before.tree)


def test_a_copy_goes_its_own_way() -> None:
    points = cloud("random", 0.0, 1000, 3, seed=1).points
    index = grown(points)
    copied = Index(Tree(**{name: array.copy() for name, array in index.tree._asdict().items()}))
    copied.insert(points + 0.5)
    assert (len(index), len(copied)) == (1000, 2000)
    check_structure(index.tree, points)
    check_structure(copied.tree, np.concatenate([points, points + 0.5]))


@pytest.mark.interpreted
def test_an_empty_index_has_nobody_at_infinity() -> None:
    index = Index.empty(3)
    assert same(index.nearest([[0.0, 0.0, 0.0]]), ([-1], [np.inf]))
    assert index.k_nearest([[0.0, 0.0, 0.0]], 2)[0].tolist() == [[-1, -1]]
    assert index.within([[0.0, 0.0, 0.0]], 1e9).offsets.tolist() == [0, 0]
    assert index.points().shape == (0, 3)
    assert len(index.keep(np.zeros(0, dtype=bool))) == 0


@pytest.mark.interpreted
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_and_changes_nothing(bad: float) -> None:
    index = Index.build([[0.0, 1.0]])
    before = index.copy()
    rows = [[0.0, 0.0], [0.0, bad]]
    for refused in (index.insert, index.nearest, Index.build):
        with pytest.raises(NonFiniteError, match=r"must be finite, got .* at row 1, column 1"):
            refused(rows)
    with pytest.raises(NonFiniteError):
        index.k_nearest(rows, 1)
    assert same(index.tree, before.tree)


def test_what_breaks_another_rule_is_refused() -> None:
    index = Index.build([[0.0, 1.0]])
    with pytest.raises(ShapeError, match="points must have 2 columns, got 3"):
        index.insert([[0.0, 1.0, 2.0]])
    with pytest.raises(DomainError, match="d must be a whole number >= 1, got 0"):
        Index.empty(0)
    with pytest.raises(DomainError, match="n_jobs must be >= 1, or -1 for one a core, got 0"):
        index.nearest([[0.0, 1.0]], n_jobs=0)
    assert len(index) == 1


@kernel
def pack(tree: Tree, rows: Floats, start: int, limit: float) -> int:
    """Insert each row that is farther than `limit` from all before it, as a learner does; stop where room is short."""
    trail = np.empty(TRAIL)
    row = start
    going = True
    while going and row < rows.shape[0]:
        if nearest(tree, rows[row], trail)[1] > limit:
            going = put(tree, rows[row]) or (make_room(tree, rows[row]) and put(tree, rows[row]))
        row += going
    return row


def test_other_kernels_can_search_and_insert() -> None:
    rows = cloud("random", 0.0, 2000, 2, seed=9).points
    tree, done = Index.empty(2).tree, 0
    while (done := pack(tree, rows, done, 0.01)) < len(rows):
        tree = grow(tree)
    kept: list[Floats] = []
    for row in rows:
        if all((row[0] - one[0]) ** 2 + (row[1] - one[1]) ** 2 > 0.01 for one in kept):
            kept.append(row)
    assert np.array_equal(Index(tree).points(), np.array(kept))


@kernel
def put_one(tree: Tree, point: Floats) -> bool:
    return put(tree, point)


@pytest.mark.parametrize("order", ORDERS)
def test_where_a_point_is_expected_there_is_room_and_nothing_else_is_different(order: str) -> None:
    points = cloud(order, 1.0, 700, 3, seed=3).points
    index = grown(points[:500])
    for step in range(500, 700):
        expected, tree = points[step : step + 1], index.tree
        while insert_rows(tree, expected, 0, 1) == 0:
            assert not put_one(tree, expected[0])
            tree = grow(tree)
        index = Index(tree)
        assert np.array_equal(index.points(), points[:step])
        assert put_one(tree, expected[0])
    check_against_the_scan(index, points, points[::50], (1, 9))
