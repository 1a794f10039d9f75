from pathlib import Path

from tests.cli.runner import CliRunner


def test_demo_runs_over_flights_and_then_compares_learners(cli: CliRunner, tmp_path: Path) -> None:
    result = cli("demo", "--rounds", "100", "--seed", "3", "--out", "made/here", folder=tmp_path)
    assert result.code == 0, result.err
    command = (
        "ellipack run made/here/flights.csv --target arr_delay --drop arr_time --drop air_time "
        "--report made/here/flights.html --save made/here/flights.ellipack"
    )
    first, _, second = result.out.partition("│ MetricRegressor ")
    assert f"\n$ {command}\nMetricRegressor on made/here/flights.csv, target arr_delay\n" in first
    assert second
    page, model = "made/here/flights.html", "made/here/flights.ellipack"
    assert result.err.splitlines()[-2:] == [
        f"ellipack: report: {page}",
        f"ellipack: open {page} in a browser; `ellipack inspect {model}` shows details",
    ]
    made = tmp_path / "made" / "here"
    names = ["demo.png", "flights.csv", "flights.ellipack", "flights.html"]
    assert sorted(path.name for path in made.iterdir()) == names
    header, *rows = (made / "flights.csv").read_text().splitlines()
    assert header.startswith("year,month,day,dep_time,")
    assert len(rows) == 100
    shown = cli(*command.split()[1:], folder=tmp_path).out  # the command that is printed gives what is printed
    assert shown in result.out


def test_demo_fails_early_if_the_directory_cannot_be_created(cli: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = cli("demo", "--out", "file/here", folder=tmp_path)
    assert (result.code, result.out) == (3, "")
    assert result.err == "ellipack: file/here can't be created: Not a directory\n"
