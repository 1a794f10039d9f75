"""The command, run: what went wrong becomes one line and an exit code."""

import os
import sys
from io import TextIOWrapper
from typing import Final, NoReturn

import click

from ellipack.cli.commands import ReaderGoneError, ellipack
from ellipack.cli.missing import in_words
from ellipack.cli.saying import say
from ellipack.errors import CheckpointError, EllipackError, InputError, StreamError

EXIT_CODES: Final[dict[type[EllipackError], int]] = {InputError: 2, StreamError: 3, CheckpointError: 4}
"""Of commands that failed; those stopped by a signal have 128 and its number, as in a shell."""

_INTERRUPTED, _BROKEN_PIPE = 130, 141


def main() -> NoReturn:
    """Run the command as the command line asks, and exit."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # no name may be more than a terminal can take
    try:
        code = _code()
        sys.stdout.flush()
    except (ReaderGoneError, BrokenPipeError):
        code = _BROKEN_PIPE
    sys.stderr.flush()
    # At once: Python would complain if a reader has gone, and pyarrow wait for ever if standard input does not end.
    os._exit(code)


def _code() -> int:
    """Run the command, say in a line what went wrong if anything has, and return the exit code."""
    try:
        return int(ellipack.main(prog_name="ellipack", standalone_mode=False) or 0)
    except click.ClickException as error:
        return _failed(_objection(error), error.exit_code)
    except EllipackError as error:
        return _failed(str(error), next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))
    except ModuleNotFoundError as missing:
        return _failed(in_words(missing), 1)
    except (click.Abort, KeyboardInterrupt):
        return _failed("interrupted", _INTERRUPTED)
    except OSError as error:
        return _failed(str(error), EXIT_CODES[StreamError])


def _objection(error: click.ClickException) -> str:
    """Return what click has against the command line, and where to read more."""
    context = getattr(error, "ctx", None)
    where = f" (see {context.command_path} --help)" if context is not None else ""
    return error.format_message() + where


def _failed(message: str, code: int) -> int:
    say(message)
    return code
