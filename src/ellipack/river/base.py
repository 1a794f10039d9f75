"""The verbs that every regressor here has, over a learner of rows."""

import os
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from river import base
from river.utils.pandas import import_pandas

from ellipack import serialization
from ellipack.errors import CheckpointError, InputError
from ellipack.estimators.parameter_archive import object_to_archive
from ellipack.learners.rows import RowLearner
from ellipack.metric import Metric
from ellipack.river.features import Columns, number
from ellipack.serialization import Archive
from ellipack.validation import check_labels

if TYPE_CHECKING:
    import pandas as pd

_SAVED_NAMES = (str, int, float, bool)


class RiverRegressor(base.MiniBatchRegressor):
    """A regressor on dictionaries of features, which may come and go.

    A feature that is absent counts as 0. One that is other than 0 for the first time gets a column of its own, and the
    learner takes it to have been 0 in every row before. Whatever a call refuses, it refuses with nothing changed.
    """

    _largest_feature = float(np.finfo(np.float64).max)
    _largest_label = float(np.finfo(np.float64).max)

    def __init__(self) -> None:
        self._columns = Columns(self._largest_feature)
        self._learner: RowLearner | None = None

    @abstractmethod
    def _new_learner(self, d: int) -> RowLearner:
        """Return a learner before its first round, for d features."""

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Learn from a row and its label."""
        limit = self._largest_label
        label = y if type(y) is float and -limit <= y <= limit else self._label(y)
        row, learner = self._columns.row(x), self._learner
        if row is None or learner is None:
            numbers = self._columns.numbers(x)
            learner = self._learner_for(numbers)
            row = self._columns.fill(numbers)
        learner.learn(row, label)

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Return the prediction for a row as things stand, 0 before anything was learned."""
        row = self._columns.row(x)
        if row is None:
            row = self._columns.fill(self._columns.numbers(x))
        return 0.0 if self._learner is None else self._learner.predict(row)

    def learn_many(self, X: "pd.DataFrame", y: "pd.Series") -> None:
        """Learn from many rows in their order, with the same bits as one by one."""
        columns, count = self._columns.table(X), len(X)
        targets = check_labels(y, count)
        if count and np.abs(targets).max() > self._largest_label:
            self._label(float(targets[np.abs(targets).argmax()]))
        new = [name for name in columns if name not in self._columns.places]
        # A feature comes in with the first row in which it is not 0.
        firsts = sorted({0, *(int(columns[name].nonzero()[0][0]) for name in new if columns[name].any())})
        for start, stop in zip(firsts, [*firsts[1:], count], strict=True):
            if start < stop:
                learner = self._learner_for({name: float(values[start]) for name, values in columns.items()})
                part = slice(start, stop)
                learner.learn_rows(self._columns.fill_table(columns, part, count), targets[part])

    def predict_many(self, X: "pd.DataFrame") -> "pd.Series":
        """Return the prediction for each row as things stand."""
        table = self._columns.fill_table(self._columns.table(X), slice(None), len(X))
        predictions = np.zeros(len(table)) if self._learner is None or not len(X) else self._learner.predict_rows(table)
        series: pd.Series = import_pandas().Series(predictions, index=X.index, dtype=np.float64)
        return series

    @property
    def feature_names(self) -> list[Hashable]:
        """The features that were ever other than 0, in order of appearance."""
        return list(self._columns.places)

    @property
    @abstractmethod
    def metric_(self) -> Metric | None:
        """The metric, of spectral norm 1, its features in the order of `feature_names`; none before the first row."""

    @property
    @abstractmethod
    def n_centers(self) -> int:
        """How many centres there are."""

    @property
    @abstractmethod
    def effective_rank(self) -> int:
        """The effective rank of the metric; 0 before the first row."""

    @property
    def feature_importances(self) -> dict[Hashable, float]:
        """How much each feature counts, by name: the diagonal of the metric, adding up to 1."""
        if self.metric_ is None:
            return {}
        diagonal = np.diag(self.metric_.matrix)
        return dict(zip(self.feature_names, (diagonal / diagonal.sum()).tolist(), strict=False))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to a file, from which `ellipack.river.load` goes on with the same bits.

        The file is whole or not there at all: whatever fails before it is in its place, one that was there stays there.
        """
        names = self.feature_names
        odd = next((name for name in names if type(name) not in _SAVED_NAMES), None)
        if odd is not None:
            raise CheckpointError(f"names of features must be strings or numbers to be saved, got {odd!r}")
        parts = {} if self._learner is None else {"state": self._learner.to_archive()}
        archive = Archive({"names": names, "learned": self._learner is not None})
        serialization.write(
            path, f"river.{type(self).__name__}", archive.with_parts(parameters=object_to_archive(self), **parts)
        )

    def restore_state(self, archive: Archive) -> Self:
        """Take for one's own what was learned by the learner that this archive was saved of."""
        names = archive.fact("names", list)
        if not all(type(name) in _SAVED_NAMES for name in names) or len(set(names)) != len(names):
            raise CheckpointError("names must be different strings or numbers")
        if archive.fact("learned", bool):
            try:
                learner = self._new_learner(max(1, len(names)))
            except InputError as error:
                raise CheckpointError(f"parameters: {error}") from error
            learner.restore_state(archive.part("state"), max(1, len(names)))
            self._learner = learner
            self._columns.add(names)
        return self

    def _learner_for(self, numbers: dict[Hashable, float]) -> RowLearner:
        """Return the learner, after giving a column to features that have none."""
        new, before = self._columns.newcomers(numbers), self._columns.width
        more = len(self._columns.places) + len(new) - before
        if self._learner is None:
            self._learner = self._new_learner(max(1, len(new)))
        elif more > 0:
            self._learner.add_features(np.abs(list(new.values()))[-more:])
        self._columns.add(new)
        return self._learner

    def _label(self, y: Any) -> float:
        return number(y, "y", self._largest_label)
