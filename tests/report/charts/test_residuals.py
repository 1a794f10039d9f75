from dataclasses import replace

import numpy as np
import pytest

from ellipack.report.charts import residuals
from ellipack.report.record import Record, Residuals
from tests.report import records


def with_errors(errors: list[float]) -> Record:
    rows = list(range(1, len(errors) + 1))
    return replace(records.full(), residuals=Residuals(rows, errors, [0.0] * len(errors)))


def test_every_error_is_counted_or_said_to_be_outside() -> None:
    rng = np.random.default_rng(0)
    chart = residuals.error_histogram(with_errors([*rng.normal(size=997).tolist(), 1e6, 1e6, -1e6]))
    assert chart is not None
    counted = sum(chart.data[0]["y"])
    assert 980 < counted < 1000
    assert chart.note == f"{1000 - counted} larger errors not shown."
    centres = np.array(chart.data[0]["x"])
    np.testing.assert_allclose(centres, -centres[::-1], atol=1e-9)


@pytest.mark.parametrize("errors", [[0.0, 0.0], [1e-12, 1e-12], [3.0, 3.0], [-1e300, 1e300]])
def test_errors_that_are_all_alike_or_enormous_can_be_drawn(errors: list[float]) -> None:
    record = with_errors(errors)
    histogram = residuals.error_histogram(record)
    assert histogram is not None
    assert sum(histogram.data[0]["y"]) == 2
    for chart in (residuals.predictions_and_labels(record), residuals.errors_by_row(record)):
        assert chart is not None
        assert len(chart.data[0]["x"]) == 2
    low, high = residuals.predictions_and_labels(record).layout["xaxis"]["range"]  # type: ignore[union-attr]  # seen
    assert low < min(0.0, *errors) <= max(0.0, *errors) < high


def test_a_chart_has_no_more_points_than_it_can_bear() -> None:
    record = with_errors(np.arange(10_000.0).tolist())
    chart = residuals.errors_by_row(record)
    assert chart is not None
    rows = chart.data[0]["x"]
    assert len(rows) == 2000
    assert (rows[0], rows[-1]) == (1, 10_000)
    assert chart.data[0]["y"] == [row - 1 for row in rows]


def test_a_single_row_is_no_chart() -> None:
    record = with_errors([1.0])
    assert residuals.predictions_and_labels(record) is None
    assert residuals.error_histogram(record) is None
    assert residuals.errors_by_row(record) is None
