"""`MetricRegressor` with the methods of scikit-learn."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import InputError
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.follower import Follower
from ellipack.estimators.input_checks import check_targets, feature_names, key_columns, select_column
from ellipack.learners.intervals import (
    NO_POSITIONS,
    Intervals,
    Predictions,
    RowPredictions,
    check_coverage,
    empty_predictions,
    select_intervals,
)
from ellipack.learners.metric import learner, serialization
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.effects import (
    Effect,
    EffectGrid,
    checked_grid,
    partial_dependence,
    quantile_grid,
    recent_rows,
)
from ellipack.learners.metric.experts import expert_names
from ellipack.learners.metric.feature_growth import add_features, set_columns
from ellipack.learners.metric.history import MetricHistory, normalized_weights, summarize_phases
from ellipack.learners.metric.importance_estimates import Shares
from ellipack.learners.metric.importances import Importances, summarize_features, summarize_importances
from ellipack.learners.metric.initial_state import MAX_SEED, LearnerSize, default_max_centers, initial_state
from ellipack.learners.metric.past import past_feature_names, past_labels
from ellipack.learners.metric.predictions import (
    NextRowPredictor,
    predict,
    predict_each,
    predict_next,
    predict_next_with_intervals,
    predict_with_intervals,
)
from ellipack.learners.metric.row_checks import NO_KEYS, check_all
from ellipack.learners.metric.sharded_learning import Workers, learn_in_shards
from ellipack.learners.metric.state import MetricState
from ellipack.metric import Metric
from ellipack.parallel import check_n_jobs, thread_count
from ellipack.row_keys import hash_rows
from ellipack.serialization import Archive
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, Ints, check_integer, check_rows


class PastErrors(NamedTuple):
    """Sums of squared errors, over all rounds but those whose label is an outlier.

    Attributes
    ----------
    rounds : int
        Number of rounds.
    without_past : float
        Sum of squared errors of the predictions from the features alone.
    with_past : float
        The same for predictions that also use the past.
    """

    rounds: int
    without_past: float
    with_past: float


class MetricRegressor(StreamingRegressor[MetricState]):
    """Regression on a stream that learns its own metric while it predicts.

    It accepts any numeric features and labels, without scaling or tuning. Experts (a running mean, ridge regressions,
    the paper's Algorithm 1, and means, local linear fits and kriging over the nearest centers) are aggregated. On any
    stream, the prediction is nearly as good as that of the best expert; the theorem is in
    `ellipack.learners.aggregation`. The slopes of the local fits add up to a gradient outer product. At the end of each
    phase the learner derives a new metric from it, in which it searches neighbors from then on.

    In streams that are ordered in time, earlier labels tell much about the next one. A second learner therefore sees
    the past beside the features: the last labels, the last error, and the prediction from the features alone. Rows may
    have a key, such as a store or a device; then it also sees the past of the same key. An aggregation of both learners
    predicts the next row: `progressive` and `predict_next` use it. It is nearly as good as the better of the two, on
    any stream. `predict` is for rows that need not follow, and uses the features alone.

    With more than 40 features, the metric measures along at most 28 directions, those that matter most
    (`ellipack.learners.metric.subspace`); the ridge regressions use all features.

    Parameters
    ----------
    max_centers : int or None, default None
        Number of centers at which a quarter of them is evicted; there are always fewer. If None, 100,000 or
        6 million divided by the number of features of the first row, whichever is less.
    neighbors : int, default 32
        Number of neighbors that kriging uses.
    views : {1, 2}, default 1
        2 adds a view of the features by their ranks: a little more accurate, at twice the cost.
    past : bool or int, default True
        Number of last labels that predictions of the next row use, at most 8. True stands for 3, False for none.
    by : str, int, sequence of them or None, default None
        Names or numbers of the columns that are the key of a row. They stay features, too; pass keys that are text as
        `keys` to the methods. The number of keys that are remembered is bounded, see `MetricConfig`.
    random_state : int, default 0
        Random seed of the draw of centers that score candidates for the metric.
    n_jobs : int or None, default -1
        Number of threads for predictions and for the end of a phase; -1 uses all cores, None is 1. Results do not
        depend on it.
    config : MetricConfig, optional
        Settings that few users change.

    Attributes
    ----------
    state_ : MetricState
        Fitted state.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Names of the features, if the columns had names.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017.
       This learner keeps the phases, the packing and the regularized gradient outer product of section 4.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(600, 4))
    >>> y = 10 * np.sin(X[:, 2]) + X[:, 0]
    >>> learner = MetricRegressor()
    >>> predictions = learner.progressive(X, y)
    >>> bool(np.std(predictions[300:] - y[300:]) < 0.2 * np.std(y))
    True
    >>> int(learner.feature_importances_.argmax())
    2
    """

    def __init__(
        self,
        max_centers: int | None = None,
        *,
        neighbors: int = 32,
        views: int = 1,
        past: bool | int = True,
        by: str | int | Sequence[str | int] | None = None,
        random_state: int = 0,
        n_jobs: int | None = -1,
        config: MetricConfig | None = None,
    ) -> None:
        self.max_centers = max_centers
        self.neighbors = neighbors
        self.views = views
        self.past = past
        self.by = by
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.config = config

    def fit(self, X: Any, y: Any, *, keys: Any = None, workers: Workers | None = None) -> Self:
        """Learn from rows in their order, after a reset.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        keys : array-like of shape (n_samples,), optional
            Key of each row, or of shape (n_samples, k) if a key has several values. It is used instead of the columns
            `by` of `X`, for instance for text, and needs a `by`, which names the keys.
        workers : Workers, optional
            Workers that learn the rows together; see `docs/scaling-out.md`. By default, one thread learns them.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        labels, row_keys = check_targets(y), self._row_keys(X, keys)
        with self._turn:
            self._fitted, _ = self._learn_from_scratch(X, labels, keys=row_keys, workers=workers)
        return self

    def partial_fit(self, X: Any, y: Any, *, keys: Any = None, workers: Workers | None = None) -> Self:
        """Learn from more rows in their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        keys : array-like of shape (n_samples,), optional
            Key of each row, instead of the columns `by` of `X`.
        workers : Workers, optional
            Workers that learn the rows together; see `fit`.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        labels, row_keys = check_targets(y), self._row_keys(X, keys)
        with self._turn:
            fitted, rows = self._start(X)
            self._run_rounds(fitted[0], rows, labels, row_keys, workers)
            self._fitted = fitted
        return self

    @overload
    def progressive(self, X: Any, y: Any, *, keys: Any = None, workers: Workers | None = None) -> Floats: ...

    @overload
    def progressive(
        self, X: Any, y: Any, *, coverage: float | Sequence[float], keys: Any = None, workers: Workers | None = None
    ) -> tuple[Floats, Intervals]: ...

    def progressive(
        self,
        X: Any,
        y: Any,
        *,
        coverage: float | Sequence[float] | None = None,
        keys: Any = None,
        workers: Workers | None = None,
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
        workers : Workers, optional
            Workers that learn the rows together; see `fit`.

        Returns
        -------
        predictions : array of shape (n_samples,)
            The prediction for each row, made before its label was seen.
        intervals : Intervals
            Only if `coverage` is given: the intervals of the predictions. Their coverage is guaranteed on any stream;
            the theorem is in `ellipack.learners.intervals`.
        """
        return self._learn_and_select(X, check_targets(y), coverage, keys=self._row_keys(X, keys), workers=workers)

    def learn_into(
        self, X: Any, y: Any, predictions: Predictions, *, keys: Any = None, workers: Workers | None = None
    ) -> None:
        """Do the same as `progressive`, and write the predictions into arrays.

        An error or an interrupt leaves the first rows learned, as many as `n_rounds` has grown by, and their
        predictions in the arrays.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        predictions : Predictions
            Arrays to fill in. Without rows of bounds, intervals are not wanted.
        keys : array-like of shape (n_samples,), optional
            Key of each row, instead of the columns `by` of `X`.
        workers : Workers, optional
            Workers that learn the rows together; see `fit`.
        """
        labels, row_keys = check_targets(y), self._row_keys(X, keys)
        with self._turn:
            fitted, rows = self._start(X)
            state, _ = fitted
            self._check_by(state)
            if workers is not None:
                learn_in_shards(state, rows, labels, predictions, workers, self.n_jobs, row_keys)
            else:
                learner.learn_into(state, rows, labels, predictions, self.n_jobs, row_keys)
            self._fitted = fitted

    @overload
    def predict_next(self, X: Any, *, keys: Any = None, labels: Any = None) -> Floats: ...

    @overload
    def predict_next(
        self, X: Any, *, coverage: float | Sequence[float], keys: Any = None, labels: Any = None
    ) -> tuple[Floats, Intervals]: ...

    def predict_next(
        self, X: Any, *, coverage: float | Sequence[float] | None = None, keys: Any = None, labels: Any = None
    ) -> Floats | tuple[Floats, Intervals]:
        """Predict the rows that follow the last learned row, one after the other.

        The prediction of a row uses the labels before it. While a label is not known, its prediction stands in for it.
        The state does not change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in their order.
        coverage : float or sequence of float, optional
            Coverages of prediction intervals; see `predict_interval`. They are calibrated for the next row. If the
            label before a row is not known, its interval is at least as wide as that of `predict_interval`.
        keys : array-like of shape (n_samples,), optional
            Key of each row, instead of the columns `by` of `X`.
        labels : array-like of shape (n_samples,), optional
            Labels that are known already, for the predictions of later rows; NaN where a label is not known.

        Returns
        -------
        predictions : array of shape (n_samples,)
        intervals : Intervals
            Only if `coverage` is given.

        Examples
        --------
        >>> t = np.arange(400.0)
        >>> X, y = np.ones((400, 1)), np.sin(t / 5)
        >>> learner = MetricRegressor().fit(X[:390], y[:390])
        >>> bool(np.abs(learner.predict_next(X[390:]) - y[390:]).max() < 0.1)
        True
        """
        state = self._fitted_state
        self._check_by(state)
        wanted = None if coverage is None else check_coverage(coverage)
        arguments = state, self._checked_features(X), self._row_keys(X, keys), labels
        if wanted is None:
            return predict_next(*arguments)
        values, bounds = predict_next_with_intervals(*arguments)
        return values, select_intervals(bounds, wanted)

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
            Predictions with their intervals and the features of the past that they used, for `learn_late`.

        Examples
        --------
        >>> X, y = np.ones((400, 1)), np.sin(np.arange(400) / 5)
        >>> learner = MetricRegressor().fit(X[:390], y[:390])
        >>> predictions = learner.predict_each(X[390:392])
        >>> lower, upper = predictions.intervals(0.9)
        >>> learner.learn_late(X[390:392], y[390:392], predictions).n_centers_ == learner.n_centers_
        True
        """
        rows, (state, _), row_keys = self._rows_and_state(X, keys)
        return predict_each(state, rows, row_keys)

    def learn_late(self, X: Any, y: Any, predictions: RowPredictions, *, keys: Any = None) -> Self:
        """Learn rows whose labels come after other rows, with the past that was known when they were predicted.

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
            learner.learn_late(fitted[0], rows, labels, predictions, row_keys)
            self._fitted = fitted
        return self

    def _rows_and_state(self, X: Any, keys: Any) -> tuple[Floats, tuple[MetricState, Any], Ints]:
        """Return checked rows, the state (an initial one before the first row) with its names, and the keys."""
        is_fitted = self.__sklearn_is_fitted__()
        rows = check_rows(self._checked_features(X) if is_fitted else X)
        fitted = self._fitted if is_fitted else (self._initial_state(rows.shape[1]), feature_names(X))
        self._check_by(fitted[0])
        return rows, fitted, self._row_keys(X, keys)

    def follow(self) -> Follower:
        """Return a predictor of the rows that follow, for many calls: each continues after the last one.

        Returns
        -------
        follower : Follower
            It has a method `predict_next`, like this class.
        """
        return Follower(NextRowPredictor(self._fitted_state), self._checked_following)

    def _checked_following(self, X: Any, keys: Any) -> tuple[ArrayLike, Ints]:
        """Return rows that follow, and their keys, after checks."""
        self._check_by(self._fitted_state)
        return self._checked_features(X), self._row_keys(X, keys)

    def _check_by(self, state: MetricState) -> None:
        """Raise if `by` was set or removed after fit."""
        core = state.core
        if core.has_keys if self.by is None else core.has_past and not core.has_keys:
            raise InputError("by cannot be set or removed after fit: fit again, or give it the value that it had")

    def _row_keys(self, X: Any, keys: Any) -> Ints:
        """Return the key of each row; none without `by`."""
        if self.by is None:
            if keys is not None:
                raise InputError("keys need a name: set by, the names of their columns, when the learner is created")
            return NO_KEYS
        if keys is not None:
            return hash_rows(list(np.asarray(keys).T) if np.ndim(keys) == 2 else [keys])
        return hash_rows([select_column(self, X, name) for name in key_columns(self.by)])

    def _check_parameters(self) -> None:
        thread_count(self.n_jobs)
        check_integer(self.random_state, "random_state", 0, MAX_SEED)
        if not isinstance(self.config, MetricConfig | None):
            raise InputError(f"config must be a MetricConfig, got {self.config!r}")
        if self.by is not None:
            key_columns(self.by)
        self._size(1).checked()

    def _size(self, d: int) -> LearnerSize:
        labels, config = past_labels(self.past), self.config or MetricConfig()
        max_keys = 0 if labels == 0 or self.by is None else config.max_keys
        max_centers = default_max_centers(d) if self.max_centers is None else self.max_centers
        return LearnerSize(self.views, self.neighbors, max_centers, labels, max_keys)

    def _initial_state(self, d: int) -> MetricState:
        self._check_parameters()
        state = initial_state(d, self._size(d), self.random_state, self.config or MetricConfig())
        if self._columns:
            set_columns(state, _column_numbers(self._columns))
        return state

    def _dimension(self, state: MetricState) -> int:
        return state.core.dimension

    def _clock(self, state: MetricState) -> int:
        return state.clock

    def _predict(self, state: MetricState, X: ArrayLike) -> Floats:
        return predict(state, X, self.n_jobs)

    def _predict_bounds(self, state: MetricState, X: ArrayLike, positions: Floats) -> Predictions:
        return predict_with_intervals(state, X, self.n_jobs).select(positions)

    def _run_rounds(
        self,
        state: MetricState,
        X: ArrayLike,
        y: ArrayLike,
        keys: Ints = NO_KEYS,
        workers: Workers | None = None,
        *,
        positions: Floats = NO_POSITIONS,
    ) -> Predictions:
        self._check_by(state)
        rows = check_all(state.core, X, y, keys)
        predictions = empty_predictions(len(rows.y), with_intervals=len(positions) > 0)
        if workers is None:
            learner.run_rounds(state, rows, predictions, check_n_jobs(self.n_jobs))
        else:
            learn_in_shards(state, rows.X, rows.y, predictions, workers, self.n_jobs, rows.keys)
        return predictions.select(positions) if len(positions) else predictions

    def _to_archive(self, state: MetricState) -> Archive:
        return serialization.to_archive(state)

    def _from_archive(self, archive: Archive, d: int) -> MetricState:
        return serialization.from_archive(archive, d)

    def _add_features(self, state: MetricState, scales: Floats) -> None:
        add_features(state, scales)

    @property
    def metric_(self) -> Metric:
        """Current metric on standardized features, of spectral norm 1."""
        return self._fitted_state.phase.plain.metrics[0]

    @property
    def eigenvalues_(self) -> Floats:
        """Eigenvalues of the metric in descending order; the largest is 1."""
        return self.metric_.eigenvalues

    @property
    def directions_(self) -> Floats:
        """Directions of the metric on features in their own units, one per row, in the order of `eigenvalues_`."""
        phase = self._fitted_state.phase  # read once: another thread may replace it
        return np.asarray(phase.plain.metrics[0].eigenvectors.T / phase.core.feature_scales())

    @property
    def effective_rank_(self) -> int:
        """Effective rank of the metric at the last round."""
        return int(effective_rank(self.eigenvalues_, max(1, self._fitted_state.clock)))

    @property
    def feature_importances_(self) -> Floats:
        """Share of each feature in the rise of the squared error if its values come from random earlier rows.

        The shares of the features that were measured add up to 1; the others have 0, and a standard error of NaN.
        Features that only grow, such as row numbers, have the share 0, too, unless all do; `importances_` reports them
        as time. See `docs/importance.md`.
        """
        return self._feature_shares().values

    @property
    def feature_importances_std_(self) -> Floats:
        """Standard error of each of `feature_importances_`; NaN for a feature that was not measured."""
        return self._feature_shares().stds

    @property
    def importances_(self) -> Importances | None:
        """What drives the predictions: columns, correlated columns, and time apart from features.

        None if `config` switches the measurement off.
        """
        state = self._fitted_state
        return summarize_importances(state, self._column_names(state))

    def partial_dependence(self, feature: str | int, values: ArrayLike | None = None) -> Effect:
        """Return how the prediction moves with a feature, averaged over recent rows, with their spread.

        Predictions are those of `predict`, from the features alone.

        Parameters
        ----------
        feature : str or int
            Name or number of the feature.
        values : array-like of shape (n,), optional
            Values of the feature. By default, quantiles of recent rows.

        Returns
        -------
        effect : Effect

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> MetricRegressor().fit(X, X[:, 0] - X[:, 1]).partial_dependence(1).describe()
        'falls with it'
        """
        state = self._fitted_state
        if isinstance(feature, str):
            names = [str(name) for name in getattr(self, "feature_names_in_", [])]
            if feature not in names:
                raise InputError(
                    f"feature must be the name of a feature, {', '.join(names) or 'none'}, got {feature!r}"
                )
            feature = names.index(feature)
        place, rows = check_integer(feature, "feature", 0, state.core.dimension - 1), recent_rows(state)
        grid = quantile_grid(rows[:, place]) if values is None else checked_grid(values)
        return partial_dependence(state, EffectGrid("", [place], grid[:, None], grid), rows)

    def set_columns(self, columns: Sequence[str]) -> Self:
        """Name the column of a table that each feature comes from. The features of a column are measured together.

        Parameters
        ----------
        columns : sequence of str
            Name of the column of each feature. They may be set before the first row, and again after `add_features`.
            They are saved with the estimator.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        ShapeError
            If the number of names is not that of the features. Before the first row, `fit` raises it.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(400, 3))
        >>> learner = MetricRegressor().set_columns(["a", "b", "b"]).fit(X, X[:, 1] - X[:, 2])
        >>> [each.columns for each in learner.importances_.columns]
        [('b',), ('a',)]
        """
        names = tuple(map(str, columns))
        numbers = _column_numbers(names)
        with self._turn:
            if "_fitted" in self.__dict__ and self._fitted_state.phase.layout.columns != numbers:
                set_columns(self._fitted_state, numbers)
            self._columns = names
        return self

    def _column_names(self, state: MetricState) -> list[str]:
        """Return the name of each column."""
        names = self._columns
        if names and _column_numbers(names) == state.phase.layout.columns:
            return list(dict.fromkeys(names))
        if state.phase.layout.columns == tuple(range(state.core.dimension)):
            return [str(name) for name in getattr(self, "feature_names_in_", range(state.core.dimension))]
        return [f"column {k}" for k in range(max(state.phase.layout.columns) + 1)]

    def _feature_shares(self) -> Shares:
        shares = summarize_features(self._fitted_state.phase)
        if shares is None:
            raise AttributeError(
                "feature_importances_ is not measured: create the learner with importance=True in config"
            )
        return shares

    @property
    def expert_names_(self) -> list[str]:
        """Names of the experts."""
        return expert_names(len(self._fitted_state.phase.plain.metrics))

    @property
    def expert_weights_(self) -> Floats:
        """Weight of each expert in the aggregation, in the order of `expert_names_`; they add up to 1."""
        return self._fitted_state.core.expert_weights()

    @property
    def past_errors_(self) -> "PastErrors | None":
        """Squared errors of `progressive` without and with the past; None if the learner does not use the past."""
        core = self._fitted_state.core
        return PastErrors(*core.past_errors()) if core.has_past else None

    @property
    def key_name_(self) -> str | None:
        """Name of the keys, of all columns `by`; None without keys."""
        return None if self.by is None else " and ".join(map(str, key_columns(self.by)))

    @property
    def past_gain_(self) -> float:
        """Fraction of the squared error that the past has saved so far: 0 if it was of no use.

        The errors are those of `progressive`, compared with predictions from the features alone.
        """
        errors = self.past_errors_
        return 0.0 if errors is None or errors.without_past == 0 else 1 - errors.with_past / errors.without_past

    @property
    def past_metric_(self) -> Metric | None:
        """Metric of the learner that sees the past, on standardized features; None without the past."""
        selected = self._fitted_state.phase.past
        return None if selected is None else selected.metrics[0]

    @property
    def past_feature_weights_(self) -> Floats | None:
        """Diagonal of `past_metric_`, divided by its sum, for `past_feature_names_`; None without the past."""
        metric = self.past_metric_
        return None if metric is None else normalized_weights(metric.feature_weights)

    @property
    def past_directions_(self) -> Floats | None:
        """Directions of `past_metric_` on features in their own units, one per row; None without the past."""
        phase = self._fitted_state.phase  # read once: another thread may replace it
        if phase.past is None:
            return None
        return np.asarray(phase.past.metrics[0].eigenvectors.T / phase.core.past_feature_scales())

    @property
    def past_feature_names_(self) -> list[str]:
        """Names of the features that the learner with the past sees: of the past first, then of the rows."""
        metric = self.past_metric_
        if metric is None:
            return []
        core = self._fitted_state.core
        own = past_feature_names(core.past_labels, (self.key_name_ or "key") if core.has_keys else None)
        rows = getattr(self, "feature_names_in_", [f"feature {k}" for k in range(self.n_features_in_)])
        return [*own, *map(str, rows)][: metric.dimension]

    @property
    def n_centers_(self) -> int:
        """Number of centers."""
        return self._fitted_state.n_centers

    @property
    def max_centers_(self) -> int:
        """Value of `max_centers` in use, also if the parameter is None."""
        return self._fitted_state.core.settings.max_centers

    def history(self) -> MetricHistory:
        """Return what had been learned by the end of each phase.

        Returns
        -------
        history : MetricHistory

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> history = MetricRegressor().fit(X, X[:, 0]).history()
        >>> bool(history.end[-1] <= 300)
        True
        """
        return summarize_phases(self._fitted_state.phase)


def _column_numbers(names: Sequence[str]) -> tuple[int, ...]:
    """Return the number of the column of each feature, in the order of their first features."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return tuple(numbers[name] for name in names)
