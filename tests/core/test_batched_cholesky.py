"""Batched Cholesky factorizations, compared with NumPy."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._core import factor_double, factor_single
from ellipack.validation import Floats
from tests.core.builds import Core, builds, modules
from tests.strategies import seeds


@st.composite
def systems(draw: st.DrawFn, lanes: tuple[int, ...] = (2, 4, 8)) -> Floats:
    """Return positive definite matrices with right-hand sides: entry (i, j, k) belongs to matrix k."""
    size, beside, rng = draw(st.integers(1, 40)), draw(st.integers(0, 5)), np.random.default_rng(draw(seeds))
    count = draw(st.sampled_from(lanes))
    roots = rng.normal(size=(count, size, size + 2))
    matrices = roots @ roots.transpose(0, 2, 1) + np.eye(size)
    return np.ascontiguousarray(np.dstack([np.hstack([each, rng.normal(size=(size, beside))]) for each in matrices]))


def triangles(factored: Floats) -> Floats:
    """Return the upper triangles of the factors, and the right-hand sides."""
    size, width, _ = factored.shape
    return np.asarray(np.where((np.tri(size, width, -1) == 0)[:, :, None], factored, 0.0))


def expected(tables: Floats) -> Floats:
    """Return the upper factors and the solutions of U^T z = b."""
    size = len(tables)
    factors = []
    for table in tables.transpose(2, 0, 1):
        lower = np.linalg.cholesky(table[:, :size])
        factors.append(np.hstack([lower.T, np.linalg.solve(lower, table[:, size:])]))
    return np.dstack(factors)


@builds
@given(systems())
def test_factors_match_numpy(core: Core, tables: Floats) -> None:
    np.testing.assert_allclose(triangles(core.factor_double(tables)), expected(tables), rtol=1e-9, atol=1e-9)


@builds
@given(systems((8, 16)))
def test_factors_in_single_precision_match_numpy(core: Core, tables: Floats) -> None:
    size = len(tables)
    tables[np.arange(size), np.arange(size)] += 4.0 * size  # well conditioned
    factored = triangles(core.factor_single(tables.astype(np.float32)).astype(np.float64))
    np.testing.assert_allclose(factored, expected(tables), rtol=1e-4, atol=1e-4)


@given(systems(), systems((8, 16)), st.randoms(use_true_random=False))
def test_factors_do_not_depend_on_the_build_or_the_other_matrices(
    doubles: Floats, singles: Floats, random: Random
) -> None:
    for tables, name in ((doubles, "factor_double"), (singles.astype(np.float32), "factor_single")):
        factor = [getattr(core, name) for core in modules]
        together = triangles(factor[0](tables))
        assert all(triangles(each(tables)).tobytes() == together.tobytes() for each in factor)
        order = list(range(tables.shape[2]))
        random.shuffle(order)
        shuffled = triangles(factor[0](np.ascontiguousarray(tables[:, :, order])))
        assert shuffled.tobytes() == np.ascontiguousarray(together[:, :, order]).tobytes()


@given(systems(), seeds)
def test_entries_below_the_diagonal_are_not_read(tables: Floats, seed: int) -> None:
    size = len(tables)
    other = tables.copy()
    other[np.tril_indices(size, -1)] = np.random.default_rng(seed).choice([np.nan, 1e300, -np.inf])
    assert triangles(factor_double(other)).tobytes() == triangles(factor_double(tables)).tobytes()


def test_a_singular_matrix_has_a_finite_factor() -> None:
    assert np.isfinite(triangles(factor_double(np.ones((5, 5, 4))))).all()
    assert np.isfinite(triangles(factor_double(np.zeros((5, 6, 2))))).all()
    assert np.isfinite(triangles(factor_single(np.ones((5, 5, 8), dtype=np.float32)).astype(np.float64))).all()


@pytest.mark.parametrize("shape", [(3, 2, 4), (3, 3, 3), (3, 3, 16)])
def test_wrong_shapes_are_rejected(shape: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        factor_double(np.ones(shape))
