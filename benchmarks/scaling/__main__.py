"""Measure how cost and memory grow: ``python -m benchmarks.scaling [--full]``."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import page
from benchmarks.command_line import check_counts, figures
from benchmarks.power_law import Power
from benchmarks.scaling.curves import CURVES, FULL, LEARNERS, MEASURES, QUICK, Extent, exponents, run, settings


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description="How cost and memory grow.")
    parser.add_argument("--full", action="store_true", help="to 1,000,000 rounds, longer everywhere, more seeds")
    parser.add_argument("--rounds", type=int, help="the longest run")
    parser.add_argument("--seeds", type=int, help="how many streams each point is measured on")
    page.add_arguments(parser)
    options = parser.parse_args(arguments)
    check_counts(parser, options, "rounds", "seeds")
    return options


def extent_of(options: argparse.Namespace) -> Extent:
    """Return how far the curves go."""
    asked = {name: value for name in ("rounds", "seeds") if (value := getattr(options, name)) is not None}
    return replace(FULL if options.full else QUICK, **asked)


def measured(extent: Extent) -> dict[str, Any]:
    """Measure, and return what is stored."""
    points = run(settings(extent))
    return {"extent": asdict(extent), "points": points, "exponents": exponents(points)}


def table_of(found: dict[str, Any]) -> Table:
    """Lay out exponents, a curve and a learner a row."""
    by = {(each["curve"], each["learner"], each["measure"]): each for each in found["exponents"]}
    table = figures("Exponents, with their standard errors", ("along", "learner", *MEASURES.values()))
    for curve in CURVES:
        for learner in LEARNERS:
            shown = (by.get((curve, learner, measure)) for measure in MEASURES)
            cells = (str(Power(each["exponent"], each["error"])) if each else "-" for each in shown)
            table.add_row(curve, learner, *cells)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, store, draw, print."""
    options = parse(arguments)
    found = measured(extent_of(options))
    written = page.publish("scaling", found, options, arguments)
    console = Console(width=120)
    console.print(table_of(found))
    console.print(f"The page: {written}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
