"""Measure how fast regret grows where the theorems are attained: ``python -m benchmarks.rates [PART ...] [--full]``."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.table import Table

from benchmarks import page
from benchmarks.command_line import make_parser, new_table, print_results, require_positive, resize
from benchmarks.rates import approximation, estimation, metrics, theorem_2


@dataclass(frozen=True)
class RatesSize:
    """Number of rounds T, and of seeds."""

    rounds: int = 2**17
    seeds: int = 3


QUICK = RatesSize()
FULL = RatesSize(rounds=10**7, seeds=10)

PARTS: Final[dict[str, Callable[[int, int, int], dict[str, Any]]]] = {
    "estimation": estimation.measure,
    "approximation": approximation.measure,
    "metrics": metrics.measure,
    "theorem-2": theorem_2.measure,
}
"""What measures each part, from the number of rounds, of seeds and of processes. Each part is a section of the page."""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse and check the command line."""
    parser = make_parser("rates", "Measure how fast regret grows on streams that attain the rates of the theorems.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"what to measure, of {', '.join(PARTS)} (default: all)"
    )
    parser.add_argument("--full", action="store_true", help="ten million rounds and ten seeds; an hour or two")
    parser.add_argument("--rounds", type=int, help="number of rounds")
    parser.add_argument("--seeds", type=int, help="number of streams of each kind")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    page.add_arguments(parser)
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"PART must be one of {', '.join(PARTS)}, got {unknown[0]}")
    require_positive(parser, options, "rounds", "seeds", "jobs")
    return options


def slopes_table(part: str, slopes: list[dict[str, Any]]) -> Table:
    """Return a table of the fitted slopes next to the exponents of the theorems and of the minimax regret."""
    table = new_table(f"Growth of regret: {part}", ("case", "slope", "spread", "rho/(1+rho)", "minimax"))
    for each in slopes:
        case = ", ".join(str(each[name]) for name in ("kind", "stream", "learner", "rank", "ranks") if name in each)
        table.add_row(case, *(f"{each[name]:.3f}" for name in ("slope", "spread", "theory", "minimax")))
    return table


def bounds_table(results: dict[str, Any]) -> Table:
    """Return a table of the error of the metric, the regret and its bounds, for the first seed."""
    table = new_table("Theorem 2, first seed", ("round", "error", "regularization", "regret", "sharp bound", "bound"))
    names = ("rounds", "error", "regularization", "regret", "sharp", "proved")
    for values in zip(*(results["runs"][0][name] for name in names), strict=True):
        table.add_row(f"{values[0]:,}", *(f"{each:.4g}" for each in values[1:]))
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, store the results and print them."""
    options = parse(arguments)
    size = resize((QUICK, FULL), options, "rounds", "seeds")
    for part in options.parts or PARTS:
        results = {"size": asdict(size), **PARTS[part](size.rounds, size.seeds, options.jobs)}
        written = page.publish(f"rates-{part}", results, options, arguments)
        table = bounds_table(results) if part == "theorem-2" else slopes_table(part, results["slopes"])
        print_results([table], written)


if __name__ == "__main__":
    main()
