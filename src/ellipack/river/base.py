"""Base classes of the learners with River's methods."""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
from river import base
from river.conf import Interval
from river.utils.pandas import import_pandas

from ellipack import serialization
from ellipack.errors import InputError, ModelFileError
from ellipack.estimators.parameter_archive import object_to_archive
from ellipack.learners.metric.learner import Round
from ellipack.learners.row_learners import RowLearner
from ellipack.locks import LearnLock
from ellipack.metric import Metric
from ellipack.river.features import FeatureColumns, check_number
from ellipack.river.intervals import check_single_coverage, to_interval
from ellipack.river.pending import PendingPrediction, PendingPredictions
from ellipack.serialization import Archive
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, Row, check_feature_count, check_labels

if TYPE_CHECKING:
    import pandas as pd


def _can_be_saved(name: Hashable) -> bool:
    """Return whether a file can hold the name of a feature."""
    if isinstance(name, int | float):
        return type(name) in (int, float, bool) and abs(name) <= sys.float_info.max  # False for NaN
    return name is None or type(name) is str


class ColumnLearner(Protocol):
    """Learner of rows to which columns can be added."""

    def with_added_features(self, scales: Floats) -> Self:
        """Return a copy with more features as last columns."""

    def to_archive(self) -> Archive:
        """Return an archive of the state."""

    def restore_state(self, archive: Archive, d: int) -> None:
        """Restore the state for d features from an archive."""


Learner = TypeVar("Learner", bound=ColumnLearner)
Regression = TypeVar("Regression", bound=RowLearner)


class DictionaryLearner(ABC, Generic[Learner]):
    """Base class of learners on dictionaries of features: the columns of features, and saving.

    Features may appear and disappear. A missing feature counts as 0. A feature gets a column when its value first
    differs from 0, and counts as 0 in all earlier rows. A call that raises an error about its input leaves the model
    unchanged.

    The columns of the features and the learner are kept in one attribute, which is replaced as a whole. A row with new
    features is learned before that. Threads and interrupts always see a learner with its own columns.
    """

    _largest_feature = float(np.finfo(np.float64).max)

    def __init__(self) -> None:
        self._fitted: tuple[FeatureColumns, Learner | None] = FeatureColumns(self._largest_feature), None
        self._learn_lock = LearnLock()

    @property
    def _learner(self) -> Learner | None:
        return self._fitted[1]

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise `InputError` if a parameter is not valid."""

    def _check_feature_count(self, d: int) -> None:
        """Raise `DomainError` if there are too many features."""
        check_feature_count(d, type(self).__name__)

    @abstractmethod
    def _new_learner(self, d: int) -> Learner:
        """Return a learner before its first round, for d features."""

    def _learner_and_row(self, x: Mapping[Any, Any]) -> tuple[Learner | None, Row]:
        """Return the learner and the row of a dictionary, with the columns of known features."""
        columns, learner = self._fitted
        row = columns.complete_row(x)
        return learner, columns.row_from_numbers(columns.numbers(x)) if row is None else row

    def _learn_row(self, x: Mapping[Any, Any], learn: Callable[[Learner, Row], None]) -> None:
        """Learn the row of a dictionary, after adding columns for new features."""
        with self._learn_lock.turn:
            columns, learner = self._fitted
            row = columns.complete_row(x)
            if row is None or learner is None:
                self._learn_numbers(columns.numbers(x), learn)
            else:
                learn(learner, row)

    def _learn_numbers(self, numbers: dict[Hashable, float], learn: Callable[[Learner, Row], None]) -> Learner:
        """Learn a row after adding columns for new features, and return the learner. The caller holds the lock."""
        columns, learner = self._fitted
        new = columns.new_features(numbers)
        wider = columns.with_features(new) if new else columns
        # Before the first feature there is one column, which the first feature gets.
        scales = np.abs(list(new.values()))[len(new) - (wider.width - columns.width) :]
        if learner is None:
            learner = self._new_learner(wider.width)
        elif new:
            learner = learner.with_added_features(scales) if len(scales) else deepcopy(learner)
        learn(learner, wider.row_from_numbers(numbers))
        if learner is not self._learner:
            self._fitted = wider, learner
        return learner

    @property
    def feature_names(self) -> list[Hashable]:
        """Features that have had a value other than 0, in order of appearance."""
        return list(self._fitted[0].positions)

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
            If the file cannot be written, or the name of a feature is not a string, a finite number or None.
        InputError
            If a parameter is not valid any more.
        """
        with self._paused():
            columns, learner = self._fitted
            names = list(columns.positions)
            check_saved_names(names)
            if learner is not None:
                self._check_parameters()  # a file with invalid ones could not be loaded
            archive = Archive({"names": names, "learned": learner is not None})
            archive = archive.with_parts(parameters=object_to_archive(self), **self._state_parts(learner))
        serialization.write(path, f"river.{type(self).__name__}", archive)

    def _paused(self) -> Any:
        """Return a context manager in which no other thread learns."""
        return self._learn_lock.pause

    def _state_parts(self, learner: Learner | None) -> dict[str, Archive]:
        """Return archives of the fitted state, by name."""
        return {} if learner is None else {"state": learner.to_archive()}

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
        if not all(_can_be_saved(name) for name in names) or len(set(names)) != len(names):
            raise ModelFileError("names must be different strings, finite numbers or null")
        fitted: tuple[FeatureColumns, Learner | None] = FeatureColumns(self._largest_feature), None
        if archive.fact("learned", bool):
            columns = FeatureColumns(self._largest_feature, names)
            try:
                learner = self._new_learner(columns.width)
            except InputError as error:
                raise ModelFileError(f"parameters: {error}") from error
            learner.restore_state(archive.part("state"), columns.width)
            fitted = columns, learner
        self._fitted = fitted
        return self


def _learning(label: float) -> Callable[[RowLearner, Row], None]:
    """Return the function by which a learner learns a row with this label."""
    return lambda learner, row: learner.learn(row, label)


class RiverRegressor(DictionaryLearner[Regression], base.MiniBatchRegressor):
    """Base class of regressors on dictionaries of features.

    Predictions whose labels may come late are remembered, and are recognized by the features of their rows. Copies,
    pickles and files are made while no other thread learns, so that they hold the learner and the pending predictions
    after the same round.
    """

    _largest_label = float(np.finfo(np.float64).max)

    def __init__(self) -> None:
        super().__init__()
        self._pending = PendingPredictions()

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Learn from one row and its label.

        Parameters
        ----------
        x : dict
            Features by name. Values are finite numbers; those of keys may be text.
        y : float
            Label.
        """
        label = self._check_label(y)
        features, key = self._split_key(x)
        clock = 0

        def learn(learner: Regression, row: Row) -> None:
            nonlocal clock
            clock = learner.clock
            found = self._pending.start_learning(features, key, clock)
            if found.clock != clock:
                learner.learn_late(Round(row, label, key, found.past, found.bounds))
            elif found.bounds:
                learner.learn_with_interval(Round(row, label, key))
            else:
                learner.learn_late(Round(row, label, key))

        self._learn_row(features, learn)
        self._pending.finish_learning(clock + 1)

    def _split_key(self, x: Mapping[Any, Any]) -> tuple[Mapping[Any, Any], int]:
        """Return the features of a row, and its key; 0 if rows have none."""
        return x, 0

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
        learner, row = self._learner_and_row(x)
        return 0.0 if learner is None else learner.predict(row)

    def predict_interval_one(self, x: Mapping[Any, Any], coverage: float = 0.9) -> Interval:
        """Return an interval around the prediction for a row; intervals contain a wanted fraction of the labels.

        It belongs to the prediction of `predict_one`. Its coverage is guaranteed on any stream, also if labels come
        late: a label is compared with the interval that was returned for its row. The theorem is in
        `ellipack.learners.intervals`.

        Parameters
        ----------
        x : dict
            Features by name. Values are finite numbers.
        coverage : float, default 0.9
            Fraction of labels in the intervals, from 0.5 to 0.99.

        Returns
        -------
        interval : river.conf.Interval
            Infinite before the second row was learned.
        """
        wanted = check_single_coverage(coverage)
        learner, row = self._learner_and_row(x)
        if learner is None:
            learner = self._new_learner(len(row))
        clock = learner.clock
        bounds = learner.predict_interval(row)
        self._pending.add(x, 0, PendingPrediction(clock, (), tuple(bounds[0].tolist())))
        return to_interval(bounds, wanted)

    def learn_many(self, X: "pd.DataFrame", y: "pd.Series") -> None:
        """Learn from rows in their order, with the same results as one by one.

        Parameters
        ----------
        X : pandas.DataFrame
            One row per sample, one column per feature.
        y : pandas.Series
            Labels.
        """
        if len(self._pending):
            self._learn_one_by_one(X, y)
            return
        with self._learn_lock.turn:
            frame, count = self._fitted[0].frame_columns(X), len(X)
            targets = check_labels(y, count)
            if count and np.abs(targets).max() > self._largest_label:
                self._check_label(float(targets[np.abs(targets).argmax()]))
            new = [name for name in frame if name not in self._fitted[0].positions]
            self._check_new_features({name for name in new if frame[name].any()})
            # A feature gets its column in the first row in which it is not 0: cut the rows there.
            starts = sorted({0, *(int(frame[name].nonzero()[0][0]) for name in new if frame[name].any())})
            for start, stop in zip(starts, [*starts[1:], count], strict=True):
                if start < stop:
                    first = {name: float(values[start]) for name, values in frame.items()}
                    learner = self._learn_numbers(first, _learning(float(targets[start])))
                    rest = slice(start + 1, stop)
                    if len(targets[rest]):
                        learner.learn_rows(self._fitted[0].rows_from_columns(frame, rest, count), targets[rest])

    def _learn_one_by_one(self, X: "pd.DataFrame", y: "pd.Series") -> None:
        """Learn from rows in their order, some of which may have been predicted before."""
        rows, labels = self._checked_rows(X), check_labels(y, len(X)).tolist()
        columns, new = self._fitted[0], set[Hashable]()
        for x, label in zip(rows, labels, strict=True):  # check everything before the first row is learned
            new |= columns.new_features(columns.numbers(self._split_key(x)[0])).keys()
            self._check_label(label)
        self._check_new_features(new)
        for x, label in zip(rows, labels, strict=True):
            self.learn_one(x, label)

    def _check_new_features(self, new: set[Hashable]) -> None:
        """Raise `DomainError` if there would be too many features with new ones."""
        self._check_feature_count(len(self._fitted[0].positions | dict.fromkeys(new)))

    def _checked_rows(self, X: "pd.DataFrame") -> list[dict[Any, Any]]:
        """Return the rows of a data frame as dictionaries, after a check of its columns."""
        self._fitted[0].frame_columns(X)
        rows: list[dict[Any, Any]] = X.to_dict("records")
        return rows

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
        columns, learner = self._fitted
        table = columns.rows_from_columns(columns.frame_columns(X), slice(None), len(X))
        predictions = np.zeros(len(table)) if learner is None or not len(X) else learner.predict_rows(table)
        series: pd.Series = import_pandas().Series(predictions, index=X.index, dtype=np.float64)
        return series

    def restore_state(self, archive: Archive) -> Self:
        """Restore the fitted state from an archive."""
        pending = PendingPredictions.from_archive(archive.part("pending"), self._n_past_features())
        super().restore_state(archive)
        self._pending = pending
        return self

    def _state_parts(self, learner: Regression | None) -> dict[str, Archive]:
        self._pending.finish_learning(0 if learner is None else learner.clock)
        check_saved_names(self._pending.names())
        return {**super()._state_parts(learner), "pending": self._pending.to_archive(self._n_past_features())}

    def _paused(self) -> Any:
        """Return a context manager in which no other thread learns. Other threads may still predict.

        Raises
        ------
        ReentrantCallError
            In a signal handler that interrupts a change of the pending predictions in its thread. The thread that
            learns may be waiting for the end of that change.
        """
        self._pending.check_unlocked()
        return super()._paused()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, with copies of the learner and of the pending predictions after the same round."""
        with self._paused():
            copies = {"_fitted": deepcopy(self._fitted), "_pending": copy(self._pending)}
            return {**self.__dict__, **copies, "_learn_lock": LearnLock()}

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """Return a model with the same parameters.

        Parameters
        ----------
        new_params : dict, optional
            Parameters to change.
        include_attributes : bool, default False
            Whether to copy what was learned, too.

        Returns
        -------
        model : RiverRegressor
        """
        model = super().clone(new_params)
        if include_attributes:
            parameters = self._get_params()
            learned = {name: value for name, value in vars(deepcopy(self)).items() if name not in parameters}
            vars(model).update(learned)
        return model

    def _n_past_features(self) -> int:
        """Return the number of features of the past that a prediction uses."""
        return 0

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
    def feature_weights(self) -> dict[Hashable, float]:
        """Weight of each feature in the metric by name: the diagonal, divided by its sum."""
        metric = self.metric_
        if metric is None:
            return {}
        diagonal = np.diag(metric.matrix)
        return dict(zip(self.feature_names, (diagonal / diagonal.sum()).tolist(), strict=False))

    def _check_label(self, y: Any) -> float:
        limit = self._largest_label
        return y if type(y) is float and -limit <= y <= limit else check_number(y, "y", limit)


def check_saved_names(names: Iterable[Hashable]) -> None:
    """Raise `ModelFileError` if a file cannot hold one of these names of features."""
    other = next((name for name in names if not _can_be_saved(name)), None)
    if other is not None:
        raise ModelFileError(f"names of features must be strings, finite numbers or None to be saved, got {other!r}")


def effective_rank_at(metric: Metric | None, clock: int) -> int:
    """Return the effective rank of a metric at a round; 0 before the first round."""
    return 0 if metric is None or clock == 0 else int(effective_rank(metric.eigenvalues, clock))


def check_unchanged(name: str, value: object, learned_with: object) -> None:
    """Raise `InputError` if a parameter is not the one that rows were learned with."""
    if value != learned_with:
        raise InputError(f"{name} must be {learned_with!r}, as when rows were learned, got {value!r}: use a new model")
