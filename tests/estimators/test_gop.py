"""The gradient outer product as a transformer."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from ellipack import GradientOuterProduct, LocalSlopes, PackingRegressor
from ellipack.errors import DomainError
from tests.entry_points.learners import stream


def test_rows_are_projected_on_the_leading_directions() -> None:
    X = np.random.default_rng(0).normal(size=(400, 4))
    gop = GradientOuterProduct(LocalSlopes(), n_components=2).fit(X, 3 * X[:, 2] + 0.5 * X[:, 0] ** 2)
    assert gop.gop_.shape == (4, 4)
    assert gop.eigenvalues_[0] == pytest.approx(9, rel=0.1)
    np.testing.assert_allclose(np.abs(gop.directions_), [[0, 0, 1, 0], [1, 0, 0, 0]], atol=0.1)
    np.testing.assert_allclose(gop.transform(X), X @ gop.directions_.T, atol=1e-12)
    assert gop.get_feature_names_out().tolist() == ["gradientouterproduct0", "gradientouterproduct1"]
    with pytest.raises(DomainError, match="n_components must be at most the number of columns, 4, got 5"):
        clone(gop).set_params(n_components=5).fit(X, X[:, 0])


def test_no_directions_are_returned_if_the_estimate_is_0() -> None:
    X, y = stream(300)
    with pytest.raises(DomainError, match=r"the gop estimated from 300 samples is 0: .*try LocalSlopes"):
        GradientOuterProduct(n_components=1).fit(X, y)
    assert not GradientOuterProduct().fit(X, y).gop_.any()


def test_a_pipeline_projects_before_it_learns() -> None:
    X, y = stream(200)
    pipeline = make_pipeline(GradientOuterProduct(LocalSlopes(), n_components=1), PackingRegressor())
    assert pipeline.fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.8
