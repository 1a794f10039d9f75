"""Methods through which rows and labels reach a learner; `test_river` has those of River."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ellipack.validation import Floats
from tests.entry_points.data_frame_cases import FRAMES, framed
from tests.entry_points.input_cases import TABLE, InputCase
from tests.entry_points.learners import LEARNERS, PAPER

Call = Callable[[Any, Any, Any], Floats]


@dataclass(frozen=True)
class EntryPoint:
    """A method of the learners.

    Attributes
    ----------
    call : callable
        Function of a learner, rows and labels that returns predictions.
    learns : bool
        Whether the method learns from labels.
    resets : bool
        Whether the method resets the fitted state, including the number of columns.
    table : mapping of name to InputCase
        Inputs to test.
    first : callable
        Function that converts valid rows and labels to the form of the first batch.
    """

    call: Call
    learns: bool = True
    resets: bool = False
    table: Mapping[str, InputCase] = field(default_factory=lambda: TABLE)
    first: Callable[[Floats, Floats], tuple[Any, Any]] = lambda X, y: (X, y)

    def cases(self) -> list[tuple[str, InputCase, str]]:
        """Return the name of each applicable case, the case, and the name of each learner."""
        invalid_parts = ["rows", *["labels"] * self.learns, *["width"] * (not self.resets)]
        applicable = [(name, case) for name, case in self.table.items() if case.spoils in invalid_parts]
        return [(name, case, learner) for name, case in applicable for learner in LEARNERS]


def is_paper(learner: str) -> bool:
    """Return whether a learner requires the unit ball and labels in [0, 1]."""
    return learner in PAPER


def _fit(learner: Any, X: Any, y: Any) -> Floats:
    predictions: Floats = learner.fit(X, y).predict(X)
    return predictions


def _partial_fit(learner: Any, X: Any, y: Any) -> Floats:
    predictions: Floats = learner.partial_fit(X, y).predict(X)
    return predictions


ENTRY_POINTS: dict[str, EntryPoint] = {
    "fit": EntryPoint(_fit, resets=True),
    "partial_fit": EntryPoint(_partial_fit),
    "progressive": EntryPoint(lambda learner, X, y: learner.progressive(X, y)),
    "predict": EntryPoint(lambda learner, X, y: learner.predict(X), learns=False),
    "frames, fit": EntryPoint(_fit, resets=True, table=FRAMES, first=framed),
    "frames, partial_fit": EntryPoint(_partial_fit, table=FRAMES, first=framed),
    "frames, predict": EntryPoint(lambda learner, X, y: learner.predict(X), learns=False, table=FRAMES, first=framed),
}
