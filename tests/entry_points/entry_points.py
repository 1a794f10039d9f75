"""The ways in: how rows and labels, whatever they are, are handed to a learner; River's is in `test_river`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ellipack.validation import Floats
from tests.entry_points.data_frame_cases import FRAMES, framed
from tests.entry_points.input_cases import TABLE, InputCase
from tests.entry_points.learners import LEARNERS, PAPER, bits

Enter = Callable[[Any, Any, Any], Floats]


@dataclass(frozen=True)
class EntryPoint:
    """A way in.

    Attributes
    ----------
    enter : hands rows and labels to a learner, and returns predictions.
    learns : whether labels are wanted and learned.
    forgets : whether what was learned before is forgotten, the number of columns included.
    table : what is tried.
    learners : whom it leads to, by name, before they have learned anything.
    first : what makes of good rows and labels the first that such a learner gets.
    bits : everything that such a learner carries.
    messages : what errors say where this door words them in its own way, by entry.
    """

    enter: Enter
    learns: bool = True
    forgets: bool = False
    table: Mapping[str, InputCase] = field(default_factory=lambda: TABLE)
    learners: Mapping[str, Callable[[], Any]] = field(default_factory=lambda: LEARNERS)
    first: Callable[[Floats, Floats], tuple[Any, Any]] = lambda X, y: (X, y)
    bits: Callable[[Any], object] = bits
    messages: Mapping[str, str] = field(default_factory=dict)

    def entries(self) -> list[tuple[str, InputCase, str]]:
        """Return what is tried on whom: for each the entry's name, the entry, and the learner's name."""
        spoiled = ["rows", *["labels"] * self.learns, *["width"] * (not self.forgets)]
        some = [(name, entry) for name, entry in self.table.items() if entry.spoils in spoiled]
        return [(name, entry, learner) for name, entry in some for learner in self.learners]


def is_paper(learner: str) -> bool:
    """Whether a learner wants the unit ball and [0, 1]."""
    return learner in PAPER


def _fit(learner: Any, X: Any, y: Any) -> Floats:
    predictions: Floats = learner.fit(X, y).predict(X)
    return predictions


def _partial_fit(learner: Any, X: Any, y: Any) -> Floats:
    predictions: Floats = learner.partial_fit(X, y).predict(X)
    return predictions


ENTRY_POINTS: dict[str, EntryPoint] = {
    "fit": EntryPoint(_fit, forgets=True),
    "partial_fit": EntryPoint(_partial_fit),
    "progressive": EntryPoint(lambda learner, X, y: learner.progressive(X, y)),
    "predict": EntryPoint(lambda learner, X, y: learner.predict(X), learns=False),
    "frames, fit": EntryPoint(_fit, forgets=True, table=FRAMES, first=framed),
    "frames, partial_fit": EntryPoint(_partial_fit, table=FRAMES, first=framed),
    "frames, predict": EntryPoint(lambda learner, X, y: learner.predict(X), learns=False, table=FRAMES, first=framed),
}
