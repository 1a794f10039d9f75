"""Dates written in many formats are read exactly, formats are found, and what is not clear is asked for."""

import locale
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError, StreamError
from ellipack.tabular import CellOptions, TableBatch, TableEncoder
from ellipack.tabular.kind_inference import Sample, infer_kind
from ellipack.tabular.time_format import TimeFormat
from ellipack.tabular.time_inference import find_numeric_times, find_time_format

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2068, 1, 1)).map(lambda each: each.replace(microsecond=0))
DATES = ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%y", "%Y/%m/%d", "%d %b %Y", "%B %d, %Y", "%a, %d %b %Y", "%Y%m%d", "%Y-%j"]
CLOCKS = ["", " %H:%M:%S", " %I:%M:%S %p", "T%H:%M:%S.%f", " %H:%M:%S %z"]


@given(st.sampled_from(DATES), st.sampled_from(CLOCKS), st.lists(MOMENTS, min_size=1, max_size=5), st.booleans())
def test_times_are_read_as_strptime_reads_them(date: str, clock: str, moments: list[datetime], explicit: bool) -> None:
    assert locale.getlocale(locale.LC_TIME)[0] in (None, "C", "en_US")  # English names of months
    pattern = date + clock
    cells = [moment.replace(tzinfo=UTC).strftime(pattern) for moment in moments]
    parsed = TimeFormat(pattern if explicit else date).parse(pa.array([*cells, None, "NA", "x"]))
    expected = [datetime.strptime(cell, pattern).replace(tzinfo=UTC) for cell in cells]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert parsed.values[:-3].tolist() == [(each - epoch) // timedelta(microseconds=1) for each in expected]
    assert parsed.missing.tolist() == [False] * len(cells) + [True, True, False]
    assert parsed.invalid.tolist() == [False] * (len(cells) + 2) + [True]


@pytest.mark.parametrize(
    ("pattern", "cell", "expected"),
    [
        ("%d. %B %Y", "3. März 2014", "2014-03-03"),
        ("%d %b %Y", "2 août 2014", "2014-08-02"),
        ("%Y-%m", "2013-02", "2013-02-01"),
        ("%d/%m/%Y", "1/2/2014 9:05 p.m.", "2014-02-01T21:05"),
        ("%d/%m/%Y", "29/02/2012 23:59:59.5 +02:00", "2012-02-29T21:59:59.500"),
        ("%a, %d %b %Y", "Tue, 31 Dec 2013 10:00:00 EST", "2013-12-31T15:00"),
        ("%d/%b/%Y:%H:%M:%S %z", "10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36"),
        ("epoch", "1388448000.5", "2013-12-31T00:00:00.500"),
        ("epoch-ms", "1388448000000", "2013-12-31"),
    ],
)
def test_reads_national_forms_zones_and_epochs(pattern: str, cell: str, expected: str) -> None:
    parsed = TimeFormat(pattern).parse(pa.array([cell]))
    assert not parsed.invalid.any()
    assert parsed.values.astype("M8[us]")[0] == np.datetime64(expected)


@pytest.mark.parametrize("cell", ["30/02/2014", "29/02/2013", "00/01/2014", "01/13/2014", "01/01/2014 25:00", "1/1/14"])
def test_dates_that_do_not_exist_are_invalid(cell: str) -> None:
    assert TimeFormat("%d/%m/%Y").parse(pa.array([cell])).invalid.all()


@pytest.mark.parametrize(
    ("cells", "pattern"),
    [
        (["31/12/2013", "01/02/2014"], "%d/%m/%Y"),
        (["12/31/2013 10:00 AM", "1/2/2014 9:00 PM"], "%m/%d/%Y"),
        (["01.02.2014", "03.01.2014"], "%d.%m.%Y"),
        (["01/02/2014", "02/02/2014", "01/03/2014"], "%d/%m/%Y"),  # the other order would not rise
        (["2013-1-5", "2013-10-12"], "%Y-%m-%d"),
        (["2013-01", "2013-02"], "%Y-%m"),
        (["Jan 2013", "Feb 2013"], "%b %Y"),
        (["Tue, 31 Dec 2013 10:00:00 GMT"], "%a, %d %b %Y"),
        (["Tue Dec 31 10:00:00 CET 2013"], "%a %b %d %H:%M:%S %Z %Y"),
        (["9:05 pm", "12:30"], "time of day"),
    ],
)
def test_finds_the_format_of_all_values(cells: list[str], pattern: str) -> None:
    found = find_time_format(pa.array(cells))
    assert (found.format.pattern, found.share, found.rivals) == (pattern, 1.0, ())


def test_both_orders_may_rise() -> None:
    firsts = [f"0{i}/01/2013" for i in range(1, 8)]  # days of January, or months
    assert [each.pattern for each in find_time_format(pa.array(firsts)).rivals] == ["%m/%d/%Y"]
    hours = [f"01/0{day}/2013 {hour:02d}:00" for day in (1, 2, 3) for hour in range(24)]  # they do not jump by months
    assert find_time_format(pa.array(hours)) == (TimeFormat("%m/%d/%Y"), 1.0, ())


@pytest.mark.parametrize(
    ("name", "numbers", "pattern"),
    [
        ("date", [20130101, 20131231], "%Y%m%d"),
        ("x", [20130101, 20131231], None),  # few numbers, and the name does not tell
        ("x", [20130101, 20131231] * 10, "%Y%m%d"),
        ("date", [20130101, 20131331], None),
        ("month", [201301, 201302], "%Y%m"),
        ("ts", [1388448001, 1388448000], "epoch"),
        ("x", [*range(1388448000, 1388448030)], "epoch"),
        ("x", [*range(1388448030, 1388448000, -1)], None),
        ("time", [1.5, 2.5], None),
    ],
)
def test_numbers_are_dates_only_if_there_are_reasons(name: str, numbers: list[float], pattern: str | None) -> None:
    assert find_numeric_times(name, pa.array(numbers)) == (TimeFormat(pattern) if pattern else None)
    texts = pa.array([f"{number:g}" if number < 1000 else str(number) for number in numbers])
    assert find_numeric_times(name, texts) == (TimeFormat(pattern) if pattern else None)


def encoder_of(columns: dict[str, list[str]], **options: object) -> TableEncoder:
    rows = len(next(iter(columns.values())))
    batch = TableBatch.from_table(pa.table({**columns, "y": list(range(rows))}))
    encoder = TableEncoder.from_head(batch, "y", cells=CellOptions(**options))  # type: ignore[arg-type]
    encoder.partial_fit_transform(encoder.parse(batch))
    return encoder


UNCLEAR = ["01/02/2013", "03/01/2013", "02/02/2013"]


def test_an_unclear_order_is_asked_for_unless_another_column_decides() -> None:
    question = "--time-format 'a=%d/%m/%Y' or --time-format 'a=%m/%d/%Y'"
    with pytest.raises(StreamError, match=re.escape(question)):
        encoder_of({"a": UNCLEAR})
    assert "(%m/%d/%Y): a" in encoder_of({"a": UNCLEAR}, time_formats={"a": "%m/%d/%Y"}).describe_columns()
    both = encoder_of({"a": UNCLEAR, "b": ["12/31/2013"] * 3})
    assert both.describe_columns() == "dates or times (%m/%d/%Y): a, b"


def test_only_parts_that_vary_are_features_and_a_trend_if_it_is_wanted() -> None:
    xs = ["1", "2"] * 12
    hours = [f"2024-05-06 {hour:02d}:00" for hour in range(24)]
    assert encoder_of({"t": hours, "x": xs}).feature_names == ["x", "t hour sin", "t hour cos"]
    later = [f"2024-05-07 {hour:02d}:00" for hour in range(24)]
    batch = TableBatch.from_table(pa.table({"t": [*hours, *later], "y": [1.0] * 48}))
    encoder = TableEncoder.from_head(batch, "y", cells=CellOptions(trend=("t",)))
    first, second, third = encoder.partial_fit_transform(encoder.parse(batch))
    names = [f"t {part} {each}" for part in ("hour", "weekday", "day of year") for each in ("sin", "cos")]
    assert encoder.feature_names == ["t days since start", *names]
    assert [block.X.shape for block in (first, second, third)] == [(1, 1), (23, 3), (24, 7)]
    assert third.X[0, 0] == 1.0
    assert np.allclose(second.X[11, 1:], [0.0, -2.0])  # noon, measured from midnight
    months = [f"{year}-{month:02d}-01" for year in (2022, 2023) for month in range(1, 13)]
    assert encoder_of({"t": months, "x": xs}).feature_names == ["x", "t day of year sin", "t day of year cos"]
    years = [f"{year}-01-01" for year in range(1990, 2014)]
    assert encoder_of({"t": years, "x": xs}).describe_columns() == (
        "dates or times (no periodic part varies: --trend uses the days): t; numbers: x"
    )


def test_rows_that_disagree_later_name_cell_and_remedy() -> None:
    encoder = encoder_of({"t": ["31/12/2013", "30/12/2013"]})
    batch = TableBatch.from_table(pa.table({"t": ["12/31/2013"], "y": [1]}), "t.csv", 7)
    with pytest.raises(StreamError, match=r"t.csv, row 7, column 't': '12/31/2013' is not a date .* --time-format 't="):
        encoder.parse(batch)


@pytest.mark.parametrize(
    ("cells", "warning"),
    [
        (["31/12/2013", "soon", "30/12/2013"], "looks like dates (%d/%m/%Y): 1 of its first 3 values are not"),
        (
            ["31/12/2013", "soon", "30/12/2013"],
            "skip their rows (run with --kind 't=time' and --on-error skip), or leave it out (--drop 't')",
        ),
        (["2013 Q1", "2013 Q2"], "looks like dates, such as '2013 Q1': run with --time-format 't=FORMAT'"),
        (
            ["2013-12-31", "1 Jan 2014", "1/13/2014", "2014 Q1"],
            "looks like dates in several formats, such as '2013-12-31': write all in the same one, or run with --kind",
        ),
    ],
)
def test_text_that_looks_like_dates_is_said(cells: list[str], warning: str) -> None:
    (said,) = encoder_of({"t": cells}).warnings
    assert warning in said


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("%Q", "only %Y .* %Z, got %Q in '%Q'"),
        ("%Y-W%W", "only %Y .* %Z, got %W in '%Y-W%W': weeks are %G-W%V"),
        ("%", "only"),
        ("%H:%M", "%Y or %y"),
        ("day", "%Y or %y"),
        ("%d %d %Y", "each directive at most once"),
        ("%b %B %Y", "each directive at most once"),
        ("%G", "%G and %V"),
        ("%Y-W%V", "%G and %V, and no %Y"),
        ("%G-W%V %d", "%G and %V, and no %Y"),
    ],
)
def test_invalid_patterns_raise(pattern: str, reason: str) -> None:
    with pytest.raises(DomainError, match=f"a time format .*must contain {reason}"):
        CellOptions(time_formats={"t": pattern})


@pytest.mark.parametrize("pattern", ["%G-W%V", "%GW%V", "%G-W%V-%u", "%GW%V%u"])
def test_weeks_are_those_of_iso_8601(pattern: str) -> None:
    days = [date(year, 1, 1) + timedelta(days=i) for year in (1970, 1999, 2004, 2009, 2020, 2026) for i in range(-9, 9)]
    texts = [pattern for _ in days]
    for i, day in enumerate(days):
        year, week, weekday = day.isocalendar()
        for name, value in (("%G", f"{year}"), ("%V", f"{week:02d}"), ("%u", f"{weekday}")):
            texts[i] = texts[i].replace(name, value)
    found = find_time_format(pa.array(texts))
    assert (found.format.pattern, found.share) == (pattern, 1.0)
    expected = [day if "%u" in pattern else day - timedelta(days=day.weekday()) for day in days]
    assert found.format.parse(pa.array(texts)).values.astype("M8[us]").astype("M8[D]").tolist() == expected


def test_weeks_that_do_not_exist_are_invalid() -> None:
    cells = TimeFormat("%G-W%V-%u").parse(
        pa.array(["2024-W53-1", "2024-W00-1", "2020-W53-7", "2020-W54-1", "2020-W01-0"])
    )
    assert cells.invalid.tolist() == [True, True, False, True, True]


def test_no_other_format_is_suggested_that_can_not_fit() -> None:
    encoder = encoder_of({"t": ["31/12/2013", "30/12/2013"]}, time_formats={"t": "%d/%m/%Y"})
    (column,) = encoder._columns
    assert column.explain_invalid("2013-12-31") == "'2013-12-31' is not a date as those of the first rows, %d/%m/%Y"
    assert column.explain_invalid("12/31/2013").endswith(
        "if %m/%d/%Y fits all rows, run with --time-format 't=%m/%d/%Y' from the first row"
    )


ZONED = [f"2024-01-{1 + t // 24:02d} {t % 24:02d}:00+01:00" for t in range(40)]
NAIVE = [f"2024-02-{1 + t // 24:02d} {t % 24:02d}:00" for t in range(40)]


@pytest.mark.parametrize(
    ("first", "other", "reason"),
    [
        (ZONED, NAIVE[5], "'2024-02-01 05:00' has no time zone, but the times of the first rows have one"),
        (NAIVE, ZONED[5], "'2024-01-01 05:00+01:00' has a time zone, but the times of the first rows have none"),
        (NAIVE, "2024-01-01T05:00:00.123Z", "'2024-01-01T05:00:00.123Z' has a time zone, but the times of the first"),
        (["1/2/2024 5:00 PM -05"] * 40, "1/2/2024 5:00 PM", "'1/2/2024 5:00 PM' has no time zone, but the times of"),
        (["31.12.2024, 17:00"] * 40, "31.12.2024, 17:00 CET", "'31.12.2024, 17:00 CET' has a time zone, but the times"),
    ],
)
@pytest.mark.parametrize("is_given", [False, True])
def test_all_times_of_a_column_have_a_time_zone_or_none(
    first: list[str], other: str, reason: str, is_given: bool
) -> None:
    pattern = "iso" if "-0" in first[0][:6] else "%d.%m.%Y" if "." in first[0] else "%m/%d/%Y"
    formats = {"t": pattern} if is_given or "/" in pattern else {}
    encoder = TableEncoder.from_dict(encoder_of({"t": first}, time_formats=formats).to_dict())
    later: dict[str, list[Any]] = {"t": [first[1], "NA", other, first[2], other], "y": [1.0] * 5}
    for size in (1, 2, 5):
        start = 2 - 2 % size  # of the batch with row 3
        part = pa.table({name: cells[start : start + size] for name, cells in later.items()})
        with pytest.raises(StreamError, match=f"row 3, column 't': {re.escape(reason)}"):
            encoder.parse(TableBatch.from_table(part, first=1 + start))


def test_times_with_and_without_a_time_zone_in_the_first_rows_are_said() -> None:
    (said,) = infer_kind(Sample.of("t", pa.array([*ZONED, NAIVE[5], *ZONED]))).warnings
    assert said == (
        "column 't' is treated as dates or times, although 1 of its first 81 values are not, such as "
        "'2024-02-01 05:00' in row 41; --on-error skip skips such rows"
    )
    (said,) = infer_kind(Sample.of("t", pa.array([*ZONED, *NAIVE]))).warnings
    assert "looks like dates (iso): 40 of its first 80 values are not, such as '2024-02-01 00:00' in row 41" in said


def test_a_date_has_no_time_zone_to_miss() -> None:
    days = ["2024-01-01", "2024-01-02", "2024-01-03"]
    for cells in ([*ZONED, *days], [*NAIVE, *days], [*days, *NAIVE], days):
        assert not TimeFormat().with_zone_of(pa.array(cells)).parse(pa.array(cells)).invalid.any()
        assert encoder_of({"t": cells}).warnings == []
    assert TimeFormat().with_zone_of(pa.array(days)).has_zone is None
