"""Two trees measured by turns."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.guard.judge import Figures, Kind
from benchmarks.guard.trees import MEASURES, Worker, installed
from benchmarks.progress import following


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
