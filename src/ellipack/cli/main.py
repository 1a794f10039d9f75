"""Commands of the command line, their options and exit codes.

Each command imports what it needs when it runs, so that help, version and shell completion are fast.
"""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Any, Final, NoReturn

import click
from click.shell_completion import CompletionItem, get_completion_class

from ellipack._version import __version__
from ellipack.choices import (
    COLUMN_KINDS,
    DEFAULT_LEVEL_MEMORY,
    DEFAULT_LEVELS,
    LEARNER_NAMES,
    ON_ERROR_CHOICES,
    TABLE_FORMATS,
)
from ellipack.cli.messages import missing_package_message, print_message
from ellipack.cli.options import (
    DEFAULT_LEARNER,
    DEFAULT_SAVE_EVERY,
    DEFAULT_SHARD_ROWS,
    DEFAULT_SHARDS,
    DEFAULT_WORKER_TIMEOUT,
    MAX_WORKERS,
    Options,
)
from ellipack.cli.standard_streams import FilePath, InputPath, OutputPath, expand_patterns, reopen_closed_streams
from ellipack.errors import EllipackError, InputError, ModelFileError, StreamError
from ellipack.memory_errors import is_lack_of_memory

EXIT_CODES: Final[dict[type[EllipackError], int]] = {InputError: 2, StreamError: 3, ModelFileError: 4}
"""Exit codes of commands that fail. A command stopped by a signal exits with 128 plus its number, as in a shell."""

_INTERRUPTED, _BROKEN_PIPE = 130, 141
_NO_MEMORY = "memory ran out; a run that was saved with --save can be resumed from there"

_EPILOG = """\b
To get started:
  ellipack demo                              run an example
  ellipack run rides.csv --target duration   learn from a table
  ellipack COMMAND --help                    show all options of a command
\n\b
Exit codes:
  0    success
  1    a package is missing, memory ran out, or there is a bug in ellipack
  2    an option is invalid
  3    the table can't be read, or predictions or report can't be written
  4    the model can't be read or written
  130  stopped by Ctrl-C (143: by SIGTERM); the run is saved if --save is given
  141  the reader of standard output has closed it"""


_COMPLETION_EXAMPLES = """\b
To install:
  bash: ellipack completion bash >> ~/.bashrc
  zsh:  ellipack completion zsh >> ~/.zshrc
  fish: ellipack completion fish > ~/.config/fish/completions/ellipack.fish"""

_RUN_EXAMPLES = """\b
Examples:
  ellipack run rides.csv --target duration --report rides.html
  ellipack run rides.csv --target duration --save rides.model
  ellipack run more.csv --resume rides.model
  ellipack run huge.csv.gz --target duration --save m --resume m
  zcat huge.csv.gz | ellipack run - --target duration --predictions - > out.csv
  tail -n +1 -f log.csv | ellipack run - --target duration --predictions -
  ellipack run 'rides-*.parquet' --target duration --workers 4 --save m --resume m"""

_PREDICT_EXAMPLES = """\b
Examples:
  ellipack predict rides.model tomorrow.csv
  zcat tomorrow.csv.gz | ellipack predict rides.model - | head"""

_REPORT_EXAMPLES = """\b
Examples:
  ellipack report rides.model
  ellipack run rides.csv --target duration --json | ellipack report - > rides.html"""


def complete_column(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the columns of the table of a command that begin with a text, for shell completion."""
    from ellipack.tabular import open_table

    # While the value of an option is missing, click leaves the arguments before it unparsed.
    for path in filter(os.path.isfile, [*(context.params.get("tables") or ()), *context.args]):
        with suppress(EllipackError), open_table(path) as table:
            return [CompletionItem(name) for name in table.columns if name.startswith(incomplete)]
    return []


class OutputClosedError(Exception):
    """The reader of standard output has closed it. Click would turn a BrokenPipeError into exit code 1."""


class _Group(click.Group):
    """Command group that raises `OutputClosedError` in place of BrokenPipeError."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the command line, which prints the help if requested."""
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError as error:
            raise OutputClosedError from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
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
    """Streaming regression that learns its own metric while it predicts."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@ellipack.command(short_help="Print a script for shell completion.", epilog=_COMPLETION_EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that makes a shell complete the commands and options of ellipack."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(kind(ellipack, {}, "ellipack", "_ELLIPACK_COMPLETE").source())


@ellipack.command(short_help="Predict and then learn each row of a table.", epilog=_RUN_EXAMPLES)
@click.argument("tables", metavar="TABLE...", nargs=-1, required=True, type=InputPath())
@click.option(
    "-t",
    "--target",
    metavar="COLUMN",
    shell_complete=complete_column,
    help="Column to predict. Required unless a run is resumed.",
)
@click.option(
    "--take",
    multiple=True,
    metavar="COLUMN",
    shell_complete=complete_column,
    help="Use only this column. May be repeated.",
)
@click.option(
    "--drop",
    multiple=True,
    metavar="COLUMN",
    shell_complete=complete_column,
    help="Ignore this column. May be repeated.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="COLUMN=KIND",
    help=f"Set a column's kind: {', '.join(COLUMN_KINDS)}.",
)
@click.option(
    "--decimal", metavar="CHAR", help="Character before decimals, . or ,  [default: inferred for each column]"
)
@click.option(
    "--thousands",
    metavar="CHAR",
    help="Character between thousands: , . ' _ or a space; '' if there is none.  [default: inferred for each column]",
)
@click.option(
    "--na", multiple=True, metavar="TEXT", help="A further spelling of missing values, such as -999. May be repeated."
)
@click.option(
    "--time-format",
    "time_formats",
    multiple=True,
    metavar="COLUMN=FORMAT",
    help="How dates are written: %d/%m/%Y and so on, iso, epoch, or epoch-ms, -us, -ns.  [default: inferred]",
)
@click.option(
    "--trend", multiple=True, metavar="COLUMN", help="Use the days since the first row of a column of dates, too."
)
@click.option(
    "--levels",
    type=click.IntRange(0),
    metavar="N",
    help="One-hot encode text columns of up to N levels. Others get the mean, last and number of earlier labels of the "
    f"same level.  [default: {DEFAULT_LEVELS}]",
)
@click.option(
    "--level-memory",
    type=click.IntRange(1),
    metavar="N",
    help=f"Levels to remember per column; the least recently used are forgotten.  [default: {DEFAULT_LEVEL_MEMORY:,}]",
)
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    shell_complete=complete_column,
    help="Column whose values are keys, such as a store: predictions use the last labels of the same key. May be "
    "repeated.",
)
@click.option("--past/--no-past", default=True, help="Whether predictions use earlier labels.  [default: past]")
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    shell_complete=complete_column,
    help="Pass this column through to the predictions. May be repeated.",
)
@click.option(
    "--id",
    "id_column",
    metavar="COLUMN",
    shell_complete=complete_column,
    help="Column that identifies rows: the label of a row may come later, in a row with the same id. It is no feature.",
)
@click.option(
    "--head",
    type=click.IntRange(1),
    metavar="N",
    default=1,
    show_default=True,
    help="Rows of a pipe to wait for before columns are decided and the first one is predicted.",
)
@click.option("--min", "minimum", type=float, metavar="X", help="Smallest prediction, such as 0.")
@click.option("--max", "maximum", type=float, metavar="X", help="Largest prediction.")
@click.option(
    "--interval",
    "intervals",
    multiple=True,
    type=click.FloatRange(0.5, 0.99),
    metavar="COVERAGE",
    help="Add the ends of an interval that contains this fraction of labels, 0.5 to 0.99. May be repeated.",
)
@click.option("--format", type=click.Choice(TABLE_FORMATS), help="Format of TABLE, if its name does not show it.")
@click.option("--delimiter", metavar="CHAR", help="Character between fields of a CSV file.  [default: , ; | or a tab]")
@click.option("--sheet", metavar="NAME", help="Sheet of an Excel file, or table of a SQLite or DuckDB database.")
@click.option(
    "--on-error",
    type=click.Choice(ON_ERROR_CHOICES),
    default="stop",
    show_default=True,
    help="What to do with a row that can't be read.",
)
@click.option("--learner", type=click.Choice(LEARNER_NAMES), help=f"Learner to use.  [default: {DEFAULT_LEARNER}]")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter of the learner.")
@click.option(
    "--predictions", type=OutputPath(), metavar="OUT", help="Write the predictions to a .csv or .parquet file."
)
@click.option("--report", type=OutputPath(), metavar="OUT.html", help="Write a report page.")
@click.option(
    "--save", type=FilePath(), metavar="MODEL", help="Save the run when it ends or is stopped, and in between."
)
@click.option(
    "--resume",
    type=FilePath(),
    metavar="MODEL",
    help="Resume a saved run. Without --save, it is saved to the same file.",
)
@click.option(
    "--save-every",
    type=click.IntRange(1),
    metavar="ROWS",
    default=DEFAULT_SAVE_EVERY,
    show_default=True,
    help="Number of rows between saves.",
)
@click.option(
    "--complete", is_flag=True, help="Learn the last line even if it has no line end and the run may be resumed."
)
@click.option(
    "--workers",
    type=click.IntRange(1, MAX_WORKERS),
    metavar="N",
    help=f"Learn with N processes on this machine, at most {MAX_WORKERS}, each with memory of its own. The result does "
    "not depend on N.",
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="Learn with the workers of a scheduler of Dask, such as tcp://host:8786."
)
@click.option(
    "--shards",
    type=click.IntRange(1, 4096),
    metavar="N",
    default=DEFAULT_SHARDS,
    show_default=True,
    help="Shards of rows that workers learn at the same time.",
)
@click.option(
    "--shard-rows",
    type=click.IntRange(1),
    metavar="N",
    default=DEFAULT_SHARD_ROWS,
    show_default=True,
    help="Rows of a shard, at least. One process learns the first rows, 32 times as many.",
)
@click.option(
    "--worker-timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    default=DEFAULT_WORKER_TIMEOUT,
    show_default=True,
    help="Time after which a worker that has not learned its shards is an error.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, which `ellipack report` can read.")
@click.pass_context
def run(context: click.Context, /, **options: Any) -> None:
    """Predict the target of each row and then learn from the row, from the first to the last.

    A row without a label is predicted and counted, but not learned. With --id, its label may come later: a row with the
    same id and a label. The earlier row is learned then, with what was known when it was predicted.

    Rows of a pipe are predicted as they come. The kinds of its columns are decided from the rows that come within a
    tenth of a second of the first one; with --head, from at least N rows.

    TABLE is a CSV, Parquet, Feather, JSON, Excel, SQLite or DuckDB file; - is standard input. CSV and JSON may be
    compressed with gzip, zstd, bzip2, xz or zip. Several files, or a pattern such as 'rides-*.csv', are one table. OUT
    may be - for standard output; the result then goes to standard error.

    A resumed run continues after the last row that it learned if TABLE has the rows that it learned, even under another
    name. It learns any other table from the first row. If --save and --resume name the same MODEL and the file does not
    exist yet, a new run starts. The same command can therefore be repeated after an interruption, or when TABLE has
    grown: no row is lost or learned twice. If the run is saved, a last line without a line end waits until it is
    complete; of several files, that of the last one.

    With --workers or --scheduler, many processes learn one model (docs/scaling-out.md). The result depends on
    --shards and --shard-rows, not on the number of processes.
    """
    from ellipack.cli.run import run_table

    first, *more = expand_patterns(options.pop("tables"))
    context.exit(run_table(Options(first, more_tables=tuple(more), **options)))


@ellipack.command(short_help="Predict the rows of a table with a saved run.", epilog=_PREDICT_EXAMPLES)
@click.argument("model", type=click.Path())
@click.argument("tables", metavar="TABLE...", nargs=-1, required=True, type=InputPath())
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    metavar="OUT",
    default="-",
    help="A .csv or .parquet file to write.  [default: standard output]",
)
@click.option("--format", type=click.Choice(TABLE_FORMATS), help="Format of TABLE, if its name does not show it.")
@click.option("--delimiter", metavar="CHAR", help="Character between fields of a CSV file.  [default: , ; | or a tab]")
@click.option("--sheet", metavar="NAME", help="Sheet of an Excel file, or table of a SQLite or DuckDB database.")
@click.option(
    "--on-error",
    type=click.Choice(ON_ERROR_CHOICES),
    default="stop",
    show_default=True,
    help="What to do with a row that can't be read.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Predict the rows that follow the last learned row, one after the other, from the features and the past. "
    "Labels in TABLE are used for later rows; for a missing label, the prediction stands in.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    shell_complete=complete_column,
    help="Pass this column through to the output. May be repeated.",
)
@click.option(
    "--interval",
    "intervals",
    multiple=True,
    type=click.FloatRange(0.5, 0.99),
    metavar="COVERAGE",
    help="Add the ends of an interval that contains this fraction of labels, 0.5 to 0.99. May be repeated.",
)
def predict(**options: Any) -> None:
    """Predict the rows of TABLE with the run saved in MODEL, without learning from them.

    TABLE needs the columns that the run uses, in any order, but no target; - is standard input. The output has one line
    for each row: the row number, counted from 1, and the prediction.
    """
    from ellipack.cli.predict import PredictOptions, predict_table

    first, *more = expand_patterns(options.pop("tables"))
    predict_table(PredictOptions(table=first, more_tables=tuple(more), **options))


@ellipack.command(short_help="Show what a model has learned.")
@click.argument("model", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as `ellipack run --json` does.")
def inspect(model: str, as_json: bool) -> None:
    """Show what MODEL has learned: its errors, feature importance, directions, expert weights and phases.

    MODEL is a file saved by `ellipack run --save`, or the output of `ellipack run --json`; - is such JSON on standard
    input.
    """
    from ellipack.cli.inspect import inspect_model

    inspect_model(model, as_json)


@ellipack.command(short_help="Write a report page about a model.", epilog=_REPORT_EXAMPLES)
@click.argument("model", type=click.Path(), metavar="MODEL")
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    metavar="OUT.html",
    help="File to write.  [default: MODEL.html, or - if MODEL is -]",
)
def report(model: str, output: str | None) -> None:
    """Write a report page about MODEL: one HTML file that needs no other file and no network.

    MODEL is a file saved by `ellipack run --save`, or the output of `ellipack run --json`; - is such JSON on standard
    input. If OUT.html is -, the page goes to standard output.
    """
    from ellipack.cli.inspect import report_model

    report_model(model, output)


@ellipack.command(short_help="Run over a table of flights, and compare learners.")
@click.option("--rounds", type=click.IntRange(16), default=8000, show_default=True, help="Rows of both parts.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
@click.option(
    "--out",
    type=click.Path(),
    metavar="DIRECTORY",
    default="out",
    show_default=True,
    help="Directory of the output files.",
)
@click.pass_context
def demo(context: click.Context, rounds: int, seed: int, out: str) -> None:
    """Learn the delays of flights from a real table, then compare learners on a synthetic stream.

    First, `ellipack run` learns flights from New York and writes a report and a model, as it would for your own table.
    Then six learners are compared, in a table and a figure, on a stream of 20 features whose target depends on two
    combinations of them.
    """
    from ellipack.cli.demo import run_demo

    context.exit(run_demo(rounds, seed, out))


def main() -> NoReturn:
    """Run the command line and exit."""
    try:
        try:
            reopen_closed_streams()
            if isinstance(sys.stdout, TextIOWrapper):
                # Column names may have characters that terminals lack.
                sys.stdout.reconfigure(errors="backslashreplace")
            code = _run_command()
        except MemoryError as error:
            # The reason may be a damaged file that asks for a huge array, which its size shows.
            code = _fail(f"{error}: {_NO_MEMORY}" if str(error) else _NO_MEMORY, 1)
        except Exception as error:
            if not is_lack_of_memory(error):
                raise
            code = _fail(f"{error}: most likely, {_NO_MEMORY}", 1)
    except (OutputClosedError, BrokenPipeError):
        code = _BROKEN_PIPE
    sys.stderr.flush()
    # Skip Python's shutdown: it would report a closed output, and pyarrow would wait for the end of standard input.
    os._exit(code)


def _run_command() -> int:
    """Run the command, print one line if it fails, and return the exit code. Raise an error if memory ran out."""
    try:
        code = int(ellipack.main(prog_name="ellipack", standalone_mode=False) or 0)
        sys.stdout.flush()
        return code
    except click.ClickException as error:
        return _fail(_usage_message(error), error.exit_code)
    except EllipackError as error:
        if is_lack_of_memory(error):
            raise
        return _fail(str(error), next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))
    except ModuleNotFoundError as error:
        return _fail(missing_package_message(error), 1)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        raise
    except OSError as error:
        if is_lack_of_memory(error):
            raise
        message = str(error) if error.filename else f"standard output can't be written: {error.strerror or error}"
        return _fail(message, EXIT_CODES[StreamError])


def _usage_message(error: click.ClickException) -> str:
    """Return the message of an error in the usage, with a reference to the help."""
    context = getattr(error, "ctx", None)
    where = f" (see {context.command_path} --help)" if context is not None else ""
    return error.format_message() + where


def _fail(message: str, code: int) -> int:
    print_message(message)
    return code
