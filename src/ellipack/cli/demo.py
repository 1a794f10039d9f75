"""``ellipack demo``: a comparison of learners on a synthetic stream, then ``ellipack run`` on the same stream."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

from ellipack.cli.messages import print_message
from ellipack.cli.options import Options
from ellipack.cli.paths import check_writable
from ellipack.cli.run import run_table
from ellipack.errors import StreamError
from ellipack.serialization.atomic_file import write_file
from ellipack.synthetic import LowRankStream


def run_demo(rounds: int, seed: int, out: str) -> int:
    """Compare learners on a synthetic stream, then run over it as a table; return the exit code."""
    comparison = _import_comparison()
    figure, table, report, model = _output_files(Path(out))
    comparison.main(["--rounds", str(rounds), "--seed", str(seed), "--output", str(figure)])
    write_table(table, rounds, seed)
    click.echo(f"\n$ ellipack run {table} --target load --report {report} --save {model}")
    code = run_table(Options(str(table), target="load", report=str(report), save=str(model)))
    if code == 0:
        print_message(f"open {report} in a browser; `ellipack inspect {model}` shows details")
    return code


def _import_comparison() -> ModuleType:
    """Return the module that compares learners, which also needs matplotlib."""
    try:
        return import_module("ellipack.demo")
    except ModuleNotFoundError as error:
        package = (error.name or "a package").partition(".")[0]
        raise click.ClickException(f"the demo needs {package}: pip install 'ellipack[demo]'") from error


def _output_files(directory: Path) -> list[Path]:
    """Create the directory and return the files to write."""
    files = [directory / f"demo.{extension}" for extension in ("png", "csv", "html", "ellipack")]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StreamError(f"{directory} can't be created: {error.strerror or error}") from error
    for file in files:
        check_writable(str(file))
    return files


def write_table(path: Path, rounds: int, seed: int) -> None:
    """Write a synthetic stream as a CSV file, with realistic names and units."""
    X, y = LowRankStream(random_state=seed).draw(rounds)
    names = [f"sensor {i + 1:02d}" for i in range(X.shape[1])]
    lines = [",".join([*names, "load"])]
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        lines.append(",".join([*(f"{20 + 5 * value:.4f}" for value in x), f"{1000 * label:.2f}"]))
    try:
        write_file(path, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise StreamError(f"{path} can't be written: {error.strerror or error}") from error
