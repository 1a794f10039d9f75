"""The benchmark of live streams on a few rows."""

from benchmarks.live import measure_latency


def test_every_row_is_measured() -> None:
    delays = measure_latency(6, 0.0)
    assert len(delays) == 3
    assert (delays > 0).all()
