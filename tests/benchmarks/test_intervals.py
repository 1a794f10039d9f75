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
    predictions, y = rng.normal(size=(2, 800))
    found = intervals.RunningQuantiles(predictions, y).intervals(0.8)
    assert np.isinf(found.lower[:10]).all()
    assert np.isinf(found.upper[:10]).all()
    for t, first in ((10, 0), (300, 0), (700, 200), (799, 299)):
        expected = predictions[t] + np.quantile((y - predictions)[first:t], [0.1, 0.9])
        np.testing.assert_allclose([found.lower[t], found.upper[t]], expected, rtol=1e-12)


def test_quantiles_in_hindsight_contain_as_many_labels() -> None:
    y = np.random.default_rng(1).normal(size=2000) * np.linspace(2, 1, 2000)  # errors shrink
    quantiles = intervals.RunningQuantiles(np.zeros(2000), y)
    assert intervals.score_intervals(quantiles.intervals(0.8), y, 0.8).covered > 0.81
    found = intervals.score_intervals(quantiles.intervals_around(0.8), y, 0.8).covered
    assert found == pytest.approx(0.8, abs=0.002)


def test_the_command_prints_tables(capsys: pytest.CaptureFixture[str]) -> None:
    intervals.main(["--rows", "120", "--streams", "friedman", "planes2d", "--jobs", "2"])
    printed = capsys.readouterr().out
    assert "Intervals of 95%" in printed
    assert "streams with the best interval score" in printed
    assert "others with as many inside" in printed
    assert printed.index("friedman") < printed.index("planes2d")


def test_costs_are_measured() -> None:
    costs = intervals.measure_cost(60, repeats=1)
    assert costs.keys() >= {
        intervals.CALIBRATION,
        intervals.DEFERRED,
        intervals.FEW_FEATURES + intervals.WITH_INTERVALS,
    }
    assert min(costs.values()) > 0
