import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ellipack.errors import DomainError, ShapeError
from ellipack.metric import GopEstimator, LocalSlopes, OuterProducts, gradient_weights, mean_outer_product
from ellipack.metric.gop import _CARRY_AFTER
from ellipack.validation import Floats
from tests import oracles
from tests.strategies import ball, cuts, seeds

pytestmark = pytest.mark.interpreted

entries = st.floats(-1e153, 1e153) | st.floats(-1, 1) | st.floats(-1e-150, 1e-150)
gradients = st.tuples(st.integers(1, 12), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=entries)
)


def summed(rows: Floats) -> OuterProducts:
    sums = OuterProducts.init(rows.shape[1])
    if len(rows):
        sums.add(rows)
    return sums


@given(gradients)
def test_the_mean_is_exact_and_rounded_once(rows: Floats) -> None:
    assert mean_outer_product(rows).tolist() == oracles.mean_outer_product(rows.tolist())


@given(gradients, st.data())
def test_merging_gives_the_bits_of_one_pass_in_any_order(rows: Floats, data: st.DataObject) -> None:
    parts = data.draw(st.permutations(data.draw(cuts(len(rows)))))
    merged = OuterProducts.init(rows.shape[1])
    for part in parts:
        merged.merge(summed(rows[part]))
    assert merged.count == len(rows)
    assert merged.estimate().tobytes() == mean_outer_product(rows).tobytes()


def test_limbs_carry_before_they_are_full() -> None:
    rows = np.full((3, 1), 1 + 2**-26)
    sums = summed(rows)
    sums.pending = _CARRY_AFTER  # as if so many had been added
    sums.limbs[:, :40] += 2**40  # more than 32 bits in a limb
    expected = int(sum(int(limb) << (32 * k) for k, limb in enumerate(sums.limbs[0]))) / (4 << 1074)
    sums.add(np.zeros((1, 1)))
    assert sums.pending == 1
    assert sums.limbs[0].max() <= 2**32
    assert sums.estimate()[0, 0] == expected


def test_sums_of_different_gradients_do_not_merge() -> None:
    with pytest.raises(ShapeError, match="merge needs sums of the same d, got 2 and 3"):
        OuterProducts.init(2).merge(OuterProducts.init(3))


def test_refused_gradients_leave_the_sums_as_they_were() -> None:
    sums = summed(np.ones((2, 2)))
    before = sums.estimate().tobytes()
    for bad, message in [([[1.0]], "columns"), ([[np.nan, 1.0]], "finite"), ([[1e154, 0.0]], "at most 1e[+]153")]:
        with pytest.raises((ShapeError, DomainError, ValueError), match=message):
            sums.add(bad)
    assert (sums.count, sums.estimate().tobytes()) == (2, before)
    with pytest.raises(ShapeError, match="at least one gradient, got none"):
        OuterProducts.init(2).estimate()


def test_gradient_weights_are_squared_mean_sizes() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 3))
    weights = gradient_weights(rows)
    np.testing.assert_allclose(np.diag(weights), np.abs(rows).mean(axis=0) ** 2)
    np.testing.assert_array_equal(weights, np.diag(np.diag(weights)))


@given(seeds, st.integers(1, 30))
def test_anchors_are_rows_drawn_once_each(seed: int, anchors: int) -> None:
    class Recorder:
        def gradients(self, X: object, y: object, anchors: object = None) -> Floats:
            return np.asarray(anchors, dtype=np.float64)

    X = ball(np.random.default_rng(seed), 20, 2)
    gop = GopEstimator(Recorder(), anchors=anchors, random_state=seed).estimate(X, np.zeros(20))
    if anchors >= 20:
        np.testing.assert_array_equal(gop, mean_outer_product(X))
    else:
        draw = np.sort(np.random.default_rng(seed).choice(20, anchors, replace=False))
        np.testing.assert_array_equal(gop, mean_outer_product(X[draw]))


def test_the_diagonal_estimate_is_diagonal() -> None:
    X = ball(np.random.default_rng(0), 200, 2)
    gop = GopEstimator(LocalSlopes(), diagonal=True).estimate(X, X[:, 0] + 0.5 * X[:, 1])
    np.testing.assert_allclose(gop, np.diag([1.0, 0.25]), atol=0.05)


def test_bad_parameters_are_refused_at_once() -> None:
    with pytest.raises(DomainError, match="anchors must be a whole number >= 1, got 0"):
        GopEstimator(anchors=0)
    with pytest.raises(DomainError, match="random_state must be a whole number >= 0, got -1"):
        GopEstimator(random_state=-1)
