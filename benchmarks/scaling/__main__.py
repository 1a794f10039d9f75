"""Measure how cost and memory grow: ``python -m benchmarks.scaling [--full]``."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from benchmarks import page
from benchmarks.command_line import make_parser, new_table, print_results, require_positive, resize
from benchmarks.power_law import FittedExponent
from benchmarks.scaling.curves import (
    CURVES,
    FULL,
    MEASURES,
    QUICK,
    SCALING_LEARNERS,
    ScalingSize,
    fit_exponents,
    list_settings,
    measure_settings,
)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse and check the command line."""
    parser = make_parser("scaling", "Measure how cost and memory grow.")
    parser.add_argument("--full", action="store_true", help="to 1,000,000 rounds, with longer curves and more seeds")
    parser.add_argument("--rounds", type=int, help="rounds of the longest run")
    parser.add_argument("--seeds", type=int, help="number of streams for each point")
    page.add_arguments(parser)
    options = parser.parse_args(arguments)
    require_positive(parser, options, "rounds", "seeds")
    return options


def size_from(options: argparse.Namespace) -> ScalingSize:
    """Return the size that the options ask for."""
    return resize((QUICK, FULL), options, "rounds", "seeds")


def measure(size: ScalingSize) -> dict[str, Any]:
    """Measure all curves and return the results to store."""
    points = measure_settings(list_settings(size))
    return {"size": asdict(size), "points": points, "exponents": fit_exponents(points)}


def exponents_table(results: dict[str, Any]) -> Table:
    """Return a table of exponents, a curve and a learner in each row."""
    by_key = {(each["curve"], each["learner"], each["measure"]): each for each in results["exponents"]}
    table = new_table("Exponents, with their standard errors", ("along", "learner", *MEASURES.values()))
    for curve in CURVES:
        for learner in SCALING_LEARNERS:
            fitted = (by_key.get((curve, learner, measure)) for measure in MEASURES)
            cells = (str(FittedExponent(each["exponent"], each["error"])) if each else "-" for each in fitted)
            table.add_row(curve, learner, *cells)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, store the results and print them."""
    options = parse(arguments)
    results = measure(size_from(options))
    written = page.publish("scaling", results, options, arguments)
    print_results([exponents_table(results)], written)


if __name__ == "__main__":
    main()
