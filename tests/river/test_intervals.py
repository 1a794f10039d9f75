"""Prediction intervals with River's methods: same results as in batches, late labels, and saving."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ellipack
from ellipack import river
from ellipack._core import ConformalIntervals
from ellipack.errors import InputError
from ellipack.river.base import RiverRegressor
from ellipack.validation import Floats
from tests.reference.conformal import COVERAGES, ReferenceIntervals
from tests.reference.deferred_calibration import ReferenceDeferral

N = 260


def stream() -> tuple[list[dict[str, float]], list[float]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return [{"a": a, "b": b} for a, b in X.tolist()], (X[:, 0] + 0.3 * rng.normal(size=N)).tolist()


def run(model: RiverRegressor[Any], rows: slice = slice(0, N)) -> list[tuple[float, float]]:
    xs, ys = stream()
    ends = []
    for x, y in zip(xs[rows], ys[rows], strict=True):
        interval = model.predict_interval_one(x, coverage=0.8)
        ends.append((interval.lower, interval.upper))
        model.learn_one(x, y)
    return ends


def test_intervals_are_those_of_the_estimator() -> None:
    xs, ys = stream()
    X = np.array([list(x.values()) for x in xs])
    _, expected = ellipack.MetricRegressor(n_jobs=1).progressive(X, ys, coverage=0.8)
    ends = np.array(run(river.MetricRegressor()))
    assert ends[:, 0].tobytes() == expected.lower.tobytes()
    assert ends[:, 1].tobytes() == expected.upper.tobytes()


def widths(model: river.MetricRegressor) -> Floats:
    """Return the calibration of the intervals of the next row."""
    assert model._learner is not None
    parts = model._learner.state.core.parts()
    return (parts.plain if parts.past is None else parts.past.rounds).intervals.widths


@pytest.mark.parametrize("past", [True, False])
def test_late_labels_are_compared_with_the_interval_of_their_row(past: bool) -> None:
    xs, ys = stream()
    model, waiting = river.MetricRegressor(past=past), list[int]()
    for t, x in enumerate(xs):
        model.predict_interval_one(x)
        waiting.append(t)
        if len(waiting) > 9:
            late = waiting.pop(0)
            model.learn_one(xs[late], ys[late])
    assert model._learner is not None
    late, clock = waiting[0], model._learner.state.clock
    found = model._pending.start_learning(xs[late], 0, clock)
    assert len(found.bounds) == 16
    assert found.clock < clock
    # The label decides by the published interval: here one that it misses above, in place of the true one.
    before = widths(model)
    model._pending._by_row[next(iter(model._pending._by_row))][0] = found._replace(bounds=(-9.0,) * 8 + (-8.0,) * 8)
    model.learn_one(xs[late], ys[late])
    lower, upper = np.split(widths(model) / before, 2)
    assert (upper > lower).all()
    assert (lower > 1).all()


PAPER: dict[str, Callable[[], RiverRegressor[Any]]] = {
    "packing": river.PackingRegressor,
    "locally adaptive": river.LocallyAdaptiveRegressor,
    "intrinsic dimension": river.IntrinsicDimensionRegressor,
    "phased": river.PhasedRegressor,
}


def arrivals(delay: int | None) -> list[list[int]]:
    """Return the rows whose labels come after each prediction, with a given delay or with random ones."""
    rng, come = np.random.default_rng(3), list[list[int]]([] for _ in range(150))
    for t in range(len(come)):
        after = t + (int(rng.integers(40)) if delay is None else delay)
        if after < len(come):
            come[after].append(t)
    return come


@pytest.mark.parametrize("delay", [0, 1, 24, None])
@pytest.mark.parametrize("name", PAPER)
def test_late_labels_of_the_papers_learners_are_those_of_a_literal_reference(name: str, delay: int | None) -> None:
    xs, ys = stream()
    model, reference, published = PAPER[name](), ReferenceIntervals(), dict[int, list[float]]()
    k = COVERAGES.index(0.8)
    for t, known in enumerate(arrivals(delay)):
        published[t] = reference.around(model.predict_one(xs[t]))
        interval = model.predict_interval_one(xs[t], coverage=0.8)
        expected = published[t][k], published[t][len(COVERAGES) + k]
        np.testing.assert_allclose([interval.lower, interval.upper], expected, rtol=1e-7)
        for late in known:
            reference.learn_label(ys[late], published.pop(late))
            reference.learn_error(ys[late] - model.predict_one(xs[late]), 1.0)
            model.learn_one(xs[late], ys[late])
    assert len(model._pending) == len(published)


@pytest.mark.parametrize("name", ["packing", "intrinsic dimension"])
def test_rounds_without_intervals_are_deferred(name: str) -> None:
    rng, model, reference = np.random.default_rng(1), PAPER[name](), ReferenceDeferral(ConformalIntervals())
    X, k = rng.normal(size=(2500, 2)), COVERAGES.index(0.8)
    for t, ((a, b), noise) in enumerate(zip(X.tolist(), rng.normal(size=len(X)).tolist(), strict=True)):
        x, y, prediction = {"a": a, "b": b}, a + noise, model.predict_one({"a": a, "b": b})
        if t % 70 < 9 and not 140 < t < 2400:
            interval = model.predict_interval_one(x, coverage=0.8)
            bounds = reference.learn_with_interval(prediction, y)
            np.testing.assert_allclose([interval.lower, interval.upper], bounds[[k, len(COVERAGES) + k]], rtol=1e-7)
        else:
            reference.learn(prediction, y)
        model.learn_one(x, y)
        assert model._learner is not None
        assert len(model._learner.state.calibration.errors) == len(reference.errors)


def test_late_labels_of_a_data_frame_and_of_a_saved_model(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    xs, ys = stream()
    models = [river.PackingRegressor(), river.PackingRegressor()]
    for model in models:
        model.learn_many(pd.DataFrame(xs[:60]), pd.Series(ys[:60]))
        for x in xs[60:80]:
            model.predict_interval_one(x)
    models[1].save(tmp_path / "model")
    one, many = models[0], river.load(tmp_path / "model")
    for x, y in zip(xs[60:80], ys[60:80], strict=True):
        one.learn_one(x, 3 * y)
    many.learn_many(pd.DataFrame(xs[60:80]), pd.Series([3 * y for y in ys[60:80]]))
    assert one.predict_interval_one(xs[3]) == many.predict_interval_one(xs[3])
    alone = river.PackingRegressor()
    alone.learn_many(pd.DataFrame(xs[:80]), pd.Series(ys[:60] + [3 * y for y in ys[60:80]]))
    assert alone.predict_interval_one(xs[3]) != one.predict_interval_one(xs[3])


@pytest.mark.parametrize("model", [river.MetricRegressor(), river.PackingRegressor(), river.LocallyAdaptiveRegressor()])
def test_intervals_cover_and_survive_saving(model: RiverRegressor[Any], tmp_path: Path) -> None:
    whole, cut = model.clone(), model.clone()
    ends = run(whole)
    first = run(cut, slice(0, 150))
    cut.save(tmp_path / "model")
    assert first + run(river.load(tmp_path / "model"), slice(150, N)) == ends
    inside = [low <= y <= high for (low, high), y in zip(ends, stream()[1], strict=True)]
    assert abs(np.mean(inside) - 0.8) < 0.06
    assert np.isinf(ends[:2]).all()
    assert np.isfinite(ends[2:]).all()


def test_intervals_are_calibrated_by_learn_one_and_learn_many() -> None:
    pd = pytest.importorskip("pandas")
    xs, ys = stream()
    one, many = river.PackingRegressor(), river.PackingRegressor()
    for x, y in zip(xs, ys, strict=True):
        one.learn_one(x, y)
    many.learn_many(pd.DataFrame(xs), pd.Series(ys))
    assert one.predict_interval_one(xs[3]) == many.predict_interval_one(xs[3])


def test_invalid_coverages_raise() -> None:
    for coverage in (0.2, 1.0, [0.8, 0.9]):
        with pytest.raises(InputError, match="coverage"):
            river.MetricRegressor().predict_interval_one({"a": 1.0}, coverage)  # type: ignore[arg-type]
