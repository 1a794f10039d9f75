"""Settings measured, a process each; and the exponents that come out."""

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from benchmarks.powers import fit
from benchmarks.progress import following
from benchmarks.scaling.settings import LEARNERS, PACKING, Setting

Point = dict[str, Any]
"""A mark beside its setting, less the marks."""

CURVES = {"rounds": "rounds", "dimension": "d", "rank": "rank", "centers": "max_centers"}
"""For each curve, what of a point is laid out across."""

MEASURES = {
    "microseconds": "cost of a round",
    "peak": "peak memory",
    "saved": "saved file",
    "n_centers": "centres",
}
"""What is measured at a point, and what it is called."""


def run(settings: Iterable[Setting]) -> list[Point]:
    """Return the points of all settings."""
    named = [(f"{each.learner} over {each.curve}, to {each.marks[-1]:,} rounds", each) for each in settings]
    return [point for setting in following(named) for point in points(setting)]


def points(setting: Setting) -> list[Point]:
    """Measure a setting in a process of its own; along "rounds" each mark is a point, elsewhere the last alone."""
    command = [sys.executable, "-m", "benchmarks.scaling.measure"]
    done = subprocess.run(command, input=json.dumps(asdict(setting)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{setting} could not be measured: {done.stderr}")
    marks = json.loads(done.stdout)
    what = {name: value for name, value in asdict(setting).items() if name != "marks"}
    return [what | mark for mark in (marks if setting.curve == "rounds" else marks[-1:])]


def along(every: Iterable[Point], curve: str, learner: str) -> list[tuple[float, Point]]:
    """Return a learner's points on a curve, each with where it is, in rising order.

    Algorithm 1 has no `max_centers`: it has as many centres as it has, so those of its points along "rounds" stand.
    """
    founds = curve == "centers" and learner == PACKING
    source, across = ("rounds", "n_centers") if founds else (curve, CURVES[curve])
    chosen = [each for each in every if (each["curve"], each["learner"]) == (source, learner)]
    return sorted(((float(each[across]), each) for each in chosen), key=lambda pair: pair[0])


def exponents(every: list[Point]) -> list[dict[str, Any]]:
    """Return the exponent of each measure along each curve, with its standard error."""
    found = []
    for curve in CURVES:
        for learner in LEARNERS:
            placed = along(every, curve, learner)
            for measure in MEASURES:
                power = fit([x for x, _ in placed], [each[measure] for _, each in placed])
                if power is not None:
                    found.append({"curve": curve, "learner": learner, "measure": measure, **power._asdict()})
    return found
