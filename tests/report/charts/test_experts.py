from dataclasses import replace

import numpy as np

from ellipack.report.charts.experts import expert_weights
from ellipack.report.record import Experts
from tests.report import records


def test_weights_stack_up_to_one_over_the_phases_and_the_end() -> None:
    record = records.full()
    chart = expert_weights(record)
    assert chart is not None
    ends = [*(phase.end for phase in record.phases), record.summary.rows]
    assert all(trace["x"] == ends for trace in chart.data)
    np.testing.assert_allclose(np.sum([trace["y"] for trace in chart.data], axis=0), 1)
    assert [trace["name"] for trace in chart.data][-1] == "all others"
    assert len({trace["fillcolor"] for trace in chart.data}) == len(chart.data) == 7
    heaviest = np.argmax(np.sum([phase.expert_weights for phase in record.phases], axis=0))
    assert chart.data[0]["name"] == record.experts.names[heaviest]
    assert chart.data[0]["y"][-1] == record.experts.weights[heaviest]


def test_few_experts_have_no_others_and_no_phase_is_needed() -> None:
    record = replace(records.full(), experts=Experts(["one", "two"], [0.25, 0.75]), phases=[])
    chart = expert_weights(record)
    assert chart is not None
    assert [(trace["name"], trace["y"]) for trace in chart.data] == [("two", [0.75, 0.75]), ("one", [0.25, 0.25])]
    assert "The heaviest at the end is two." in chart.spoken


def test_a_learner_without_experts_has_no_chart_of_them() -> None:
    phases = [replace(phase, expert_weights=[]) for phase in records.full().phases]
    assert expert_weights(replace(records.full(), experts=Experts([], []), phases=phases)) is None
