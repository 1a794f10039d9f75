"""`KeyedRegressor`: one learner per key, with the methods of scikit-learn."""

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ellipack.errors import InputError
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.input_checks import (
    check_rows_with_keys,
    check_targets,
    feature_names,
    key_columns,
    select_column,
)
from ellipack.estimators.metric import MetricRegressor
from ellipack.learners.intervals import (
    NO_POSITIONS,
    Intervals,
    Predictions,
    RowPredictions,
    check_coverage,
    empty_predictions,
    select_intervals,
)
from ellipack.learners.keyed import learner, serialization
from ellipack.learners.keyed.key_learner import KeySettings
from ellipack.learners.keyed.learner import CallOptions, KeyedState
from ellipack.learners.keyed.partitions import Partitioning, learn_partitioned
from ellipack.learners.keyed.store import StoreLimits
from ellipack.learners.metric.config import MetricConfig
from ellipack.metric import Metric
from ellipack.row_keys import RowKeys
from ellipack.serialization import Archive
from ellipack.validation import Floats, Ints, check_integer, check_rows

_KEY_CENTERS = 2_000


class KeyErrors(NamedTuple):
    """Errors of the predictions of the next row by key; arrays have one entry per key, most rows first.

    Attributes
    ----------
    names : list of str
        Values of the keys.
    rows : array of int
        Number of rows.
    rmse : array of float
        Root mean squared error.
    pooled_rmse : array of float
        The same for the predictions of the learner of all keys alone.
    """

    names: list[str]
    rows: Ints
    rmse: Floats
    pooled_rmse: Floats


class KeyedRegressor(StreamingRegressor[KeyedState]):
    """Regression on a stream with one learner per key, such as a store or a device.

    A `MetricRegressor` learns the rows of all keys, and uses the past of each key. In addition, each key has a
    `MetricRegressor` of its own, which learns the rows of the key from their features. The prediction combines both: a
    new key is predicted by the learner of all keys, and a key with many rows nearly as well as by the better of the
    two, on any stream (`ellipack.learners.keyed.combination`).

    Use it if keys differ in how the label depends on the features. If they differ only in their level, or have few
    rows, a `MetricRegressor` with the same `by` is as good and several times as fast.

    Memory is bounded: the learners of the keys that were used least recently are on disk. Results do not depend on it.

    Parameters
    ----------
    by : str, int or sequence of them
        Names or numbers of the columns that are the key of a row. They stay features, too; pass keys that are text as
        `keys` to the methods.
    learner : MetricRegressor or None, default None
        Unfitted learner of a key, without the past. If None, one with at most 2,000 centers that does not measure the
        importance of features.
    pooled : MetricRegressor or None, default None
        Unfitted learner of all keys. If None, one with default parameters. Its `by` is that of this estimator.
    max_learners : int, default 1000
        Largest number of learners of keys in memory. The others are in a temporary file.
    folder : str, path-like or None, default None
        Existing folder on whose disk the temporary file is. If None, that of the system for temporary files. The file
        has no name, and does not remain when the process ends.

    Attributes
    ----------
    state_ : KeyedState
        Fitted state.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Names of the features, if the columns had names.

    Notes
    -----
    A copy, also by pickle, holds all learners, and has a file of its own. A forked process has all learners as they
    were at the fork, and neither process disturbs the other.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, store = rng.normal(size=(2000, 2)), rng.integers(4, size=2000)
    >>> slopes = np.array([-3.0, -1.0, 1.0, 3.0])
    >>> y = slopes[store] * X[:, 0]
    >>> learner = KeyedRegressor(by="store", max_learners=2)
    >>> predictions = learner.progressive(X, y, keys=store)
    >>> bool(np.std(predictions[1000:] - y[1000:]) < 0.1 * np.std(y))
    True
    >>> learner.predict([[1.0, 0.0], [1.0, 0.0]], keys=[0, 3]).round().tolist()
    [-3.0, 3.0]
    >>> learner.n_keys_, learner.n_keys_on_disk_
    (4, 2)
    """

    _temporary_folder: str | None = None

    def __init__(
        self,
        by: str | int | Sequence[str | int] | None = None,
        *,
        learner: MetricRegressor | None = None,
        pooled: MetricRegressor | None = None,
        max_learners: int = 1000,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.by = by
        self.learner = learner
        self.pooled = pooled
        self.max_learners = max_learners
        self.folder = folder

    def fit(self, X: Any, y: Any, *, keys: Any = None) -> Self:
        """Learn from rows in their order, after a reset.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        keys : array-like of shape (n_samples,), optional
            Key of each row, or of shape (n_samples, k) if a key has several values. It is used instead of the columns
            `by` of `X`, for instance for text.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        labels, row_keys = check_targets(y), self._row_keys(X, keys)
        with self._turn:
            self._fitted, _ = self._learn_from_scratch(X, labels, keys=row_keys)
        return self

    def partial_fit(self, X: Any, y: Any, *, keys: Any = None) -> Self:
        """Learn from more rows in their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        keys : array-like of shape (n_samples,), optional
            Key of each row, instead of the columns `by` of `X`.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        labels, row_keys = check_targets(y), self._row_keys(X, keys)
        with self._turn:
            fitted, rows = self._start(X)
            self._run_rounds(fitted[0], rows, labels, row_keys)
            self._fitted = fitted
        return self

    @overload
    def progressive(self, X: Any, y: Any, *, keys: Any = None) -> Floats: ...

    @overload
    def progressive(
        self, X: Any, y: Any, *, coverage: float | Sequence[float], keys: Any = None
    ) -> tuple[Floats, Intervals]: ...

    def progressive(
        self, X: Any, y: Any, *, coverage: float | Sequence[float] | None = None, keys: Any = None
    ) -> Floats | tuple[Floats, Intervals]:
        """Predict each row as the next one, then learn from its label.

        The state afterwards is the same as after `partial_fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        coverage : float or sequence of float, optional
            Coverages of prediction intervals; see `predict_interval`.
        keys : array-like of shape (n_samples,), optional
            Key of each row, instead of the columns `by` of `X`.

        Returns
        -------
        predictions : array of shape (n_samples,)
            The prediction for each row, made before its label was seen.
        intervals : Intervals
            Only if `coverage` is given: the intervals of the predictions. Their coverage is guaranteed for the rows of
            each key, on any stream; the theorem is in `ellipack.learners.intervals`.
        """
        return self._learn_and_select(X, check_targets(y), coverage, keys=self._row_keys(X, keys))

    def learn_into(self, X: Any, y: Any, predictions: Predictions, *, keys: Any = None) -> None:
        """Do the same as `progressive`, and write the predictions into arrays. See `MetricRegressor.learn_into`."""
        labels, row_keys = check_targets(y), self._row_keys(X, keys)
        with self._turn:
            fitted, rows = self._start(X)
            learner.learn_into(fitted[0], rows, labels, predictions, row_keys, self._options())
            self._fitted = fitted

    def progressive_on(self, executor: Executor, X: Any, y: Any, *, keys: Any = None, partitions: int = 8) -> Floats:
        """Do the same as `progressive`, with the learners of the keys on the workers of an executor.

        The learner of all keys learns in this process. The result is that of `progressive`, bit for bit, whatever the
        executor and the number of partitions are. If a task fails, nothing is learned.

        Parameters
        ----------
        executor : concurrent.futures.Executor
            A process pool, or the executor of a Dask cluster, ``client.get_executor()``.
        X : array-like of shape (n_samples, n_features)
            Rows. Learners are sent to workers and back once per call, so that a call should have many rows per key.
        y : array-like of shape (n_samples,)
            Labels.
        keys : array-like of shape (n_samples,), optional
            Key of each row, instead of the columns `by` of `X`.
        partitions : int, default 8
            Largest number of tasks, among which keys are divided. Each task has at least one key.

        Returns
        -------
        predictions : array of shape (n_samples,)
            The prediction for each row, made before its label was seen.

        Examples
        --------
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> X, shop = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3
        >>> with ThreadPoolExecutor(2) as executor:
        ...     predictions = KeyedRegressor("shop").progressive_on(executor, X, shop * X[:, 0], keys=shop)
        >>> bool((predictions == KeyedRegressor("shop").progressive(X, shop * X[:, 0], keys=shop)).all())
        True
        """
        labels = check_targets(y)
        where = Partitioning(executor, partitions)
        with self._turn:
            rows, fitted, row_keys = self._rows_and_state(X, keys)
            values = learn_partitioned(fitted[0], rows, labels, row_keys, where, self._options()).values
            self._fitted = fitted
        return values

    def predict(self, X: Any, *, keys: Any = None) -> Floats:
        """Predict rows that need not follow those that were learned, from the features alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        keys : array-like of shape (n_samples,), optional
            Key of each row, instead of the columns `by` of `X`. A new key is predicted by the learner of all keys.

        Returns
        -------
        predictions : array of shape (n_samples,)
        """
        return self._predict_rows(X, keys).values

    def predict_interval(self, X: Any, coverage: float | Sequence[float] = 0.9, *, keys: Any = None) -> Intervals:
        """Return intervals around predictions that contain a wanted fraction of the labels.

        The intervals belong to the predictions of `predict`, and are calibrated by the rows of the same key.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float or sequence of float, default 0.9
            Fraction of labels in the intervals, from 0.5 to 0.99, or several of them.
        keys : array-like of shape (n_samples,), optional
            Key of each row, instead of the columns `by` of `X`.

        Returns
        -------
        intervals : Intervals
            A pair of arrays, `lower` and `upper`, of shape (n_samples,), or (n_samples, k) for k coverages.
        """
        wanted = check_coverage(coverage)
        return select_intervals(self._predict_rows(X, keys).bounds, wanted)

    @overload
    def predict_next(self, X: Any, *, keys: Any = None, labels: Any = None) -> Floats: ...

    @overload
    def predict_next(
        self, X: Any, *, coverage: float | Sequence[float], keys: Any = None, labels: Any = None
    ) -> tuple[Floats, Intervals]: ...

    def predict_next(
        self, X: Any, *, coverage: float | Sequence[float] | None = None, keys: Any = None, labels: Any = None
    ) -> Floats | tuple[Floats, Intervals]:
        """Predict the rows that follow the last learned row, one after the other. The state does not change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in their order.
        coverage : float or sequence of float, optional
            Coverages of prediction intervals; see `predict_interval`.
        keys : array-like of shape (n_samples,), optional
            Key of each row, instead of the columns `by` of `X`.
        labels : array-like of shape (n_samples,), optional
            Labels that are known already, for the predictions of later rows; NaN where a label is not known.

        Returns
        -------
        predictions : array of shape (n_samples,)
        intervals : Intervals
            Only if `coverage` is given.
        """
        state, wanted = self._fitted_state, None if coverage is None else check_coverage(coverage)
        rows, row_keys = self._checked_features(X), self._row_keys(X, keys)
        values, bounds = learner.predict_next(state, rows, row_keys, labels, self._options())
        return values if wanted is None else (values, select_intervals(bounds, wanted))

    def predict_each(self, X: Any, *, keys: Any = None) -> RowPredictions:
        """Predict each row as if it were the next one, also before the first row. The state does not change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        keys : array-like of shape (n_samples,), optional
            Key of each row, instead of the columns `by` of `X`.

        Returns
        -------
        predictions : RowPredictions
            Predictions with their intervals and what they used, for `learn_late`.
        """
        rows, (state, _), row_keys = self._rows_and_state(X, keys)
        return learner.predict_each(state, rows, row_keys, self._options())

    def learn_late(self, X: Any, y: Any, predictions: RowPredictions, *, keys: Any = None) -> Self:
        """Learn rows whose labels come after other rows, with what was known when they were predicted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        predictions : RowPredictions
            What `predict_each` returned for the rows.
        keys : array-like of shape (n_samples,), optional
            Key of each row, instead of the columns `by` of `X`.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        labels = check_targets(y)
        with self._turn:
            rows, fitted, row_keys = self._rows_and_state(X, keys)
            learner.learn_late(fitted[0], rows, labels, predictions, row_keys, self._options().limits)
            self._fitted = fitted
        return self

    def key_errors(self, most: int | None = None) -> KeyErrors:
        """Return the errors of `progressive` by key, those with most rows first.

        Parameters
        ----------
        most : int, optional
            Largest number of keys. By default, all.

        Returns
        -------
        errors : KeyErrors

        Examples
        --------
        >>> X, y = np.ones((6, 1)), np.array([1.0, 5.0, 1.0, 5.0, 1.0, 5.0])
        >>> learner = KeyedRegressor(by="shop").fit(X, y, keys=["a", "b"] * 3)
        >>> learner.key_errors().names
        ['a', 'b']
        """
        state = self._fitted_state
        count = None if most is None else check_integer(most, "most", 0)
        with state.lock.turn:
            state.complete_batch()
            found = sorted(state.records.values(), key=lambda each: (-each.rows, each.name))[:count]
            sums = np.array([(each.rows, each.squared_error, each.pooled_error) for each in found]).reshape(-1, 3)
        rows, errors, pooled = sums.T
        names = [each.name for each in found]
        return KeyErrors(names, rows.astype(np.int64), np.sqrt(errors / rows), np.sqrt(pooled / rows))

    @property
    def n_keys_(self) -> int:
        """Number of keys."""
        return len(self._fitted_state.records)

    @property
    def n_keys_on_disk_(self) -> int:
        """Number of keys whose learners are on disk only."""
        return self._fitted_state.store.n_on_disk

    @property
    def key_name_(self) -> str:
        """Name of the keys, of all columns `by`."""
        return " and ".join(map(str, key_columns(self.by)))

    @property
    def metric_(self) -> Metric:
        """Current metric of the learner of all keys, on standardized features."""
        return self._fitted_state.pooled.phase.plain.metrics[0]

    @property
    def pooled_(self) -> MetricRegressor:
        """Fitted learner of all keys. It shares its state with this estimator, and must not learn on its own."""
        state, names = self._fitted
        pooled = self.new_pooled()
        pooled._fitted = state.pooled, names
        pooled._columns = self._columns
        return pooled

    def set_columns(self, columns: Sequence[str]) -> Self:
        """Name the column of a table that each feature comes from, for the learner of all keys.

        See `MetricRegressor.set_columns`.
        """
        with self._turn:
            named = (self.pooled_ if self.__sklearn_is_fitted__() else self.new_pooled()).set_columns(columns)
            self._columns = named._columns
        return self

    def use_temporary_folder(self, folder: str | None) -> Self:
        """Use another folder than that of the parameter `folder` for the temporary file.

        It is not saved with the learner: `ellipack run` uses the folder of its outputs, which differs between machines.

        Parameters
        ----------
        folder : str or None
            Existing folder. If None, that of the parameter.

        Returns
        -------
        self : object
            This estimator.
        """
        self._temporary_folder = folder
        return self

    def new_pooled(self) -> MetricRegressor:
        """Return an unfitted learner of all keys."""
        pooled: MetricRegressor = MetricRegressor() if self.pooled is None else clone(self.pooled)
        pooled.by = self.by
        return pooled

    def _key_learner(self) -> MetricRegressor:
        """Return an unfitted learner of a key."""
        if self.learner is None:
            return MetricRegressor(_KEY_CENTERS, past=False, config=MetricConfig(importance=False))
        return self.learner

    def _options(self) -> CallOptions:
        self._check_types()
        folder = self._temporary_folder
        if folder is None or not os.path.isdir(folder):  # a pickle may be loaded where there is no such folder
            folder = None if self.folder is None else os.fspath(self.folder)
        pooled_jobs = -1 if self.pooled is None else self.pooled.n_jobs
        return CallOptions(pooled_jobs, StoreLimits(check_integer(self.max_learners, "max_learners", 1), folder))

    def _rows_and_state(
        self, X: Any, keys: Any
    ) -> tuple[Floats, tuple[KeyedState, NDArray[np.object_] | None], RowKeys]:
        """Return checked rows, the state (an initial one before the first row) with its names, and the keys."""
        is_fitted = self.__sklearn_is_fitted__()
        rows = check_rows(self._checked_features(X) if is_fitted else X)
        fitted = self._fitted if is_fitted else (self._initial_state(rows.shape[1]), feature_names(X))
        return rows, fitted, self._row_keys(X, keys)

    def _row_keys(self, X: Any, keys: Any) -> RowKeys:
        columns = key_columns(self.by)
        if keys is not None:
            return RowKeys.of(list(np.asarray(keys).T) if np.ndim(keys) == 2 else [keys])
        check_rows_with_keys(X)  # before its columns
        return RowKeys.of([select_column(self, X, name) for name in columns])

    def _check_parameters(self) -> None:
        key_columns(self.by)
        self._check_types()
        if self._key_learner().past or self._key_learner().by is not None:
            raise InputError(
                "learner must have past=False and no by: the learner of all keys uses the past of each key"
            )
        self._key_learner()._check_parameters()
        self.new_pooled()._check_parameters()
        self._options()

    def _check_types(self) -> None:
        """Raise `InputError` if a parameter has a wrong type. It may have been set after the first row."""
        for name in ("learner", "pooled"):
            if not isinstance(getattr(self, name), MetricRegressor | None):
                raise InputError(f"{name} must be a MetricRegressor, got {getattr(self, name)!r}")
        if self.folder is not None and not isinstance(self.folder, str | os.PathLike):
            raise InputError(f"folder must be a path, got {self.folder!r}")

    def _initial_state(self, d: int) -> KeyedState:
        self._check_parameters()
        own = self._key_learner()
        settings = KeySettings(own._size(d).checked(), int(own.random_state), own.config or MetricConfig())
        pooled = self.new_pooled()
        pooled._columns = self._columns
        return learner.initial_state(pooled._initial_state(d), settings)

    def _dimension(self, state: KeyedState) -> int:
        return state.dimension

    def _clock(self, state: KeyedState) -> int:
        with state.lock.turn:
            state.complete_batch()
            return state.pooled.clock

    def _predict_rows(self, X: Any, keys: Any) -> Predictions:
        state = self._fitted_state
        return learner.predict(state, self._checked_features(X), self._row_keys(X, keys), self._options())

    def _predict(self, state: KeyedState, X: ArrayLike) -> Floats:
        return learner.predict(state, X, self._row_keys(X, None), self._options()).values

    def _predict_bounds(self, state: KeyedState, X: ArrayLike, positions: Floats) -> Predictions:
        return learner.predict(state, X, self._row_keys(X, None), self._options()).select(positions)

    def _run_rounds(  # type: ignore[override]  # keys are required here
        self, state: KeyedState, X: ArrayLike, y: ArrayLike, keys: RowKeys, *, positions: Floats = NO_POSITIONS
    ) -> Predictions:
        predictions = empty_predictions(len(np.asarray(X)), with_intervals=len(positions) > 0)
        learner.learn_into(state, X, y, predictions, keys, self._options())
        return predictions.select(positions)

    def _to_archive(self, state: KeyedState) -> Archive:
        return serialization.to_archive(state)

    def _from_archive(self, archive: Archive, d: int) -> KeyedState:
        return serialization.from_archive(archive, d)

    def _add_features(self, state: KeyedState, scales: Floats) -> None:
        learner.add_features(state, scales)
