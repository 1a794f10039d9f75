"""Standard input, output and error: closed ones, and their names in ``/dev``."""

import glob
import os
import sys
from collections.abc import Sequence

import click

from ellipack.errors import StreamError

_INPUT_NAMES = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_OUTPUT_NAMES = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class InputPath(click.Path):
    """Path of an input. All names of standard input become ``-``."""

    def convert(  # type: ignore[override]  # click allows path objects, too
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the path."""
        return "-" if value in _INPUT_NAMES else str(super().convert(value, param, ctx))


class FilePath(click.Path):
    """Path of a file. An empty one, as of a variable of the shell that is not set, is an error."""

    def convert(  # type: ignore[override]  # click allows path objects, too
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the path."""
        if not value:
            self.fail("it must be the path of a file, got ''.", param, ctx)
        return str(super().convert(value, param, ctx))


class OutputPath(FilePath):
    """Path of an output. All names of standard output become ``-``. Opening one of them would truncate a file."""

    def convert(  # type: ignore[override]  # click allows path objects, too
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the path."""
        return "-" if value in _OUTPUT_NAMES else super().convert(value, param, ctx)


def expand_patterns(paths: Sequence[str]) -> list[str]:
    """Return the paths of files, with patterns such as ``rides-*.csv`` replaced by the files that match, in order."""
    found: list[str] = []
    for path in paths:
        matches = [path] if path == "-" or os.path.exists(path) or not glob.has_magic(path) else sorted(glob.glob(path))
        if not matches:
            raise StreamError(f"{path}: no file matches: check the pattern")
        found += matches
    return found


def reopen_closed_streams() -> None:
    """Replace closed standard streams, whose descriptors would be given to the next files that are opened.

    Standard input is empty then, standard error discards messages, and writing to standard output is an error.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
