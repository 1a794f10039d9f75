import html
import json
import math
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.report import formatting
from ellipack.report.page import page_environment

anything = st.text(st.characters(exclude_categories=()))  # including lone surrogates


class Reader(HTMLParser):
    """Text, tags and comments of HTML as a browser reads it."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.feed(markup)
        self.close()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.texts += [value or "" for _, value in attrs]

    def handle_comment(self, data: str) -> None:
        self.tags.append("comment")


def tojson(value: object) -> str:
    return page_environment().from_string("{{ value | tojson }}").render(value=value)


@given(anything)
def test_clean_text_is_one_printable_line(name: str) -> None:
    shown = formatting.clean(name)
    shown.encode()
    assert len(shown.splitlines()) <= 1
    assert "\0" not in shown
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert formatting.clean(shown) == shown


def test_clean_keeps_international_text() -> None:
    for name in ("Größe (m²)", "温度", "می‌خواهم", "👩‍🔬 <b>", "naïve"):
        assert formatting.clean(name) == name


@given(anything)
def test_text_in_html_stays_text(name: str) -> None:
    for template in ("{{ name }}", '<i title="{{ name }}"></i>'):
        reader = Reader(page_environment().from_string(template).render(name=name))
        assert "".join(reader.texts) == formatting.clean(name)
        assert set(reader.tags) <= {"i"}


@given(anything, st.integers(2, 30))
def test_text_in_a_chart_has_no_tag_and_is_short(name: str, max_length: int) -> None:
    written = formatting.plotly_text(name, max_length)
    assert "<" not in written
    read = html.unescape(written)
    assert len(read) <= max_length
    assert read == formatting.clean(name) or read.endswith("\u2026")


@given(st.recursive(anything | st.floats(allow_nan=False, allow_infinity=False), st.lists))
def test_json_cannot_end_a_script_element(value: object) -> None:
    written = tojson(value)
    assert written.isascii()
    assert not set("<>&") & set(written)
    assert json.loads(written) == value


def test_json_in_a_script_has_no_nan() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        tojson([math.nan])


@given(st.floats(-1e300, 1e300))
def test_numbers_keep_four_digits(value: float) -> None:
    read = float(formatting.format_number(value).replace(",", ""))
    assert math.isclose(read, value, rel_tol=6e-4)
    assert len(formatting.format_number(value)) <= 20


@given(st.floats(-10, 10))
def test_percentages_are_close_to_the_share(share: float) -> None:
    written = formatting.format_percent(share)
    assert written.endswith("%")
    if written == "<0.1%":
        assert 0 < share < 0.001
    else:
        assert math.isclose(float(written[:-1]) / 100, share, abs_tol=0.0051)
