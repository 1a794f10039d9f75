import numpy as np
import pytest

from benchmarks import intervals
from ellipack.learners.intervals import Intervals


def test_scores_are_those_of_the_definition() -> None:
    y = np.array([0.0] * 500 + [4.0] * 500)
    score = intervals.score_intervals(Intervals(np.full(1000, -1.0), np.full(1000, 1.0)), y, 0.8)
    unit = np.std(y[333:])
    assert score.covered == pytest.approx(167 / 667)
    assert score.worst_window == 0.0
    assert score.width == pytest.approx(2 / unit)
    assert score.score == pytest.approx((2 + 10 * 3 * 500 / 667) / unit)


def test_running_quantiles_use_earlier_labels_only() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=800)
    found = intervals.running_quantiles(np.zeros(800), y, 0.8)
    assert np.isinf(found.lower[:10]).all()
    assert (found.lower[700], found.upper[700]) == tuple(np.quantile(y[200:700], [(1 - 0.8) / 2, 1 - (1 - 0.8) / 2]))


def test_the_command_prints_tables(capsys: pytest.CaptureFixture[str]) -> None:
    intervals.main(["--rows", "240", "--streams", "friedman"])
    printed = capsys.readouterr().out
    assert "Intervals of 95%" in printed
    assert "streams with the best interval score" in printed


def test_costs_are_measured() -> None:
    costs = intervals.measure_cost(60, repeats=1)
    assert list(costs) == ["calibration alone", "PackingRegressor, 3 features", "MetricRegressor, 3 features"]
    assert min(costs.values()) > 0
