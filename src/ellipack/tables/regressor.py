"""`TableRegressor`: regression on tables with text, dates, categories and missing values, with scikit-learn's verbs."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from ellipack.errors import InputError, ShapeError
from ellipack.estimators import MetricRegressor
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.input_checks import key_columns
from ellipack.evaluation.drivers import column_effects, column_importances
from ellipack.evaluation.prediction_options import PredictionOptions, check_columns
from ellipack.evaluation.run import BatchResult, Run
from ellipack.evaluation.scores import Scores
from ellipack.evaluation.worker_batches import worker_batch_rows, worker_batches
from ellipack.learners.intervals import Intervals, check_coverage
from ellipack.learners.metric.effects import Effect
from ellipack.learners.metric.importances import Importances
from ellipack.learners.metric.sharded_learning import Workers
from ellipack.locks import LearnLock
from ellipack.report.record import Record
from ellipack.report.run_record import build_record
from ellipack.tables.frames import (
    SOURCE,
    index_remark,
    is_iterator,
    iterate_batches,
    iterate_tables,
    regroup_tables,
    with_labels,
)
from ellipack.tables.parameters import TableParameters, check_workers, column_names
from ellipack.tables.python_messages import python_hints, warn_about_columns
from ellipack.tabular import (
    INFERENCE_ROWS,
    MIN_VALUES,
    CellOptions,
    LevelOptions,
    ParsedRows,
    TableBatch,
    TableEncoder,
    TableStream,
)
from ellipack.tabular.table_batch import concat_tables
from ellipack.validation import Floats, as_floats

ColumnNames = str | int | Collection[str | int]
"""The name of a column, or names of columns."""


class TableRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # untyped base
    """Regression on a stream of table rows: numbers, text, dates, categories and missing values.

    It encodes the rows as ``ellipack run`` does, and learns them with a `MetricRegressor`. Files are the same as those
    of ``ellipack run --save``. Rows are data frames of pandas or polars, Arrow tables, any object with the Arrow
    PyCapsule interface, dictionaries of columns, lists of dictionaries, or iterators of these. Labels are a column of
    the table, or a separate `y`. A row without a label is predicted, but not learned.

    Parameters
    ----------
    target : str or None, default None
        Column of the labels. If None, labels are passed as `y`. Here and below, a column of a data frame that has an
        integer as its name may be named by it.
    learner : regressor or None, default None
        Unfitted learner with parameters of your choice. If None, a `MetricRegressor`.
    by : str, list of str or None, default None
        Columns whose values are keys, such as a store: predictions use the last labels of the same key, too.
    take : str, list of str or None, default None
        Columns to use. If None, all.
    drop : str or list of str, default ()
        Columns to ignore.
    kinds : dict of str to str or None, default None
        Kinds of columns that are not inferred: number, boolean, time or category.
    levels : int, LevelOptions or None, default None
        Number of levels up to which a category column is one-hot encoded, or all options of category columns.
    cells : CellOptions or None, default None
        How numbers and missing values are written, if it is not to be inferred.
    minimum, maximum : float or None, default None
        Bounds of the predictions.
    id_column : str or None, default None
        Column that identifies rows, so that the label of a row may come later. It is no feature.
    on_error : {"stop", "skip"}, default "stop"
        "stop" raises StreamError at a row that cannot be read. "skip" leaves it out; its prediction is NaN.

    Attributes
    ----------
    run_ : Run
        Encoder, learner and scores.
    importances_ : Importances or None
        Importance of each column.
    feature_names_in_ : array of str
        Names of the columns that are used, without the target.

    Examples
    --------
    >>> table = {"sky": ["clear", "rain", None] * 100, "wind": range(300), "delay": [0.0, 20.0, 5.0] * 100}
    >>> model = TableRegressor(target="delay", minimum=0)
    >>> predictions = model.progressive(table)
    >>> model.predict({"sky": ["rain", "clear"], "wind": [40, None]}).round().tolist()
    [20.0, 0.0]
    """

    def __init__(  # noqa: PLR0913  # the parameters of an estimator
        self,
        target: str | int | None = None,
        *,
        learner: StreamingRegressor[Any] | None = None,
        by: ColumnNames | None = None,
        take: ColumnNames | None = None,
        drop: ColumnNames = (),
        kinds: Mapping[Any, str] | None = None,
        levels: int | LevelOptions | None = None,
        cells: CellOptions | None = None,
        minimum: float | None = None,
        maximum: float | None = None,
        id_column: str | int | None = None,
        on_error: str = "stop",
    ) -> None:
        self.target = target
        self.learner = learner
        self.by = by
        self.take = take
        self.drop = drop
        self.kinds = kinds
        self.levels = levels
        self.cells = cells
        self.minimum = minimum
        self.maximum = maximum
        self.id_column = id_column
        self.on_error = on_error

    def fit(self, X: Any, y: Any = None, *, workers: Workers | None = None) -> Self:
        """Learn from rows in their order, after a reset.

        Parameters
        ----------
        X : table, or iterator of tables
            Rows, with the target unless `y` is given.
        y : array-like of shape (n_samples,), optional
            Labels.
        workers : Workers, optional
            Workers that learn the rows together; see `docs/scaling-out.md`. This process encodes the rows. The learner
            must be a `MetricRegressor`. By default, one thread learns them.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        with self._lock, python_hints():
            self._learn(None, self._batches(X, y, 1, workers), is_iterator(X), _Wanted(workers=workers))
        return self

    def partial_fit(self, X: Any, y: Any = None, *, workers: Workers | None = None) -> Self:
        """Learn from more rows in their order. See `fit`.

        If a row of a table can't be read, nothing is learned. If it belongs to an iterator, the tables before it are.
        """
        self.progressive_batches(X, y, workers=workers)
        return self

    @overload
    def progressive(self, X: Any, y: Any = None, *, workers: Workers | None = None) -> Floats: ...

    @overload
    def progressive(
        self, X: Any, y: Any = None, *, coverage: float | Sequence[float], workers: Workers | None = None
    ) -> tuple[Floats, Intervals]: ...

    def progressive(
        self,
        X: Any,
        y: Any = None,
        *,
        coverage: float | Sequence[float] | None = None,
        workers: Workers | None = None,
    ) -> Floats | tuple[Floats, Intervals]:
        """Predict each row as the next one, then learn from its label. See `fit`.

        Parameters
        ----------
        X : table, or iterator of tables
            Rows, with the target unless `y` is given.
        y : array-like of shape (n_samples,), optional
            Labels.
        coverage : float or sequence of float, optional
            Coverages of prediction intervals; see `predict_interval`. The report shows them for the rows from the call
            on that first asks for them.
        workers : Workers, optional
            Workers that learn the rows together; see `fit`.

        Returns
        -------
        predictions : array of shape (n_samples,)
            The prediction for each row, made before its label was seen.
        intervals : Intervals
            Only if `coverage` is given: the intervals of the predictions.
        """
        results = self.progressive_batches(X, y, coverage=coverage, workers=workers)
        predictions = np.concatenate([np.zeros(0), *(aligned(each, each.predictions) for each in results)])
        if coverage is None:
            return predictions
        wanted = check_coverage(coverage)
        ends = np.concatenate(
            [np.zeros((0, 2 * wanted.size)), *(aligned(each, each.interval_ends) for each in results)]
        )
        lower, upper = ends[:, 0::2], ends[:, 1::2]
        return predictions, Intervals(lower, upper) if wanted.ndim else Intervals(lower[:, 0], upper[:, 0])

    def progressive_batches(
        self,
        X: Any,
        y: Any = None,
        *,
        keep: ColumnNames = (),
        coverage: float | Sequence[float] | None = None,
        workers: Workers | None = None,
    ) -> list[BatchResult]:
        """Do the same as `progressive`, and return the results with row numbers, labels and further columns.

        Parameters
        ----------
        X : table, or iterator of tables
            Rows, with the target unless `y` is given.
        y : array-like of shape (n_samples,), optional
            Labels.
        keep : str or sequence of str, default ()
            Columns whose cells are returned, too. Used by the first call.
        coverage : float or sequence of float, optional
            Coverages of prediction intervals.
        workers : Workers, optional
            Workers that learn the rows together; see `fit`.

        Returns
        -------
        list of BatchResult
        """
        with self._lock, python_hints():
            run: Run | None = self.__dict__.get("run_")
            if run is not None:
                run.complete_batch()
            first = 1 if run is None or run.source != SOURCE else run.position + 1
            wanted = _Wanted(column_names(keep, "keep"), coverage, workers)
            return self._learn(run, self._batches(X, y, first, workers), is_iterator(X), wanted)

    def learn_stream(
        self,
        stream: Iterator[TableBatch],
        keep: ColumnNames = (),
        coverage: float | Sequence[float] | None = None,
        workers: Workers | None = None,
    ) -> list[BatchResult]:
        """Do the same as `progressive_batches` with the rows of an open file, or with batches, numbered from 1."""
        check_workers(workers)
        with self._lock, python_hints():
            run: Run | None = self.__dict__.get("run_")
            if run is None and self.target is None:
                raise InputError("target must name the column of the labels, got None")
            if run is not None:
                run.complete_batch()
            batches = stream
            if workers is not None and isinstance(stream, TableStream):
                batches = worker_batches(stream, workers.sharding.shards)
            with nullcontext() if run is None else run.starting_table(SOURCE):
                return self._learn(run, batches, True, _Wanted(column_names(keep, "keep"), coverage, workers))

    def predict(self, X: Any) -> Floats:
        """Predict rows that need not follow those that were learned, from the features alone.

        Parameters
        ----------
        X : table, or iterator of tables
            Rows. They need no target.

        Returns
        -------
        predictions : array of shape (n_samples,)
        """
        run = self._fitted_run
        return self._predict(
            X,
            lambda batch, rows: run.learner.predict(run.encoder.transform(rows), **run.predict_keys(batch, rows)),
        )

    def predict_interval(self, X: Any, coverage: float | Sequence[float] = 0.9) -> Intervals:
        """Return prediction intervals of rows that need not follow those that were learned.

        Parameters
        ----------
        X : table, or iterator of tables
            Rows. They need no target.
        coverage : float or sequence of float, default 0.9
            Fraction of labels in the intervals, or several of them.

        Returns
        -------
        intervals : Intervals
            A pair of arrays, `lower` and `upper`, of shape (n_samples,), or (n_samples, k) for k coverages, within the
            bounds of predictions.
        """
        run, wanted = self._fitted_run, check_coverage(coverage)

        def both_ends(batch: TableBatch, rows: ParsedRows) -> Floats:
            table, keys = run.encoder.transform(rows), run.predict_keys(batch, rows)
            return np.hstack(run.learner.predict_interval(table, wanted.ravel().tolist(), **keys))

        lower, upper = np.hsplit(self._predict(X, both_ends, (2 * wanted.size,)), 2)
        return Intervals(lower, upper) if wanted.ndim else Intervals(lower[:, 0], upper[:, 0])

    def predict_next(self, X: Any) -> Floats:
        """Predict the rows that follow the last learned row, one after the other, from the features and the past.

        Parameters
        ----------
        X : table, or iterator of tables
            Rows, in their order. Labels that are known are used for later rows; for others, the prediction stands in.

        Returns
        -------
        predictions : array of shape (n_samples,)
        """
        run = self._fitted_run
        if not isinstance(run.learner, MetricRegressor) or not run.learner.past:
            raise InputError("predict_next needs a MetricRegressor that uses the past, which this model does not")
        follower = run.learner.follow()

        def follow(batch: TableBatch, rows: ParsedRows) -> Floats:
            labels, keys = run.encoder.known_labels(batch, rows), run.row_keys(batch, rows)
            return follower.predict_next(run.encoder.transform(rows), keys=keys, labels=labels)

        return self._predict(X, follow)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the R2 of `predict`: 1 minus the squared error relative to that of the mean of the labels.

        Parameters
        ----------
        X : table, or iterator of tables
            Rows, with the target unless `y` is given.
        y : array-like of shape (n_samples,), optional
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        score : float
            Rows without a label, and rows that are skipped, do not count.
        """
        tables = list(iterate_tables(X))
        predictions = self.predict(iter(tables))
        labels = self._labels(tables) if y is None else as_floats(y, "y")
        weights = np.ones(len(labels)) if sample_weight is None else as_floats(sample_weight, "sample_weight")
        for name, values in (("y", labels), ("sample_weight", weights)):
            if values.shape != predictions.shape:
                rule = f"one number per row, {len(predictions):,}"
                raise ShapeError(f"{name} must hold {rule}, got an array of shape {values.shape}")
        known = ~np.isnan(predictions + labels)
        if not known.any():
            raise InputError(f"X must have at least one row with a label, got none in {len(known):,} rows")
        metrics = import_module("sklearn.metrics")  # slow, and not needed to learn
        return float(metrics.r2_score(labels[known], predictions[known], sample_weight=weights[known]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model to a file, as ``ellipack run --save`` does. `ellipack.load` reads it.

        Parameters
        ----------
        path : str or path-like
            Path of the file. An existing file is replaced.
        """
        with self._lock:
            self._fitted_run.save(path)

    @classmethod
    def from_run(cls, run: Run) -> "TableRegressor":
        """Return the model of a run.

        Its parameters are those that the run holds: the columns in use are those of `take`.
        """
        options = run.options
        model = cls(
            run.encoder.target,
            learner=clone(run.learner),
            take=run.encoder.column_names[1:],
            levels=run.encoder.level_options,
            cells=run.encoder.cell_options,
            minimum=options.minimum,
            maximum=options.maximum,
            id_column=options.id_column,
        )
        if run.learner.__sklearn_is_fitted__():
            model.run_ = run
        return model

    @property
    def scores_(self) -> Scores:
        """Scores of the predictions of `progressive` and `partial_fit`, each made before its label was seen."""
        return self._fitted_run.scores

    @property
    def learner_(self) -> StreamingRegressor[Any]:
        """Fitted learner on the encoded features."""
        return self._fitted_run.learner

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns that are used, without the target."""
        return np.array(self._fitted_run.encoder.column_names[1:], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Number of columns that are used, without the target."""
        return len(self.feature_names_in_)

    def describe_columns(self) -> str:
        """Return one line that says what the columns were taken for; an empty string if all contain plain numbers."""
        encoder = self._fitted_run.encoder
        return "; ".join(filter(None, [encoder.describe_columns(), *encoder.decisions]))

    @property
    def encoded_feature_names_(self) -> list[str]:
        """Names of the features into which columns are encoded."""
        return self._fitted_run.encoder.feature_names

    @property
    def record_(self) -> Record:
        """Everything that the report shows."""
        return build_record(self._fitted_run)

    @property
    def importances_(self) -> Importances | None:
        """What drives the predictions: the importance of each column, with a standard error, and of recent values.

        None if the learner does not measure importance.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> sizes, noise = rng.normal(size=500), rng.normal(size=500)
        >>> table = {"noise": noise, "size": sizes, "y": 3 * sizes + noise}
        >>> [(each.columns, round(each.share, 1)) for each in TableRegressor("y").fit(table).importances_.columns]
        [(('size',), 0.9), (('noise',), 0.1)]
        """
        return column_importances(self._fitted_run)

    def partial_dependence(self, column: str) -> list[Effect]:
        """Return how the prediction moves with a column, averaged over recent rows, with their spread.

        Predictions are those of `predict`, from the features alone.

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        effects : list of Effect
            One effect; for a column of times, one for each part that varies, such as the hour and the weekday.

        Examples
        --------
        >>> table = {"size": [1.0, 2.0, 3.0] * 30, "color": ["red", "red", "blue"] * 30, "y": [1.0, 2.0, 7.0] * 30}
        >>> model = TableRegressor("y").fit(table)
        >>> [effect.describe() for effect in model.partial_dependence("color")]
        ['highest for blue, lowest for red']
        """
        return column_effects(self._fitted_run, column)

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Write the report page, which is one HTML file.

        Parameters
        ----------
        path : str or path-like
            Path of the file. An existing file is replaced.
        """
        page = import_module("ellipack.report.page")  # which needs packages that the rest does not need
        page.write_page(self.record_, path)

    def checked_parameters(self) -> TableParameters:
        """Return the parameters in a standard form; raise `InputError` if one breaks a rule."""
        return TableParameters.of(self.get_params(deep=False))

    def __sklearn_is_fitted__(self) -> bool:
        return "run_" in self.__dict__

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:  # a copy is taken between two batches
            if self.__sklearn_is_fitted__():
                self.run_.complete_batch()
            state = {name: value for name, value in super().__getstate__().items() if name != "_own_lock"}
            return state | {name: deepcopy(state[name]) for name in ("run_",) if name in state}

    @property
    def _lock(self) -> Any:
        """Lock by which one thread at a time uses the encoder. A forked child gets a new one."""
        if "_own_lock" not in self.__dict__:
            self.__dict__.setdefault("_own_lock", LearnLock())  # another thread may have set it meanwhile
        lock: LearnLock = self._own_lock
        return lock.turn

    @property
    def _fitted_run(self) -> Run:
        check_is_fitted(self)
        run: Run = self.run_
        return run

    def _batches(self, X: Any, y: Any, first: int, workers: Workers | None) -> Iterator[TableBatch]:
        """Return the rows with their labels in batches."""
        check_workers(workers)
        tables = self._tables(X, y)
        if workers is None:
            return iterate_batches(tables, first)
        shards = workers.sharding.shards
        return regroup_tables(tables, first, lambda rows, columns: worker_batch_rows(rows, shards, columns))

    def _tables(self, X: Any, y: Any) -> Iterator[Any]:
        """Return the tables with their labels."""
        run: Run | None = self.__dict__.get("run_")
        target = self.checked_parameters().target
        if y is None:
            if target is None and run is None:
                raise InputError("target must name the column of the labels, or y must hold them, got neither")
            return iterate_tables(X)
        if is_iterator(X):
            raise InputError("y must be None if X is an iterator: set target, the column of X that holds the labels")
        name = str(getattr(y, "name", None) or "y") if run is None else run.encoder.target
        name = name if target is None else target
        return (with_labels(table, y, name) for table in iterate_tables(X))

    def _learn(
        self, run: Run | None, batches: Iterator[TableBatch], is_once: bool, wanted: "_Wanted"
    ) -> list[BatchResult]:
        """Learn batches, in a new run if there is none. Tables in memory are checked before anything is learned."""
        coverages = None if wanted.coverage is None else tuple(check_coverage(wanted.coverage).ravel().tolist())
        n_warnings = 0 if run is None else len(run.encoder.warnings)
        head: list[TableBatch] = []
        while run is None and sum(map(len, head)) < INFERENCE_ROWS and (batch := next(batches, None)) is not None:
            head.append(batch)
        if run is None:
            run = self._new_run(head, wanted.keep)
        every: Iterable[TableBatch] = chain(head, batches)
        if not is_once:
            every = list(every)
            run.check_rows(every, self.on_error)  # raises before anything is learned
        if run.source != SOURCE:
            run.start_table(SOURCE)
        if coverages is not None:
            run.use_coverages(coverages)
        with run.learning_on(wanted.workers):
            results = [run.learn_batch(batch, self.on_error) for batch in every]
        self.run_ = run
        warn_about_columns(run.encoder.warnings[n_warnings:])
        return results

    def _new_run(self, head: list[TableBatch], keep: Sequence[str]) -> Run:
        """Return a run that has learned nothing, with columns as in the first rows."""
        if not head:
            raise InputError("X must have at least one row, got 0 sample(s)")
        given = self.checked_parameters()
        names = head[0].table.schema.names
        first = TableBatch.from_table(concat_tables([each.table for each in head], names), SOURCE)
        first = replace(first, unnamed=head[0].unnamed)
        options = PredictionOptions(given.minimum, given.maximum, tuple(keep), given.id_column)
        check_columns(options, names, SOURCE)
        target = names[-1] if given.target is None else given.target  # `with_labels` appends it
        remark = index_remark(head[0].table)
        if remark and target not in names:
            raise InputError(f"{SOURCE} has no column named {target!r} (the target): {remark}")
        learner: Any = MetricRegressor() if given.learner is None else clone(given.learner)
        drop = {*given.drop, *([] if given.id_column is None else [given.id_column])}
        # before the kinds of many columns are inferred
        learner.check_feature_count(len(set(names if given.take is None else given.take) - {*drop, target}))
        encoder = TableEncoder.from_head(
            first,
            target,
            take=given.take,
            drop=drop,
            kinds=given.kinds,
            levels=given.levels,
            cells=given.cells,
            min_values=MIN_VALUES,
        )
        if given.by is not None:
            is_list = isinstance(self.by, Collection) and not isinstance(self.by, str)
            learner.set_params(by=list(given.by) if is_list else given.by[0])
        by = getattr(learner, "by", None)
        for name in [] if by is None else key_columns(by):
            if name not in names:
                raise InputError(f"by must be one of the columns of {SOURCE}: {', '.join(names)}, got {name!r}")
            if name == target:
                raise InputError(f"by must not be the target, because a row is predicted without it, got {name!r}")
        encoder.warnings += [remark] if remark else []
        return Run(learner, encoder, SOURCE, options=options)

    def _labels(self, tables: Iterable[Any]) -> Floats:
        """Return the labels of tables in their target column; NaN where a label is missing or a row is skipped."""
        run, found = self._fitted_run, [np.zeros(0)]
        with self._lock, python_hints():
            for batch in iterate_batches(tables, 1):
                rows = run.encoder.parse(batch, self.on_error)
                found.append(np.full(len(batch), np.nan))
                found[-1][np.searchsorted(batch.row_numbers, rows.row_numbers)] = rows.labels
        return np.concatenate(found)

    def _predict(
        self, X: Any, predict: Callable[[TableBatch, ParsedRows], Floats], shape: tuple[int, ...] = ()
    ) -> Floats:
        """Return what a function returns for each row, an array of a given shape; NaN for rows that are skipped."""
        run, predictions = self._fitted_run, [np.zeros((0, *shape))]
        with self._lock, python_hints():
            run.complete_batch()
            for batch in iterate_batches(iterate_tables(X), 1):
                rows = run.encoder.parse_unlabeled(batch, self.on_error)
                found = np.full((len(batch), *shape), np.nan)
                if len(rows):
                    places = batch.positions_of(rows.row_numbers)
                    found[places] = run.options.bound(predict(batch, rows))
                predictions.append(found)
        return np.concatenate(predictions)


class _Wanted(NamedTuple):
    """What a call that learns wants: columns to keep, coverages of intervals, and workers."""

    keep: tuple[str, ...] = ()
    coverage: float | Sequence[float] | None = None
    workers: Workers | None = None


def aligned(result: BatchResult, values: Floats) -> Floats:
    """Return values for each row of a batch, NaN for rows that were skipped."""
    numbers = np.concatenate([result.row_numbers, [row.row_number for row in result.bad_rows]])
    all_values = np.concatenate([values, np.full((len(result.bad_rows), *values.shape[1:]), np.nan)])
    return np.asarray(all_values[np.argsort(numbers, kind="stable")])
