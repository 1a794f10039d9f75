from dataclasses import replace

import numpy as np
import pytest

from ellipack.report import error_charts
from ellipack.report.error_charts import errors_over_time
from ellipack.report.record import Progress, Record, Residuals
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


def with_errors(errors: list[float]) -> Record:
    rows = list(range(1, len(errors) + 1))
    return replace(records.full(), residuals=Residuals(rows, errors, [0.0] * len(errors)))


def test_every_error_is_counted_or_said_to_be_outside() -> None:
    rng = np.random.default_rng(0)
    chart = error_charts.error_histogram(with_errors([*rng.normal(size=997).tolist(), 1e6, 1e6, -1e6]))
    assert chart is not None
    counted = sum(chart.data[0]["y"])
    assert 980 < counted < 1000
    assert chart.note == f"{1000 - counted} larger errors not shown."
    centres = np.array(chart.data[0]["x"])
    np.testing.assert_allclose(centres, -centres[::-1], atol=1e-9)


@pytest.mark.parametrize("errors", [[0.0, 0.0], [1e-12, 1e-12], [3.0, 3.0], [-1e300, 1e300]])
def test_errors_that_are_all_alike_or_enormous_can_be_drawn(errors: list[float]) -> None:
    record = with_errors(errors)
    histogram = error_charts.error_histogram(record)
    assert histogram is not None
    assert sum(histogram.data[0]["y"]) == 2
    for chart in (error_charts.predictions_and_labels(record), error_charts.errors_by_row(record)):
        assert chart is not None
        assert len(chart.data[0]["x"]) == 2
    low, high = error_charts.predictions_and_labels(record).layout["xaxis"]["range"]  # type: ignore[union-attr]  # seen
    assert low < min(0.0, *errors) <= max(0.0, *errors) < high


def test_a_chart_has_no_more_points_than_it_can_bear() -> None:
    record = with_errors(np.arange(10_000.0).tolist())
    chart = error_charts.errors_by_row(record)
    assert chart is not None
    rows = chart.data[0]["x"]
    assert len(rows) == 2000
    assert (rows[0], rows[-1]) == (1, 10_000)
    assert chart.data[0]["y"] == [row - 1 for row in rows]


def test_a_single_row_is_no_chart() -> None:
    record = with_errors([1.0])
    assert error_charts.predictions_and_labels(record) is None
    assert error_charts.error_histogram(record) is None
    assert error_charts.errors_by_row(record) is None


def test_centres_are_drawn_to_the_end_of_the_run() -> None:
    record = records.full()
    chart = error_charts.centers(record)
    assert chart is not None
    assert chart.data[0]["x"] == [*(phase.end for phase in record.phases), record.summary.rows]
    assert chart.data[0]["y"] == [*(phase.n_centers for phase in record.phases), record.n_centers]
    assert error_charts.centers(replace(record, phases=[])) is None


def test_speed_is_drawn_where_it_was_measured() -> None:
    record = records.full()
    chart = error_charts.speed(record)
    assert chart is not None
    assert list(zip(chart.data[0]["x"], chart.data[0]["y"], strict=True)) == record.speed
    assert error_charts.speed(replace(record, speed=[])) is None
