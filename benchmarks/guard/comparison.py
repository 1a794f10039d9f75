"""What two trees' figures say: a ratio, how sure it is, and whether it is for the worse."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.command_line import following
from benchmarks.guard.trees import MEASURES, Worker, installed

Kind = Literal["speed", "accuracy"]

MARGIN = 0.05
"""A tree is slower for sure when its ratio is above 1 by more than this, for sure."""

TOLERANCE = 0.001
"""Errors come out the same every time: more than this part above the base's is worse."""

FEWEST = 8
"""Of fewer pairs nothing is sure: that all of 7 have the same tree in front happens by chance once in 64 times."""

_SURE = 0.99
_RESAMPLES = 4_000


@dataclass
class Figures:
    """One measure of two trees: pairs of figures taken one right after the other; and what a tree lacks."""

    name: str
    kind: Kind
    pairs: list[tuple[float, float]] = field(default_factory=list)  # this tree's, the base's
    lacks: dict[str, str] = field(default_factory=dict)  # by "this" or "base"


@dataclass(frozen=True)
class Judgement:
    """What is said of a measure: its medians, the ratio with an interval, and a word."""

    name: str
    kind: Kind
    word: Literal["worse", "better", "same", "new", "gone"]
    this: float = float("nan")
    base: float = float("nan")
    ratio: float = float("nan")
    interval: tuple[float, float] = (float("nan"), float("nan"))
    why: str = ""  # it could not be measured

    @property
    def bad(self) -> bool:
        """Whether it is for the worse."""
        return self.word in {"worse", "gone"}


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return where the median of such ratios lies, by the bootstrap: 99 times of 100; anywhere, if they are few."""
    if len(ratios) < FEWEST:
        return 0.0, float("inf")
    drawn = np.random.default_rng(0).choice(np.asarray(ratios), (_RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), ((1 - _SURE) / 2, (1 + _SURE) / 2))
    return float(low), float(high)


def judge(figures: Figures) -> Judgement:
    """Say of a measure whether it got worse."""
    if "this" in figures.lacks:  # measures are of this tree: what it cannot do was lost, whether the base can or not
        return Judgement(figures.name, figures.kind, "gone", why=figures.lacks["this"])
    if "base" in figures.lacks:
        return Judgement(figures.name, figures.kind, "new", why=figures.lacks["base"])
    this, base = (float(np.median(side)) for side in zip(*figures.pairs, strict=True))
    ratios = [_ratio(*pair) for pair in figures.pairs]
    ratio = float(np.median(ratios))
    low, high = interval(ratios) if figures.kind == "speed" else (ratio, ratio)
    least = MARGIN if figures.kind == "speed" else TOLERANCE
    word: Literal["worse", "better", "same"] = "same"
    if low > 1 + least:
        word = "worse"
    elif high < 1 / (1 + least):
        word = "better"
    return Judgement(figures.name, figures.kind, word, this, base, ratio, (low, high))


def _ratio(this: float, base: float) -> float:
    """Return a ratio, 1 where both are 0 or neither is a number: then nothing changed."""
    if this == base or (np.isnan(this) and np.isnan(base)):
        return 1.0
    if np.isnan(this):
        return float("inf")
    return this / base if base > 0 else float("inf")


@dataclass(frozen=True)
class Plan:
    """What is measured, and how often.

    Attributes
    ----------
    measures : the kind of each, by name. What is no speed comes out the same every time and is asked for once.
    restarts : how often both processes are started: how a process lies in memory makes it a little faster or slower.
    repeats : how many pairs of figures are taken of each speed, in each of these.
    size : a part of each measure's rows, for a quick look.
    script : what is run beside each library.
    """

    measures: Mapping[str, Kind]
    restarts: int = 3
    repeats: int = 7
    size: float = 1.0
    script: Path = MEASURES


def compare(this: Path, base: Path, scratch: Path, plan: Plan) -> list[Figures]:
    """Return the figures of both trees, which take turns, measure by measure."""
    every = [Figures(name, kind) for name, kind in plan.measures.items()]
    trees = {"this": this, "base": base}
    for restart in range(plan.restarts):
        with ExitStack() as stack:
            workers = {}
            for side, tree in trees.items():
                own = scratch / side
                own.mkdir(exist_ok=True)
                workers[side] = stack.enter_context(Worker(installed(tree, own), own, plan.script))
            for turn, figures in following(_turns(every, plan, restart)):
                _measure(figures, workers, plan.size, turn)
    return every


def _turns(every: Iterable[Figures], plan: Plan, restart: int) -> Iterator[tuple[str, tuple[int, Figures]]]:
    """Yield what is measured in one pair of processes; turn -1 is for warming up, and does not count."""
    for turn in range(-1, plan.repeats):
        for figures in every:
            if figures.kind == "speed" or (restart == 0 and turn == 0):
                yield (figures.name if turn >= 0 else f"{figures.name}, warming up"), (turn, figures)


def _measure(figures: Figures, workers: Mapping[str, Worker], size: float, turn: int) -> None:
    """Take a pair of figures; who is first changes from turn to turn."""
    if figures.lacks:
        return
    values = {}
    for side in ("this", "base") if turn % 2 else ("base", "this"):
        answer = workers[side].ask(figures.name, size)
        if "lacks" in answer:
            figures.lacks[side] = answer["lacks"]
        else:
            values[side] = answer["value"]
    if len(values) == len(workers) and turn >= 0:
        figures.pairs.append((values["this"], values["base"]))
