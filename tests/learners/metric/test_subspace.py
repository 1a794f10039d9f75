import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.learners.metric.metric_selection import restrict_gop
from ellipack.learners.metric.subspace import MANY_FEATURES, MAX_COORDINATES, N_AXES, N_EIGENVECTORS, leading_subspace
from ellipack.validation import Floats
from tests.strategies import seeds


def outer_products(rng: np.random.Generator, d: int, count: int) -> Floats:
    """Return a sum of outer products of slopes that fall off."""
    slopes = rng.normal(size=(count, d)) * rng.permutation(0.9 ** np.arange(d))
    return np.asarray(slopes.T @ slopes)


@given(st.integers(1, MANY_FEATURES), seeds)
def test_few_features_give_the_identity(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    basis = leading_subspace(outer_products(rng, d, 20), rng.normal(size=(30, d)))
    assert np.array_equal(basis, np.eye(d))


@given(st.integers(MANY_FEATURES + 1, 120), st.integers(1, 80), st.integers(1, 400), seeds)
def test_slopes_outside_of_the_subspace_are_bounded(d: int, slopes: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gop, standard = outer_products(rng, d, slopes), rng.normal(size=(n, d))
    basis = leading_subspace(gop, standard)
    rank = basis.shape[1]
    assert rank <= MAX_COORDINATES
    np.testing.assert_allclose(basis.T @ basis, np.eye(rank), atol=1e-12)
    # The features with the largest slopes are inside.
    axes = np.argsort(-np.diag(gop))[:N_AXES]
    np.testing.assert_allclose((basis @ basis.T)[np.ix_(axes, axes)], np.eye(N_AXES), atol=1e-10)
    # Slopes along directions outside are bounded by an eigenvalue.
    outside = np.eye(d) - basis @ basis.T
    eigenvalues = np.linalg.eigvalsh(gop)[::-1]
    largest = np.linalg.norm(outside @ gop @ outside, 2)
    assert largest <= 1.2 * eigenvalues[N_EIGENVECTORS] + 1e-9 * eigenvalues[0]


@pytest.mark.parametrize("count", [1, 5, 20, 45])
def test_slopes_give_the_same_subspace_as_the_sum_of_their_outer_products(count: int) -> None:
    rng = np.random.default_rng(count)
    slopes, standard = rng.normal(size=(count, 90)) * 0.9 ** np.arange(90), rng.normal(size=(300, 90))
    found, expected = (leading_subspace(each, standard) for each in (slopes, slopes.T @ slopes))
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-8)
    for of_slopes, of_sum in zip(restrict_gop(slopes, found), restrict_gop(slopes.T @ slopes, found), strict=True):
        np.testing.assert_allclose(of_slopes, of_sum, rtol=1e-10, atol=1e-10)


def test_without_slopes_the_subspace_contains_the_principal_components() -> None:
    rng = np.random.default_rng(0)
    spread = rng.normal(size=(500, 20)) @ rng.normal(size=(20, 90))
    for useless in (
        np.zeros((0, 90)),
        np.zeros((90, 90)),
        np.zeros((3, 90)),
        *(np.full((90, 90), each) for each in (np.nan, np.inf)),
        *(np.full((3, 90), each) for each in (np.nan, np.inf, 1e200)),
    ):
        basis = leading_subspace(useless, spread)
        np.testing.assert_allclose(spread @ basis @ basis.T, spread, atol=1e-6 * np.abs(spread).max())


@pytest.mark.parametrize("n", [1, 4, 40])
def test_equal_rows_give_a_valid_subspace(n: int) -> None:
    basis = leading_subspace(np.zeros((70, 70)), np.zeros((n, 70)))
    assert 1 <= basis.shape[1] <= MAX_COORDINATES
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)


def test_the_same_input_gives_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    gop, standard = outer_products(rng, 100, 60), rng.normal(size=(700, 100))
    assert leading_subspace(gop, standard).tobytes() == leading_subspace(gop.copy(), standard.copy()).tobytes()
