from pathlib import Path

from tests.cli.runner import CliRunner


def test_the_demo_shows_learners_side_by_side_and_then_the_way_of_a_file(cli: CliRunner, tmp_path: Path) -> None:
    done = cli("demo", "--rounds", "300", "--seed", "3", "--out", "made/here", folder=tmp_path)
    assert done.code == 0, done.err
    assert "│ MetricRegressor " in done.out
    command = (
        "ellipack run made/here/demo.csv --target load --report made/here/demo.html --save made/here/demo.ellipack"
    )
    assert f"\n$ {command}\nMetricRegressor on made/here/demo.csv, target load\n" in done.out
    assert done.err.splitlines() == [
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


def test_a_folder_that_cannot_be_made_is_refused_first(cli: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = cli("demo", "--out", "file/here", folder=tmp_path)
    assert (done.code, done.out) == (3, "")
    assert done.err == "ellipack: file/here can't be created: Not a directory\n"
