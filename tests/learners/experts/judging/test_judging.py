import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._kernels import kernel
from ellipack.lanes._kernels import EIGHT, Singles, load, store
from ellipack.learners.experts.judging._kernels import LENGTH, NUGGET, bench, leave_one_out, matern
from ellipack.packing.index import Index
from ellipack.validation import Floats, Ints
from tests.learners.experts.textbook import correlation, kriging
from tests.strategies import seeds

pytestmark = pytest.mark.interpreted


def heard(points: Floats, labels: Floats, judges: Ints, kriged: int) -> float:
    with np.errstate(over="ignore"):
        near = Index.build(points).k_nearest(points[judges], kriged + 1)
        return leave_one_out(points, labels, judges, *near, bench(kriged, points.shape[1]))


def left_out(points: Floats, labels: Floats, judge: int, kriged: int) -> float:
    """Return by how much kriging misses a judge's label."""
    others = np.delete(np.arange(len(points)), judge)
    away = np.sqrt(((points[others] - points[judge]) ** 2).sum(axis=1))
    near = others[np.argsort(away, kind="stable")[:kriged]]
    apart = np.sqrt(((points[near, None] - points[None, near]) ** 2).sum(axis=2))
    reach = np.sort(away)[kriged - 1]
    C, c = (correlation("Matern", r, reach, LENGTH) for r in (apart, np.sort(away)[:kriged]))
    return kriging(C, c, np.full(kriged, NUGGET), labels[near] - labels[judge])


@given(st.integers(3, 20), st.integers(1, 6), st.integers(1, 20), st.integers(-140, 100), seeds)
def test_judges_krige_their_labels_from_their_neighbours(n: int, d: int, kriged: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, labels, few = 10.0**size * rng.normal(size=(n, d)), rng.uniform(size=n), min(kriged, n - 1)
    judges = rng.permutation(n)[: rng.integers(1, n + 1)]
    expected = sum(left_out(points, labels, judge, few) ** 2 for judge in judges)
    assert heard(points, labels, judges, few) == pytest.approx(expected, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("points", [np.zeros((30, 2)), np.repeat([[0.0, 1.0], [1e-200, 1.0]], 15, axis=0)])
def test_where_all_points_are_one_the_mean_is_what_is_kriged(points: Floats) -> None:
    labels = np.random.default_rng(0).uniform(size=30)
    expected = sum((np.delete(labels, k).mean() - labels[k]) ** 2 for k in range(30))
    assert heard(points, labels, np.arange(30), 29) == pytest.approx(expected, rel=1e-3)


@kernel
def correlate(x: Singles, out: Singles) -> None:
    store(out, 0, matern(load(x, 0)))


@given(st.lists(st.floats(0, 1.375, width=32), min_size=EIGHT, max_size=EIGHT))
def test_correlations_are_right_to_single_precision(x: list[float]) -> None:
    u, out = np.array(x, dtype=np.float32), np.empty(EIGHT, dtype=np.float32)
    correlate(u, out)
    assert out == pytest.approx((1 + u.astype(float)) * np.exp(-u.astype(float)), rel=1e-6)
