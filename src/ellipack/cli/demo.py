"""``ellipack demo``: a made-up stream, learners side by side, and then the way that a file of your own would go."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

from ellipack.cli.messages import print_message
from ellipack.cli.options import Options, check_writable
from ellipack.cli.run import run_table
from ellipack.errors import StreamError
from ellipack.synthetic import LowRankStream


def run_demo(rounds: int, seed: int, out: str) -> int:
    """Let learners learn a made-up stream, then run over a file of it; return the exit code."""
    comparison = _comparison()
    picture, table, report, model = _files(Path(out))
    comparison.main(["--rounds", str(rounds), "--seed", str(seed), "--output", str(picture)])
    write_table(table, rounds, seed)
    click.echo(f"\n$ ellipack run {table} --target load --report {report} --save {model}")
    code = run_table(Options(str(table), target="load", report=str(report), save=str(model)))
    if code == 0:
        print_message(f"open {report} in a browser; `ellipack inspect {model}` shows more")
    return code


def _comparison() -> ModuleType:
    """Return the comparison of learners, which draws a picture and needs a package more than the rest."""
    try:
        return import_module("ellipack.demo")
    except ModuleNotFoundError as missing:
        package = (missing.name or "a package").partition(".")[0]
        raise click.ClickException(f"the demo needs {package}: pip install 'ellipack[demo]'") from missing


def _files(folder: Path) -> list[Path]:
    """Return the files to write, in a folder that is there by then."""
    files = [folder / f"demo.{ending}" for ending in ("png", "csv", "html", "ellipack")]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StreamError(f"{folder} can't be made: {error.strerror or error}") from error
    for file in files:
        check_writable(str(file))
    return files


def write_table(path: Path, rounds: int, seed: int) -> None:
    """Write a made-up stream as a table, with names as a real one has."""
    X, y = LowRankStream(random_state=seed).draw(rounds)
    names = [f"sensor {i + 1:02d}" for i in range(X.shape[1])]
    lines = [",".join([*names, "load"])]
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        lines.append(",".join([*(f"{20 + 5 * value:.4f}" for value in x), f"{1000 * label:.2f}"]))
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise StreamError(f"{path} can't be written: {error.strerror or error}") from error
