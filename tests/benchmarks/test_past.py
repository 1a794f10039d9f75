import numpy as np
import pytest

from benchmarks import past
from benchmarks.comparison.datasets import read_flights


def test_the_past_helps_by_key_and_does_no_harm_in_random_order() -> None:
    panel = past.measure(past.panel_stream(rows=1500, keys=20))
    assert panel.by_key is not None
    assert panel.ratio < 0.6
    assert panel.linear < 0.6
    random = past.measure(past.independent_stream(rows=1500))
    assert random.by_key is None
    assert random.ratio < 1.02
    assert 0.98 < random.linear <= 1


def test_linear_ratio_is_that_of_a_regression_on_the_last_error_of_the_key() -> None:
    rng = np.random.default_rng(0)
    errors, keys = rng.normal(size=40), rng.integers(3, size=40)
    for t in range(1, 40):
        errors[t] += 0.9 * max([0.0, *errors[:t][keys[:t] == keys[t]][-1:]])
    last = np.array([([0.0, *errors[:t][keys[:t] == keys[t]]])[-1] for t in range(40)])
    residuals = errors[20:] - last[20:] * (np.linalg.lstsq(last[20:, None], errors[20:], rcond=None)[0])
    expected = np.sqrt((residuals**2).sum() / (errors[20:] ** 2).sum())
    assert past.linear_ratio(errors, keys) == pytest.approx(expected)


@pytest.mark.parametrize("name", past.STREAMS)
def test_streams_are_in_order_and_have_finite_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "read_flights", lambda: read_flights().iloc[::20])
    stream = past.STREAMS[name]()
    assert np.isfinite(stream.X).all()
    assert np.isfinite(stream.y).all()
    assert len(stream.X) == len(stream.y) > 300
    assert stream.keys is None or len(stream.keys) == len(stream.y)


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    past.main(["--rows", "300", "--streams", "gasoline in countries"])
    printed = capsys.readouterr().out
    assert "gasoline in countries" in printed
    assert "geometric mean of the ratios" in printed
