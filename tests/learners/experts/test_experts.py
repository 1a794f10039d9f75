import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._kernels import kernel
from ellipack.lanes._kernels import FOUR, load, store
from ellipack.learners.experts._kernels import (
    RIDGES,
    Fit,
    Kriging,
    Neighborhood,
    decayed,
    fit_room,
    gather_slope,
    kriging_room,
    local_predictions,
    neighborhood,
    ridge_fits,
)
from ellipack.learners.experts.names import LOCAL
from ellipack.validation import Floats
from tests.learners.experts.textbook import correlation, kriging
from tests.strategies import seeds

pytestmark = pytest.mark.interpreted


def around(points: Floats, labels: Floats, counts: Floats) -> Neighborhood:
    """Return the neighbourhood of the origin; labels are differences already."""
    order = np.argsort((points**2).sum(axis=1), kind="stable")
    near = neighborhood(*points.shape)
    near.offsets[:] = points[order]
    near.squared[:] = (points[order] ** 2).sum(axis=1)
    near.labels[:], near.counts[:] = labels[order], counts[order]
    near.trend[:] = near.fading[:] = 0.0
    near.ages[:] = np.linspace(0.0, 0.9, len(order))
    return near


@kernel
def ask_all(near: Neighborhood, fit: Fit, room: Kriging, found: int, out: Floats, slope: Floats) -> None:
    local_predictions(near, fit, room, found, out, slope)


def ask(near: Neighborhood, kriged: int | None = None) -> tuple[Floats, Floats]:
    """Return what the local experts say, and the slope."""
    n, d = near.offsets.shape
    out, slope = np.empty(len(LOCAL)), np.empty(d)
    ask_all(near, fit_room(n, d), kriging_room(kriged or n, d), n, out, slope)
    return out, slope


@st.composite
def neighborhoods(draw: st.DrawFn) -> Neighborhood:
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(3, 12)), draw(st.integers(1, 4))
    return around(rng.normal(size=(n, d)), rng.normal(size=n), rng.integers(1, 5, size=n).astype(np.float64))


@kernel
def fits(near: Neighborhood, fit: Fit, few: int, out: Floats) -> None:
    ridge_fits(fit, gather_slope(near, fit, few), out)


@given(neighborhoods())
def test_local_fits_are_weighted_ridge_regressions(near: Neighborhood) -> None:
    w = near.counts * (1 - near.squared / near.squared[-1])
    X, y = near.offsets, near.labels
    mean, label = w @ X / w.sum(), w @ y / w.sum()
    gram = ((X - mean) * w[:, None]).T @ (X - mean)
    right = ((X - mean) * w[:, None]).T @ (y - label)
    room, made = fit_room(*X.shape), np.empty(FOUR)
    fits(near, room, len(y), made)
    for k, ridge in enumerate(RIDGES):
        slope = np.linalg.solve(gram + ridge * np.trace(gram) / len(gram) * np.eye(len(gram)), right)
        assert made[k] == pytest.approx(label - slope @ mean, rel=1e-6, abs=1e-8)
        np.testing.assert_allclose(room.slopes[k::FOUR], slope, rtol=1e-6, atol=1e-8)


@given(neighborhoods(), seeds)
def test_every_kriging_expert_is_ordinary_kriging(near: Neighborhood, seed: int) -> None:
    rng = np.random.default_rng(seed)
    near.trend[:], near.fading[:] = rng.normal(size=(2, len(near.trend)))
    near.ages[:] = rng.uniform(size=len(near.ages))
    out, _ = ask(near)
    apart = np.sqrt(((near.offsets[:, None] - near.offsets[None]) ** 2).sum(axis=2))
    away, reach = np.sqrt(near.squared), np.sqrt(near.squared[-1])
    at = 3
    for kind in ("exponential", "Matern"):
        for length, nugget in ((2, 0.01), (5, 0.1)):
            C, c = correlation(kind, apart, reach, length), correlation(kind, away, reach, length)
            assert out[at] == pytest.approx(kriging(C, c, nugget / near.counts, near.labels), rel=1e-6, abs=1e-8)
            at += 1
    assert out[at] == pytest.approx(kriging(C, c, 0.03 / near.counts, near.labels - near.trend), rel=1e-6, abs=1e-8)
    for loss in (0.2, 1.0, 5.0):
        at += 1
        C_faded = C * np.maximum(0.0, 1.0 - loss * np.abs(near.ages[:, None] - near.ages[None]))
        c_faded = c * np.maximum(0.0, 1.0 - loss * near.ages)
        expected = kriging(C_faded, c_faded, 0.03 / near.counts, near.labels - near.fading)
        assert out[at] == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert at + 1 == len(LOCAL)


@kernel
def decays(x: Floats, out: Floats) -> None:
    store(out, 0, decayed(load(x, 0)))


@given(st.lists(st.floats(0, 0.35), min_size=FOUR, max_size=FOUR))
def test_decays_are_exponential_to_the_last_digit(x: list[float]) -> None:
    u, out = np.array(x), np.empty(FOUR)
    decays(u, out)
    assert out == pytest.approx(np.exp(-u), rel=4e-16)


@given(neighborhoods())
def test_means_are_weighted_by_counts(near: Neighborhood) -> None:
    out, _ = ask(near)
    assert out[0] == pytest.approx(np.average(near.labels[:16], weights=near.counts[:16]), abs=1e-12)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(
    "points",
    [
        np.zeros((40, 3)),
        np.repeat([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]], 20, axis=0),
        1e-160 * np.random.default_rng(0).normal(size=(40, 3)),
        1 + 1e-15 * np.random.default_rng(0).normal(size=(40, 3)),
        np.column_stack([np.linspace(0, 1, 40), np.zeros(40), np.zeros(40)]),
        np.array([[0.5, 0.5, 0.5]]),
        1e6 * np.random.default_rng(0).normal(size=(40, 3)),
    ],
    ids=["all the same", "two piles", "tiny", "nearly the same", "on a line", "alone", "far apart"],
)
def test_every_neighbourhood_gets_finite_predictions(points: Floats, size: float) -> None:
    rng = np.random.default_rng(1)
    for counts in (np.ones(len(points)), np.power(10.0, rng.integers(0, 9, size=len(points)))):
        near = around(points, size * rng.normal(size=len(points)), counts)
        out, slope = ask(near, kriged=min(32, len(points)))
        assert np.isfinite(out).all()
        assert np.isfinite(slope).all()


def test_equal_labels_are_what_all_experts_predict() -> None:
    out, slope = ask(around(np.random.default_rng(0).normal(size=(9, 3)), np.full(9, 0.5), np.ones(9)))
    assert out.tolist() == pytest.approx([0.5] * len(LOCAL))
    assert slope.tolist() == pytest.approx([0.0] * 3, abs=1e-12)
