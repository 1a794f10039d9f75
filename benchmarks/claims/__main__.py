"""Play out the paper's claims: ``python -m benchmarks.claims [--full]``."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import page
from benchmarks.claims import gop_error, regret
from benchmarks.command_line import check_counts, figures, following
from ellipack.synthetic import LowRankStream

STREAMS = ((2, 1), (5, 1), (10, 2))
"""Dimension and rank of the streams."""


@dataclass(frozen=True)
class Extent:
    """How many of the paper's phases are played, up to how many rows estimates have, and over how many seeds."""

    phases: int = 13
    rows: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096, 8192)
    seeds: int = 3


QUICK = Extent()
FULL = Extent(phases=16, rows=(*QUICK.rows, 16_384, 32_768, 65_536), seeds=10)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claims", description="The paper's claims, played out.")
    parser.add_argument("--full", action="store_true", help="longer, and over ten seeds")
    parser.add_argument("--phases", type=int, help="how many of the paper's phases are played: phase i has 2^i rounds")
    parser.add_argument("--seeds", type=int, help="over how many streams of each kind")
    page.add_arguments(parser)
    options = parser.parse_args(arguments)
    check_counts(parser, options, "phases", "seeds")
    return options


def extent_of(options: argparse.Namespace) -> Extent:
    """Return how much is played."""
    asked = {name: value for name in ("phases", "seeds") if (value := getattr(options, name)) is not None}
    return replace(FULL if options.full else QUICK, **asked)


def measured(extent: Extent) -> dict[str, Any]:
    """Play everything, and return what is stored."""
    streams = [LowRankStream(d, rank, random_state=seed) for d, rank in STREAMS for seed in range(extent.seeds)]
    games = [(f"{name}, d = {each.d}", (each, name)) for each in streams for name in regret.LEARNERS]
    played = [asdict(regret.play(stream, name, extent.phases)) for stream, name in following(games)]
    guesses = [(f"{name}, d = {each.d}", (each, name)) for each in streams for name in gop_error.ESTIMATORS]
    errors = [each for stream, name in following(guesses) for each in gop_error.errors(stream, name, extent.rows)]
    return {
        "extent": asdict(extent),
        "regret": played,
        "slopes": regret.slopes(played),
        "gop": errors,
        "gop_exponents": gop_error.exponents(errors),
    }


def table_of(found: dict[str, Any]) -> Table:
    """Lay out slopes of regret beside the theorems'."""
    heads = ("learner", "d", "rank", "slope over the last rounds", "spread", "rho/(1+rho)")
    table = figures("Growth of regret: slopes on logarithms", heads)
    for each in found["slopes"]:
        theory = "-" if each["theory"] is None else f"{each['theory']:.2f}"
        shape = str(each["d"]), str(each["rank"])
        table.add_row(each["learner"], *shape, f"{each['slope']:.2f}", f"{each['spread']:.2f}", theory)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, store, draw, print."""
    options = parse(arguments)
    found = measured(extent_of(options))
    written = page.publish("claims", found, options, arguments)
    console = Console(width=120)
    console.print(table_of(found))
    console.print(f"The page: {written}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
