"""The race: ``python -m benchmarks.comparison``, a few minutes; ``--full``, an hour or more."""

import argparse
import itertools
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks import page
from benchmarks.command_line import check_counts, figures
from benchmarks.comparison import datasets
from benchmarks.comparison.adapters import INSTALL
from benchmarks.comparison.models import CAPYMOA, LEARNERS, OURS
from benchmarks.comparison.runner import Shown, jobs, race
from benchmarks.comparison.summary import PEERS, Standings, Tally

_LIMIT = 1800.0  # seconds for one run


class Size(NamedTuple):
    """How long a race is."""

    rows: int
    seeds: int


QUICK, FULL = Size(1000, 2), Size(10_000, 3)

Named = TypeVar("Named")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.comparison", description="Race ellipack's learners and their peers on the same rows."
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help=f"some streams, {QUICK.rows:,} rows; so it is unless told")
    length.add_argument("--full", action="store_true", help=f"all streams, {FULL.rows:,} rows, {FULL.seeds} seeds")
    parser.add_argument("--rows", type=int, help="play at most so many rows of a stream")
    parser.add_argument(
        "--seeds", type=int, help="run so many times, with seeds from 0 on, where they change something"
    )
    parser.add_argument("--streams", nargs="+", metavar="NAME", help=f"only these: {', '.join(datasets.SOURCES)}")
    parser.add_argument("--learners", nargs="+", metavar="NAME", help=f"only these: {', '.join(LEARNERS)}")
    parser.add_argument("--data", type=Path, help="a folder of CSV files to race on instead, the label y last")
    parser.add_argument("--capymoa", action="store_true", help="with CapyMOA's SOKNL and ARF: needs Java and torch")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time, one a core unless told")
    page.add_arguments(parser)
    options = parser.parse_args(arguments)
    if options.capymoa and find_spec("capymoa") is None:
        parser.error(INSTALL)
    check_counts(parser, options, "rows", "seeds", "jobs")
    if options.data and options.publish:
        parser.error("--publish is for streams that anyone can get, not for those of --data")
    if options.data and not options.data.is_dir():
        parser.error(f"--data must be a folder, got {options.data}")
    for name, table in (("streams", {} if options.data else datasets.SOURCES), ("learners", {**LEARNERS, **CAPYMOA})):
        odd = [each for each in getattr(options, name) or () if table and each not in table]
        if odd:
            parser.error(f"--{name} must be among {', '.join(table)}, got {', '.join(odd)}")
    return options


def chosen(table: Mapping[str, Named], names: list[str] | None, what: str) -> dict[str, Named]:
    """Return the entries of these names, all if there are none; raise if one is not there."""
    for name in names or ():
        if name not in table:
            raise ValueError(f"{what} must be among {', '.join(table)}, got {name}")
    return {name: each for name, each in table.items() if not names or name in names}


def main(arguments: list[str] | None = None) -> None:
    """Race, print the standings and store them."""
    options = parse(arguments)
    size = FULL if options.full else QUICK
    rows, seeds = options.rows or size.rows, options.seeds or size.seeds
    sources = datasets.folder(options.data) if options.data else datasets.SOURCES
    if not (options.full or options.streams):
        sources = {name: each for name, each in sources.items() if each.quick}
    sources = chosen(sources, options.streams, "--streams")
    learners = chosen({**LEARNERS, **(CAPYMOA if options.capymoa else {})}, options.learners, "--learners")
    todo = jobs(sources, learners, seeds)
    with _progress(len(todo)) as done:
        found, shapes = race(sources, todo, rows, (options.jobs, _LIMIT), done)
    figures: dict[str, Any] = {
        "rows": rows,
        "seeds": seeds,
        "learners": [{"name": name, "kind": each.kind, "settings": each.settings} for name, each in learners.items()],
        "streams": [
            {
                "name": name,
                "about": each.about,
                "ours": each.ours,
                "rows": shapes[name][0],
                "features": shapes[name][1],
            }
            for name, each in sources.items()
            if name in found
        ],
        "results": found,
    }
    written = page.publish("peers", figures, options, arguments)
    console = Console(width=max(100, 40 + 15 * len(sources)))
    console.print(errors_table(Standings(figures)))
    console.print(tallies_table(Standings(figures)))
    console.print(f"The page: {written}", highlight=False, soft_wrap=True)


@contextmanager
def _progress(total: int) -> Iterator[Shown]:
    """Show on standard error how far things are and what was done last; a line each, if that is not a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description:<40}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal)
    with bar as progress:
        task = progress.add_task("compiling, the first time", total=total)
        count = itertools.count(1)

        def done(name: str) -> None:
            progress.update(task, advance=1, description=name)
            if not console.is_terminal:
                print(f"{next(count)} of {total}: {name}", file=sys.stderr, flush=True)

        yield done


def errors_table(standings: Standings) -> Table:
    """Lay out late errors, a learner a row; green the least of a stream."""
    table = figures("Late NRMSE, mean over seeds", ("learner", *standings.streams, "us a round"))
    best = {stream: standings.best(stream, standings.learners) for stream in standings.streams}
    for learner in standings.learners:
        cells = []
        for stream in standings.streams:
            error = standings.mean(stream, learner)
            shown = "failed" if math.isnan(error) else f"{error:.3f}" if error < 1000 else f"{error:.1g}"
            cells.append(f"[green]{shown}[/green]" if best[stream] == learner else shown)
        style = "bold" if standings.kinds[learner] == OURS else None
        table.add_row(learner, *cells, f"{standings.typical(learner, 'mean_us'):,.0f}", style=style)
    return table


def tallies_table(standings: Standings) -> Table:
    """Lay out wins and losses, a peer a row, the best of each stream first."""
    table = figures("MetricRegressor against", ("peer", "won", "lost", "its error over theirs"))
    for group in PEERS:
        table.add_row(f"the best {group} peer", *_cells(standings.against_best(group)), style="bold")
    for peer in standings.peers:
        table.add_row(peer, *_cells(standings.against(peer)))
    return table


def _cells(tally: Tally) -> tuple[str, str, str]:
    lost = f"[red]{tally.lost}[/red]" if tally.lost else "0"
    return str(tally.won), lost, "-" if math.isnan(tally.mean) else f"{tally.mean:.3f}"


if __name__ == "__main__":
    main()
