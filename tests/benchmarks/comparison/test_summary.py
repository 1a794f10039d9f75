"""Ratios, wins and losses by hand."""

import math

import pytest

from benchmarks.comparison.plots import pareto_front
from benchmarks.comparison.summary import Loss, Summary
from tests.benchmarks.comparison.fake_results import Errors, fake_results

ERRORS: Errors = {
    "one": {
        "MetricRegressor": [0.2, 0.4],
        "Packing": [0.1],
        "KNN": [0.6],
        "LightGBM": [0.5, "no"],
        "Last label": [0.9],
    },
    "two": {"MetricRegressor": [0.8, 0.8], "Packing": [0.9], "KNN": [0.4], "LightGBM": [0.2, 0.2], "Last label": [0.7]},
}


def test_means_and_half_ranges() -> None:
    summary = Summary(fake_results(ERRORS))
    assert summary.mean("one", "MetricRegressor") == pytest.approx(0.3)
    assert summary.half_range("one", "MetricRegressor") == pytest.approx(0.1)
    assert math.isnan(summary.half_range("one", "KNN"))  # a single run
    assert math.isnan(summary.mean("one", "LightGBM"))
    assert summary.failure("one", "LightGBM") == "no"
    assert summary.geometric_mean("KNN", "late_nrmse") == pytest.approx((0.6 * 0.4) ** 0.5)


def test_wins_losses_and_ratios() -> None:
    summary = Summary(fake_results(ERRORS))
    assert summary.best_peer("one", "streaming") == "KNN"
    assert summary.best_peer("one", "batch") is None
    assert summary.wins_against("KNN") == pytest.approx((1, 1, 0, (0.5 * 2.0) ** 0.5))
    assert summary.wins_against_best("streaming")[:3] == (1, 1, 0)
    assert summary.wins_against_best("batch") == pytest.approx((0, 1, 1, 4.0))
    assert summary.losses() == [
        Loss("two", "LightGBM", 0.8, 0.2),
        Loss("two", "KNN", 0.8, 0.4),
        Loss("two", "Last label", 0.8, 0.7),
    ]


def test_the_pareto_front_by_hand() -> None:
    points = {"cheap": (1.0, 9.0), "beaten": (3.0, 9.5), "middle": (2.0, 5.0), "dear": (8.0, 1.0), "same": (9.0, 1.0)}
    assert pareto_front(points) == ["cheap", "middle", "dear"]
