import numpy as np
import pytest

from benchmarks import past


def test_the_past_helps_by_key_and_does_no_harm_in_random_order() -> None:
    panel = past.measure(past.panel_stream(rows=1500, keys=20))
    assert panel.by_key is not None
    assert panel.ratio < 0.6
    random = past.measure(past.independent_stream(rows=1500))
    assert random.by_key is None
    assert random.ratio < 1.02


@pytest.mark.parametrize("name", past.STREAMS)
def test_streams_are_in_order_and_have_finite_rows(name: str) -> None:
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
