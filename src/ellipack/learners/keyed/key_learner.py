"""Learner of the rows of one key: a `MetricRegressor` of its own, combined with the learner of all keys.

The learner of a key sees the features alone. The past of the key is a feature of the learner of all keys.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ellipack.errors import ModelFileError
from ellipack.learners.intervals import NO_BOUNDS, Predictions, RowPredictions, empty_predictions
from ellipack.learners.keyed.combination import Combination, PredictionPair, PublishedPrediction, units
from ellipack.learners.metric import learner, serialization
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.feature_growth import add_features
from ellipack.learners.metric.initial_state import LearnerSize, initial_state
from ellipack.learners.metric.learner import BothPredictions, Round
from ellipack.learners.metric.past import MAX_PAST_VALUE
from ellipack.learners.metric.predictions import predict
from ellipack.learners.metric.state import MetricState
from ellipack.serialization import Archive, pack, unpack
from ellipack.validation import Floats

_KIND = "KeyLearner"

PREDICTION_PAIRS_SIZE = 2 * len(PredictionPair._fields)
"""Number of entries of the prediction pairs of a row: as the next row, and from the features alone."""


@dataclass(frozen=True)
class KeySettings:
    """Settings of the learner of a key.

    Attributes
    ----------
    size : LearnerSize
        Numbers of views, neighbors and centers. The learner has no past.
    random_state : int
        Random seed.
    config : MetricConfig
        Further settings.
    """

    size: LearnerSize
    random_state: int
    config: MetricConfig


class LateRow(NamedTuple):
    """A row whose label comes after other rows, with what was predicted and published for it."""

    row: list[float]
    label: float
    published: PublishedPrediction
    pairs: list[float]


class RowPredictionPairs(NamedTuple):
    """Predictions of the two learners for one row: as the next row, and from the features alone."""

    next: PredictionPair
    plain: PredictionPair


@dataclass
class OwnRounds:
    """Rounds of the learner of a key that are under way.

    Attributes
    ----------
    start : int
        Number of rounds before.
    values : array of shape (n,)
        Predictions of the learner, which are filled in as it learns.
    """

    start: int
    values: Floats

    def part(self, rows: slice) -> Predictions:
        """Return views of some predictions, without intervals."""
        return Predictions(self.values[rows], NO_BOUNDS)


class KeyLearner:
    """Learner of the rows of one key.

    `learn` and `learn_late` change the own learner, and return a learner with new combinations. If they fail, they can
    be called again.

    Parameters
    ----------
    own : MetricState
        State of the learner of the key.
    next_rows : Combination
        Combination of the predictions of the next row.
    any_rows : Combination
        Combination of the predictions from the features alone.
    """

    def __init__(self, own: MetricState, next_rows: Combination, any_rows: Combination) -> None:
        self.own = own
        self.next_rows = next_rows
        self.any_rows = any_rows

    @classmethod
    def initial(cls, d: int, settings: KeySettings) -> "KeyLearner":
        """Return the learner of a new key, for d features."""
        own = initial_state(d, settings.size, settings.random_state, settings.config)
        return cls(own, Combination.initial(), Combination.initial())

    @property
    def dimension(self) -> int:
        """Number of features."""
        return self.own.core.dimension

    def copy(self) -> "KeyLearner":
        """Return an independent copy."""
        return deepcopy(self)

    def add_features(self, scales: Floats, d: int) -> None:
        """Add the features that are missing of d, which are 0 in all earlier rows; `scales` ends with their sizes."""
        missing = d - self.dimension
        if missing:
            add_features(self.own, scales[len(scales) - missing :])

    def new_rounds(self, count: int) -> OwnRounds:
        """Return the rounds that follow, for `learn` and `learn_late`."""
        return OwnRounds(self.own.clock, np.empty(count))

    def learn(
        self, rows: Floats, labels: Floats, pooled: BothPredictions, rounds: OwnRounds
    ) -> tuple["KeyLearner", Predictions]:
        """Run one round for each row; return the learner, and its combined predictions of the next row."""
        todo = slice(self.own.clock - rounds.start, len(rows))
        if todo.start < todo.stop:
            learner.learn_into(self.own, rows[todo], labels[todo], rounds.part(todo))
        after, first_own = self._with_new_combinations(), 1 if rounds.start == 0 else 0
        predictions = empty_predictions(len(rows), with_intervals=True)
        pairs_by_row = _prediction_pairs(pooled, rounds.values, first_own)
        for t, (pairs, label) in enumerate(zip(pairs_by_row, labels.tolist(), strict=True)):
            predictions.values[t], predictions.bounds[t] = after.next_rows.learn(pairs.next, label)
            after.any_rows.learn(pairs.plain, label)
        return after, predictions

    def _with_new_combinations(self) -> "KeyLearner":
        return KeyLearner(self.own, deepcopy(self.next_rows), deepcopy(self.any_rows))

    def predict(self, rows: Floats, pooled: Predictions) -> Predictions:
        """Return combined predictions from the features alone, with their intervals."""
        return self.any_rows.predict_rows(pooled, self._predict_own(rows, pooled))

    def predict_next(self, rows: Floats, pooled: Predictions) -> Predictions:
        """Return combined predictions of rows that follow, with their intervals."""
        return self.next_rows.predict_rows(pooled, self._predict_own(rows, pooled))

    def predict_each(self, rows: Floats, pooled: BothPredictions) -> RowPredictions:
        """Return combined predictions of rows, each as if it were the next one; see `learn_late`.

        The features of the past are the entries of the prediction pairs.
        """
        own, first_own = self._predict_own(rows, pooled.next), len(rows) if self.own.clock == 0 else 0
        values, bounds = self.next_rows.predict_rows(pooled.next, own)
        pairs = np.array([[*each.next, *each.plain] for each in _prediction_pairs(pooled, own, first_own)])
        pairs[np.abs(pairs) > MAX_PAST_VALUE] = 0.0  # an infinite unit: both are no round
        return RowPredictions(values, bounds, pairs)

    def learn_late(self, late: LateRow, rounds: OwnRounds) -> "KeyLearner":
        """Learn a row whose label comes after other rows, with what was predicted and published for it."""
        if self.own.clock == rounds.start:
            learner.learn_one(self.own, Round(late.row, late.label))
        after, half = self._with_new_combinations(), len(PredictionPair._fields)
        after.next_rows.learn_late(PredictionPair(*late.pairs[:half]), late.label, late.published)
        after.any_rows.learn(PredictionPair(*late.pairs[half:]), late.label)
        return after

    def _predict_own(self, rows: Floats, pooled: Predictions) -> Floats:
        """Return the predictions of the own learner; those of the learner of all keys before its first round."""
        return pooled.values if self.own.clock == 0 else predict(self.own, rows)

    def pack(self) -> bytes:
        """Return the contents of a file with this learner."""
        archive = Archive({"features": self.dimension}).with_parts(
            own=serialization.to_archive(self.own),
            next_rows=self.next_rows.to_archive(),
            any_rows=self.any_rows.to_archive(),
        )
        return pack(_KIND, archive)

    @classmethod
    def unpack(cls, data: bytes, name: str, most_features: int) -> "KeyLearner":
        """Return a learner from the contents of a file; raise `ModelFileError` if they are not valid.

        `name` is that of the learner in messages. It has at most `most_features` features.
        """
        kind, archive = unpack(data, name)
        if kind != _KIND:
            raise ModelFileError(f"{name} must hold a {_KIND}, got a {kind}")
        try:
            own = serialization.from_archive(archive.part("own"), archive.integer("features", 1, most_features))
            if own.core.has_past:
                raise ModelFileError("own/past_labels must be 0")
            combinations = [
                Combination.from_archive(archive.part(each), own.clock) for each in ("next_rows", "any_rows")
            ]
        except ModelFileError as error:
            raise ModelFileError(f"{name}: {error}") from error
        return cls(own, *combinations)


def _prediction_pairs(pooled: BothPredictions, own: Floats, first_own: int) -> Iterator[RowPredictionPairs]:
    """Return the predictions of both learners for each row. Rows before `first_own` have no own learner yet."""
    columns = pooled.next.values, units(pooled.next), pooled.plain.values, units(pooled.plain), own
    for t, (next_value, next_unit, value, unit, own_value) in enumerate(np.column_stack(columns).tolist()):
        yield RowPredictionPairs(
            PredictionPair(next_value, own_value if t >= first_own else next_value, next_unit),
            PredictionPair(value, own_value if t >= first_own else value, unit),
        )
