"""The compiled feature views, bitwise equal to a reference in plain Python."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._core import FeatureView
from ellipack.validation import Floats
from tests.core.builds import Core, builds
from tests.reference.exact_feature_views import FARTHEST, standardize
from tests.strategies import seeds

NO_KNOTS: Floats = np.zeros((0, 3))
VIEW: dict[str, Any] = {
    "knots": np.sort(np.random.default_rng(0).normal(size=(4, 3)), axis=0), "shift": np.array([0.1, -0.2, 0.3]),
    "scale": np.array([1.0, 2.0, 0.5]), "directions": np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2)[0].copy(),
    "gop": np.eye(3), "fit_dimension": 2,
}  # fmt: skip


def view_of(d: int, **changes: Any) -> FeatureView:
    """Return a view of d features without ranks."""
    plain = {
        "knots": np.zeros((0, d)), "shift": np.zeros(d), "scale": np.ones(d), "directions": np.eye(d),
        "gop": np.zeros((d, d)), "fit_dimension": 1,
    }  # fmt: skip
    return FeatureView(**{**plain, **changes})


@builds
@given(
    st.integers(1, 5),
    st.sampled_from([0, 2, 3, 7, 40]),
    st.integers(0, 3),
    st.sampled_from([1e-200, 1.0, 1e130]),
    seeds,
)
def test_standardized_rows_equal_the_reference(
    core: Core, d: int, knots: int, digits: int, size: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    # Round, so that values are equal to knots and knots to each other.
    held = np.sort(np.round(rng.normal(size=(knots, d)), digits), axis=0) * size
    rows = np.vstack([np.round(rng.normal(size=(12, d)), digits) * size, held, 1e9 * rng.normal(size=(2, d))])
    shift, scale = rng.normal(size=d) * size, 10.0 ** rng.uniform(-9, 3, size=d)
    view = core.FeatureView(held, shift, scale, np.eye(d), np.zeros((d, d)), 1)
    columns = held.T.tolist() if knots else []
    expected = [standardize(row, columns, shift.tolist(), scale.tolist()) for row in rows.tolist()]
    assert view.standardize(rows).tolist() == expected
    assert view.standardize(rows[3:4]).tolist() == expected[3:4]


@given(seeds)
def test_views_without_knots_standardize(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, shift, scale = rng.normal(size=(9, 3)), rng.normal(size=3), rng.random(3) + 0.5
    np.testing.assert_allclose(view_of(3, shift=shift, scale=scale).standardize(X), (X - shift) / scale)


def test_extreme_values_are_clipped() -> None:
    X = np.array([[1e300], [-1e300], [2.0]])
    assert view_of(1).standardize(X)[:, 0].tolist() == [FARTHEST, -FARTHEST, 2.0]


@pytest.mark.parametrize(
    ("value", "rank"),
    [(-5.0, 0.0), (0.0, 0.0), (0.5, 0.125), (1.0, 0.5), (2.0, 0.875), (3.0, 1.0), (99.0, 1.0)],
)
def test_ranks_are_interpolated_and_ties_get_the_middle_rank(value: float, rank: float) -> None:
    knots = np.array([[0.0], [1.0], [1.0], [1.0], [3.0]])  # ranks 0, 1/4, 1/2, 3/4, 1
    assert view_of(1, knots=knots).standardize(np.array([[value]])).tolist() == [[rank]]


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=30), st.lists(st.floats(-12, 12), min_size=2, max_size=20))
def test_ranks_are_monotone(knots: list[float], values: list[float]) -> None:
    ranks = view_of(1, knots=np.sort(knots)[:, None]).standardize(np.sort(values)[:, None])[:, 0]
    assert np.all(np.diff(ranks) >= -1e-12)
    assert np.all((ranks >= 0) & (ranks <= 1))


@given(seeds)
def test_the_gradient_outer_product_is_converted_like_slopes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    slopes, ratio = rng.normal(size=(5, 3)), rng.random(3) + 0.5
    converted = view_of(3, gop=slopes.T @ slopes).convert_gop(ratio)
    np.testing.assert_allclose(converted, (slopes * ratio).T @ (slopes * ratio), atol=1e-12)
    assert view_of(3, gop=np.zeros((0, 3))).convert_gop(ratio).shape == (0, 3)


@pytest.mark.parametrize("size", [0, 2, 4])
def test_a_conversion_needs_a_ratio_for_each_feature(size: int) -> None:
    with pytest.raises(ValueError, match=f"ratio must have 3 entries, got {size}"):
        view_of(3).convert_gop(np.ones(size))


def arrays(view: FeatureView) -> list[Any]:
    return [np.array(getattr(view, name)).tolist() for name in VIEW]


def test_attributes_of_a_view_are_its_arguments() -> None:
    view = FeatureView(**VIEW)
    for other in (view, copy.deepcopy(view), copy.copy(view), pickle.loads(pickle.dumps(view))):
        assert arrays(other) == [np.array(VIEW[name]).tolist() for name in VIEW]
    view.shift[0] = 99.0  # a copy
    assert arrays(view) == [np.array(VIEW[name]).tolist() for name in VIEW]


def without_last(name: str, axis: int) -> dict[str, Any]:
    array = VIEW[name]
    return {name: np.ascontiguousarray(array[:-1] if axis == 0 else array[:, :-1])}


def with_entry(name: str, value: float) -> dict[str, Any]:
    array = VIEW[name].copy()
    array[(0,) * array.ndim] = value
    return {name: array}


@pytest.mark.parametrize(
    "changes",
    [
        *(without_last(name, 0) for name in ("shift", "scale", "directions", "gop")),
        *(without_last(name, 1) for name in ("knots", "gop")),
        *(with_entry(name, np.nan) for name in ("knots", "shift", "scale", "directions")),
        *(with_entry(name, np.inf) for name in ("knots", "shift", "scale", "directions")),
        *(with_entry("scale", value) for value in (0.0, -1.0)),
        with_entry("directions", 1e60),
        {"knots": np.zeros((1, 3))},
        {"directions": np.zeros((3, 4))},
        {"directions": np.zeros((3, 0))},
        {"gop": np.zeros((1, 9))},
        {"fit_dimension": 0},
        {"fit_dimension": 4},
        {name: np.zeros(0) for name in ("shift", "scale")}
        | {name: np.zeros((0, 0)) for name in ("knots", "directions", "gop")},
    ],
    ids=lambda changes: ", ".join(f"{name} {np.shape(value)}" for name, value in changes.items()),
)
def test_invalid_arrays_are_rejected(changes: dict[str, Any]) -> None:
    FeatureView(**VIEW)
    with pytest.raises(ValueError, match="must"):
        FeatureView(**{**VIEW, **changes})


def test_few_slopes_may_stand_for_the_sum_of_their_outer_products() -> None:
    slopes, ratio = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 0.5])
    view = FeatureView(**{**VIEW, "gop": slopes, "max_slopes": 2})
    for other in (view, copy.deepcopy(view)):
        assert (other.gop.tolist(), other.max_slopes) == (slopes.tolist(), 2)
        assert other.convert_gop(ratio).tolist() == (slopes * ratio).tolist()
    for max_slopes, message in ((1, "gop must have 3 entries, got 2"), (3, "max_slopes must be less than")):
        with pytest.raises(ValueError, match=message):
            FeatureView(**{**VIEW, "gop": slopes, "max_slopes": max_slopes})


def test_the_gradient_outer_product_may_overflow() -> None:
    FeatureView(**{**VIEW, **with_entry("gop", np.inf)})


def test_a_view_may_have_fewer_coordinates_than_features() -> None:
    view = FeatureView(**{**VIEW, "directions": np.ascontiguousarray(VIEW["directions"][:, :2])})
    assert view.directions.shape == (3, 2)


def test_rows_of_the_wrong_width_are_rejected() -> None:
    with pytest.raises(ValueError, match="a row must have 3 entries, got 2"):
        FeatureView(**VIEW).standardize(np.zeros((6, 2)))
