"""Check the paper's claims on synthetic streams: ``python -m benchmarks.claims [--full]``."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from benchmarks import page
from benchmarks.claims import gop_error, regret
from benchmarks.command_line import make_parser, new_table, print_results, require_positive, resize, track_progress
from ellipack.synthetic import LowRankStream

STREAMS = ((2, 1), (5, 1), (10, 2))
"""Dimension and rank of the streams."""


@dataclass(frozen=True)
class ClaimsSize:
    """Number of the paper's phases, numbers of rows for estimates of the gradient outer product, and seeds."""

    phases: int = 13
    rows: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096, 8192)
    seeds: int = 3


QUICK = ClaimsSize()
FULL = ClaimsSize(phases=16, rows=(*QUICK.rows, 16_384, 32_768, 65_536), seeds=10)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse and check the command line."""
    parser = make_parser("claims", "Check the paper's claims on synthetic streams.")
    parser.add_argument("--full", action="store_true", help="more rounds and rows, and ten seeds")
    parser.add_argument("--phases", type=int, help="number of the paper's phases; phase i has 2^i rounds")
    parser.add_argument("--seeds", type=int, help="number of streams of each kind")
    page.add_arguments(parser)
    options = parser.parse_args(arguments)
    require_positive(parser, options, "phases", "seeds")
    return options


def size_from(options: argparse.Namespace) -> ClaimsSize:
    """Return the size that the options ask for."""
    return resize((QUICK, FULL), options, "phases", "seeds")


def measure(size: ClaimsSize) -> dict[str, Any]:
    """Measure everything and return the results to store."""
    streams = [LowRankStream(d, rank, random_state=seed) for d, rank in STREAMS for seed in range(size.seeds)]
    runs = [(f"{name}, d = {each.d}", (each, name)) for each in streams for name in regret.REGRET_LEARNERS]
    curves = [asdict(regret.measure_regret(stream, name, size.phases)) for stream, name in track_progress(runs)]
    estimates = [(f"{name}, d = {each.d}", (each, name)) for each in streams for name in gop_error.ESTIMATORS]
    errors = [
        each for stream, name in track_progress(estimates) for each in gop_error.measure_errors(stream, name, size.rows)
    ]
    return {
        "size": asdict(size),
        "regret": curves,
        "slopes": regret.fit_slopes(curves),
        "gop": errors,
        "gop_exponents": gop_error.fit_error_exponents(errors),
    }


def slopes_table(results: dict[str, Any]) -> Table:
    """Return a table of the fitted slopes of regret next to those of the theorems."""
    headings = ("learner", "d", "rank", "slope over the last rounds", "spread", "rho/(1+rho)")
    table = new_table("Growth of regret: slopes on logarithmic axes", headings)
    for each in results["slopes"]:
        theory = "-" if each["theory"] is None else f"{each['theory']:.2f}"
        shape = str(each["d"]), str(each["rank"])
        table.add_row(each["learner"], *shape, f"{each['slope']:.2f}", f"{each['spread']:.2f}", theory)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, store the results and print them."""
    options = parse(arguments)
    results = measure(size_from(options))
    written = page.publish("claims", results, options, arguments)
    print_results([slopes_table(results)], written)


if __name__ == "__main__":
    main()
