from dataclasses import replace
from html import unescape

import numpy as np

from ellipack.report.charts.features import directions, importances, leading_features
from ellipack.report.text import clean
from tests.report import records


def test_the_features_that_count_most_come_first() -> None:
    record = records.wide(3000)
    leading = leading_features(record)
    assert [record.importances[i] for i in leading] == sorted(record.importances, reverse=True)[:20]
    chart = importances(record)
    assert chart is not None
    assert chart.data[0]["x"] == [record.importances[i] for i in leading]
    assert chart.note == "2,980 more features count less than these."


def test_names_are_short_beside_bars_and_whole_on_hover() -> None:
    record = records.hostile()
    for chart in (importances(record), directions(record)):
        assert chart is not None
        labels = [unescape(label) for label in chart.layout["yaxis"]["ticktext"]]
        narrow = [unescape(label) for label in chart.narrow["yaxis.ticktext"]]
        hovered = [unescape(name if isinstance(name, str) else name[0]) for name in chart.data[0]["customdata"]]
        names = [clean(record.features[i]) for i in leading_features(record)]
        assert hovered == names
        assert max(map(len, labels)) == 26
        assert max(map(len, narrow)) == 15
        for name, label, shorter in zip(names, labels, narrow, strict=True):
            assert name.startswith(label.rstrip("\u2026"))
            assert label.startswith(shorter.rstrip("\u2026"))


def test_loadings_stand_a_row_a_feature_and_a_column_a_direction() -> None:
    record = records.full()
    chart = directions(record)
    assert chart is not None
    expected = np.array([direction.loadings for direction in record.directions]).T[leading_features(record)]
    np.testing.assert_array_equal(chart.data[0]["z"], expected)
    assert chart.data[0]["zmax"] == -chart.data[0]["zmin"] == np.abs(expected).max()
    assert directions(replace(record, directions=[])) is None
