"""Compare this tree with a base revision: ``python -m benchmarks.guard [--base REVISION]``.

Ends with 1 if something surely got worse, with 2 if there is nothing to compare. This tree is what lies on disk, with
changes that are not committed.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.command_line import check_counts
from benchmarks.command_line import figures as empty_table
from benchmarks.guard.comparison import MARGIN, TOLERANCE, Figures, Judgement, Kind, Plan, compare, judge
from benchmarks.guard.measures import ACCURACY, SPEED
from benchmarks.guard.trees import GuardError, checked_out, default_base, git

_COLOURS = {"worse": "bold red", "gone": "bold red", "better": "green", "same": "dim", "new": "cyan"}
KINDS: dict[str, Kind] = {**dict.fromkeys(SPEED, "speed"), **dict.fromkeys(ACCURACY, "accuracy")}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard", description="What got worse since a revision.")
    parser.add_argument("--base", help="a revision; where this branch left main unless told, on main the last commit")
    parser.add_argument("--restarts", type=int, default=3, help="how often processes are started, 3 unless told")
    parser.add_argument("--repeats", type=int, default=7, help="pairs of figures taken in each, 7 unless told")
    parser.add_argument("--only", default="", help="only measures whose name has this in it")
    parser.add_argument("--size", type=float, default=1.0, help="a part of each measure's rows, for a quick look")
    options = parser.parse_args(arguments)
    check_counts(parser, options, "restarts", "repeats")
    if not 0 < options.size <= 1:
        parser.error(f"--size must be above 0 and at most 1, got {options.size:g}")
    if not any(options.only.lower() in name.lower() for name in KINDS):
        parser.error(f"--only must be in the name of a measure ({'; '.join(KINDS)}), got {options.only!r}")
    return options


def guard(root: Path, revision: str, plan: Plan) -> tuple[str, list[Figures]]:
    """Compare a tree with a revision of it; return what that is called in full, and the figures."""
    with checked_out(root, revision) as base, tempfile.TemporaryDirectory(prefix="ellipack-guard-") as scratch:
        called = git(base, "log", "-1", "--format=%h %s")
        return called, compare(root, base, Path(scratch), plan)


def table_of(judgements: Iterable[Judgement], title: str) -> Table:
    """Lay out judgements, a measure a row."""
    table = empty_table(title, ("measure", "this tree", "base", "ratio", "99 % interval", ""))
    for each in judgements:
        word = f"[{_COLOURS[each.word]}]{each.word}[/]"
        if each.word in {"new", "gone"}:
            table.add_row(each.name, "-", "-", "-", each.why or "-", word)
            continue
        spread = "exact" if each.kind == "accuracy" else "{:.3f} to {:.3f}".format(*each.interval)
        unit = " s" if each.kind == "speed" else ""
        table.add_row(each.name, f"{each.this:.4g}{unit}", f"{each.base:.4g}{unit}", f"{each.ratio:.3f}", spread, word)
    return table


def sentence(judgements: Sequence[Judgement]) -> str:
    """Say plainly what got worse, and what may have: more repeats would tell."""
    unsure = [
        f"{each.name} (x{each.ratio:.3f})" for each in judgements if each.word == "same" and each.ratio > 1 + MARGIN
    ]
    doubt = f" Perhaps slower, more --repeats would tell: {'; '.join(unsure)}." if unsure else ""
    bad = [f"{each.name} ({each.why or f'x{each.ratio:.3f}'})" for each in judgements if each.bad]
    if bad:
        return f"Got worse: {'; '.join(bad)}.{doubt}"
    return f"Nothing surely got worse, of {len(judgements)} measures.{doubt}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print, and return 1 if something got worse."""
    options = parse(arguments)
    # So that what was checked out is removed when this process is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    measures = {name: kind for name, kind in KINDS.items() if options.only.lower() in name.lower()}
    plan = Plan(measures, options.restarts, options.repeats, options.size)
    console = Console(width=120)
    try:
        root = Path(git(Path(__file__).parent, "rev-parse", "--show-toplevel"))
        called, found = guard(root, options.base or default_base(root), plan)
    except GuardError as error:
        console.print(f"Nothing was compared: {error}", style="red", highlight=False, markup=False)
        return 2
    judgements = [judge(each) for each in found]
    console.print(table_of(judgements, f"This tree over {called}"))
    notes = f"Speed is worse if surely above {1 + MARGIN:g}, an error if above {1 + TOLERANCE:g}."
    console.print(f"{notes} {sentence(judgements)}", highlight=False, markup=False)
    return int(any(each.bad for each in judgements))


if __name__ == "__main__":
    sys.exit(main())
