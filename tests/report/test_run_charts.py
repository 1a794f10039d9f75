from dataclasses import replace

import numpy as np
import pytest

from ellipack.report import run_charts
from ellipack.report.record import Progress, Record, SampledRows
from ellipack.report.run_charts import error_chart
from tests.report import records


def test_error_chart_has_predictions_and_two_baselines() -> None:
    record = records.full()
    chart = error_chart(record)
    assert chart is not None
    drawn = {trace["name"]: trace for trace in chart.data}
    assert drawn["predictions"]["y"] == record.progress.rmse
    assert drawn["running mean"]["y"] == record.progress.mean_rmse
    assert drawn["last value"]["y"] == record.progress.last_rmse
    assert all(trace["x"] == record.progress.end for trace in chart.data)
    assert [key.name for key in chart.legend] == ["predictions", "running mean", "last value"]
    assert len({trace["line"]["dash"] for trace in chart.data}) == 3  # distinguishable without colors


def test_undefined_baseline_is_not_drawn() -> None:
    record = replace(records.full(), progress=Progress([1, 2], [0.5, 0.25], [0.5, 1.0], [None, None]))
    chart = error_chart(record)
    assert chart is not None
    assert {trace["name"] for trace in chart.data} == {"predictions", "running mean"}
    assert len(chart.legend) == 2


def with_errors(errors: list[float]) -> Record:
    rows = list(range(1, len(errors) + 1))
    return replace(records.full(), residuals=SampledRows(rows, errors, [0.0] * len(errors)))


def test_every_residual_is_in_the_histogram_or_counted_as_outside() -> None:
    rng = np.random.default_rng(0)
    chart = run_charts.residual_histogram(with_errors([*rng.normal(size=997).tolist(), 1e6, 1e6, -1e6]))
    assert chart is not None
    counted = sum(chart.data[0]["y"])
    assert 980 < counted < 1000
    assert chart.note == f"{1000 - counted} larger residuals not shown."
    bin_centers = np.array(chart.data[0]["x"])
    np.testing.assert_allclose(bin_centers, -bin_centers[::-1], atol=1e-9)


@pytest.mark.parametrize("errors", [[0.0, 0.0], [0.0, 5e-324], [1e-12, 1e-12], [3.0, 3.0], [-1e300, 1e300]])
def test_constant_tiny_and_huge_residuals_can_be_drawn(errors: list[float]) -> None:
    record = with_errors(errors)
    histogram = run_charts.residual_histogram(record)
    assert histogram is not None
    assert sum(histogram.data[0]["y"]) == 2
    for chart in (run_charts.prediction_chart(record), run_charts.residual_chart(record)):
        assert chart is not None
        assert len(chart.data[0]["x"]) == 2
    low, high = run_charts.prediction_chart(record).layout["xaxis"]["range"]  # type: ignore[union-attr]  # seen
    assert low < min(0.0, *errors) <= max(0.0, *errors) < high


def test_number_of_points_is_limited() -> None:
    record = with_errors(np.arange(10_000.0).tolist())
    chart = run_charts.residual_chart(record)
    assert chart is not None
    rows = chart.data[0]["x"]
    assert len(rows) == 800
    assert (rows[0], rows[-1]) == (1, 10_000)
    assert chart.data[0]["y"] == [row - 1 for row in rows]


def test_single_row_has_no_residual_charts() -> None:
    record = with_errors([1.0])
    assert run_charts.prediction_chart(record) is None
    assert run_charts.residual_histogram(record) is None
    assert run_charts.residual_chart(record) is None


def test_centers_are_drawn_to_the_end_of_the_run() -> None:
    record = records.full()
    chart = run_charts.center_chart(record)
    assert chart is not None
    assert chart.data[0]["x"] == [*(phase.end for phase in record.phases), record.summary.rows]
    assert chart.data[0]["y"] == [*(phase.n_centers for phase in record.phases), record.n_centers]
    assert run_charts.center_chart(replace(record, phases=[])) is None


def test_speed_is_drawn_where_it_was_measured() -> None:
    record = records.full()
    chart = run_charts.speed_chart(record)
    assert chart is not None
    assert list(zip(chart.data[0]["x"], chart.data[0]["y"], strict=True)) == record.speed
    assert run_charts.speed_chart(replace(record, speed=[])) is None


def test_axes_of_time_show_dates_where_rows_have_them() -> None:
    record = records.full()
    sample = record.residuals
    days = np.datetime64("2024-03-01") + np.arange(len(sample.rows))
    dated = replace(record, residuals=replace(sample, times=[f"{day}T00:00:00" for day in days]))
    for build in (run_charts.error_chart, run_charts.time_chart, run_charts.residual_chart):
        by_row, by_date = build(record), build(dated)
        assert by_row is not None
        assert by_date is not None
        assert "type" not in by_row.layout["xaxis"]
        assert by_date.layout["xaxis"]["type"] == "date"
        assert all(isinstance(x, str) for trace in by_date.data for x in trace["x"])
    chart = run_charts.time_chart(dated)
    assert chart is not None
    label, prediction = chart.data
    assert (label["x"][-1], label["y"][-1]) == (dated.residuals.times[-1], sample.labels[-1])
    assert prediction["y"][-1] == sample.predictions[-1]
    assert len(label["x"]) == 400
