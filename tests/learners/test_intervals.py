"""Prediction intervals: the compiled calibration against a literal one, and the theorem on adversarial streams."""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._core import ConformalIntervals, DeferredCalibration
from ellipack.errors import DomainError, InputError, ModelFileError, ShapeError
from ellipack.learners.intervals import (
    COVERAGES,
    calibration_from_archive,
    calibration_to_archive,
    check_coverage,
    coverage_positions,
    intervals_from_archive,
    intervals_to_archive,
    select_intervals,
)
from ellipack.validation import Floats
from tests.reference.conformal import ReferenceIntervals, initial_width, last_step
from tests.strategies import seeds

ROUNDS = 3000
_COUNT = len(COVERAGES)


@given(seeds, st.sampled_from(["normal", "cauchy", "whole numbers", "constant", "growing"]))
def test_calibration_is_that_of_the_reference(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    labels = {
        "normal": rng.normal(size=60),
        "cauchy": rng.standard_cauchy(60) * 1e9,
        "whole numbers": rng.integers(3, size=60).astype(float),
        "constant": np.append(np.full(50, 7.0), rng.normal(size=10)),
        "growing": np.exp(np.arange(60.0)),
    }[kind]
    predictions = np.append(0.0, labels[:-1])
    intervals, reference = ConformalIntervals(), ReferenceIntervals()
    bounds = np.vstack([intervals.learn(predictions[:23], labels[:23]), intervals.learn(predictions[23:], labels[23:])])
    for prediction, label, own in zip(predictions, labels, bounds, strict=True):
        expected = reference.around(prediction)
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-9 * np.abs(labels).max())
        reference.learn(prediction, label, own.tolist())
    assert intervals.mean_error == pytest.approx(reference.mean_error)
    assert intervals.labels == reference.labels == 60
    assert intervals.rounds == reference.rounds
    np.testing.assert_allclose(intervals.widths, list(reference.widths.values()))


@pytest.mark.parametrize("k", [3, _COUNT + 3])
def test_a_label_at_the_end_of_an_interval_is_inside(k: int) -> None:
    intervals = ConformalIntervals()
    intervals.learn(np.zeros(60), np.random.default_rng(4).normal(size=60))
    bounds, before = intervals.around(np.zeros(1))[0], intervals.widths
    intervals.learn_label(float(bounds[k]), bounds)
    assert intervals.widths[k] < before[k]
    assert intervals.widths[k - 1] > before[k - 1]


@given(seeds, st.floats(-2, 2))
def test_scales_are_weighted_as_in_the_reference(seed: int, trust: float) -> None:
    """Errors follow a power of the relative scale, which decides about the weights."""
    rng = np.random.default_rng(seed)
    scales = np.exp(rng.normal(size=150))
    errors = scales**trust * rng.normal(size=150)
    intervals, reference = ConformalIntervals(), ReferenceIntervals()
    for error, scale in zip(errors.tolist(), scales.tolist(), strict=True):
        own = intervals.around(np.zeros(1), scale)[0]
        np.testing.assert_allclose(own, reference.around(0.0, scale), rtol=1e-9)
        intervals.learn_label(error, own)
        reference.learn_label(error, own.tolist())
        intervals.learn_misses(error, own)
        reference.learn_misses(error, own.tolist())
        intervals.learn_error(error, scale)
        reference.learn_error(error, scale)
        assert intervals.excess_misses == pytest.approx(reference.excess_misses, rel=1e-9)
    np.testing.assert_allclose(intervals.scale_losses, list(reference.scale_losses.values()), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("trust", "width"), [(0.0, 1.0), (0.5, 2.0), (1.0, 4.0), (2.0, 4.0)])
def test_the_scale_counts_as_much_as_it_tells_about_errors(trust: float, width: float) -> None:
    rng, intervals = np.random.default_rng(0), ConformalIntervals()
    scales = np.exp(rng.normal(size=2000))
    for error, scale in zip(scales**trust * rng.normal(size=2000), scales, strict=True):
        intervals.learn_error(float(error), float(scale))
    (lower,), (upper,) = (intervals.around(np.zeros(1), scale)[:, -1] for scale in (1.0, 4.0))
    assert upper / lower == pytest.approx(width, rel=0.02)


Adversary = Callable[[Floats, int, np.random.Generator], float]


def always_above(bounds: Floats, _: int, __: np.random.Generator) -> float:
    """Miss the widest interval above, as long as labels are not millions."""
    return min(1.001 * float(bounds[-1]) + 1e-9, 1e6) if np.isfinite(bounds[-1]) else 1.0


def just_outside_of_80(bounds: Floats, t: int, _: np.random.Generator) -> float:
    """Miss on alternating sides, by as little as possible."""
    low, high = bounds[3], bounds[_COUNT + 3]
    return float(np.nextafter(high, np.inf) if t % 2 else np.nextafter(low, -np.inf)) if np.isfinite(high) else float(t)


def calm_then_wild(_: Floats, t: int, rng: np.random.Generator) -> float:
    return float(rng.normal() * (1e-6 if t < ROUNDS // 2 else 1e6))


def wild_then_calm(_: Floats, t: int, rng: np.random.Generator) -> float:
    return float(rng.normal() * (1e6 if t < ROUNDS // 2 else 1e-6))


def bursts(_: Floats, t: int, rng: np.random.Generator) -> float:
    return float(rng.standard_cauchy() * 10.0 ** (t % 7))


def skewed(_: Floats, __: int, rng: np.random.Generator) -> float:
    return float(rng.exponential())


@pytest.mark.parametrize("learns_misses", [False, True])
@pytest.mark.parametrize(
    "adversary", [always_above, just_outside_of_80, calm_then_wild, wild_then_calm, bursts, skewed]
)
def test_theorem_holds_on_adversarial_streams(adversary: Adversary, learns_misses: bool) -> None:
    """Intervals miss as many labels as wanted, each side by itself, up to the term of the theorem."""
    rng, intervals = np.random.default_rng(0), ConformalIntervals()
    misses, scores, rounds, least = np.zeros(2 * _COUNT), np.zeros(2), 0, np.ones(2 * _COUNT)
    for t in range(ROUNDS):
        bounds = intervals.around(np.zeros(1))[0]
        scale = intervals.mean_error * np.exp((intervals.excess_misses / 32) ** 3)
        label = adversary(bounds, t, rng)
        if learns_misses:
            intervals.learn_label(label, bounds)
            intervals.learn_misses(label, bounds)
            intervals.learn_error(label, 1.0)
        else:
            intervals.learn(np.zeros(1), np.array([label]))
        least = np.minimum(least, intervals.widths)
        if np.isfinite(bounds[0]) and scale > 0:
            misses += np.append(label < bounds[:_COUNT], label > bounds[_COUNT:])
            scores = np.maximum(scores, [-label / scale, label / scale])
            rounds += 1
    assert (intervals.excess_misses != 0) == learns_misses
    assert intervals.rounds == rounds
    for k, coverage in enumerate(COVERAGES):
        largest = max(*scores, initial_width(coverage))
        term = 8 / 3 * (np.log(1000 * largest) + 0.3125) / last_step(coverage)
        excess = misses[[k, _COUNT + k]] - rounds * (1 - coverage) / 2
        assert excess.sum() <= term
        if least[[k, _COUNT + k]].min() > 0.001:
            assert excess.sum() >= -term
            assert (np.abs(excess) <= term).all()


def test_late_labels_are_covered() -> None:
    """The theorem holds for published intervals, with a term for the delay."""
    rng, delay, k = np.random.default_rng(1), 40, COVERAGES.index(0.9)
    labels = rng.normal(size=4000) * np.repeat([1.0, 5.0, 0.2, 3.0], 1000)
    intervals, waiting, covered = ReferenceIntervals(), list[tuple[float, list[float]]](), []
    for label in labels:
        bounds = intervals.around(0.0)
        covered.append(bounds[k] <= label <= bounds[_COUNT + k])
        waiting.append((float(label), bounds))
        if len(waiting) > delay:
            late, published = waiting.pop(0)
            intervals.learn(0.0, late, published)
    term = 8 / 3 * (np.log(1000 * np.abs(labels).max() / 0.1) + 0.3125 * (delay + 1)) / last_step(0.9)
    assert abs(np.sum(covered) - 0.9 * len(labels)) < term
    assert abs(np.mean(covered) - 0.9) < 0.02


def test_intervals_of_larger_coverages_contain_those_of_smaller_ones() -> None:
    rng, intervals = np.random.default_rng(2), ConformalIntervals()
    bounds = intervals.learn(np.zeros(800), rng.standard_t(2, size=800))
    wanted = np.linspace(0.5, 0.99, 50)
    lower, upper = select_intervals(bounds[2:], check_coverage(wanted.tolist()))
    assert lower.shape == (798, 50)
    assert (np.diff(lower, axis=1) <= 0).all()
    assert (np.diff(upper, axis=1) >= 0).all()
    single = select_intervals(bounds, check_coverage(0.95))
    assert single.lower.tobytes() == bounds[:, 5].tobytes()
    assert single.upper.tobytes() == bounds[:, _COUNT + 5].tobytes()
    assert np.isinf(select_intervals(bounds[:2], check_coverage(0.85)).lower).all()


def test_positions_are_linear_in_the_quantile_of_a_normal_distribution() -> None:
    assert coverage_positions(check_coverage(COVERAGES)).tolist() == list(range(_COUNT))
    for coverage in np.linspace(0.5, 0.989, 40).tolist():
        k = max(each for each in range(_COUNT) if COVERAGES[each] <= coverage)
        low, at, high = (NormalDist().inv_cdf((1 + c) / 2) for c in (COVERAGES[k], coverage, COVERAGES[k + 1]))
        (position,) = coverage_positions(check_coverage(coverage))
        assert position == pytest.approx(k + (at - low) / (high - low), abs=1e-9)


@pytest.mark.parametrize(
    ("coverage", "error"),
    [
        (0.4, DomainError), (1.0, DomainError), (-0.9, DomainError), (90, DomainError), ([0.9, 0.999], DomainError),
        (float("nan"), DomainError), ([], ShapeError), ([[0.9]], ShapeError), ("0.9", InputError), (None, InputError),
    ],
)  # fmt: skip
def test_other_coverages_are_rejected(coverage: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="coverage"):
        check_coverage(coverage)  # type: ignore[arg-type]  # on purpose


def test_archives_restore_the_calibration() -> None:
    intervals = ConformalIntervals()
    intervals.learn(np.zeros(50), np.random.default_rng(3).normal(size=50))
    archive = intervals_to_archive(intervals)
    restored = intervals_from_archive(archive, 50)
    probe = np.array([1.0, 2.0])
    assert restored.around(probe).tobytes() == intervals.around(probe).tobytes()
    for name, value in (
        ("mean_error", -1.0),
        ("mean_error", 1e70),
        ("labels", 51),
        ("rounds", -1),
        ("excess_misses", 33.0),
    ):
        with pytest.raises(ModelFileError, match=name):
            intervals_from_archive(type(archive)({**archive.facts, name: value}, archive.arrays), 50)
    for name, values in (("widths", np.full(2 * _COUNT, 9e-4)), ("scale_losses", np.full(3, 1e10))):
        with pytest.raises(ModelFileError, match=name):
            intervals_from_archive(type(archive)(archive.facts, {**archive.arrays, name: values}), 50)


def test_archives_restore_deferred_rounds() -> None:
    rng, calibration = np.random.default_rng(3), DeferredCalibration()
    calibration.learn(np.zeros(50), rng.normal(size=50))
    calibration.defer(np.zeros(3000), rng.normal(size=3000))
    archive = calibration_to_archive(calibration)
    assert calibration_from_archive(archive, 50) == calibration
    for wrong, message in (
        (np.ones(DeferredCalibration.most_errors + 1), "must have at most 2048 entries, got 2049"),
        (np.array([0.0, np.nan]), "must be finite"),
        (np.array([0.0, np.inf]), "must be finite"),
        (np.array([1e70]), "must be from"),
        (np.ones((2, 2)), "deferred_errors"),
        (np.ones(2, dtype=np.int64), "deferred_errors"),
    ):
        with pytest.raises(ModelFileError, match=message):
            calibration_from_archive(type(archive)(archive.facts, {**archive.arrays, "deferred_errors": wrong}), 50)
    without = {name: array for name, array in archive.arrays.items() if name != "deferred_errors"}
    with pytest.raises(ModelFileError, match="deferred_errors"):
        calibration_from_archive(type(archive)(archive.facts, without), 50)
