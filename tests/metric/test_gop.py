import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import ArrayLike

from ellipack.errors import DomainError, NonFiniteError, ShapeError
from ellipack.metric import GopEstimator, LocalSlopes, gradient_weights, mean_outer_product
from ellipack.validation import Floats
from tests import oracles
from tests.strategies import ball, seeds

entries = st.floats(-1e150, 1e150) | st.floats(-1, 1) | st.floats(-1e-150, 1e-150)
gradients = st.tuples(st.integers(1, 12), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=entries)
)


@given(gradients)
def test_mean_outer_product_is_the_mean_up_to_rounding(rows: Floats) -> None:
    made, expected = mean_outer_product(rows), np.array(oracles.mean_outer_product(rows.tolist()))
    sizes = np.array(oracles.mean_outer_product(np.abs(rows).tolist()))
    assert (np.abs(made - expected) <= 1e-14 * sizes + 1e-320).all()


@given(seeds, st.integers(1, 3000), st.integers(1, 70))
def test_mean_outer_product_is_exactly_symmetric(seed: int, n: int, d: int) -> None:
    made = mean_outer_product(np.random.default_rng(seed).normal(size=(n, d)))
    np.testing.assert_array_equal(made, made.T)


_BITS = """
import hashlib
import numpy as np
from ellipack.metric import mean_outer_product

print(hashlib.sha256(mean_outer_product(np.random.default_rng(0).normal(size=(3000, 257)))).hexdigest())
"""


def test_results_do_not_depend_on_the_number_of_blas_threads() -> None:
    command = [sys.executable, "-c", _BITS]
    one, two = (
        subprocess.run(command, env={**os.environ, "OPENBLAS_NUM_THREADS": n}, capture_output=True, check=True).stdout
        for n in ("1", "2")
    )
    assert one == two


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ([1.0], ShapeError, "gradients must be two-dimensional"),
        (np.empty((0, 2)), ShapeError, "gradients must have at least one row"),
        ([[np.nan, 1.0]], NonFiniteError, "gradients must be finite"),
        ([[1e151, 0.0]], DomainError, r"gradients must be at most 1e\+150 in size, got 1e\+151"),
    ],
)
def test_invalid_gradients_are_refused(bad: ArrayLike, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mean_outer_product(bad)


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


def test_invalid_parameters_are_refused() -> None:
    with pytest.raises(DomainError, match="anchors must be an integer >= 1, got 0"):
        GopEstimator(anchors=0)
    with pytest.raises(DomainError, match="random_state must be an integer >= 0, got -1"):
        GopEstimator(random_state=-1)
