"""Run the comparison: ``python -m benchmarks.comparison`` takes a few minutes, ``--full`` an hour or more."""

import argparse
import itertools
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks import page
from benchmarks.command_line import make_parser, new_table, print_results, require_positive, resize
from benchmarks.comparison.adapters import INSTALL_CAPYMOA
from benchmarks.comparison.datasets import DATASETS, datasets_in_folder
from benchmarks.comparison.models import CAPYMOA_MODELS, MODELS, OURS
from benchmarks.comparison.runner import list_jobs, run_jobs
from benchmarks.comparison.summary import PEER_GROUPS, Summary, WinCount

_TIMEOUT = 1800.0  # seconds for one run


@dataclass(frozen=True)
class ComparisonSize:
    """Rows of each stream, and number of seeds."""

    rows: int
    seeds: int


QUICK, FULL = ComparisonSize(1000, 2), ComparisonSize(10_000, 3)

Named = TypeVar("Named")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse and check the command line."""
    parser = make_parser("comparison", "Compare ellipack's learners with peers on the same rows.")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help=f"some streams, {QUICK.rows:,} rows (the default)")
    length.add_argument("--full", action="store_true", help=f"all streams, {FULL.rows:,} rows, {FULL.seeds} seeds")
    parser.add_argument("--rows", type=int, help="maximal number of rows of a stream")
    parser.add_argument("--seeds", type=int, help="number of runs, with seeds from 0, where the seed matters")
    parser.add_argument("--streams", nargs="+", metavar="NAME", help=f"only these streams: {', '.join(DATASETS)}")
    parser.add_argument("--learners", nargs="+", metavar="NAME", help=f"only these models: {', '.join(MODELS)}")
    parser.add_argument("--data", type=Path, help="read streams from a folder of CSV files, label y in the last column")
    parser.add_argument("--capymoa", action="store_true", help="add CapyMOA's SOKNL and ARF: needs Java and torch")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time (default: one per core)")
    page.add_arguments(parser)
    options = parser.parse_args(arguments)
    if options.capymoa and find_spec("capymoa") is None:
        parser.error(INSTALL_CAPYMOA)
    require_positive(parser, options, "rows", "seeds", "jobs")
    if options.data and options.publish:
        parser.error("--publish is for public streams, not for those of --data")
    if options.data and not options.data.is_dir():
        parser.error(f"--data must be a folder, got {options.data}")
    for name, table in (("streams", {} if options.data else DATASETS), ("learners", {**MODELS, **CAPYMOA_MODELS})):
        unknown = [each for each in getattr(options, name) or () if table and each not in table]
        if unknown:
            parser.error(f"--{name} must be among {', '.join(table)}, got {', '.join(unknown)}")
    return options


def select(table: Mapping[str, Named], names: list[str] | None, option: str) -> dict[str, Named]:
    """Return the entries with these names, or all entries if there are no names; raise if a name is unknown."""
    for name in names or ():
        if name not in table:
            raise ValueError(f"{option} must be among {', '.join(table)}, got {name}")
    return {name: each for name, each in table.items() if not names or name in names}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run the comparison and return the results to store."""
    size = resize((QUICK, FULL), options, "rows", "seeds")
    datasets = datasets_in_folder(options.data) if options.data else DATASETS
    if not (options.full or options.streams):
        datasets = {name: each for name, each in datasets.items() if each.quick}
    datasets = select(datasets, options.streams, "--streams")
    models = select({**MODELS, **(CAPYMOA_MODELS if options.capymoa else {})}, options.learners, "--learners")
    jobs = list_jobs(datasets, models, size.seeds)
    with _progress(len(jobs)) as on_done:
        outcomes, shapes = run_jobs(datasets, jobs, size.rows, (options.jobs, _TIMEOUT), on_done)
    return {
        "rows": size.rows,
        "seeds": size.seeds,
        "learners": [{"name": name, "kind": each.kind, "settings": each.settings} for name, each in models.items()],
        "streams": [
            {
                "name": name,
                "description": each.description,
                "ours": each.ours,
                "rows": shapes[name][0],
                "features": shapes[name][1],
            }
            for name, each in datasets.items()
            if name in outcomes
        ],
        "results": outcomes,
    }


def errors_table(summary: Summary) -> Table:
    """Return a table of late errors, a model in each row; the least error of each stream is green."""
    table = new_table("Late NRMSE, mean over seeds", ("learner", *summary.streams, "us per round"))
    best = {stream: summary.best(stream, summary.learners) for stream in summary.streams}
    for learner in summary.learners:
        cells = []
        for stream in summary.streams:
            error = summary.mean(stream, learner)
            cell = "failed" if math.isnan(error) else f"{error:.3f}" if error < 1000 else f"{error:.1g}"
            cells.append(f"[green]{cell}[/green]" if best[stream] == learner else cell)
        style = "bold" if summary.kinds[learner] == OURS else None
        table.add_row(learner, *cells, f"{summary.geometric_mean(learner, 'mean_us'):,.0f}", style=style)
    return table


def wins_table(summary: Summary) -> Table:
    """Return a table of wins and losses, a peer in each row, the best peers first."""
    table = new_table("MetricRegressor against", ("peer", "won", "lost", "its error over theirs"))
    for group in PEER_GROUPS:
        table.add_row(f"the best {group} peer", *_win_cells(summary.wins_against_best(group)), style="bold")
    for peer in summary.peers:
        table.add_row(peer, *_win_cells(summary.wins_against(peer)))
    return table


def main(arguments: list[str] | None = None) -> None:
    """Run the comparison, store its results and print them."""
    options = parse(arguments)
    results = measure(options)
    written = page.publish("peers", results, options, arguments)
    summary = Summary(results)
    width = max(100, 40 + 15 * len(summary.streams))
    print_results([errors_table(summary), wins_table(summary)], written, width)


def _win_cells(count: WinCount) -> tuple[str, str, str]:
    lost = f"[red]{count.lost}[/red]" if count.lost else "0"
    return str(count.won), lost, "-" if math.isnan(count.mean) else f"{count.mean:.3f}"


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Show on standard error how many runs are done and which was the last: a bar in a terminal, otherwise lines."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description:<40}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal)
    with bar as progress:
        task = progress.add_task("starting", total=total)
        count = itertools.count(1)

        def on_done(name: str) -> None:
            progress.update(task, advance=1, description=name)
            if not console.is_terminal:
                print(f"{next(count)} of {total}: {name}", file=sys.stderr, flush=True)

        yield on_done


if __name__ == "__main__":
    main()
