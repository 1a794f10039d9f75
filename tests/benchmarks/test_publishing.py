"""Results are for oneself unless they are to be published."""

import argparse
from pathlib import Path

import pytest

from benchmarks import publishing, results
from tests.benchmarks.race.figures import made

FIGURES = made(
    {"one": {"MetricRegressor": [0.1], "Packing": [0.2], "KNN": [0.3], "LightGBM": [0.4], "Last label": [0.5]}}
)


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    publishing.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(("words", "where"), [([], "out"), (["--publish"], "docs")])
def test_only_what_is_published_is_quoted(
    words: list[str], where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    readme = "<!-- bench-peers -->\n<!-- end -->\n"
    Path("README.md").write_text(readme, encoding="utf-8")
    figures = {name: value for name, value in FIGURES.items() if name not in {"made", "command", "note"}}
    written = publishing.put("peers", figures, options(*words, "--note", "Quietly."), ["--rows", "7", *words])
    assert written == Path(where, "benchmarks.md")
    (section,) = results.read(Path(where, "benchmarks", "results.json")).values()
    assert section["command"] == " ".join(["python -m benchmarks.race --rows 7", *words])
    assert section["made"]["revision"]
    assert written.read_text(encoding="utf-8").endswith("Quietly.\n")
    assert (Path("README.md").read_text(encoding="utf-8") == readme) == (where == "out")
