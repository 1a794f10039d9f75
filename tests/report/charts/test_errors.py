from dataclasses import replace

from ellipack.report.charts.errors import errors_over_time
from ellipack.report.record import Progress
from tests.report import records


def test_the_three_errors_are_drawn_over_the_rows() -> None:
    record = records.full()
    chart = errors_over_time(record)
    assert chart is not None
    drawn = {trace["name"]: trace for trace in chart.data}
    assert drawn["predictions"]["y"] == record.progress.rmse
    assert drawn["running mean"]["y"] == record.progress.mean_rmse
    assert drawn["last value"]["y"] == record.progress.last_rmse
    assert all(trace["x"] == record.progress.end for trace in chart.data)
    assert [key.name for key in chart.keys] == ["predictions", "running mean", "last value"]
    assert len({trace["line"]["dash"] for trace in chart.data}) == 3  # told apart without colours too


def test_a_guess_that_is_not_defined_is_not_drawn() -> None:
    record = replace(records.full(), progress=Progress([1, 2], [0.5, 0.25], [0.5, 1.0], [None, None]))
    chart = errors_over_time(record)
    assert chart is not None
    assert {trace["name"] for trace in chart.data} == {"predictions", "running mean"}
    assert len(chart.keys) == 2
