"""Base classes of the learners with River's methods."""

import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
from river import base
from river.utils.pandas import import_pandas

from ellipack import serialization
from ellipack.errors import InputError, ModelFileError
from ellipack.estimators.parameter_archive import object_to_archive
from ellipack.learners.row_learners import RowLearner
from ellipack.metric import Metric
from ellipack.river.features import FeatureColumns, check_number
from ellipack.serialization import Archive
from ellipack.validation import Floats, Row, check_labels

if TYPE_CHECKING:
    import pandas as pd

_NAME_TYPES = (str, int, float, bool)  # of features that a file can store


class ColumnLearner(Protocol):
    """Learner of rows to which columns can be added."""

    def add_features(self, scales: Floats) -> None:
        """Add features as last columns."""

    def to_archive(self) -> Archive:
        """Return an archive of the state."""

    def restore_state(self, archive: Archive, d: int) -> None:
        """Restore the state for d features from an archive."""


Learner = TypeVar("Learner", bound=ColumnLearner)


class DictionaryLearner(ABC, Generic[Learner]):
    """Base class of learners on dictionaries of features: the columns of features, and saving.

    Features may appear and disappear. A missing feature counts as 0. A feature gets a column when its value first
    differs from 0, and counts as 0 in all earlier rows. A call that raises an error leaves the model unchanged.
    """

    _largest_feature = float(np.finfo(np.float64).max)

    def __init__(self) -> None:
        self._columns = FeatureColumns(self._largest_feature)
        self._learner: Learner | None = None

    @abstractmethod
    def _new_learner(self, d: int) -> Learner:
        """Return a learner before its first round, for d features."""

    def _row(self, x: Mapping[Any, Any]) -> Row:
        """Return the row of a dictionary, with the columns of known features."""
        row = self._columns.complete_row(x)
        return self._columns.row_from_numbers(self._columns.numbers(x)) if row is None else row

    def _learner_and_row(self, x: Mapping[Any, Any]) -> tuple[Learner, Row]:
        """Return the learner and the row of a dictionary, after adding columns for new features."""
        row, learner = self._columns.complete_row(x), self._learner
        if row is None or learner is None:
            numbers = self._columns.numbers(x)
            learner = self._learner_with_columns(numbers)
            row = self._columns.row_from_numbers(numbers)
        return learner, row

    @property
    def feature_names(self) -> list[Hashable]:
        """Features that have had a value other than 0, in order of appearance."""
        return list(self._columns.positions)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the parameters and the fitted state to a file.

        `ellipack.river.load` reads the file. The loaded model continues with the same results, bit for bit. Writing is
        atomic: after a failure an existing file is unchanged.

        Parameters
        ----------
        path : str or path-like
            Path of the file. An existing file is replaced.

        Raises
        ------
        ModelFileError
            If the file cannot be written, or the name of a feature is neither a string nor a number.
        """
        names = self.feature_names
        other = next((name for name in names if type(name) not in _NAME_TYPES), None)
        if other is not None:
            raise ModelFileError(f"names of features must be strings or numbers to be saved, got {other!r}")
        parts = {} if self._learner is None else {"state": self._learner.to_archive()}
        archive = Archive({"names": names, "learned": self._learner is not None})
        serialization.write(
            path, f"river.{type(self).__name__}", archive.with_parts(parameters=object_to_archive(self), **parts)
        )

    def restore_state(self, archive: Archive) -> Self:
        """Restore the fitted state from an archive.

        Parameters
        ----------
        archive : Archive
            Archive that `save` wrote for a regressor with the same parameters.

        Returns
        -------
        self : object

        Raises
        ------
        ModelFileError
            If the archive is incomplete or inconsistent.
        """
        names = archive.fact("names", list)
        if not all(type(name) in _NAME_TYPES for name in names) or len(set(names)) != len(names):
            raise ModelFileError("names must be different strings or numbers")
        if archive.fact("learned", bool):
            try:
                learner = self._new_learner(max(1, len(names)))
            except InputError as error:
                raise ModelFileError(f"parameters: {error}") from error
            learner.restore_state(archive.part("state"), max(1, len(names)))
            self._learner = learner
            self._columns.add(names)
        return self

    def _learner_with_columns(self, numbers: dict[Hashable, float]) -> Learner:
        """Return the learner after adding columns for new features."""
        new, width = self._columns.new_features(numbers), self._columns.width
        more = len(self._columns.positions) + len(new) - width
        if self._learner is None:
            self._learner = self._new_learner(max(1, len(new)))
        elif more > 0:
            self._learner.add_features(np.abs(list(new.values()))[-more:])
        self._columns.add(new)
        return self._learner


class RiverRegressor(DictionaryLearner[RowLearner], base.MiniBatchRegressor):
    """Base class of regressors on dictionaries of features."""

    _largest_label = float(np.finfo(np.float64).max)

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Learn from one row and its label.

        Parameters
        ----------
        x : dict
            Features by name. Values are finite numbers.
        y : float
            Label.
        """
        limit = self._largest_label
        label = y if type(y) is float and -limit <= y <= limit else self._check_label(y)
        learner, row = self._learner_and_row(x)
        learner.learn(row, label)

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Predict the label of one row.

        Parameters
        ----------
        x : dict
            Features by name. Values are finite numbers.

        Returns
        -------
        prediction : float
            0 before the first row was learned.
        """
        row = self._row(x)
        return 0.0 if self._learner is None else self._learner.predict(row)

    def learn_many(self, X: "pd.DataFrame", y: "pd.Series") -> None:
        """Learn from rows in their order, with the same results as one by one.

        Parameters
        ----------
        X : pandas.DataFrame
            One row per sample, one column per feature.
        y : pandas.Series
            Labels.
        """
        columns, count = self._columns.frame_columns(X), len(X)
        targets = check_labels(y, count)
        if count and np.abs(targets).max() > self._largest_label:
            self._check_label(float(targets[np.abs(targets).argmax()]))
        new = [name for name in columns if name not in self._columns.positions]
        # A feature gets its column in the first row in which it is not 0: cut the rows there.
        starts = sorted({0, *(int(columns[name].nonzero()[0][0]) for name in new if columns[name].any())})
        for start, stop in zip(starts, [*starts[1:], count], strict=True):
            if start < stop:
                learner = self._learner_with_columns({name: float(values[start]) for name, values in columns.items()})
                part = slice(start, stop)
                learner.learn_rows(self._columns.rows_from_columns(columns, part, count), targets[part])

    def predict_many(self, X: "pd.DataFrame") -> "pd.Series":
        """Predict the labels of rows.

        Parameters
        ----------
        X : pandas.DataFrame
            One row per sample, one column per feature.

        Returns
        -------
        predictions : pandas.Series
            Predictions with the index of `X`.
        """
        table = self._columns.rows_from_columns(self._columns.frame_columns(X), slice(None), len(X))
        predictions = np.zeros(len(table)) if self._learner is None or not len(X) else self._learner.predict_rows(table)
        series: pd.Series = import_pandas().Series(predictions, index=X.index, dtype=np.float64)
        return series

    @property
    @abstractmethod
    def metric_(self) -> Metric | None:
        """Metric of spectral norm 1, with features in the order of `feature_names`; None before the first row."""

    @property
    @abstractmethod
    def n_centers(self) -> int:
        """Number of centers."""

    @property
    @abstractmethod
    def effective_rank(self) -> int:
        """Effective rank of the metric; 0 before the first row."""

    @property
    def feature_importances(self) -> dict[Hashable, float]:
        """Importance of each feature by name: the diagonal of the metric, divided by its sum."""
        if self.metric_ is None:
            return {}
        diagonal = np.diag(self.metric_.matrix)
        return dict(zip(self.feature_names, (diagonal / diagonal.sum()).tolist(), strict=False))

    def _check_label(self, y: Any) -> float:
        return check_number(y, "y", self._largest_label)
