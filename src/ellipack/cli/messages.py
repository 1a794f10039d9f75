"""Messages to the user on standard error.

This module imports no optional package, so that it can report a missing one.
"""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ellipack.report.formatting import clean

if TYPE_CHECKING:
    from ellipack.evaluation.run import Run
    from ellipack.tabular import BadRow

_MAX_REPORTED = 5


def print_message(message: str) -> None:
    """Print a line on standard error."""
    print(f"ellipack: {clean(message)}", file=sys.stderr, flush=True)


def missing_package_message(error: ModuleNotFoundError) -> str:
    """Return which package is missing and how to install it. Raise if it is a module of ellipack itself."""
    package = (error.name or "a package").partition(".")[0]
    if package == "ellipack":
        raise error
    return f"the command line needs {package}: pip install 'ellipack[cli]'"


class ColumnMessages:
    """Reports what columns are taken for that are decided after the first rows.

    Parameters
    ----------
    run : Run
        The run, which has an encoder of the table.
    """

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._n_decisions, self._n_warnings = len(run.encoder.decisions), len(run.encoder.warnings)

    def print_new(self) -> None:
        """Report what was decided since the last call."""
        decisions, warnings = self._run.encoder.decisions, self._run.encoder.warnings
        for message in decisions[self._n_decisions :]:
            print_message(message)
        for warning in warnings[self._n_warnings :]:
            print_message(f"warning: {warning}")
        self._n_decisions, self._n_warnings = len(decisions), len(warnings)


class SkippedRows:
    """Reports skipped rows on standard error: the first few one by one, then their number.

    Parameters
    ----------
    source : str
        Name of the table.
    rephrase : callable, optional
        Function that returns a message in other words.

    Attributes
    ----------
    count : int
        Number of skipped rows.
    """

    def __init__(self, source: str, rephrase: Callable[[str], str] = str) -> None:
        self._source, self._rephrase, self.count = source, rephrase, 0

    def add(self, bad: Sequence["BadRow"]) -> None:
        """Report skipped rows, unless enough have been reported."""
        for row in bad[: max(0, _MAX_REPORTED - self.count)]:
            print_message(f"skipped: {self._rephrase(row.describe(self._source))}")
        self.count += len(bad)

    def print_total(self) -> None:
        """Report the total if not every row has been reported."""
        if self.count > _MAX_REPORTED:
            print_message(f"skipped: {self.count:,} rows in total")
