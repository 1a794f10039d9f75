from dataclasses import replace

import numpy as np

from ellipack.report.charts.spectrum import effective_rank, spectrum
from tests.report import records


def test_the_spectrum_at_the_end_stands_out_among_a_few_phases() -> None:
    record = records.full()
    chart = spectrum(record)
    assert chart is not None
    *before, end = chart.data
    assert end["y"] == record.eigenvalues
    assert end["x"] == list(range(1, 15))
    assert [trace["opacity"] for trace in chart.data] == sorted(key.opacity for key in chart.keys)
    assert end["opacity"] == 1
    ends = {f"after row {phase.end:,}": phase.eigenvalues for phase in record.phases}
    assert len(before) == 4
    assert all(trace["y"] == ends[trace["name"]] for trace in before)
    assert before[0]["name"] == f"after row {record.phases[0].end}"


def test_of_thousands_of_eigenvalues_the_first_are_shown() -> None:
    chart = spectrum(records.wide(3000))
    assert chart is not None
    assert all(len(trace["y"]) == 40 for trace in chart.data)
    assert chart.note == "The largest 40; 2,960 more are not shown."


def test_eigenvalues_too_small_for_the_scale_are_left_out() -> None:
    record = replace(records.full(), phases=[], eigenvalues=[2.0, 1.0, 1e-300, 0.0])
    chart = spectrum(record)
    assert chart is not None
    assert chart.data[0]["y"] == [2.0, 1.0, None, None]
    low, high = chart.layout["yaxis"]["range"]
    assert low < np.log10(1.0) < np.log10(2.0) < high
    assert high - low > 1  # so that there is more than one tick
    assert spectrum(replace(record, eigenvalues=[0.0, 0.0])) is None
    assert spectrum(replace(record, eigenvalues=[1.0])) is None


def test_the_effective_rank_is_drawn_phase_by_phase() -> None:
    record = records.full()
    chart = effective_rank(record)
    assert chart is not None
    assert chart.data[0]["x"] == [phase.end for phase in record.phases]
    assert chart.data[0]["y"] == [phase.effective_rank for phase in record.phases]
    assert effective_rank(replace(record, phases=[])) is None
