"""Compare this tree with a base revision: ``python -m benchmarks.guard [--base REVISION]``.

The exit code is 1 if a measure got worse, 2 if the trees could not be compared. This tree is the working copy,
uncommitted changes included.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.command_line import make_parser, new_table, require_positive
from benchmarks.guard.measures import ACCURACY, SPEED
from benchmarks.guard.tree_comparison import (
    MARGIN,
    TOLERANCE,
    Change,
    Kind,
    Measurements,
    Plan,
    classify,
    compare_trees,
)
from benchmarks.guard.trees import GuardError, checked_out, default_base, git

_STYLES = {"worse": "bold red", "gone": "bold red", "better": "green", "same": "dim", "new": "cyan"}
MEASURE_KINDS: dict[str, Kind] = {**dict.fromkeys(SPEED, "speed"), **dict.fromkeys(ACCURACY, "accuracy")}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse and check the command line."""
    parser = make_parser("guard", __doc__)
    parser.add_argument("--base", help="a revision (default: where this branch left main; on main, the last commit)")
    parser.add_argument(
        "--restarts", type=int, default=3, help="how often processes are started (default: %(default)s)"
    )
    parser.add_argument("--repeats", type=int, default=7, help="pairs of values in each process (default: %(default)s)")
    parser.add_argument("--only", default="", help="only measures whose name contains this")
    parser.add_argument(
        "--size", type=float, default=1.0, help="fraction of the rows of each measure (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    require_positive(parser, options, "restarts", "repeats")
    if not 0 < options.size <= 1:
        parser.error(f"--size must be above 0 and at most 1, got {options.size:g}")
    if not any(options.only.lower() in name.lower() for name in MEASURE_KINDS):
        parser.error(f"--only must be part of the name of a measure ({'; '.join(MEASURE_KINDS)}), got {options.only!r}")
    return options


def guard(root: Path, revision: str, plan: Plan) -> tuple[str, list[Measurements]]:
    """Compare a tree with one of its revisions; return the title of the revision, and the measurements."""
    with checked_out(root, revision) as base, tempfile.TemporaryDirectory(prefix="ellipack-guard-") as scratch:
        title = git(base, "log", "-1", "--format=%h %s")
        return title, compare_trees(root, base, Path(scratch), plan)


def changes_table(changes: Iterable[Change], title: str) -> Table:
    """Return a table of changes, a measure in each row."""
    table = new_table(title, ("measure", "this tree", "base", "ratio", "99 % interval", ""))
    for each in changes:
        status = f"[{_STYLES[each.status]}]{each.status}[/]"
        if each.status in {"new", "gone"}:
            table.add_row(each.name, "-", "-", "-", each.reason or "-", status)
            continue
        spread = "exact" if each.kind == "accuracy" else "{:.3f} to {:.3f}".format(*each.interval)
        unit = " s" if each.kind == "speed" else ""
        table.add_row(
            each.name, f"{each.this:.4g}{unit}", f"{each.base:.4g}{unit}", f"{each.ratio:.3f}", spread, status
        )
    return table


def summarize(changes: Sequence[Change]) -> str:
    """Return a sentence with the measures that got worse, and those that may have."""
    unsure = [
        f"{each.name} (x{each.ratio:.3f})" for each in changes if each.status == "same" and each.ratio > 1 + MARGIN
    ]
    possibly = f" Possibly slower, run with more --repeats: {'; '.join(unsure)}." if unsure else ""
    worse = [f"{each.name} ({each.reason or f'x{each.ratio:.3f}'})" for each in changes if each.is_worse]
    if worse:
        return f"Got worse: {'; '.join(worse)}.{possibly}"
    return f"None of {len(changes)} measures got worse.{possibly}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print the result, and return the exit code."""
    options = parse(arguments)
    # An exception, unlike the default action, removes the checkout.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    measures = {name: kind for name, kind in MEASURE_KINDS.items() if options.only.lower() in name.lower()}
    plan = Plan(measures, options.restarts, options.repeats, options.size)
    console = Console(width=120)
    try:
        root = Path(git(Path(__file__).parent, "rev-parse", "--show-toplevel"))
        title, measured = guard(root, options.base or default_base(root), plan)
    except GuardError as error:
        console.print(f"The trees could not be compared: {error}", style="red", highlight=False, markup=False)
        return 2
    changes = [classify(each) for each in measured]
    console.print(changes_table(changes, f"This tree over {title}"))
    notes = f"A speed is worse if its interval lies above {1 + MARGIN:g}, an error if above {1 + TOLERANCE:g}."
    console.print(f"{notes} {summarize(changes)}", highlight=False, markup=False)
    return int(any(each.is_worse for each in changes))


if __name__ == "__main__":
    sys.exit(main())
