"""Lines for a person, on standard error."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ellipack.report.formatting import clean

if TYPE_CHECKING:
    from ellipack.tabular import BadRow


def print_message(message: str) -> None:
    """Print a line."""
    print(f"ellipack: {clean(message)}", file=sys.stderr, flush=True)


def missing_package_message(missing: ModuleNotFoundError) -> str:
    """Return which package the command line lacks, and how to get it; a module of our own that is not there raises."""
    package = (missing.name or "a package").partition(".")[0]
    if package == "ellipack":
        raise missing
    return f"the command line needs {package}: pip install 'ellipack[cli]'"


_SHOWN = 5


class SkippedRows:
    """Tells on standard error of rows of a source that are skipped.

    Attributes
    ----------
    count : how many there were.
    """

    def __init__(self, source: str) -> None:
        self._source, self.count = source, 0

    def add(self, bad: Sequence["BadRow"]) -> None:
        """Tell of more rows, if not of enough already."""
        for row in bad[: max(0, _SHOWN - self.count)]:
            place = f"{self._source}, row {row.row_number:,}" + (f", column '{row.column}'" if row.column else "")
            print_message(f"skipped: {place}: {row.reason}")
        self.count += len(bad)

    def print_total(self) -> None:
        """Tell of those that were not told of."""
        if self.count > _SHOWN:
            print_message(f"skipped: {self.count:,} rows in all")
