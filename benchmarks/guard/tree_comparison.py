"""Comparison of two trees: measured by turns, then classified as worse, better or the same."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.command_line import track_progress
from benchmarks.guard.trees import MEASURES, Worker, build_library

Kind = Literal["speed", "accuracy"]

MARGIN = 0.05
"""A tree is slower if the confidence interval of the ratio of times lies above 1 by more than this."""

TOLERANCE = 0.001
"""Errors are deterministic: an error is worse if it exceeds that of the base by more than this fraction."""

MIN_PAIRS = 8
"""Fewer pairs prove nothing: by chance, one tree is faster in all of 7 pairs once in 64 times."""

_CONFIDENCE = 0.99
_RESAMPLES = 4_000


@dataclass
class Measurements:
    """Values of one measure for two trees, taken in pairs; and why a tree could not be measured."""

    name: str
    kind: Kind
    pairs: list[tuple[float, float]] = field(default_factory=list)  # this tree's, the base's
    missing: dict[str, str] = field(default_factory=dict)  # by "this" or "base"


@dataclass(frozen=True)
class Change:
    """The change of a measure: medians, ratio with an interval, and a status."""

    name: str
    kind: Kind
    status: Literal["worse", "better", "same", "new", "gone"]
    this: float = float("nan")
    base: float = float("nan")
    ratio: float = float("nan")
    interval: tuple[float, float] = (float("nan"), float("nan"))
    reason: str = ""  # why it could not be measured

    @property
    def is_worse(self) -> bool:
        """Whether the measure got worse, or cannot be measured any more."""
        return self.status in {"worse", "gone"}


def median_interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the 99 % bootstrap interval of the median; all positive numbers if there are too few ratios."""
    if len(ratios) < MIN_PAIRS:
        return 0.0, float("inf")
    drawn = np.random.default_rng(0).choice(np.asarray(ratios), (_RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), ((1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2))
    return float(low), float(high)


def classify(measurements: Measurements) -> Change:
    """Classify the change of a measure."""
    # The measures belong to this tree: a missing one was lost, even if the base lacks it, too.
    if "this" in measurements.missing:
        return Change(measurements.name, measurements.kind, "gone", reason=measurements.missing["this"])
    if "base" in measurements.missing:
        return Change(measurements.name, measurements.kind, "new", reason=measurements.missing["base"])
    this, base = (float(np.median(side)) for side in zip(*measurements.pairs, strict=True))
    ratios = [_ratio(*pair) for pair in measurements.pairs]
    ratio = float(np.median(ratios))
    low, high = median_interval(ratios) if measurements.kind == "speed" else (ratio, ratio)
    least = MARGIN if measurements.kind == "speed" else TOLERANCE
    status: Literal["worse", "better", "same"] = "same"
    if low > 1 + least:
        status = "worse"
    elif high < 1 / (1 + least):
        status = "better"
    return Change(measurements.name, measurements.kind, status, this, base, ratio, (low, high))


def _ratio(this: float, base: float) -> float:
    """Return the ratio, 1 if both are equal or both are NaN."""
    if this == base or (np.isnan(this) and np.isnan(base)):
        return 1.0
    if np.isnan(this):
        return float("inf")
    return this / base if base > 0 else float("inf")


@dataclass(frozen=True)
class Plan:
    """What to measure, and how often.

    Parameters
    ----------
    measures : mapping of str to {"speed", "accuracy"}
        The kind of each measure. Accuracy is deterministic and measured once.
    restarts : int, default 3
        How often both processes are started. The memory layout of a process makes it slightly faster or slower.
    repeats : int, default 7
        Pairs of each speed in each pair of processes.
    size : float, default 1.0
        Fraction of the rows of each measure.
    script : Path
        The script that measures.
    """

    measures: Mapping[str, Kind]
    restarts: int = 3
    repeats: int = 7
    size: float = 1.0
    script: Path = MEASURES


def compare_trees(this: Path, base: Path, scratch: Path, plan: Plan) -> list[Measurements]:
    """Measure two trees by turns."""
    measurements = [Measurements(name, kind) for name, kind in plan.measures.items()]
    trees = {"this": this, "base": base}
    for restart in range(plan.restarts):
        with ExitStack() as stack:
            workers = {}
            for side, tree in trees.items():
                folder = scratch / side
                folder.mkdir(exist_ok=True)
                workers[side] = stack.enter_context(Worker(build_library(tree, folder), folder, plan.script))
            for turn, each in track_progress(_turns(measurements, plan, restart)):
                _measure_pair(each, workers, plan.size, turn)
    return measurements


def _turns(
    measurements: Iterable[Measurements], plan: Plan, restart: int
) -> Iterator[tuple[str, tuple[int, Measurements]]]:
    """Yield what to measure in one pair of processes; turn -1 warms up and does not count."""
    for turn in range(-1, plan.repeats):
        for each in measurements:
            if each.kind == "speed" or (restart == 0 and turn == 0):
                yield (each.name if turn >= 0 else f"{each.name}, warming up"), (turn, each)


def _measure_pair(measurements: Measurements, workers: Mapping[str, Worker], size: float, turn: int) -> None:
    """Measure a pair of values; the trees alternate in who is first."""
    if measurements.missing:
        return
    values = {}
    for side in ("this", "base") if turn % 2 else ("base", "this"):
        answer = workers[side].measure(measurements.name, size)
        if "missing" in answer:
            measurements.missing[side] = answer["missing"]
        else:
            values[side] = answer["value"]
    if len(values) == len(workers) and turn >= 0:
        measurements.pairs.append((values["this"], values["base"]))
