"""The page is made from the results alone."""

import argparse
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from benchmarks import page, results
from benchmarks.comparison import page as comparison_page
from benchmarks.comparison.summary import Summary
from tests.benchmarks.comparison.fake_results import fake_results

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / results.RESULTS_PATH
FIGURES = fake_results(
    {
        "one": {
            "MetricRegressor": [0.3],
            "Packing": [0.1],
            "KNN": [0.6],
            "LightGBM": ["it crashed"],
            "Last label": [0.9],
        },
        "two": {"MetricRegressor": [0.8], "Packing": [0.9], "KNN": [0.4123], "LightGBM": [0.2], "Last label": [0.7]},
    }
)
WON = fake_results(
    {"one": {"MetricRegressor": [0.1], "Packing": [0.2], "KNN": [0.3], "LightGBM": [0.4], "Last label": [0.5]}}
)


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the plots, which take most of the time, and which other tests draw."""
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: None)


def test_page_and_plots_are_deterministic(tmp_path: Path) -> None:
    folders = [tmp_path / name / "benchmarks" for name in ("here", "there")]
    texts = [page.render_page({"peers": FIGURES, "unknown section": {}}, folder) for folder in folders]
    assert texts[0] == texts[1]
    assert "Measured by `python -m benchmarks.comparison --rows 100` on 2026-01-01 at revision abc" in texts[0]
    assert texts[0].endswith("Never run.\n")
    pictures = [sorted(folder.iterdir()) for folder in folders]
    assert [path.name for path in pictures[0]] == ["peers-costs.png", "peers-errors.png"]
    for one, other in zip(*pictures, strict=True):
        assert f"(benchmarks/{one.name})" in texts[0]
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.usefixtures("no_plots")
def test_every_loss_and_failure_is_on_the_page(tmp_path: Path) -> None:
    text = comparison_page.section(FIGURES, tmp_path)
    assert [(each.stream, each.peer) for each in Summary(FIGURES).losses()] == [
        ("two", "LightGBM"),
        ("two", "KNN"),
        ("two", "Last label"),
    ]
    for row in ("LightGBM | 0.200 | 0.800 | 4.00", "KNN | 0.412 | 0.800 | 1.94", "Last label | 0.700 | 0.800 | 1.14"):
        assert f"| two | {row} |" in text
    assert "- LightGBM on one: it crashed" in text
    assert "| the best streaming peer of each stream | 1 | 1 |" in comparison_page.quoted(FIGURES)


@pytest.mark.usefixtures("no_plots")
def test_the_page_says_if_there_is_no_loss(tmp_path: Path) -> None:
    assert "No peer has a lower late error" in comparison_page.section(WON, tmp_path)


def test_the_readme_says_where_the_streams_come_from() -> None:
    quoted = comparison_page.quoted(results.read_results(COMMITTED)["peers"])
    assert "15 streams of at most 1,000 rows (7 public tables, 5 of River's generators and 3 of our own)" in quoted
    assert max(map(len, quoted.partition("\n\n")[2].splitlines())) <= 120
    assert "2 streams of at most 100 rows (2 public tables) and" in comparison_page.quoted(FIGURES)


def test_the_readme_is_updated_between_its_markers(tmp_path: Path) -> None:
    path, readme = tmp_path / "results.json", tmp_path / "README.md"
    results.store_section("peers", FIGURES, path)
    readme.write_text("Text.\n<!-- bench-peers -->\nby hand\n<!-- end -->\nMore <!-- end -->.\n", encoding="utf-8")
    page.main(["--json", str(path), "--page", str(tmp_path / "page.md"), "--readme", str(readme)])
    quoted = comparison_page.quoted(results.read_results(path)["peers"])
    wanted = f"Text.\n<!-- bench-peers -->\n{quoted}\n<!-- end -->\nMore <!-- end -->.\n"
    assert readme.read_text(encoding="utf-8") == wanted
    assert (tmp_path / "page" / "peers-costs.png").exists()
    for unmarked in ("Text.\n", "<!-- bench-peers -->\nno end\n"):
        assert page.quote_in_readme(results.read_results(path), unmarked) == unmarked
    with pytest.raises(ValueError, match="must contain results, got none"):
        page.main(["--json", str(tmp_path / "none.json")])


@pytest.mark.usefixtures("no_plots")
def test_the_committed_page_is_up_to_date(tmp_path: Path) -> None:
    sections = results.read_results(COMMITTED)
    assert page.render_page(sections, tmp_path / "benchmarks") == (ROOT / "docs/benchmarks.md").read_text(
        encoding="utf-8"
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert page.quote_in_readme(sections, readme) == readme


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    page.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.usefixtures("no_plots")
@pytest.mark.parametrize(("words", "where"), [([], "out"), (["--publish"], "docs")])
def test_only_published_results_change_the_readme(
    words: list[str], where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    readme = "<!-- bench-peers -->\n<!-- end -->\n"
    Path("README.md").write_text(readme, encoding="utf-8")
    figures = {name: value for name, value in WON.items() if name not in {"environment", "command", "note"}}
    written = page.publish("peers", figures, options(*words, "--note", "Quietly."), ["--rows", "7", *words])
    assert written == Path(where, "benchmarks.md")
    (section,) = results.read_results(Path(where, "benchmarks", "results.json")).values()
    assert section["command"] == " ".join(["python -m benchmarks.comparison --rows 7", *words])
    assert section["environment"]["revision"]
    assert written.read_text(encoding="utf-8").endswith("Quietly.\n")
    assert (Path("README.md").read_text(encoding="utf-8") == readme) == (where == "out")
