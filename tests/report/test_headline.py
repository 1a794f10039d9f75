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
from ellipack.report.record import ColumnShare, ImportanceRecord, Record
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
        "Recent values explain 62%, features 31%, 7.0% both. "
        "It depends mostly on hour (49% \N{PLUS-MINUS SIGN} 1.0%), temperature (25% \N{PLUS-MINUS SIGN} 1.0%) and "
        "working day (12% \N{PLUS-MINUS SIGN} 1.0%)."
    )


@given(st.floats(-3, 1))
def test_headline_follows_the_skill(skill: float) -> None:
    text = text_of(build_headline(with_skill(skill)))
    assert ("well" in text) == (skill >= 0.1)
    assert ("no better than" in text) == (skill < 0.01)
    assert (" higher than that of the running mean" in text) == (skill < 0)


def share(name: str, value: float | None, std: float = 0.01) -> ColumnShare:
    is_driver = value is not None and value > max(0.05, 3 * std)
    return ColumnShare([name], 50, value, std, value, value, None if value is None else std, value, std, is_driver)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ([share("a", 0.9), share("b", 0.05)], "mean. It depends mostly on a (90% ± 1.0%)."),
        (
            [share("c", 0.7), share("a", 0.2), share("b", 0.1)],
            "It depends mostly on c (70% ± 1.0%) and a (20% ± 1.0%).",
        ),
        ([share("a", 0.6, 0.3), share("b", 0.4, 0.3)], "mean. No column matters beyond doubt."),
        ([share("a", None)], "mean. It is too early to say what drives it."),
    ],
)
def test_headline_names_drivers_only_where_the_standard_error_allows(columns: list[ColumnShare], text: str) -> None:
    record = replace(records.full(), importance=ImportanceRecord(columns, columns, [], None, 1.0))
    assert text_of(build_headline(record)).endswith(text)


def test_headline_of_a_learner_that_does_not_measure_importance() -> None:
    record = replace(records.full(), importance=None)
    assert text_of(build_headline(record)).endswith("% lower than that of the running mean.")


def test_headline_if_importance_is_spread_over_many_features() -> None:
    assert "No column matters beyond doubt." in text_of(build_headline(records.wide()))


def test_undefined_figures_are_omitted() -> None:
    assert text_of(build_headline(records.empty())) == "There are no predictions of y yet."
    assert text_of(build_headline(records.one_row())) == "y is predicted over 1 row with an RMSE of 0.5."
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
    text = text_of(build_headline(replace(record, summary=replace(record.summary, rmse=15.0, last_rmse=12.5))))
    assert text.startswith(
        "rentals is predicted no better than by its last label: the error over 17,379 rows is 20% higher than if the "
        "last label is repeated. Recent values explain 62%"
    )
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
