"""The command line: which commands there are, what they take, and how they are explained.

What does the work is imported when a command runs: help, the version and the shell's completion answer at once.
"""

import os
import sys
from io import TextIOWrapper
from typing import Any, Final, NoReturn

import click
from click.shell_completion import get_completion_class

from ellipack._version import __version__
from ellipack.choices import COLUMN_KINDS, LEARNER_NAMES, ON_ERROR_CHOICES, TABLE_FORMATS
from ellipack.cli.messages import missing_package_message, print_message
from ellipack.cli.options import DEFAULT_LEARNER, DEFAULT_SAVE_EVERY, Options
from ellipack.errors import CheckpointError, EllipackError, InputError, StreamError

_EPILOG = """\b
To begin:
  ellipack demo                              see it work
  ellipack run rides.csv --target duration   learn a table of yours
  ellipack COMMAND --help                    all the rest
\n\b
Exit codes:
  0    done
  1    a package is missing, or there is a mistake in ellipack
  2    an option is wrong
  3    the stream can't be read, or its predictions or report not written
  4    the model can't be read or written
  130  stopped by Ctrl-C, 143 by SIGTERM; saved, if --save was given
  141  whoever read the output has gone"""


_SHELLS = """\b
To install:
  bash: ellipack completion bash >> ~/.bashrc
  zsh:  ellipack completion zsh >> ~/.zshrc
  fish: ellipack completion fish > ~/.config/fish/completions/ellipack.fish"""

_RUN = """\b
Examples:
  ellipack run rides.csv --target duration --report rides.html
  ellipack run rides.csv --target duration --save rides.model
  ellipack run more.csv --resume rides.model
  ellipack run huge.csv.gz --target duration --save m --resume m
  zcat huge.csv.gz | ellipack run - --target duration --predictions - > out.csv"""

_PREDICT = """\b
Examples:
  ellipack predict rides.model tomorrow.csv
  zcat tomorrow.csv.gz | ellipack predict rides.model - | head"""

_REPORT = """\b
Examples:
  ellipack report rides.model
  ellipack run rides.csv --target duration --json | ellipack report - > rides.html"""


class OutputClosedError(Exception):
    """Whoever read standard output has gone; no BrokenPipeError, of which click makes an exit code of its own."""


class _Group(click.Group):
    """The command, which hands on that a reader has gone."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise OutputClosedError from error


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
    invoke_without_command=True,
)
@click.version_option(__version__, "-V", "--version", message="ellipack %(version)s")
@click.pass_context
def ellipack(context: click.Context) -> None:
    """Regression on a stream that learns its own metric while it predicts."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@ellipack.command(short_help="Print what makes your shell complete commands.", epilog=_SHELLS)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes ellipack's commands and options."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(kind(ellipack, {}, "ellipack", "_ELLIPACK_COMPLETE").source())


@ellipack.command(short_help="Predict, then learn, every row of a table.", epilog=_RUN)
@click.argument("stream", type=click.Path())
@click.option("-t", "--target", metavar="COLUMN", help="The column to predict; needed unless a run is resumed.")
@click.option("--take", multiple=True, metavar="COLUMN", help="Use only this column; repeat it for more.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave this column out; repeat it for more.")
@click.option(
    "--kind", "kinds", multiple=True, metavar="COLUMN=KIND", help=f"Take a column for {', '.join(COLUMN_KINDS)}."
)
@click.option("--format", type=click.Choice(TABLE_FORMATS), help="What STREAM is, if its name does not tell.")
@click.option(
    "--on-error",
    type=click.Choice(ON_ERROR_CHOICES),
    default="stop",
    show_default=True,
    help="What to do at a bad row.",
)
@click.option("--learner", type=click.Choice(LEARNER_NAMES), help=f"Who learns.  [default: {DEFAULT_LEARNER}]")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter of the learner.")
@click.option(
    "--predictions", type=click.Path(), metavar="OUT", help="Write each row's prediction to a .csv or .parquet file."
)
@click.option("--report", type=click.Path(), metavar="OUT.html", help="Write a page to look at.")
@click.option(
    "--save", type=click.Path(), metavar="MODEL", help="Save the run: at its end, when it is stopped, and on the way."
)
@click.option(
    "--resume",
    type=click.Path(),
    metavar="MODEL",
    help="Go on with a saved run, and save it there, unless by --save elsewhere.",
)
@click.option(
    "--save-every",
    type=click.IntRange(1),
    metavar="ROWS",
    default=DEFAULT_SAVE_EVERY,
    show_default=True,
    help="How often to save on the way.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, which `ellipack report` reads too.")
@click.pass_context
def run(context: click.Context, /, **given: Any) -> None:
    """Predict each row's target, then learn from it, from the first row to the last.

    STREAM is a CSV, Parquet or newline-delimited JSON file, plain or compressed by gzip or zstd; - is standard input.
    OUT may be -, standard output; then the result goes to standard error.

    A resumed run goes on behind the last row that it learned if STREAM is the one that it was saved with; of any other
    it learns from the first row on. If --save and --resume name the same MODEL and there is none yet, the run begins:
    so the same command can be given again whenever it was killed, and loses and doubles nothing.
    """
    from ellipack.cli.run import run_table

    context.exit(run_table(Options(**given)))


@ellipack.command(short_help="Predict the rows of a table with a saved run.", epilog=_PREDICT)
@click.argument("model", type=click.Path())
@click.argument("file", type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="OUT",
    default="-",
    help="A .csv or .parquet file.  [default: standard output]",
)
@click.option("--format", type=click.Choice(TABLE_FORMATS), help="What FILE is, if its name does not tell.")
@click.option(
    "--on-error",
    type=click.Choice(ON_ERROR_CHOICES),
    default="stop",
    show_default=True,
    help="What to do at a bad row.",
)
def predict(model: str, file: str, output: str, format: str | None, on_error: str) -> None:
    """Predict the rows of FILE with the run saved in MODEL; learn nothing.

    FILE needs the columns that the run makes features of, in any order, and no target; - is standard input. The output
    has a line for each row: its number, counted from 1, and its prediction.
    """
    from ellipack.cli import predict as prediction

    prediction.predict(model, file, output, format, on_error)


@ellipack.command(short_help="Show what a model has learned.")
@click.argument("model", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, as `ellipack run --json` does.")
def inspect(model: str, as_json: bool) -> None:
    """Show what MODEL has learned: how good it was, what drives the target, which experts it trusts.

    MODEL is what `ellipack run` saved, or the JSON that it printed; - is such JSON on standard input.
    """
    from ellipack.cli import inspect as inspection

    inspection.inspect(model, as_json)


@ellipack.command(short_help="Write a page to look at, of a model or of a run's JSON.", epilog=_REPORT)
@click.argument("model", type=click.Path(), metavar="MODEL|RUN")
@click.option(
    "-o", "--output", type=click.Path(), metavar="OUT.html", help="Where.  [default: MODEL.html, or - if RUN is -]"
)
def report(model: str, output: str | None) -> None:
    """Write a page about MODEL, which `ellipack run` saved, or RUN, the JSON that it printed; - is standard input.

    The page is one file that needs nothing else, for any browser. An OUT.html of - is standard output.
    """
    from ellipack.cli import inspect as inspection

    inspection.report(model, output)


@ellipack.command(short_help="Make a stream up, learn it, and write a report.")
@click.option("--rounds", type=click.IntRange(16), default=8000, show_default=True, help="How long the stream is.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of everything drawn.")
@click.option(
    "--out",
    type=click.Path(),
    metavar="FOLDER",
    default="out",
    show_default=True,
    help="Where files go; made if need be.",
)
@click.pass_context
def demo(context: click.Context, rounds: int, seed: int, out: str) -> None:
    """Make up a stream of 20 sensors whose target depends on 2 directions, and let ellipack learn it.

    First, six learners side by side: a table, and a picture. Then the way that a file of your own would go: the stream
    is written to a CSV file, `ellipack run` learns it, and writes a report and a model.
    """
    from ellipack.cli.demo import run_demo

    context.exit(run_demo(rounds, seed, out))


EXIT_CODES: Final[dict[type[EllipackError], int]] = {InputError: 2, StreamError: 3, CheckpointError: 4}
"""Of commands that failed; those stopped by a signal have 128 and its number, as in a shell."""

_INTERRUPTED, _BROKEN_PIPE = 130, 141


def main() -> NoReturn:
    """Run the command as the command line asks, and exit."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # no name may be more than a terminal can take
    try:
        code = _run_command()
        sys.stdout.flush()
    except (OutputClosedError, BrokenPipeError):
        code = _BROKEN_PIPE
    sys.stderr.flush()
    # At once: Python would complain if a reader has gone, and pyarrow wait for ever if standard input does not end.
    os._exit(code)


def _run_command() -> int:
    """Run the command, say in a line what went wrong if anything has, and return the exit code."""
    try:
        return int(ellipack.main(prog_name="ellipack", standalone_mode=False) or 0)
    except click.ClickException as error:
        return _fail(_usage_message(error), error.exit_code)
    except EllipackError as error:
        return _fail(str(error), next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))
    except ModuleNotFoundError as missing:
        return _fail(missing_package_message(missing), 1)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", _INTERRUPTED)
    except OSError as error:
        return _fail(str(error), EXIT_CODES[StreamError])


def _usage_message(error: click.ClickException) -> str:
    """Return what click has against the command line, and where to read more."""
    context = getattr(error, "ctx", None)
    where = f" (see {context.command_path} --help)" if context is not None else ""
    return error.format_message() + where


def _fail(message: str, code: int) -> int:
    print_message(message)
    return code
