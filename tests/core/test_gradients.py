"""The compiled gradients, bitwise equal to references in plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.metric import KERNELS
from ellipack.validation import Floats
from tests import oracles
from tests.core.builds import Core, builds
from tests.reference import gradients as reference
from tests.strategies import seeds


def samples(seed: int, n: int, d: int) -> tuple[Floats, Floats]:
    """Return rows and labels; some rows are copies of others."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    X[rng.random(n) < 0.2] = X[0]
    return X, rng.normal(size=n)


@builds
@given(st.integers(1, 9), st.integers(1, 40), st.integers(1, 40), seeds)
def test_a_projection_sums_in_the_order_of_the_row(core: Core, n: int, depth: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, directions = rng.normal(size=(n, depth)), rng.normal(size=(depth, width))
    assert core.project(rows, directions).tolist() == reference.project(rows, directions)


@builds
@pytest.mark.parametrize(("depth", "width"), [(2100, 1), (1100, 2), (700, 3), (420, 5), (150, 27), (147, 28)])
def test_a_projection_of_many_entries_sums_in_the_same_order(core: Core, depth: int, width: int) -> None:
    rng = np.random.default_rng(0)
    rows, directions = rng.normal(size=(6, depth)), rng.normal(size=(depth, width))
    assert core.project(rows, directions).tolist() == reference.project(rows, directions)


@builds
def test_a_projection_keeps_the_sign_of_zero(core: Core) -> None:
    for width in range(1, 10):
        out = core.project(-np.ones((5, 1)), np.zeros((1, width)))
        assert not np.signbit(out).any()  # 0 + -0 is 0


@builds
@pytest.mark.parametrize(("depth", "width"), [(3, 0), (0, 2)])
def test_a_projection_without_directions_is_empty_or_zero(core: Core, depth: int, width: int) -> None:
    assert core.project(np.ones((4, depth)), np.ones((depth, width))).tolist() == [[0.0] * width] * 4


@builds
def test_projections_reject_wrong_shapes(core: Core) -> None:
    with pytest.raises(ValueError, match="rows must have 6 entries, got 4"):
        core.project(np.ones((2, 2)), np.ones((3, 1)))


@builds
@given(
    st.integers(1, 30),
    st.integers(1, 9),
    st.sampled_from(sorted(KERNELS)),
    st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    st.sampled_from([0.05, 0.3, 1.0]),
    st.sampled_from([0.0, 1.0, 3.0]),
    seeds,
)
def test_differences_match_appendix_a(
    core: Core, n: int, d: int, kernel: str, bandwidth: float, step: float, mass: float, seed: int
) -> None:
    X, y = samples(seed, n, d)
    anchors = np.concatenate([X[:2], np.random.default_rng(seed + 1).uniform(-1, 1, size=(2, d))])
    scales, powers = (bandwidth, step, mass), KERNELS[kernel]
    expected = [
        reference.difference_gradient(anchor, X.tolist(), y.tolist(), scales, powers) for anchor in anchors.tolist()
    ]
    estimator = core.DifferenceEstimator(X, y, (bandwidth, step), mass, powers)
    for _ in range(2):
        gradients, enough = estimator.gradients(anchors)
        assert gradients.tolist() == [gradient for gradient, _ in expected]
        assert enough.tolist() == [each for _, each in expected]
        assert enough.dtype == np.bool_
        estimator.build_index()  # must not change the results


@builds
def test_a_row_at_half_a_bandwidth_counts_as_mass(core: Core) -> None:
    for step, enough in ((0.5, True), (np.nextafter(0.5, 1), False)):
        estimator = core.DifferenceEstimator(np.zeros((1, 1)), np.ones(1), (1.0, step), 1.0, (2, 1))
        assert estimator.gradients(np.zeros((1, 1)))[1].tolist() == [[enough]]


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernels_satisfy_the_conditions_of_the_paper(name: str) -> None:
    u = np.linspace(0, 1, 101)
    values = [reference.kernel_weight(float(each) ** 2, KERNELS[name]) for each in u]
    np.testing.assert_allclose(values, [oracles.kernel_value(name, each) for each in u], atol=1e-14)
    assert np.all(np.diff(values) <= 0)
    assert np.all(np.array(values[:-1]) > 0)
    assert values[-1] == 0


@builds
def test_differences_reject_invalid_arguments(core: Core) -> None:
    X, y = samples(0, 5, 2)
    for powers in ((0, 1), (1, 4)):
        with pytest.raises(ValueError, match="powers of the kernel must be 1, 2 or 3, got"):
            core.DifferenceEstimator(X, y, (1.0, 1.0), 1.0, powers)
    with pytest.raises(ValueError, match="labels must have 5 entries, got 4"):
        core.DifferenceEstimator(X, y[:4].copy(), (1.0, 1.0), 1.0, (2, 1))
    with pytest.raises(ValueError, match="rows must not be empty"):
        core.DifferenceEstimator(np.empty((0, 2)), np.empty(0), (1.0, 1.0), 1.0, (2, 1))
    with pytest.raises(ValueError, match="anchors must have 4 entries, got 6"):
        core.DifferenceEstimator(X, y, (1.0, 1.0), 1.0, (2, 1)).gradients(np.zeros((2, 3)))


@builds
@given(st.integers(2, 60), st.integers(1, 11), st.integers(1, 50), st.sampled_from([1e-8, 0.01, 0.7, 30.0]), seeds)
def test_slopes_match_weighted_ridge_regressions(
    core: Core, n: int, d: int, neighbors: int, ridge: float, seed: int
) -> None:
    X, y = samples(seed, n, d)
    queries, k = np.concatenate([X[:2], X[-2:] / 2]), min(neighbors, n)
    expected = [reference.local_slope(X, y, query, k, ridge) for query in queries]
    slopes = core.local_slopes(core.KdTree.build(X), y, queries, k, ridge)
    np.testing.assert_array_equal(slopes, expected)


@builds
def test_slopes_reject_invalid_arguments(core: Core) -> None:
    X, y = samples(0, 5, 2)
    tree = core.KdTree.build(X)
    for neighbors in (0, 6):
        with pytest.raises(ValueError, match=f"neighbors must be from 1 to 5, got {neighbors}"):
            core.local_slopes(tree, y, X, neighbors, 0.1)
    with pytest.raises(ValueError, match="labels must have 5 entries, got 4"):
        core.local_slopes(tree, y[:4].copy(), X, 2, 0.1)
    with pytest.raises(ValueError, match="queries must have 6 entries, got 9"):
        core.local_slopes(tree, y, np.zeros((3, 3)), 2, 0.1)
