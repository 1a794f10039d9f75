from pathlib import Path

from tests.cli.runner import CliRunner


def test_demo_compares_learners_and_then_runs_over_a_table(cli: CliRunner, tmp_path: Path) -> None:
    result = cli("demo", "--rounds", "300", "--seed", "3", "--out", "made/here", folder=tmp_path)
    assert result.code == 0, result.err
    assert "│ MetricRegressor " in result.out
    command = (
        "ellipack run made/here/demo.csv --target load --report made/here/demo.html --save made/here/demo.ellipack"
    )
    assert f"\n$ {command}\nMetricRegressor on made/here/demo.csv, target load\n" in result.out
    assert result.err.splitlines() == [
        "ellipack: report: made/here/demo.html",
        "ellipack: open made/here/demo.html in a browser; `ellipack inspect made/here/demo.ellipack` shows details",
    ]
    made = tmp_path / "made" / "here"
    assert sorted(path.name for path in made.iterdir()) == ["demo.csv", "demo.ellipack", "demo.html", "demo.png"]
    header, first, *rest = (made / "demo.csv").read_text().splitlines()
    assert header.startswith("sensor 01,")
    assert header.endswith(",sensor 20,load")
    assert len(first.split(",")) == 21
    assert len(rest) == 299


def test_demo_fails_early_if_the_directory_cannot_be_created(cli: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = cli("demo", "--out", "file/here", folder=tmp_path)
    assert (result.code, result.out) == (3, "")
    assert result.err == "ellipack: file/here can't be created: Not a directory\n"
