import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.report.headline import (
    Name,
    Sentence,
    build_headline,
    build_key_figures,
    build_warnings,
    compare_errors,
)
from ellipack.report.page import render_page
from ellipack.report.record import Record
from tests.report import records


def with_skill(skill: float | None) -> Record:
    record = records.full()
    return replace(record, summary=replace(record.summary, skill=skill))


def text_of(sentence: Sentence) -> str:
    return "".join(part.text if isinstance(part, Name) else part for part in sentence)


def rendered_headline(record: Record) -> str:
    (markup,) = re.findall("<h1>(.*)</h1>", render_page(record))
    return str(markup)


def test_headline_of_a_full_record() -> None:
    assert text_of(build_headline(records.full())) == (
        "rentals is predicted very well: the error over 17,379 rows is 68% lower than that of the running mean. "
        "It depends mostly on hour (49%), temperature (25%) and working day (12%)."
    )


@given(st.floats(-3, 1))
def test_headline_follows_the_skill(skill: float) -> None:
    text = text_of(build_headline(with_skill(skill)))
    assert ("well" in text) == (skill >= 0.1)
    assert ("no better than" in text) == (skill < 0.01)
    assert (" higher than that of the running mean" in text) == (skill < 0)


@pytest.mark.parametrize(
    ("importances", "text"),
    [
        ([0.9, 0.05, 0.05], "mean. It depends mostly on a (90%)."),
        ([0.1, 0.1, 0.8], "mean. It depends mostly on c (80%) and a (10%)."),
        ([0.34, 0.33, 0.33], "mean. None of the 3 features stands out."),
        ([1.0], "mean. The only feature is a."),
        ([], "% lower than that of the running mean."),
    ],
)
def test_headline_names_only_features_that_cover_most_of_the_importance(importances: list[float], text: str) -> None:
    names = list("abc"[: len(importances)])
    record = replace(records.full(), features=names, importances=importances, directions=[])
    assert text_of(build_headline(record)).endswith(text)


def test_headline_if_importance_is_spread_over_many_features() -> None:
    assert " The most important of 3,000 features are column " in text_of(build_headline(records.wide()))


def test_undefined_figures_are_omitted() -> None:
    assert text_of(build_headline(records.empty())) == "There are no predictions of y yet."
    assert (
        text_of(build_headline(records.one_row()))
        == "y is predicted over 1 row with an RMSE of 0.5. The only feature is x."
    )
    names = [figure.name for figure in build_key_figures(records.one_row())]
    assert names == ["RMSE", "Mean absolute error", "Effective rank", "Centers", "Rows"]
    assert [figure.name for figure in build_key_figures(records.empty())] == ["Centers", "Rows"]


def test_key_figures_come_from_the_summary() -> None:
    figures = {figure.name: (figure.value, figure.note) for figure in build_key_figures(records.full())}
    assert figures["RMSE"] == ("58.27", "label standard deviation: 181.4")
    assert figures["RMSE vs. running mean"] == ("68% lower", "running mean: 182.9")
    assert figures["RMSE vs. last value"] == ("47% lower", "last value: 109.6")
    assert figures["Effective rank"] == ("4", "of 14 features")
    assert figures["Rows"] == ("17,379", "12 skipped")


def test_warning_if_the_last_label_is_a_better_prediction() -> None:
    record = records.full()
    assert build_warnings(record) == []
    beaten = replace(record, summary=replace(record.summary, last_rmse=12.5))
    assert build_warnings(beaten) == ["Repeating the last label would be better: its RMSE is 12.5."]
    assert build_warnings(records.one_row()) == ["There are too few rows to show the error over time."]


def test_names_in_the_headline_are_text() -> None:
    tags = re.findall("<[^>]*>", rendered_headline(records.hostile()))
    assert set(tags) == {
        "<strong>",
        "<bdi>",
        "</bdi>",
        "</strong>",
    }
    long = replace(records.full(), target="x" * 500)
    assert "x" * 59 + "\u2026" in rendered_headline(long)


def test_compare_errors_tells_the_direction() -> None:
    assert compare_errors(0.0) == "0% lower"
    assert compare_errors(-0.5) == "50% higher"
