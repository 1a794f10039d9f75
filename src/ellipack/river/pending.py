"""Predictions whose labels are not known yet, with what is needed to learn them when they come."""

from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from ellipack.errors import InputError, ModelFileError
from ellipack.learners.intervals import COVERAGES
from ellipack.learners.metric.past import MAX_PAST_VALUE
from ellipack.locks import LearnLock
from ellipack.river.features import python_name
from ellipack.serialization import Archive

MAX_PENDING: Final = 10_000
"""Largest number of pending predictions. Beyond it, the oldest are forgotten."""

_Identity = tuple[int, frozenset[tuple[Hashable, float]]]
"""What identifies a row: its key, and its features other than 0."""


class PendingPrediction(NamedTuple):
    """A prediction whose label is not known yet.

    Attributes
    ----------
    clock : int
        Number of rounds before the prediction.
    past : tuple of float
        Features of the past that it used.
    bounds : tuple of float, default ()
        Its prediction intervals, if they were asked for.
    """

    clock: int
    past: tuple[float, ...]
    bounds: tuple[float, ...] = ()


class _Learning(NamedTuple):
    """Predictions of a row that are removed when the row has been learned.

    Attributes
    ----------
    row : tuple
        What identifies the row.
    clock : int
        Number of rounds before that of the row.
    last_clock : int
        Clock of the newest prediction that is removed, with all older ones of the row.
    labels_come_late : bool
        Whether labels come late from then on.
    """

    row: _Identity
    clock: int
    last_clock: int
    labels_come_late: bool


class PendingPredictions:
    """Predictions whose labels are not known yet.

    A row is learned with the past that was known when it was predicted, and its label is compared with the interval
    that was returned then. Predictions of the same row without a round between them count once. Several
    predictions of a row may be pending because labels come late, or because the row was predicted repeatedly. Rows with
    a single pending prediction show which: if their labels come late, a label belongs to the oldest prediction;
    otherwise it belongs to the newest, and the others are forgotten.

    Several threads may add predictions at the same time. One thread at a time learns.

    **Interrupts.** What is removed when a row is learned is decided before, by `start_learning`. The predictions are
    removed as soon as the clock shows that the row was learned: by `finish_learning`, or if an interrupt prevents that,
    by the next call. So each row is learned and its predictions are removed, or neither. All other changes are single
    steps.

    Examples
    --------
    >>> pending = PendingPredictions()
    >>> pending.add({"height": 1.2}, 0, PendingPrediction(clock=7, past=(0.5,)))
    >>> pending.start_learning({"height": 1.2, "width": 0}, key=0, clock=9).past
    (0.5,)
    >>> pending.finish_learning(clock=10)
    >>> pending.start_learning({"height": 1.2}, key=0, clock=10).past
    ()
    """

    def __init__(self) -> None:
        self._by_row: OrderedDict[_Identity, deque[PendingPrediction]] = OrderedDict()
        self._known_count: int | None = 0  # None while predictions are added or removed, and after an interrupt of that
        self._labels_come_late = False
        self._learning: _Learning | None = None
        self._lock = LearnLock()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock.turn:
            by_row = OrderedDict((name, queue.copy()) for name, queue in self._by_row.items())
            return {**self.__dict__, "_by_row": by_row, "_lock": LearnLock()}

    def check_unlocked(self) -> None:
        """Raise `ReentrantCallError` in a signal handler that interrupts a change of the predictions in its thread."""
        with self._lock.turn:
            pass

    def __len__(self) -> int:
        with self._lock.turn:
            return self._count()

    def _count(self) -> int:
        known = self._known_count
        return sum(map(len, self._by_row.values())) if known is None else known

    def add(self, x: Mapping[Any, Any], key: int, prediction: PendingPrediction) -> None:
        """Add a prediction."""
        name = _identity(x, key)
        with self._lock.turn:
            self._remove_learned(prediction.clock)
            queue = self._by_row.get(name)
            if queue is None or queue[-1].clock != prediction.clock:
                self._append(name, queue, prediction)
            elif prediction.bounds:
                queue[-1] = prediction
            while self._count() > MAX_PENDING:
                self._remove_oldest(next(iter(self._by_row)))

    def _append(self, name: _Identity, queue: deque[PendingPrediction] | None, prediction: PendingPrediction) -> None:
        """Append a prediction to those of a row, if there are any."""
        count = self._count()
        self._known_count = None
        # An interrupt comes before or after one of these two steps, so that no queue is empty.
        if queue is None:
            self._by_row[name] = deque([prediction])
        else:
            queue.append(prediction)
        self._known_count = count + 1

    def start_learning(self, x: Mapping[Any, Any], key: int, clock: int) -> PendingPrediction:
        """Return the prediction of a row whose label has come; an empty one of this round if there is none."""
        if not self._by_row:
            self._learning = None
            return PendingPrediction(clock, ())
        name = _identity(x, key)
        with self._lock.turn:
            self._remove_learned(clock)
            queue = self._by_row.get(name)
            if queue is None:
                self._learning = None
                return PendingPrediction(clock, ())
            if self._is_immediate(queue, clock):
                self._learning = _Learning(name, clock, clock, labels_come_late=False)
                return queue[-1]
            labels_come_late = self._labels_come_late or len(queue) == 1
            self._learning = _Learning(name, clock, queue[0].clock, labels_come_late)
            return queue[0]

    def finish_learning(self, clock: int) -> None:
        """Remove the predictions of the row that was learned last, if the clock has advanced since it was started."""
        if self._learning is not None:
            with self._lock.turn:
                self._remove_learned(clock)

    def _remove_learned(self, clock: int) -> None:
        """Do the same, while this thread holds the lock. After an interrupt, the next call continues."""
        learned = self._learning
        if learned is None or clock <= learned.clock:
            return
        self._labels_come_late = learned.labels_come_late
        while learned.row in self._by_row and self._by_row[learned.row][0].clock <= learned.last_clock:
            self._remove_oldest(learned.row)
        self._learning = None

    def _is_immediate(self, queue: deque[PendingPrediction], clock: int) -> bool:
        """Return whether a label belongs to a prediction of this round."""
        return queue[-1].clock == clock and (len(queue) == 1 or not self._labels_come_late)

    def _remove_oldest(self, name: _Identity) -> None:
        """Remove the oldest prediction of a row."""
        queue, count = self._by_row[name], self._count()
        self._known_count = None
        # An interrupt comes before or after one of these two steps, so that no queue is empty.
        if len(queue) > 1:
            queue.popleft()
        else:
            del self._by_row[name]
        self._known_count = count - 1

    def names(self) -> set[Hashable]:
        """Return the names of all features of pending rows."""
        with self._lock.turn:
            return {python_name(feature) for _, row in self._by_row for feature, _ in row}

    def to_archive(self, n_past_features: int) -> Archive:
        """Return an archive of all pending predictions; raise `InputError` unless they used so many of the past."""
        with self._lock.turn:
            entries = [(name, each) for name, queue in self._by_row.items() for each in queue]
        if any(len(each.past) != n_past_features for _, each in entries):
            raise InputError("past and by must be those of the predictions whose labels are not known: use a new model")
        named = [[(python_name(feature), float(value)) for feature, value in name[1]] for name, _ in entries]
        rows = [[list(pair) for pair in sorted(row, key=repr)] for row in named]
        past = np.array([each.past for _, each in entries], dtype=np.float64).reshape(len(entries), n_past_features)
        return Archive(
            {"rows": rows, "labels_come_late": self._labels_come_late},
            {
                "keys": np.array([name[0] for name, _ in entries], dtype=np.int64),
                "clocks": np.array([each.clock for _, each in entries], dtype=np.int64),
                "past": past,
                "has_bounds": np.array([bool(each.bounds) for _, each in entries], dtype=np.int64),
                "bounds": np.array([each.bounds for _, each in entries if each.bounds]).reshape(-1, 2 * len(COVERAGES)),
            },
        )

    @classmethod
    def from_archive(cls, saved: Archive, n_past_features: int) -> "PendingPredictions":
        """Restore pending predictions from an archive."""
        rows = saved.fact("rows", list)
        count = len(rows)
        keys = saved.ints("keys", count, least=-(2**63), most=2**63 - 1).tolist()
        clocks = saved.ints("clocks", count, least=0, most=2**52).tolist()
        past = saved.floats_between(-MAX_PAST_VALUE, MAX_PAST_VALUE, "past", count, n_past_features).tolist()
        has_bounds = saved.ints("has_bounds", count, least=0, most=1)
        bounds = saved.any_floats("bounds", int(has_bounds.sum()), 2 * len(COVERAGES))
        if np.isnan(bounds).any():
            raise ModelFileError(f"{saved.prefix}bounds must not be NaN")
        published = iter(bounds.tolist())
        ends = [tuple(next(published)) if has else () for has in has_bounds]
        pending = cls()
        pending._labels_come_late = saved.fact("labels_come_late", bool)
        for row, key, clock, features, own in zip(rows, keys, clocks, past, ends, strict=True):
            try:
                x = {name: float(value) for name, value in row}
            except (TypeError, ValueError) as error:
                raise ModelFileError(f"{saved.prefix}rows must be lists of names and numbers: {error}") from error
            pending.add(x, key, PendingPrediction(clock, tuple(features), own))
        return pending


def _identity(x: Mapping[Any, Any], key: int) -> _Identity:
    return key, frozenset(item for item in x.items() if item[1])
