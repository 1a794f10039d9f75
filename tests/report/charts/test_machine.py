from dataclasses import replace

from ellipack.report.charts import machine
from tests.report import records


def test_centres_are_drawn_to_the_end_of_the_run() -> None:
    record = records.full()
    chart = machine.centers(record)
    assert chart is not None
    assert chart.data[0]["x"] == [*(phase.end for phase in record.phases), record.summary.rows]
    assert chart.data[0]["y"] == [*(phase.n_centers for phase in record.phases), record.n_centers]
    assert machine.centers(replace(record, phases=[])) is None


def test_speed_is_drawn_where_it_was_measured() -> None:
    record = records.full()
    chart = machine.speed(record)
    assert chart is not None
    assert list(zip(chart.data[0]["x"], chart.data[0]["y"], strict=True)) == record.speed
    assert machine.speed(replace(record, speed=[])) is None
