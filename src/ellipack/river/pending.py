"""Predictions whose labels are not known yet, with what is needed to learn them when they come."""

from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

import numpy as np

from ellipack.errors import ModelFileError
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


class PendingPredictions:
    """Predictions whose labels are not known yet.

    A row is learned with the past that was known when it was predicted, and its label is compared with the interval
    that was returned then. Predictions of the same row without a round
    between them count once. If several predictions of the same row are pending, labels come late, or some of the
    predictions were made for other reasons. Rows with one pending prediction tell which: if their labels come late, the
    oldest prediction belongs to the label; otherwise the newest does, and the others are forgotten.

    Several threads may add predictions at the same time.

    Examples
    --------
    >>> pending = PendingPredictions()
    >>> pending.add({"height": 1.2}, 0, PendingPrediction(clock=7, past=(0.5,)))
    >>> pending.find({"height": 1.2, "width": 0}, key=0, clock=9).past
    (0.5,)
    >>> pending.remove({"height": 1.2}, key=0, clock=9)
    >>> pending.find({"height": 1.2}, key=0, clock=9).past
    ()
    """

    def __init__(self) -> None:
        self._by_row: OrderedDict[_Identity, deque[PendingPrediction]] = OrderedDict()
        self._count = 0
        self._labels_come_late = False
        self._lock = LearnLock()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock.turn:
            return {**self.__dict__, "_by_row": deepcopy(self._by_row)}

    def __len__(self) -> int:
        return self._count

    def add(self, x: Mapping[Any, Any], key: int, prediction: PendingPrediction) -> None:
        """Add a prediction."""
        with self._lock.turn:
            queue = self._by_row.setdefault(_identity(x, key), deque())
            if not queue or queue[-1].clock != prediction.clock:
                queue.append(prediction)
                self._count += 1
            elif prediction.bounds:
                queue[-1] = prediction
            if self._count > MAX_PENDING:
                self._remove_oldest(next(iter(self._by_row)))

    def find(self, x: Mapping[Any, Any], key: int, clock: int) -> PendingPrediction:
        """Return the prediction of a row when its label comes; an empty one of this round if there is none."""
        if not self._count:
            return PendingPrediction(clock, ())
        with self._lock.turn:
            queue = self._by_row.get(_identity(x, key))
            if not queue:
                return PendingPrediction(clock, ())
            return queue[-1] if self._is_immediate(queue, clock) else queue[0]

    def remove(self, x: Mapping[Any, Any], key: int, clock: int) -> None:
        """Remove the prediction of a row whose label was learned after `clock` rounds, if there is one."""
        if not self._count:
            return
        name = _identity(x, key)
        with self._lock.turn:
            queue = self._by_row.get(name)
            if not queue:
                return
            if self._is_immediate(queue, clock):
                self._count -= len(queue)
                del self._by_row[name]
                self._labels_come_late = False
            else:
                self._labels_come_late = self._labels_come_late or len(queue) == 1
                self._remove_oldest(name)

    def _is_immediate(self, queue: deque[PendingPrediction], clock: int) -> bool:
        """Return whether a label belongs to a prediction of this round."""
        return queue[-1].clock == clock and (len(queue) == 1 or not self._labels_come_late)

    def _remove_oldest(self, name: _Identity) -> None:
        queue = self._by_row[name]
        queue.popleft()
        self._count -= 1
        if not queue:
            del self._by_row[name]

    def names(self) -> set[Hashable]:
        """Return the names of all features of pending rows."""
        with self._lock.turn:
            return {python_name(feature) for _, row in self._by_row for feature, _ in row}

    def to_archive(self) -> Archive:
        """Return an archive of all pending predictions."""
        with self._lock.turn:
            entries = [(name, each) for name, queue in self._by_row.items() for each in queue]
        named = [[(python_name(feature), float(value)) for feature, value in name[1]] for name, _ in entries]
        rows = [[list(pair) for pair in sorted(row, key=repr)] for row in named]
        past = np.array([each.past for _, each in entries], dtype=np.float64)
        return Archive(
            {"rows": rows, "labels_come_late": self._labels_come_late},
            {
                "keys": np.array([name[0] for name, _ in entries], dtype=np.int64),
                "clocks": np.array([each.clock for _, each in entries], dtype=np.int64),
                "past": past if entries else np.zeros((0, 0)),
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
        shape = (count, n_past_features if count else 0)
        past = saved.floats_between(-MAX_PAST_VALUE, MAX_PAST_VALUE, "past", *shape).tolist()
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
