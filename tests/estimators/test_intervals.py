"""Prediction intervals of all regressors: coverage, same bits, saving, and the two kinds of predictions."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import ellipack
from ellipack import (
    IntrinsicDimensionRegressor,
    LocallyAdaptiveRegressor,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
)
from ellipack._core import ConformalIntervals
from ellipack.errors import DomainError, InputError
from ellipack.learners import intrinsic_dimension, locally_adaptive, packing, phased
from ellipack.learners.intervals import COVERAGES, RowPredictions
from ellipack.validation import Floats
from tests.entry_points.learners import bits
from tests.reference.conformal import last_step
from tests.reference.deferred_calibration import ReferenceDeferral

REGRESSORS: dict[str, Any] = {
    "metric": lambda: MetricRegressor(n_jobs=1),
    "metric, without the past": lambda: MetricRegressor(past=False, n_jobs=1),
    "packing": PackingRegressor,
    "phased": PhasedRegressor,
    "locally adaptive": LocallyAdaptiveRegressor,
    "intrinsic dimension": IntrinsicDimensionRegressor,
    "rescaled": lambda: RescaledRegressor(PackingRegressor()),
}


def stream(n: int = 300) -> tuple[Floats, Floats]:
    """Rows in the unit ball and labels in [0, 1], whose noise grows with the first feature."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-0.6, 0.6, size=(n, 2))
    return X, np.clip(0.5 + 0.3 * X[:, 1] + (X[:, 0] + 0.6) * 0.15 * rng.normal(size=n), 0, 1)


@pytest.mark.parametrize("name", REGRESSORS)
def test_same_bits_one_by_one_in_batches_and_after_a_resume(name: str, tmp_path: Any) -> None:
    X, y = stream()
    whole, single = REGRESSORS[name](), REGRESSORS[name]()
    predictions, (lower, upper) = whole.progressive(X, y, coverage=[0.8, 0.95])
    assert lower.shape == upper.shape == (len(y), 2)
    assert np.isinf(lower[:2]).all()
    assert np.isfinite(np.hstack([lower, upper])[2:]).all()
    parts = []
    for t in range(len(y)):
        if t == 200:
            single.save(tmp_path / "model")
            single = ellipack.load(tmp_path / "model")
        if t > 1 and t % 50 == 0 and name != "metric":
            next_one = single.predict_interval(X[t : t + 1], coverage=[0.8, 0.95])
            assert np.hstack(next_one).tobytes() == np.append(lower[t], upper[t]).tobytes()
        parts.append(single.progressive(X[t : t + 1], y[t : t + 1], coverage=[0.8, 0.95]))
    assert np.concatenate([each for each, _ in parts]).tobytes() == predictions.tobytes()
    assert np.concatenate([each.lower for _, each in parts]).tobytes() == lower.tobytes()
    assert np.concatenate([each.upper for _, each in parts]).tobytes() == upper.tobytes()
    ends, others = (each.predict_interval(X[:9], coverage=0.85) for each in (whole, single))
    assert np.hstack(ends).tobytes() == np.hstack(others).tobytes()
    fitted = REGRESSORS[name]().fit(X[:99], y[:99]).partial_fit(X[99:], y[99:]).predict_interval(X[:9], coverage=0.85)
    if name.startswith("metric"):
        assert np.hstack(ends).tobytes() == np.hstack(fitted).tobytes()
    else:  # calibrated by errors instead of labels, which are rounded in other places
        np.testing.assert_allclose(ends, fitted, rtol=1e-12)


PAPER = ["packing", "phased", "locally adaptive", "intrinsic dimension"]
PARTS: list[tuple[slice, list[float] | None]] = [
    (slice(0, 70), None), (slice(70, 130), [0.8]), (slice(130, 2300), None), (slice(2300, 2340), [0.95, 0.6]),
    (slice(2340, 2400), None),
]  # fmt: skip
"""Rows that are learned with intervals of some coverages or without intervals, more than are remembered."""


def learned(model: Any, X: Floats, y: Floats, coverage: list[float] | None) -> Floats:
    """Return the predictions and the wanted intervals of rows, which are learned."""
    if coverage is None:
        return np.asarray(model.progressive(X, y))
    predictions, intervals = model.progressive(X, y, coverage=coverage)
    return np.column_stack([predictions, *intervals])


@pytest.mark.parametrize("rescaled", [False, True])
@pytest.mark.parametrize("name", PAPER)
def test_same_bits_if_some_rounds_have_intervals(name: str, rescaled: bool, tmp_path: Any) -> None:
    X, y = stream(PARTS[-1][0].stop)
    if rescaled:  # ranges grow until the end
        y = y * 1.001 ** np.arange(len(y)) - 3
    whole, single = (RescaledRegressor(REGRESSORS[name]()) if rescaled else REGRESSORS[name]() for _ in range(2))
    for rows, coverage in PARTS:
        expected, parts = learned(whole, X[rows], y[rows], coverage), []
        for t in range(rows.start, rows.stop):
            parts.append(learned(single, X[t : t + 1], y[t : t + 1], coverage))
            if t % 60 == 7:
                single.save(tmp_path / "model")
                single = ellipack.load(tmp_path / "model")
            elif t % 60 == 33:
                single = deepcopy(single)
            elif t % 60 == 50:
                single.predict_interval(X[:2])  # does not change the state
        assert np.concatenate(parts).tobytes() == expected.tobytes()
        assert bits(single) == bits(whole)


@pytest.mark.parametrize("rescaled", [False, True])
@pytest.mark.parametrize("name", PAPER)
def test_intervals_after_deferred_rounds_are_those_of_a_literal_reference(name: str, rescaled: bool) -> None:
    """The ranges of rescaled learners grow again and again, also while rounds are deferred."""
    X, y = stream(PARTS[-1][0].stop)
    if rescaled:
        y = 1000 + y * 1.001 ** np.arange(len(y))
        y[[rows.stop - 1 for rows, _ in PARTS]] += 20 * np.arange(len(PARTS))  # outside of the range
    model = RescaledRegressor(REGRESSORS[name]()) if rescaled else REGRESSORS[name]()
    reference = ReferenceDeferral(ConformalIntervals())
    for rows, coverage in PARTS:
        found = learned(model, X[rows], y[rows], None if coverage is None else list(COVERAGES)).reshape(
            len(y[rows]), -1
        )
        for (prediction, *ends), label in zip(found.tolist(), y[rows].tolist(), strict=True):
            if coverage is None:
                reference.learn(prediction, label)
            else:
                np.testing.assert_allclose(ends, reference.learn_with_interval(prediction, label), rtol=0, atol=1e-9)
        assert len(model.state_.calibration.errors) == len(reference.errors)
        made = model.predict_each(X[:2])
        np.testing.assert_allclose(made.bounds, reference.intervals().around(made.values), rtol=0, atol=1e-9)


def test_late_labels_are_learned_the_same_one_by_one_and_together() -> None:
    X, y = stream(2500)
    whole = PackingRegressor().fit(X[:300], y[:300])
    single, made = deepcopy(whole), whole.predict_each(X[300:])
    whole.learn_late(X[300:], y[300:], made)
    for t in range(300, 2500):
        one = slice(t - 300, t - 299)
        single.learn_late(X[t : t + 1], y[t : t + 1], RowPredictions(*(each[one] for each in made)))
    assert bits(single) == bits(whole)


@pytest.mark.parametrize("name", PAPER)
def test_intervals_after_many_rounds_without_intervals_cover(name: str) -> None:
    X, y = stream(4000)
    model = REGRESSORS[name]().fit(X[:3500], y[:3500])
    _, (lower, upper) = model.progressive(X[3500:], y[3500:], coverage=0.8)
    assert np.isfinite(lower).all()
    assert abs(np.mean((lower <= y[3500:]) & (y[3500:] <= upper)) - 0.8) < 0.04


@pytest.mark.parametrize("name", REGRESSORS)
def test_intervals_do_not_change_predictions_and_cover(name: str) -> None:
    X, y = stream(900)
    predictions, (lower, upper) = REGRESSORS[name]().progressive(X, y, coverage=0.8)
    assert predictions.tobytes() == REGRESSORS[name]().progressive(X, y).tobytes()
    assert abs(np.mean(((lower <= y) & (y <= upper))[100:]) - 0.8) < 0.03


@pytest.mark.parametrize("module", [packing, phased, locally_adaptive, intrinsic_dimension])
def test_intervals_do_not_depend_on_the_number_of_rounds_in_a_call(module: Any, monkeypatch: Any) -> None:
    X, y = stream(60)
    name = module.__name__.rpartition(".")[2].replace("_", " ")
    _, whole = REGRESSORS[name]().progressive(X, y, coverage=0.85)
    monkeypatch.setattr(module, "_ROUNDS_PER_CALL", 7)
    _, parts = REGRESSORS[name]().progressive(X, y, coverage=0.85)
    assert np.hstack(whole).tobytes() == np.hstack(parts).tobytes()


@pytest.mark.parametrize("name", PAPER)
def test_intervals_of_rescaled_learners_do_not_depend_on_units(name: str) -> None:
    """Ranges grow again and again; intervals are as if labels had been calibrated in their own units."""
    X, y = stream(200)
    labels = 1000.0 + (7 * y + np.random.default_rng(9).normal(size=200)) * 1.02 ** np.arange(200)
    predictions, intervals = RescaledRegressor(REGRESSORS[name]()).progressive(5 * X, labels, coverage=COVERAGES)
    expected = ConformalIntervals().learn(predictions, labels)
    np.testing.assert_allclose(np.hstack(intervals)[2:], expected[2:], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", REGRESSORS)
def test_late_labels_are_compared_with_the_intervals_of_their_predictions(name: str) -> None:
    X, y = stream(120)
    model = REGRESSORS[name]()
    first = model.predict_each(X[:1])  # before the first row
    assert np.isinf(first.bounds).all()
    model.learn_late(X[:1], y[:1], first).partial_fit(X[1:100], y[1:100])
    made = model.predict_each(X[100:101])
    if name != "metric":
        assert made.values.tolist() == model.predict(X[100:101]).tolist()
        assert np.hstack(made.intervals(0.9)).tolist() == np.hstack(model.predict_interval(X[100:101])).tolist()
    model.partial_fit(X[101:], y[101:])
    usual, missed = deepcopy(model), deepcopy(model)
    before = usual.predict_each(X[:1])
    usual.learn_late(X[100:101], y[100:101], made)
    missed.learn_late(X[100:101], y[100:101], made._replace(bounds=np.repeat([[-9.0, -8.0]], 8, axis=1)))
    values, bounds, _ = missed.predict_each(X[:1])
    assert values.tolist() == usual.predict_each(X[:1]).values.tolist()
    # The label lies above the second interval, so that the upper sides become wider by a step, the lower ones by half.
    ratio, earlier = (
        (upper - value) / (value - lower)
        for value, lower, upper in ((values, *np.split(bounds[0], 2)), (before.values, *np.split(before.bounds[0], 2)))
    )
    np.testing.assert_allclose(ratio, earlier * np.exp([last_step(each) / 2 for each in COVERAGES]), rtol=1e-9)


def test_intervals_are_narrow_where_errors_are_small() -> None:
    X, _ = stream(1500)
    y = X[:, 0] + (X[:, 0] + 0.6) * 0.15 * np.random.default_rng(8).normal(size=1500)
    lower, upper = MetricRegressor(n_jobs=1).fit(X, y).predict_interval([[-0.5, 0.0], [0.5, 0.0]], coverage=0.9)
    calm, noisy = upper - lower
    assert calm < 0.35 * noisy


def test_skewed_labels_have_skewed_intervals() -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(1500, 1)), rng.exponential(size=1500)
    model = MetricRegressor(n_jobs=1).fit(X, y)
    lower, upper = model.predict_interval(X[:50], coverage=0.9)
    predictions = model.predict(X[:50])
    assert (upper - predictions > 1.4 * (predictions - lower)).all()


def test_intervals_of_the_next_row_use_the_past() -> None:
    """A random walk: the next label is near the last one, while the features tell nothing."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(900, 1)), np.cumsum(rng.normal(size=900))
    model = MetricRegressor(n_jobs=1).fit(X[:800], y[:800])
    _, known = model.predict_next(X[800:], coverage=0.9, labels=y[800:])
    assert abs(np.mean((known.lower <= y[800:]) & (y[800:] <= known.upper)) - 0.9) < 0.08
    alone = model.predict_interval(X[800:], coverage=0.9)
    assert np.median(known.upper - known.lower) < 0.6 * np.median(alone.upper - alone.lower)
    # Without the labels, intervals are at least as wide as from the features alone.
    _, unknown = model.predict_next(X[800:], coverage=0.9)
    assert unknown.lower[0] == known.lower[0]
    widths, least = unknown.upper - unknown.lower, alone.upper - alone.lower
    assert (widths[1:] >= least[1:] * (1 - 1e-9)).all()
    follower = model.follow()
    parts = [follower.predict_next(X[part], coverage=0.9)[1] for part in (slice(800, 801), slice(801, 900))]
    assert np.concatenate([each.upper for each in parts]).tobytes() == unknown.upper.tobytes()


def test_an_outlying_label_hardly_changes_intervals() -> None:
    X, y = stream(400)
    wild = y.copy()
    wild[300] = 1e9
    calm, hit = (MetricRegressor(n_jobs=1).fit(X, labels).predict_interval(X[:20]) for labels in (y, wild))
    assert ((hit.upper - hit.lower) < 1.3 * (calm.upper - calm.lower)).all()


@pytest.mark.parametrize("name", REGRESSORS)
def test_late_labels_that_are_rejected_change_nothing(name: str) -> None:
    X, y = stream(30)
    model = REGRESSORS[name]().fit(X, y)
    made, before = model.predict_each(X[:2]), model.predict_interval(X[:3])
    wrong = [(made._replace(bounds=made.bounds[:1]), y[:2], r"bounds must have shape \(2, 16\)")]
    wrong += [(made._replace(bounds=made.bounds * np.nan), y[:2], "bounds must not be NaN")]
    wrong += [(made, y[:1], "y"), (made, np.array([0.5, np.inf]), "y")]
    for predictions, labels, message in wrong:
        with pytest.raises(InputError, match=message):
            model.learn_late(X[:2], labels, predictions)
    assert np.hstack(model.predict_interval(X[:3])).tobytes() == np.hstack(before).tobytes()


def test_a_wrong_coverage_changes_nothing() -> None:
    X, y = stream(50)
    model = MetricRegressor(n_jobs=1).fit(X, y)
    with pytest.raises(DomainError, match=r"coverage must be from 0\.5 to 0\.99, got 95"):
        model.progressive(X, y, coverage=95)
    assert model.state_.clock == 50
    with pytest.raises(DomainError, match="coverage"):
        model.predict_interval(X, coverage=0.1)
