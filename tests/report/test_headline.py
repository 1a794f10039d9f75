import re
from dataclasses import replace
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.report.headline import cautions, compared, headline, key_figures
from ellipack.report.record import Record
from tests.report import records


def with_skill(skill: float | None) -> Record:
    record = records.full()
    return replace(record, summary=replace(record.summary, skill=skill))


def plain(written: str) -> str:
    return unescape(re.sub("<[^>]*>", "", written))


def test_the_headline_says_how_good_and_what_drives_it() -> None:
    assert plain(headline(records.full())) == (
        "rentals is predicted very well: over 17,379 rows the error is 68% less than the running mean's, "
        "driven mostly by hour (49%), temperature (25%) and working day (12%)."
    )


@given(st.floats(-3, 1))
def test_the_headline_flatters_no_run(skill: float) -> None:
    said = plain(headline(with_skill(skill)))
    assert ("well" in said) == (skill >= 0.1)
    assert ("no better than" in said) == (skill < 0.01)
    assert (" more than the running mean's" in said) == (skill < 0)


@pytest.mark.parametrize(
    ("importances", "said"),
    [
        ([0.9, 0.05, 0.05], "driven mostly by a (90%)."),
        ([0.1, 0.1, 0.8], "driven mostly by c (80%) and a (10%)."),
        ([0.34, 0.33, 0.33], "and none of the 3 features stands out."),
        ([1.0], "from a alone."),
        ([], "the running mean's."),
    ],
)
def test_no_more_features_are_named_than_tell_most_of_it(importances: list[float], said: str) -> None:
    names = list("abc"[: len(importances)])
    record = replace(records.full(), features=names, importances=importances, directions=[])
    assert plain(headline(record)).endswith(said)


def test_features_that_tell_little_do_not_drive_it() -> None:
    assert plain(headline(records.wide())).endswith("counting most.")


def test_what_is_not_defined_is_not_said() -> None:
    assert plain(headline(records.empty())) == "Nothing was predicted of y yet."
    assert plain(headline(records.one_row())) == "y is predicted over 1 row with an error of 0.5, from x alone."
    names = [figure.name for figure in key_figures(records.one_row())]
    assert names == ["Error (RMSE)", "Mean absolute error", "Effective rank", "Centres", "Rows"]
    assert [figure.name for figure in key_figures(records.empty())] == ["Centres", "Rows"]


def test_key_figures_are_the_summarys() -> None:
    figures = {figure.name: (figure.value, figure.note) for figure in key_figures(records.full())}
    assert figures["Error (RMSE)"] == ("58.27", "labels' standard deviation 181.4")
    assert figures["Against the running mean"] == ("68% less", "error, where that has 182.9")
    assert figures["Against the last value"] == ("47% less", "error, where that has 109.6")
    assert figures["Effective rank"] == ("4", "of 14 features")
    assert figures["Rows"] == ("17,379", "12 skipped")


def test_a_run_that_the_last_label_beats_is_warned_of() -> None:
    record = records.full()
    assert cautions(record) == []
    beaten = replace(record, summary=replace(record.summary, last_rmse=12.5))
    assert cautions(beaten) == ["Repeating the last label would have done better: its error is 12.5."]
    assert cautions(records.one_row()) == ["There were too few rows to draw how the error fell."]


def test_names_in_the_headline_are_text() -> None:
    said = headline(records.hostile())
    assert set(re.findall("<[^>]*>", said)) == {"<strong>", "<bdi>", "</bdi>", "</strong>"}
    long = replace(records.full(), target="x" * 500)
    assert "x" * 59 + "\u2026" in headline(long)


def test_compared_says_which_way() -> None:
    assert compared(0.0) == "0% less"
    assert compared(-0.5) == "50% more"
