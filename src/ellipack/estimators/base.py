"""Base classes of the estimators with scikit-learn's methods."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Generic, Self, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ellipack import serialization
from ellipack.errors import InputError, ModelFileError
from ellipack.estimators.input_checks import check_features, check_targets, feature_names, is_plain_table
from ellipack.estimators.parameter_archive import object_to_archive
from ellipack.learners.intervals import (
    ALL_POSITIONS,
    NO_POSITIONS,
    Intervals,
    Predictions,
    RowPredictions,
    check_coverage,
    coverage_positions,
    split_bounds,
)
from ellipack.locks import LearnLock
from ellipack.serialization import Archive
from ellipack.validation import Floats, check_all_positive, check_feature_count, check_rows

State = TypeVar("State")


class StreamingEstimator(BaseEstimator, ABC, Generic[State]):  # type: ignore[misc]  # untyped base
    """Base class of estimators that learn row by row: their state, its features, and archives of it.

    A call that rejects its input leaves the state unchanged.

    The state and the names of its features are kept in one attribute, which is replaced as a whole. The number of
    features is that of the state. Threads and interrupts always see a state with its own features.

    Calls that learn, add features or restore a state take turns: a call of another thread waits until the call before
    it has ended. Each row is learned once, and by the state that is there when its turn comes.
    """

    _fitted: tuple[State, NDArray[np.object_] | None]
    _columns: tuple[str, ...] = ()  # name of the column of each feature, if `set_columns` was called

    @property
    def state_(self) -> State:
        """Fitted state."""
        return self._fitted[0]

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._dimension(self.state_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the features, if all columns have names."""
        state, names = self._fitted
        if names is None or len(names) != self._dimension(state):  # features that were added have no names
            raise AttributeError("feature_names_in_ is defined only if X has column names that are all strings")
        return names

    @property
    def _turn(self) -> Any:
        """Context manager in which no other thread changes this estimator. See `LearnLock.turn`."""
        lock = self.__dict__.get("_learn_lock")
        if lock is None:
            lock = self.__dict__.setdefault("_learn_lock", LearnLock())  # another thread may have set it meanwhile
        return lock.turn

    @property
    def _fitted_state(self) -> State:
        """The state; raises `NotFittedError` before the first row."""
        if "_fitted" not in self.__dict__:  # faster than check_is_fitted, which composes the message
            check_is_fitted(self, "state_")
        return self.state_

    def _checked_features(self, X: Any) -> ArrayLike:
        """Return rows that have the number and the names of the features, or raise. See `check_features`."""
        state, names = self._fitted
        if names is None and is_plain_table(X, self._dimension(state)):
            return cast(ArrayLike, X)  # without the exception by which feature_names_in_ tells that there are no names
        return check_features(self, X)

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise `InputError` if a parameter is not valid."""

    @abstractmethod
    def _initial_state(self, d: int) -> State:
        """Return the state before the first round, for d features, after a check of the parameters."""

    def check_feature_count(self, d: int) -> None:
        """Raise `DomainError` if there are too many features, before anything is allocated.

        Parameters
        ----------
        d : int
            Number of features.
        """
        check_feature_count(d, type(self).__name__)

    @abstractmethod
    def _dimension(self, state: State) -> int:
        """Return the number of features of a state."""

    @abstractmethod
    def _to_archive(self, state: State) -> Archive:
        """Return the archive of a state."""

    @abstractmethod
    def _from_archive(self, archive: Archive, d: int) -> State:
        """Return the state for d features from its archive."""

    @abstractmethod
    def _add_features(self, state: State, scales: Floats) -> None:
        """Add features of given typical sizes, which are 0 in all earlier rows."""

    def add_features(self, scales: ArrayLike) -> Self:
        """Add features as last columns and keep the fitted state.

        The new features count as 0 in all earlier rows. ``feature_names_in_`` is not defined any more, because it
        would not name all columns.

        Parameters
        ----------
        scales : array-like of shape (n_new_features,)
            Typical size of each new feature, above 0. It sets the unit of the feature until rows give a better one.

        Returns
        -------
        self : object
            Fitted estimator.

        Examples
        --------
        >>> from ellipack import PackingRegressor
        >>> model = PackingRegressor().fit([[0.1], [0.9]], [0.0, 1.0])
        >>> model.add_features([0.5]).predict([[0.1, 0.0]]).tolist()
        [0.0]
        """
        with self._turn:
            state = self._fitted_state
            self._add_features(state, check_all_positive(scales, "scales"))
        return self

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        super().__setstate__(attributes)
        # joblib may map arrays from disk. Some are read-only, and writing to others would change the file.
        if "_fitted" in attributes:
            self._fitted = deepcopy(self._fitted)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the parameters and the fitted state to a file.

        `ellipack.load` reads the file. The loaded model continues with the same results, bit for bit. Writing is
        atomic: after a failure an existing file is unchanged.

        Parameters
        ----------
        path : str or path-like
            Path of the file. An existing file is replaced.

        Raises
        ------
        ModelFileError
            If the file cannot be written.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import ellipack
        >>> model = ellipack.PackingRegressor().fit([[0.1], [0.9]], [0.0, 1.0])
        >>> with TemporaryDirectory() as folder:
        ...     model.save(Path(folder) / "model")
        ...     loaded = ellipack.load(Path(folder) / "model")
        >>> loaded.predict([[0.8]]).tolist()
        [1.0]
        """
        serialization.write(path, type(self).__name__, self.to_archive())

    def to_archive(self) -> Archive:
        """Return an archive of the parameters and, if fitted, of the state.

        Returns
        -------
        archive : Archive

        Raises
        ------
        InputError
            If the estimator is fitted and a parameter is not valid any more.
        ModelFileError
            If a parameter is an object of a class outside this package.
        """
        facts: dict[str, Any] = {"features": 0, "feature_names": [], "columns": list(self._columns)}
        if "_fitted" not in self.__dict__:
            return Archive(facts).with_parts(parameters=object_to_archive(self))
        self._check_parameters()  # a file with invalid ones could not be loaded
        state, names = self._fitted
        width = None
        while width != self._dimension(state):  # another thread may add features
            width = self._dimension(state)
            saved = self._to_archive(state)
        facts["features"] = width
        facts["feature_names"] = [] if names is None or len(names) != width else names.tolist()
        return Archive(facts).with_parts(parameters=object_to_archive(self), state=saved)

    def restore_state(self, archive: Archive) -> Self:
        """Restore the fitted state from an archive.

        Parameters
        ----------
        archive : Archive
            Result of `to_archive` of an estimator with the same parameters.

        Returns
        -------
        self : object
            This estimator, fitted if the archived one was, and otherwise not fitted.

        Raises
        ------
        ModelFileError
            If the archive is incomplete or inconsistent.
        """
        d, columns = archive.integer("features", 0), tuple(archive.strings("columns"))
        fitted = self._fitted_from_archive(archive, d) if d else None
        with self._turn:
            if columns != self._columns:
                self._columns = columns
            if fitted is None:
                self.__dict__.pop("_fitted", None)
            else:
                self._fitted = fitted
        return self

    def _fitted_from_archive(self, archive: Archive, d: int) -> tuple[State, NDArray[np.object_] | None]:
        """Return the state for d features, with their names, from the archive of an estimator."""
        names = archive.strings("feature_names")
        if names and len(names) != d:
            raise ModelFileError(f"feature_names must be {d} strings or none, got {len(names)}")
        try:
            self._check_parameters()
            state = self._from_archive(archive.part("state"), d)
        except InputError as error:
            raise ModelFileError(f"parameters: {error}") from error
        return state, np.array(names, dtype=object) if names else None


class StreamingRegressor(RegressorMixin, StreamingEstimator[State]):  # type: ignore[misc]  # untyped base
    """Base class of regressors that learn row by row and can predict at any time.

    A subclass defines its initial state, how the state predicts and how it learns. A call that rejects its input
    leaves the state unchanged.

    Methods take no sample weights. Each row is one round of online learning, and the order of the rows matters. To
    give a row the weight 3, pass it three times.
    """

    @abstractmethod
    def _clock(self, state: State) -> int:
        """Return the number of rounds of a state."""

    @abstractmethod
    def _predict(self, state: State, X: ArrayLike) -> Floats:
        """Return predictions without a change of the state."""

    @abstractmethod
    def _predict_bounds(self, state: State, X: ArrayLike, positions: Floats) -> Predictions:
        """Return predictions and their intervals at positions among the coverages, without a change of the state."""

    @abstractmethod
    def _run_rounds(self, state: State, X: ArrayLike, y: ArrayLike, *, positions: Floats = NO_POSITIONS) -> Predictions:
        """Update the state by one round per row; return the predictions made before each label.

        Their intervals are those at positions among the coverages. By default, they are not wanted.
        """

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows in their order, after a reset.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        labels = check_targets(y)
        with self._turn:
            self._fitted, _ = self._learn_from_scratch(X, labels)
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from more rows in their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        labels = check_targets(y)
        with self._turn:
            fitted, rows = self._start(X)
            self._run_rounds(fitted[0], rows, labels)
            self._fitted = fitted
        return self

    @overload
    def progressive(self, X: Any, y: Any) -> Floats: ...

    @overload
    def progressive(self, X: Any, y: Any, *, coverage: float | Sequence[float]) -> tuple[Floats, Intervals]: ...

    def progressive(
        self, X: Any, y: Any, *, coverage: float | Sequence[float] | None = None
    ) -> Floats | tuple[Floats, Intervals]:
        """Predict each row, then learn from its label.

        The state afterwards is the same as after `partial_fit`, except that with `coverage` the paper's learners have
        calibrated their intervals, and otherwise do so when intervals are asked for the next time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        coverage : float or sequence of float, optional
            Coverages of prediction intervals; see `predict_interval`.

        Returns
        -------
        predictions : array of shape (n_samples,)
            The prediction for each row, made before its label was seen.
        intervals : Intervals
            Only if `coverage` is given: the intervals of the predictions. Their coverage is guaranteed on any stream;
            the theorem is in `ellipack.learners.intervals`.

        Examples
        --------
        >>> X, y = np.random.default_rng(0).normal(size=(2, 3000, 1))
        >>> from ellipack import MetricRegressor
        >>> _, (lower, upper) = MetricRegressor().progressive(X, y.ravel(), coverage=0.9)
        >>> round(float(np.mean((lower <= y.ravel()) & (y.ravel() <= upper))), 2)
        0.9
        """
        return self._learn_and_select(X, check_targets(y), coverage)

    def predict(self, X: Any) -> Floats:
        """Predict rows with the current state.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        predictions : array of shape (n_samples,)
        """
        state = self._fitted_state
        return self._predict(state, self._checked_features(X))

    def predict_interval(self, X: Any, coverage: float | Sequence[float] = 0.9) -> Intervals:
        """Return intervals around predictions that contain a wanted fraction of the labels.

        The intervals belong to the predictions of `predict`. They are calibrated by the rows learned so far, and
        contain as many labels as wanted if the rows to predict are like those. The guarantee on any stream is that of
        `progressive`, which continues to learn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float or sequence of float, default 0.9
            Fraction of labels in the intervals, from 0.5 to 0.99, or several of them. Intervals of larger coverages
            contain those of smaller ones.

        Returns
        -------
        intervals : Intervals
            A pair of arrays, `lower` and `upper`, of shape (n_samples,), or (n_samples, k) for k coverages. They are
            infinite before two rows were learned.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(2000, 1))
        >>> y = X[:, 0] * rng.normal(size=2000)
        >>> from ellipack import MetricRegressor
        >>> lower, upper = MetricRegressor().fit(X, y).predict_interval([[0.1], [0.9]], coverage=0.8)
        >>> (upper - lower).round(1)
        array([0.4, 2.6])
        """
        state, wanted = self._fitted_state, check_coverage(coverage)
        made = self._predict_bounds(state, self._checked_features(X), coverage_positions(wanted))
        return split_bounds(made.bounds, wanted)

    @property
    def n_rounds(self) -> int:
        """Number of rows that were learned."""
        return self._clock(self.state_) if "_fitted" in self.__dict__ else 0

    def learn_into(self, X: Any, y: Any, predictions: Predictions) -> None:
        """Do the same as `progressive`, and write the predictions into arrays.

        An error or an interrupt leaves the first rows learned, as many as `n_rounds` has grown by, and their
        predictions in the arrays. Here it is all rows or none: they are learned on a copy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        predictions : Predictions
            Arrays to fill in. Without rows of bounds, intervals are not wanted.
        """
        labels = check_targets(y)
        positions = ALL_POSITIONS if len(predictions.bounds) else NO_POSITIONS
        with self._turn:
            fitted, rows = self._start_copy(X)
            found = self._run_rounds(fitted[0], rows, labels, positions=positions)
            predictions.values[:] = found.values
            if len(predictions.bounds):
                predictions.bounds[:] = found.bounds
            self._fitted = fitted

    @abstractmethod
    def predict_each(self, X: Any) -> RowPredictions:
        """Predict each row as if it were the next one, also before the first row. The state does not change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        predictions : RowPredictions
            Predictions with their intervals, for `learn_late`.
        """

    @abstractmethod
    def learn_late(self, X: Any, y: Any, predictions: RowPredictions) -> Self:
        """Learn rows whose labels come after other rows.

        Labels are compared with the intervals that were returned for their rows, so that the theorem about the coverage
        holds for them; see `ellipack.learners.intervals`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        predictions : RowPredictions
            What `predict_each` returned for the rows.

        Returns
        -------
        self : object
            Fitted estimator.
        """

    def _initial(self, X: Any) -> tuple[tuple[State, NDArray[np.object_] | None], ArrayLike]:
        """Return an initial state with the names of its features, and the rows."""
        table, names = check_rows(X), feature_names(X)
        return (self._initial_state(table.shape[1]), names), table

    def _start(self, X: Any) -> tuple[tuple[State, NDArray[np.object_] | None], ArrayLike]:
        """Return the state from which rows are learned, with the names of its features, and the rows.

        The caller has the turn, and keeps the state as `_fitted` when the rows are learned.
        """
        if "_fitted" not in self.__dict__:
            return self._initial(X)
        return self._fitted, self._checked_features(X)

    def _start_copy(self, X: Any) -> tuple[tuple[State, NDArray[np.object_] | None], ArrayLike]:
        """Return a copy of what `_start` returns as the state, so that all rows are learned or none."""
        fitted, rows = self._start(X)
        return deepcopy(fitted), rows

    def _learn_from_scratch(
        self, X: Any, y: ArrayLike, **more: Any
    ) -> tuple[tuple[State, NDArray[np.object_] | None], Predictions]:
        """Learn from an initial state. Return the state with the names of its features, and the predictions.

        `more` are arguments of `_run_rounds`.
        """
        fitted, rows = self._initial(X)
        predictions = self._run_rounds(fitted[0], rows, y, **more)
        return fitted, predictions

    def _learn_and_select(
        self, X: Any, y: ArrayLike, coverage: float | Sequence[float] | None, **more: Any
    ) -> Floats | tuple[Floats, Intervals]:
        """Learn and return the predictions, with intervals if `coverage` is not None."""
        wanted = None if coverage is None else check_coverage(coverage)
        positions = NO_POSITIONS if wanted is None else coverage_positions(wanted)
        with self._turn:
            fitted, rows = self._start(X)
            values, bounds = self._run_rounds(fitted[0], rows, y, positions=positions, **more)
            self._fitted = fitted
        return values if wanted is None else (values, split_bounds(bounds, wanted))
