"""Messages that name options of the command line, for Python: `python_hints` and `warn_about_columns`."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ellipack.errors import StreamError, TableWarning

_REMEDIES: Final = (
    (r"run with --on-error skip", 'set on_error="skip"'),
    (r"run with --drop ('.*?')", r"set drop=[\1]"),
    (r"with --drop ('.*?')", r"with drop=[\1]"),
    (r"--drop ('.*?')", r"drop=[\1]"),
    (r"--on-error skip", 'on_error="skip"'),
    (r"use one with --take", "name one in take"),
    (r"run with --kind '(.*?)=(\w+)'", r'set kinds={"\1": "\2"}'),
    (r"--kind '(.*?)=(\w+)'", r'kinds={"\1": "\2"}'),
    (r"run with --time-format '(.*?)=(.*?)'", r'set cells=CellOptions(time_formats={"\1": "\2"})'),
    (r"--time-format '(.*?)=(.*?)'", r'CellOptions(time_formats={"\1": "\2"})'),
    (r"with --na\b", "with cells=CellOptions(na=...)"),
    (r"run with --decimal (\S)", r'set cells=CellOptions(decimal="\1")'),
    (r"run with --thousands '(.)'", r'set cells=CellOptions(thousands="\1")'),
    (r"--(decimal|thousands) '(.?)'", r'\1="\2"'),
)


def to_python(message: str) -> str:
    """Return a message with parameters of `TableRegressor` in place of options of the command line.

    Examples
    --------
    >>> to_python("run with --kind 'day=time'")
    'set kinds={"day": "time"}'
    """
    for pattern, replacement in _REMEDIES:
        message = re.sub(pattern, replacement, message)
    return message


@contextmanager
def python_hints() -> Iterator[None]:
    """Make errors name parameters of Python where they name options of the command line."""
    try:
        yield
    except StreamError as error:
        raise StreamError(to_python(str(error))) from error


def warn_about_columns(messages: Sequence[str]) -> None:
    """Issue warnings about columns."""
    for message in messages:
        warnings.warn(to_python(message), TableWarning, stacklevel=4)
