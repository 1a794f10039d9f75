import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._kernels import kernel
from ellipack.lanes._kernels import EIGHT, FOUR, Several
from ellipack.learners.experts.systems._kernels import entries, factor, row_start
from ellipack.validation import Floats
from tests.strategies import seeds

pytestmark = pytest.mark.interpreted


@kernel
def factored(systems: Several, size: int, width: int) -> int:
    factor(systems, size, width)
    return row_start(size, width)


def packed(tables: list[Floats]) -> Floats:
    """Return the upper triangles, with what is beside them, side by side."""
    size, width = tables[0].shape
    above = np.tri(size, width, -1) == 0
    return np.column_stack([table[above] for table in tables]).ravel()


@st.composite
def systems(draw: st.DrawFn, count: int = FOUR) -> list[Floats]:
    size, beside, rng = draw(st.integers(1, 14)), draw(st.integers(0, 3)), np.random.default_rng(draw(seeds))
    roots = rng.normal(size=(count, size, size + 2))
    return [np.hstack([root @ root.T, rng.normal(size=(size, beside))]) for root in roots]


@given(systems())
def test_factors_give_the_matrices_back_and_what_is_beside_is_solved(tables: list[Floats]) -> None:
    size, width = tables[0].shape
    held = packed(tables)
    assert factored(held, size, width) == entries(size, width - size) == len(held) // FOUR
    for table, made in zip(tables, held.reshape(-1, FOUR).T, strict=True):
        full = np.zeros((size, width))
        full[np.tri(size, width, -1) == 0] = made
        upper = full[:, :size]
        assert (np.diag(upper) > 0).all()
        # The transposed factor times what is left is what was there, of the matrix and of the columns beside it.
        np.testing.assert_allclose(upper.T @ full, table, rtol=1e-7, atol=1e-8)


@given(systems(), st.permutations(range(FOUR)))
def test_a_system_has_the_same_bits_whatever_is_beside_it(tables: list[Floats], order: list[int]) -> None:
    size, width = tables[0].shape
    together, shuffled = packed(tables), packed([tables[k] for k in order])
    factored(together, size, width)
    factored(shuffled, size, width)
    assert together.reshape(-1, FOUR)[:, order].tolist() == shuffled.reshape(-1, FOUR).tolist()


@given(systems(EIGHT), st.permutations(range(EIGHT)))
def test_in_single_precision_eight_are_factored_at_once(tables: list[Floats], order: list[int]) -> None:
    # Well conditioned, so that the precision there is shows in the factor.
    size, width = tables[0].shape
    tables = [table + 4.0 * size * np.eye(size, width) for table in tables]
    together, shuffled, truth = packed(tables), packed([tables[k] for k in order]), packed(tables[:FOUR])
    single, others = together.astype(np.float32), shuffled.astype(np.float32)
    for held in (single, others, truth):
        factored(held, size, width)
    assert single.reshape(-1, EIGHT)[:, order].tolist() == others.reshape(-1, EIGHT).tolist()
    np.testing.assert_allclose(single.reshape(-1, EIGHT)[:, :FOUR], truth.reshape(-1, FOUR), rtol=1e-4, atol=1e-4)


def test_a_singular_matrix_has_a_factor_all_the_same() -> None:
    held = packed([np.ones((5, 5))] * FOUR)
    factored(held, 5, 5)
    assert np.isfinite(held).all()
