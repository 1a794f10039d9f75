"""The command and its subcommands; what went wrong becomes one line and an exit code."""

import os
import sys
from io import TextIOWrapper
from typing import Any, Final, NoReturn

import click
from click.shell_completion import get_completion_class

from ellipack._version import __version__
from ellipack.cli.demonstrating import demo
from ellipack.cli.inspecting import inspect
from ellipack.cli.predicting import predict
from ellipack.cli.reporting import report
from ellipack.cli.running import run
from ellipack.cli.terminal import say
from ellipack.errors import CheckpointError, EllipackError, InputError, StreamError

EXIT_CODES: Final[dict[type[EllipackError], int]] = {InputError: 2, StreamError: 3, CheckpointError: 4}
"""Of commands that failed; those stopped by a signal have 128 and its number, as in a shell."""

_INTERRUPTED, _BROKEN_PIPE = 130, 141

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


class _ReaderGoneError(Exception):
    """Whoever read standard output has gone; no BrokenPipeError, of which click makes an exit code of its own."""


class _Group(click.Group):
    """The command, which hands on that a reader has gone."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error


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


for command in (run, predict, inspect, report, demo):
    ellipack.add_command(command)


def main() -> NoReturn:
    """Run the command as the command line asks, and exit."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # no name may be more than a terminal can take
    try:
        code = _code()
        sys.stdout.flush()
    except (_ReaderGoneError, BrokenPipeError):
        code = _BROKEN_PIPE
    sys.stderr.flush()
    # At once: Python would complain if a reader has gone, and pyarrow wait for ever if standard input does not end.
    os._exit(code)


def _code() -> int:
    """Run the command, say in a line what went wrong if anything has, and return the exit code."""
    try:
        return int(ellipack.main(prog_name="ellipack", standalone_mode=False) or 0)
    except click.ClickException as error:
        return _failed(_in_words(error), error.exit_code)
    except EllipackError as error:
        return _failed(str(error), next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))
    except (click.Abort, KeyboardInterrupt):
        return _failed("interrupted", _INTERRUPTED)
    except OSError as error:
        return _failed(str(error), EXIT_CODES[StreamError])


def _in_words(error: click.ClickException) -> str:
    """Return what click has against the command line, and where to read more."""
    context = getattr(error, "ctx", None)
    where = f" (see {context.command_path} --help)" if context is not None else ""
    return error.format_message() + where


def _failed(message: str, code: int) -> int:
    say(message)
    return code
