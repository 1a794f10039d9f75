"""Tests of the report page in a real browser."""

import shutil
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image

from ellipack.report.formatting import clean
from ellipack.report.page import render_page
from ellipack.report.record import Record
from ellipack.validation import Floats
from tests.report import records

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the page in")

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)
DESK, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}


class Visit:
    """An open page, with its requests and console messages."""

    def __init__(self, browser: Any, path: Path, record: Record) -> None:
        path.write_text(render_page(record), encoding="utf-8")
        self.tab = browser.new_page(viewport=DESK, color_scheme="light")
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.tab.on("console", lambda message: self.messages.append(message.text))
        self.tab.on("pageerror", lambda error: self.messages.append(str(error)))
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.goto(path.as_uri())
        self.wait(0)

    def wait(self, times: int) -> None:
        """Wait until the charts have been drawn more than `times` times and are visible."""
        # The content security policy forbids `eval`, which `wait_for_function` needs.
        self.tab.wait_for_selector(f'html[data-drawn]:not([data-drawn="{times}"])', state="attached")
        self.tab.evaluate("new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))")

    def drawn(self) -> int:
        return int(self.tab.evaluate("document.documentElement.dataset.drawn"))

    def look(self, viewport: dict[str, int], scheme: str) -> None:
        """Change the window size, then light or dark mode. Both redraw the charts."""
        before = self.drawn()
        if viewport != self.tab.viewport_size:
            self.tab.set_viewport_size(viewport)
            self.wait(before)
        dark = self.tab.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        if dark != (scheme == "dark"):
            before = self.drawn()
            self.tab.emulate_media(color_scheme=scheme)
            self.wait(before)

    def picture(self, selector: str) -> Floats:
        """Return the pixels of an element, red, green and blue from 0 to 1."""
        return np.asarray(image.imread(BytesIO(self.tab.locator(selector).first.screenshot())))[..., :3]

    def check(self) -> None:
        """Check that the console is empty and that the page requested only itself."""
        assert self.messages == []
        outside = [url for url in self.requests if not url.startswith(("data:", "blob:"))]
        assert outside == [self.tab.url]
        assert outside[0].startswith("file:")

    def hover(self, chart: str, curve: int, point: int) -> str:
        """Return the hover text at a point of a chart."""
        self.tab.wait_for_timeout(60)  # Plotly ignores hovers within 50 ms
        self.tab.evaluate(f"Plotly.Fx.hover('{chart}', [{{curveNumber: {curve}, pointNumber: {point}}}])")
        return "".join(self.texts(f"#{chart} .hoverlayer text"))

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.tab.locator(selector).evaluate_all("all => all.map((each) => each.textContent)")
        return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def full(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    visit = Visit(browser, tmp_path_factory.mktemp("full") / "page.html", records.full())
    yield visit
    visit.check()


@pytest.fixture(scope="module")
def hostile(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    visit = Visit(browser, tmp_path_factory.mktemp("hostile") / "page.html", records.hostile())
    yield visit
    visit.check()


def labels(visit: Visit, chart: str) -> list[str]:
    return visit.texts(f"{chart} .ytick text")


def test_lines_of_a_chart_have_different_colors(full: Visit) -> None:
    full.look(DESK, "light")
    picture = full.picture("#error-0").reshape(-1, 3)
    for color in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00), (0x00, 0x8A, 0x64)):
        assert (np.abs(picture - np.array(color) / 255).max(axis=1) < 0.02).sum() > 20


def test_hover_shows_long_names_in_full(full: Visit) -> None:
    full.look(DESK, "light")
    long = records.FEATURES[4]
    assert not any(long in label for label in labels(full, "#features-0"))
    assert long in full.hover("features-0", 0, 4)


@pytest.fixture(scope="module", params=[DESK, PHONE], ids=["desk", "phone"])
def sized(full: Visit, request: pytest.FixtureRequest) -> Visit:
    """Return the page in a window of each size. Each change of the size draws all charts again."""
    full.look(request.param, "light")
    return full


def test_every_chart_fills_its_width(sized: Visit) -> None:
    sizes = sized.tab.evaluate(
        "[...document.querySelectorAll('.chart')].map((chart) => {"
        " const svg = chart.querySelector('svg.main-svg'); const box = svg.getBoundingClientRect();"
        " return [chart.clientWidth, chart.clientHeight, box.width, box.height,"
        " chart.querySelectorAll('.js-line, .js-fill, .point, .hm image').length]; })"
    )
    assert len(sizes) == 14
    for width, height, drawn_width, drawn_height, marks in sizes:
        assert (drawn_width, drawn_height) == (width, height)
        assert width > 250
        assert marks > 0


def test_feature_labels_do_not_overlap_and_are_not_cut_off(sized: Visit) -> None:
    for chart, count in (("#features-0", len(records.FEATURES) - 2), ("#metric-2", len(records.FEATURES))):
        boxes = sized.tab.locator(f"{chart} .ytick text").evaluate_all(
            "all => all.map((each) => { const box = each.getBoundingClientRect();"
            " const chart = each.closest('.chart').getBoundingClientRect();"
            " return [box.top, box.bottom, box.left - chart.left, box.width]; })"
        )
        assert len(boxes) == count
        ordered = sorted(boxes)
        assert all(below[0] >= above[1] - 2 for above, below in pairwise(ordered))
        assert all(left >= 0 and width > 10 for _, _, left, width in boxes)


def test_charts_follow_light_and_dark_mode(sized: Visit) -> None:
    pictures = {}
    for scheme in ("light", "dark"):
        sized.look(sized.tab.viewport_size, scheme)
        pictures[scheme] = sized.picture("#error-0")
        assert len(np.unique(pictures[scheme] @ [1.0, 256.0, 65536.0])) > 20
    assert pictures["light"].mean() > 0.9
    assert pictures["dark"].mean() < 0.2


def test_hostile_names_stay_text(hostile: Visit) -> None:
    hostile.look(DESK, "light")
    assert hostile.tab.evaluate("window.hacked") is None
    forbidden = ".page img, .page script, .page a:not(nav a), svg a, figure b:not(.legend b)"
    assert hostile.tab.locator(forbidden).count() == 0
    names = [clean(name) for name in records.HOSTILE]
    for chart in ("#features-0", "#metric-2"):
        shown = labels(hostile, chart)
        for name in names:
            assert any(name.startswith(label.removesuffix("\u2026")) for label in shown), name
    for k, name in enumerate(names):
        assert name in hostile.hover("features-0", 0, k)
        assert name in hostile.hover("metric-1", 0, k)
    ranked = np.argsort(records.hostile().experts.weights)[::-1].tolist()
    place, expert = min((ranked.index(k), k) for k in range(len(names)))
    assert names[expert] in hostile.hover("experts-0", place, 3)
    assert hostile.tab.evaluate("window.hacked") is None


def test_content_security_policy_blocks_injected_scripts(hostile: Visit) -> None:
    count = len(hostile.messages)
    hostile.tab.evaluate("document.body.insertAdjacentHTML('beforeend', '<img id=bad src=x onerror=window.hacked=9>')")
    hostile.tab.wait_for_timeout(100)
    assert hostile.tab.evaluate("window.hacked") is None
    hostile.tab.evaluate("document.getElementById('bad').remove()")
    del hostile.messages[count:], hostile.requests[1:]  # caused by this test


def test_page_fits_the_width_of_a_phone(full: Visit, hostile: Visit) -> None:
    for visit in (full, hostile):
        visit.look(PHONE, "light")
        assert visit.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        fits = "table => table.scrollWidth <= table.parentElement.clientWidth"
        assert visit is hostile or visit.tab.locator("#columns table").evaluate(fits)
        visit.look({"width": 320, "height": 600}, "light")
        assert visit.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_printed_page_is_light_and_charts_fit_the_paper(full: Visit) -> None:
    full.look(DESK, "dark")
    before = full.drawn()
    full.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    full.wait(before)
    assert full.picture("#error-0").mean() > 0.9
    assert full.tab.evaluate("Math.max(...[...document.querySelectorAll('.chart')].map((c) => c.layout.width))") <= 680
    full.tab.evaluate("dispatchEvent(new Event('afterprint'))")
    full.wait(before + 1)
    assert full.picture("#error-0").mean() < 0.2
    assert len(full.tab.pdf(format="A4")) > 10_000


def test_page_without_charts(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(render_page(records.empty()), encoding="utf-8")
    tab = browser.new_page()
    messages: list[str] = []
    tab.on("console", lambda message: messages.append(message.text))
    tab.goto((tmp_path / "page.html").as_uri())
    assert tab.locator("h1").text_content() == "There are no predictions of y yet."
    assert messages == []
    tab.close()


def test_no_network_requests_and_no_errors(full: Visit, hostile: Visit) -> None:
    # Check again after all interactions of the tests above.
    full.check()
    hostile.check()
