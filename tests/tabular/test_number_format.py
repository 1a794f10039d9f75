"""Numbers written in many formats are read exactly, in whatever batches, and formats are found."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import ModelFileError
from ellipack.tabular.number_column import explain_invalid_number
from ellipack.tabular.number_format import (
    PLAIN,
    NumberFormat,
    Separators,
    find_number_format,
    find_usual_separators,
)

FORMATS = st.builds(
    NumberFormat,
    st.sampled_from([".", ","]),
    st.sampled_from(["", " ", "'", "_", "other"]),
    st.sampled_from(["", "$", "€", "USD"]),
    st.sampled_from(["", "%", "km", "°C"]),
).map(
    lambda each: each if each.thousands != "other" else NumberFormat(each.decimal, {".": ",", ",": "."}[each.decimal])
)


def written(digits: str, decimals: str, format: NumberFormat) -> str:
    """Write a number, with groups of three digits."""
    groups = [digits[max(0, end - 3) : end] for end in range(len(digits), 0, -3)][::-1]
    number = format.thousands.join(groups) + (format.decimal + decimals if decimals else "")
    return number + (f" {format.unit}" if format.unit else "")


@given(FORMATS, st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 999), st.sampled_from("+-(s")), min_size=1))
def test_numbers_of_any_format_are_read_exactly(format: NumberFormat, numbers: list[tuple[int, int, str]]) -> None:
    cells, expected = [], []
    for whole, part, style in numbers:
        text, currency = written(str(whole), f"{part:03d}", format), format.currency
        cells.append(
            {"+": f"{currency}{text}", "-": f"-{currency}{text}", "(": f"({currency} {text})"}.get(style, text)
        )
        expected.append((-1.0 if style in "-(" else 1.0) * float(f"{whole}.{part:03d}"))
    column = pa.array([*cells, None, "NA"])
    parsed = format.parse(column)
    assert not parsed.invalid.any()
    assert parsed.values[:-2].tolist() == expected
    assert np.isnan(parsed.values[-2:]).all()
    singles = [format.parse(column.slice(i, 1)).values[0] for i in range(len(cells))]
    assert singles == expected
    assert NumberFormat.from_dict(format.to_dict()) == format


@pytest.mark.parametrize(
    ("values", "format"),
    [
        (["1", "2.5", "-3e4"], PLAIN),
        (["1.234", "5.678"], PLAIN),
        (["0,33", "1"], NumberFormat(",")),
        (["0,123", "1,234"], NumberFormat(",")),
        (["1.234,5", "2"], NumberFormat(",", ".")),
        (["1.234.567", "2"], NumberFormat(",", ".")),
        (["1,234.5", "2"], NumberFormat(".", ",")),
        (["12,34,567"], NumberFormat(".", ",")),
        (["1\u202f000,5", "3"], NumberFormat(",", " ")),
        (["1\u2019000.5", "\u22122"], NumberFormat(".", "'")),
        (["$1,234.50", "($5.00)"], NumberFormat(".", ",", "$")),
        (["5 EUR", "6,5 EUR", "7"], NumberFormat(",", "", "EUR")),
        (["12%", "5 %"], NumberFormat(unit="%")),
        (["5 km", "7,5 km"], NumberFormat(",", unit="km")),
    ],
)
def test_finds_the_format_of_all_values(values: list[str], format: NumberFormat) -> None:
    found = find_number_format(pa.array(values))
    assert (found.format, found.share) == (format, 1.0)


@pytest.mark.parametrize(
    "values",
    [["12:30", "9:05"], ["2013-01-01"], ["1.2.3"], ["(5", "5)"], ["--5"], ["a1", "a2"], ["1st", "2nd"], ["5pm", "3pm"]],
)
def test_other_texts_are_not_numbers(values: list[str]) -> None:
    assert find_number_format(pa.array(values)).share == 0


@pytest.mark.parametrize(("values", "share"), [(["5%", "6", "7%"], 2 / 3), (["$5", "€6"], 0.5), (["1,5", "2.5"], 0.5)])
def test_values_of_several_formats_do_not_agree(values: list[str], share: float) -> None:
    assert find_number_format(pa.array(values)).share == pytest.approx(share)


def test_other_columns_decide_what_a_single_separator_means() -> None:
    thousands = find_number_format(pa.array(["1,234", "500"]))
    assert thousands.format == NumberFormat(".", ",")
    assert thousands.is_ambiguous
    usual = find_usual_separators([find_number_format(pa.array(["0,5"])), thousands])
    assert usual == Separators(",")
    found = find_number_format(pa.array(["1,234", "500"]), usual=usual)
    assert (found.format, found.is_ambiguous) == (NumberFormat(","), False)
    assert find_number_format(pa.array(["1.234", "5.678"]), usual=usual).format == NumberFormat(",", ".")
    contrary = [find_number_format(pa.array([text])) for text in ("0,5", "0.5")]
    assert find_usual_separators(contrary) == Separators()


def test_a_point_before_three_digits_is_decimal_unless_it_is_said_or_shown() -> None:
    values = pa.array(["1.101", "2.202"])
    found = find_number_format(values)
    assert (found.format, found.is_ambiguous, found.is_decisive) == (PLAIN, False, False)
    for options in ({"given": Separators(",", ".")}, {"usual": Separators(",")}):
        assert find_number_format(values, **options).format.parse(values).values.tolist() == [1101, 2202]


@pytest.mark.parametrize(
    ("value", "format", "message"),
    [
        ("1,234.5", PLAIN, "'1,234.5' is not a number: if all .* run with --thousands ','"),
        ("0,5", PLAIN, "'0,5' is not a number: if all .* run with --decimal ,"),
        ("7", NumberFormat(unit="%"), r"'7' is not a number \(in %\), as those of the first rows are"),
        ("1e400", NumberFormat(","), r"'1e400' is too large \(the maximum is 1e\+150\)"),
        ("x", NumberFormat(",", "."), r"'x' is not a number \(decimal comma, thousands separated by '.'\)"),
    ],
)
def test_errors_say_what_to_do(value: str, format: NumberFormat, message: str) -> None:
    assert re.match(message, explain_invalid_number(value, format, 1e150))


@pytest.mark.parametrize("change", [{"decimal": ";"}, {"thousands": "."}, {"currency": "x"}, {"unit": "5"}])
def test_invalid_saved_formats_raise(change: dict[str, str]) -> None:
    with pytest.raises(ModelFileError, match="the saved encoder is invalid"):
        NumberFormat.from_dict(PLAIN.to_dict() | change)
