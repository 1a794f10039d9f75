from dataclasses import replace
from html import unescape

import numpy as np

from ellipack.report.formatting import clean
from ellipack.report.model_charts import (
    effective_rank_chart,
    expert_weight_chart,
    importance_chart,
    loading_chart,
    spectrum_chart,
    top_features,
)
from ellipack.report.record import Experts
from tests.report import records


def test_final_spectrum_stands_out_among_a_few_phases() -> None:
    record = records.full()
    chart = spectrum_chart(record)
    assert chart is not None
    *before, end = chart.data
    assert end["y"] == record.eigenvalues
    assert end["x"] == list(range(1, 15))
    assert [trace["opacity"] for trace in chart.data] == sorted(key.opacity for key in chart.legend)
    assert end["opacity"] == 1
    ends = {f"after row {phase.end:,}": phase.eigenvalues for phase in record.phases}
    assert len(before) == 4
    assert all(trace["y"] == ends[trace["name"]] for trace in before)
    assert before[0]["name"] == f"after row {record.phases[0].end}"


def test_only_the_largest_eigenvalues_are_shown() -> None:
    chart = spectrum_chart(records.wide(3000))
    assert chart is not None
    assert all(len(trace["y"]) == 40 for trace in chart.data)
    assert chart.note == "The 40 largest eigenvalues; 2,960 more are not shown."


def test_very_small_eigenvalues_are_omitted() -> None:
    record = replace(records.full(), phases=[], eigenvalues=[2.0, 1.0, 1e-300, 0.0])
    chart = spectrum_chart(record)
    assert chart is not None
    assert chart.data[0]["y"] == [2.0, 1.0, None, None]
    low, high = chart.layout["yaxis"]["range"]
    assert low < np.log10(1.0) < np.log10(2.0) < high
    assert high - low > 1  # so that there is more than one tick
    assert spectrum_chart(replace(record, eigenvalues=[0.0, 0.0])) is None
    assert spectrum_chart(replace(record, eigenvalues=[1.0])) is None


def test_effective_rank_is_drawn_by_phase() -> None:
    record = records.full()
    chart = effective_rank_chart(record)
    assert chart is not None
    assert chart.data[0]["x"] == [phase.end for phase in record.phases]
    assert chart.data[0]["y"] == [phase.effective_rank for phase in record.phases]
    assert effective_rank_chart(replace(record, phases=[])) is None


def test_most_important_features_come_first() -> None:
    record = records.wide(3000)
    assert record.importance is not None
    shares = [each.share for each in record.importance.groups if each.share is not None]
    chart = importance_chart(record)
    assert chart is not None
    assert chart.data[0]["x"] == sorted(shares, reverse=True)[:20]
    assert chart.data[0]["error_x"]["array"] == [0.01] * 20
    assert chart.note == "2,978 more columns are less important."
    weights = [record.directions[0].loadings[i] ** 2 for i in range(len(record.features))]
    assert [weights[i] for i in top_features(record)] == sorted(weights, reverse=True)[:20]


def test_names_are_truncated_beside_bars_and_complete_on_hover() -> None:
    record = records.hostile()
    assert record.importance is not None
    measured = [" with ".join(each.columns) for each in record.importance.groups if each.share is not None]
    features = [record.features[i] for i in top_features(record)]
    for chart, shown in ((importance_chart(record), measured), (loading_chart(record), features)):
        assert chart is not None
        labels = [unescape(label) for label in chart.layout["yaxis"]["ticktext"]]
        narrow = [unescape(label) for label in chart.narrow_layout["yaxis.ticktext"]]
        hovered = [unescape(name if isinstance(name, str) else name[0]) for name in chart.data[0]["customdata"]]
        names = [clean(name) for name in shown]
        assert hovered == names
        assert max(map(len, labels)) == 26
        assert max(map(len, narrow)) == 15
        for name, label, shorter in zip(names, labels, narrow, strict=True):
            assert name.startswith(label.rstrip("\u2026"))
            assert label.startswith(shorter.rstrip("\u2026"))


def test_loadings_have_a_row_per_feature_and_a_column_per_direction() -> None:
    record = records.full()
    chart = loading_chart(record)
    assert chart is not None
    expected = np.array([direction.loadings for direction in record.directions]).T[top_features(record)]
    np.testing.assert_array_equal(chart.data[0]["z"], expected)
    assert chart.data[0]["zmax"] == -chart.data[0]["zmin"] == np.abs(expected).max()
    assert loading_chart(replace(record, directions=[])) is None


def test_expert_weights_sum_to_one_after_every_phase_and_at_the_end() -> None:
    record = records.full()
    chart = expert_weight_chart(record)
    assert chart is not None
    ends = [*(phase.end for phase in record.phases), record.summary.rows]
    assert all(trace["x"] == ends for trace in chart.data)
    np.testing.assert_allclose(np.sum([trace["y"] for trace in chart.data], axis=0), 1)
    assert [trace["name"] for trace in chart.data][-1] == "all others"
    assert len({trace["fillcolor"] for trace in chart.data}) == len(chart.data) == 7
    ranked = np.argsort(record.experts.weights)[::-1]  # by the weight at the end, not over time
    shown = [(band["name"], band["y"][-1]) for band in chart.data[:-1]]
    assert shown == [(record.experts.names[k], record.experts.weights[k]) for k in ranked[: len(shown)]]


def test_expert_weights_with_few_experts_and_no_phases() -> None:
    record = replace(records.full(), experts=Experts(["one", "two"], [0.25, 0.75]), phases=[])
    chart = expert_weight_chart(record)
    assert chart is not None
    assert [(trace["name"], trace["y"]) for trace in chart.data] == [("two", [0.75, 0.75]), ("one", [0.25, 0.25])]
    assert "The largest weight at the end is that of two." in chart.description


def test_learner_without_experts_has_no_weight_chart() -> None:
    phases = [replace(phase, expert_weights=[]) for phase in records.full().phases]
    assert expert_weight_chart(replace(records.full(), experts=Experts([], []), phases=phases)) is None
