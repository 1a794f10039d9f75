import gzip
import json
import re
import runpy
import sys
from base64 import b64encode, b85decode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from ellipack.report import page as module
from ellipack.report.formatting import clean
from ellipack.report.page import render_page
from ellipack.report.record import Experts, Record
from tests.report import records

VOID = {"meta", "link", "br", "img", "input", "hr"}
RECORDS = (records.full, records.hostile, records.wide, records.one_row, records.empty)


def unpack_plotly(page: "Page") -> str:
    """Return the script that the page unpacks."""
    packed = page.scripts()[1].encode().translate(bytes.maketrans(b",.:", b"<&>"))
    return gzip.decompress(b85decode(packed)).decode()


class Page(HTMLParser):
    """A parsed page: elements with their attributes, and text by element."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(render_page(record))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
            self.texts.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.append((self.open[-1], data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, *tags: str) -> str:
        return " ".join(data for tag, data in self.texts if tag in tags)

    def scripts(self) -> list[str]:
        return [data for tag, data in self.texts if tag == "script" and data]


@pytest.fixture(scope="module")
def full() -> Page:
    return Page(records.full())


@pytest.mark.parametrize("make", RECORDS, ids=lambda make: make.__name__)
def test_page_is_well_formed_and_loads_nothing(make: Callable[[], Record]) -> None:
    made = Page(make())
    for tag, attributes in made.elements:
        assert not {"src", "srcset", "action", "data", "poster", "background"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
        href = attributes.get("href", "#")
        assert href == "data:," if tag == "link" else href.startswith("#")
    assert not re.search(r"@import|url\(|https?:", made.text("style"))
    assert {"img", "iframe", "object", "embed", "form", "base"}.isdisjoint(tag for tag, _ in made.elements)


@pytest.mark.parametrize("make", RECORDS, ids=lambda make: make.__name__)
def test_policy_allows_only_the_scripts_of_the_page(make: Callable[[], Record]) -> None:
    made = Page(make())
    (policy,) = [meta["content"] for meta in made.all("meta") if "http-equiv" in meta]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data: blob:"
    kinds = [script.get("type", "") for script in made.all("script")]
    running = [script for kind, script in zip(kinds, made.scripts(), strict=True) if not kind]
    running += [unpack_plotly(made)] if running else []
    hashes = [b64encode(sha256(script.encode()).digest()).decode() for script in running]
    assert rules["script-src"] == (" ".join(f"'sha256-{each}'" for each in hashes) or "'none'")
    assert kinds == ["application/json", *["text/plain", ""] * (len(running) > 0)]
    # The policy applies only to what follows it.
    assert [tag for tag, _ in made.elements[:4]] == ["html", "head", "meta", "meta"]


def test_links_and_labels_have_targets(full: Page) -> None:
    ids = [attributes["id"] for _, attributes in full.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"][1:] for link in full.all("a")} == {section["id"] for section in full.all("section")}
    assert {section["aria-labelledby"] for section in full.all("section")} <= set(ids)
    charts = json.loads(full.scripts()[0])
    assert set(charts) <= set(ids)
    assert len(charts) == 14


def test_page_is_accessible_to_screen_readers(full: Page) -> None:
    assert full.all("html") == [{"lang": "en"}]
    charts = [div for div in full.all("div") if div.get("role") == "img"]
    assert len(charts) == 14
    assert all(len(chart["aria-label"]) > 40 for chart in charts)
    assert all(head["scope"] in ("row", "col") for head in full.all("th"))
    assert len(full.all("caption")) == len(full.all("table")) == 6
    assert len(full.all("h1")) == 1
    levels = [int(tag[1]) for tag, _ in full.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_full_record_has_every_section(full: Page) -> None:
    record = records.full()
    assert [text for tag, text in full.texts if tag == "h2" and text] == [
        "Prediction error",
        "What drives it",
        "Keys",
        "The past",
        "Learned metric",
        "Expert weights",
        "Residuals",
        "Memory and speed",
        "Columns",
        "Settings",
    ]
    shown = full.text("bdi", "td", "th", "code", "span")
    for name in (*record.features, *record.parameters, *(column.name for column in record.columns)):
        assert name in shown
    assert "MetricRegressor" in shown
    assert record.source in shown
    assert "3 levels, each a feature of its own" in shown


def test_empty_sections_are_omitted() -> None:
    record = records.full()
    assert {section["id"] for section in Page(records.empty()).all("section")} == {"settings"}
    one = {section["id"] for section in Page(records.one_row()).all("section")}
    assert one == {"columns", "settings"}
    phases = [replace(phase, expert_weights=[]) for phase in record.phases]
    paper = Page(replace(record, experts=Experts([], []), phases=phases, speed=[], parameters={}))
    ids = {section["id"] for section in paper.all("section")}
    assert "experts" not in ids
    assert {"error", "metric", "features", "residuals", "resources"} <= ids
    started = Page(replace(record, phases=[]))
    assert "No phase has ended yet" in started.text("p")
    assert "Memory and speed" in started.text("h2")


def test_twenty_features_are_shown_and_the_rest_counted() -> None:
    made = Page(records.wide(3000))
    assert len(render_page(records.wide(3000))) < len(render_page(records.full())) + 100_000
    assert "2,978 more columns are less important." in made.text("figcaption")
    assert "3,000 columns" in made.text("caption")


def test_hostile_names_are_escaped() -> None:
    clear, hostile = Page(records.full()), Page(records.hostile())
    assert {tag for tag, _ in hostile.elements} == {tag for tag, _ in clear.elements}
    assert len(hostile.all("script")) == len(clear.all("script")) == 3
    assert len(hostile.all("b")) == len(clear.all("b"))
    shown = hostile.text("bdi")
    for name in records.HOSTILE:
        assert clean(name) in shown
    data = hostile.scripts()[0]
    assert not set("<>&") & set(data)
    assert data.isascii()
    render_page(records.hostile()).encode()


def test_names_in_charts_contain_no_markup() -> None:
    def strings(value: object) -> list[str]:
        if isinstance(value, dict):
            return [text for each in value.values() for text in strings(each)]
        if isinstance(value, list):
            return [text for each in value for text in strings(each)]
        return [value] if isinstance(value, str) else []

    # Intended markup does not depend on the names.
    own = {text for text in strings(json.loads(Page(records.full()).scripts()[0])) if "<" in text}
    assert {text for text in strings(json.loads(Page(records.hostile()).scripts()[0])) if "<" in text} == own


@pytest.mark.parametrize("package", ["jinja2", "plotly.offline"])
def test_missing_package_error_tells_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ModuleNotFoundError, match=r"the report page needs jinja2 and plotly .*: pip install 'ellipack\[report\]'"
    ):
        runpy.run_path(module.__file__)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 1000])
def test_base_85_is_that_of_python_with_other_digits(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    assert b85decode(module._base85(data).encode().translate(bytes.maketrans(b",.:", b"<&>"))) == data


def test_page_is_small_and_numbers_are_rounded() -> None:
    assert len(render_page(records.full()).encode()) < 2_000_000
    chart = json.loads(Page(records.full()).scripts()[0])["error-0"]
    shown, exact = chart["data"][-1]["y"], records.full().progress.rmse
    assert shown == [float(f"{value:.5g}") for value in exact if value is not None]
