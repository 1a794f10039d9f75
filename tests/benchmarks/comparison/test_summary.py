"""Ratios, wins and losses by hand."""

import math

import pytest

from benchmarks.comparison.plots import front
from benchmarks.comparison.summary import Loss, Standings
from tests.benchmarks.comparison.fake_results import Errors, made

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


def test_means_and_spreads() -> None:
    standings = Standings(made(ERRORS))
    assert standings.mean("one", "MetricRegressor") == pytest.approx(0.3)
    assert standings.spread("one", "MetricRegressor") == pytest.approx(0.1)
    assert math.isnan(standings.spread("one", "KNN"))  # one run has none
    assert math.isnan(standings.mean("one", "LightGBM"))
    assert standings.failure("one", "LightGBM") == "no"
    assert standings.typical("KNN", "late") == pytest.approx((0.6 * 0.4) ** 0.5)


def test_wins_losses_and_ratios() -> None:
    standings = Standings(made(ERRORS))
    assert standings.best_of("one", "streaming") == "KNN"
    assert standings.best_of("one", "batch") is None
    assert standings.against("KNN") == pytest.approx((1, 1, 0, (0.5 * 2.0) ** 0.5))
    assert standings.against_best("streaming")[:3] == (1, 1, 0)
    assert standings.against_best("batch") == pytest.approx((0, 1, 1, 4.0))
    assert standings.losses() == [
        Loss("two", "LightGBM", 0.8, 0.2),
        Loss("two", "KNN", 0.8, 0.4),
        Loss("two", "Last label", 0.8, 0.7),
    ]


def test_the_front_is_of_those_that_none_beats_in_both() -> None:
    points = {"cheap": (1.0, 9.0), "beaten": (3.0, 9.5), "middle": (2.0, 5.0), "dear": (8.0, 1.0), "same": (9.0, 1.0)}
    assert front(points) == ["cheap", "middle", "dear"]
