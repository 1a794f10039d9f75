"""`MetricRegressor` with River's methods."""

import math
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from river.conf import Interval
from river.utils.pandas import import_pandas

from ellipack._core import MetricCore
from ellipack.errors import InputError
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.importance_estimates import Shares
from ellipack.learners.metric.importances import Importances, summarize_features, summarize_importances
from ellipack.learners.metric.initial_state import MAX_SEED, LearnerSize, default_max_centers, initial_state
from ellipack.learners.metric.past import past_feature_names, past_labels
from ellipack.learners.row_learners import MetricRowLearner
from ellipack.metric import Metric
from ellipack.river.base import RiverRegressor, check_unchanged, effective_rank_at
from ellipack.river.features import check_dictionary
from ellipack.river.intervals import check_single_coverage, to_interval
from ellipack.river.pending import PendingPrediction
from ellipack.row_keys import hash_row
from ellipack.validation import MAX_ABS_LABEL, MAX_ABS_VALUE, Floats, check_integer

if TYPE_CHECKING:
    import pandas as pd


class MetricRegressor(RiverRegressor[MetricRowLearner]):
    """Regression on a stream that learns its own metric while it predicts.

    This is `ellipack.MetricRegressor` with River's methods. It accepts any numeric features and labels, without scaling
    or tuning.

    `predict_one` predicts the next row: it uses the features and, unless `past` is False, the labels so far. If labels
    come late, a row is learned with the past that was known when it was predicted; rows are recognized by their
    features. `predict_many` predicts each row as if it were the next one.

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
        Number of last labels that predictions use, at most 8. True stands for 3, False for none.
    by : hashable, list of hashables or None, default None
        Names of the features that are the key of a row, such as a store or a device; a tuple is a list of names, too.
        Predictions then also use the past of the same key. Keys may have any values; numbers stay features.
    seed : int, default 0
        Random seed of the draw of centers that score candidates for the metric.
    config : MetricConfig, optional
        Settings that few users change.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> model = MetricRegressor()
    >>> score = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> score.get() < 0.5
    True
    """

    _largest_feature, _largest_label = MAX_ABS_VALUE, MAX_ABS_LABEL

    def __init__(
        self,
        max_centers: int | None = None,
        neighbors: int = 32,
        views: int = 1,
        past: bool | int = True,
        by: Hashable | list[Hashable] | None = None,
        seed: int = 0,
        config: MetricConfig | None = None,
    ) -> None:
        super().__init__()
        self.max_centers = max_centers
        self.neighbors = neighbors
        self.views = views
        self.past = past
        self.by = by
        self.seed = seed
        self.config = config

    def _check_parameters(self) -> None:
        check_integer(self.seed, "seed", 0, MAX_SEED)
        if not isinstance(self.config, MetricConfig | None):
            raise InputError(f"config must be a MetricConfig, got {self.config!r}")
        size = self._size(1).checked()
        if self._learner is not None:
            core = self._learner.state.core
            check_unchanged("past", size.past_labels, core.past_labels)
            self._check_by(core)

    def _check_by(self, core: MetricCore) -> None:
        """Raise if `by` was set or removed after the first row."""
        if core.has_keys if self.by is None else core.has_past and not core.has_keys:
            raise InputError("by cannot be set or removed after the first row: use a new model")

    def _size(self, d: int) -> LearnerSize:
        labels, config = past_labels(self.past), self.config or MetricConfig()
        max_keys = 0 if labels == 0 or self.by is None else config.max_keys
        max_centers = default_max_centers(d) if self.max_centers is None else self.max_centers
        return LearnerSize(self.views, self.neighbors, max_centers, labels, max_keys)

    def _new_learner(self, d: int) -> MetricRowLearner:
        self._check_parameters()
        return MetricRowLearner(initial_state(d, self._size(d), self.seed, self.config or MetricConfig()))

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Predict the label of the next row.

        Parameters
        ----------
        x : dict
            Features by name. Values are finite numbers; those of keys may be text.

        Returns
        -------
        prediction : float
            0 before the first row was learned.
        """
        features, key = self._split_key(x)
        learner, row = self._learner_and_row(features)
        if learner is None:
            learner = self._new_learner(len(row))  # to see what is known before the first row
        clock = learner.state.clock
        prediction, past = learner.predict_next(row, key)
        if past:
            self._pending.add(features, key, PendingPrediction(clock, tuple(past)))
        return prediction

    def predict_interval_one(self, x: Mapping[Any, Any], coverage: float = 0.9) -> Interval:
        """Return an interval around the prediction of the next row; intervals contain a wanted fraction of the labels.

        It belongs to the prediction of `predict_one`. Its coverage is guaranteed on any stream, also if labels come
        late: a label is compared with the interval that was returned for its row. The theorem is in
        `ellipack.learners.intervals`.

        Parameters
        ----------
        x : dict
            Features by name.
        coverage : float, default 0.9
            Fraction of labels in the intervals, from 0.5 to 0.99.

        Returns
        -------
        interval : river.conf.Interval
            Infinite before the second row was learned.

        Examples
        --------
        >>> from river import datasets, stats
        >>> model, validity = MetricRegressor(), stats.Mean()
        >>> for x, y in datasets.TrumpApproval():
        ...     validity.update(y in model.predict_interval_one(x, coverage=0.8))
        ...     model.learn_one(x, y)
        >>> abs(validity.get() - 0.8) < 0.02
        True
        """
        wanted = check_single_coverage(coverage)
        features, key = self._split_key(x)
        learner, row = self._learner_and_row(features)
        if learner is None:
            learner = self._new_learner(len(row))
        clock = learner.state.clock
        _, past, bounds = learner.state.core.predict_next_interval_one(row, key)
        self._pending.add(features, key, PendingPrediction(clock, tuple(past), tuple(bounds)))
        return to_interval(np.array([bounds]), wanted)

    def learn_many(self, X: "pd.DataFrame", y: "pd.Series") -> None:
        """Learn from rows in their order, with the same results as one by one.

        Parameters
        ----------
        X : pandas.DataFrame
            One row per sample, one column per feature.
        y : pandas.Series
            Labels.
        """
        if self.by is None:
            super().learn_many(X, y)
        else:
            self._learn_one_by_one(X, y)

    def predict_many(self, X: "pd.DataFrame") -> "pd.Series":
        """Predict each row as if it were the next one.

        Parameters
        ----------
        X : pandas.DataFrame
            One row per sample, one column per feature.

        Returns
        -------
        predictions : pandas.Series
            Predictions with the index of `X`.
        """
        predictions = [self.predict_one(x) for x in self._checked_rows(X)]
        series: pd.Series = import_pandas().Series(predictions, index=X.index, dtype=np.float64)
        return series

    def _n_past_features(self) -> int:
        labels = past_labels(self.past)
        return len(past_feature_names(labels, None if self.by is None else "key")) if labels else 0

    def _key_names(self) -> list[Hashable]:
        if self.by is None:
            return []
        names = list(self.by) if isinstance(self.by, list | tuple) else [self.by]
        if not all(isinstance(name, Hashable) for name in names):
            raise InputError(f"by must be the name of a feature, or a list of names, got {self.by!r}")
        return names

    def _split_key(self, x: Mapping[Any, Any]) -> tuple[Mapping[Any, Any], int]:
        """Return the features of a row without keys that are no numbers, and its key."""
        names = self._key_names()
        if self._learner is not None:
            self._check_by(self._learner.state.core)
        if not names:
            return x, 0
        check_dictionary(x)
        missing = next((name for name in names if name not in x), None)
        if missing is not None:
            raise InputError(f"x must have the key {missing!r}, got {', '.join(map(repr, x))}")
        features = {name: value for name, value in x.items() if name not in names or _is_finite_number(value)}
        return features, hash_row([x[name] for name in names])

    def _checked_rows(self, X: "pd.DataFrame") -> list[dict[Any, Any]]:
        """Return the rows of a data frame as dictionaries, with all columns checked except the keys."""
        if not isinstance(X, import_pandas().DataFrame):
            self._fitted[0].frame_columns(X)  # raises
        self._fitted[0].frame_columns(X.drop(columns=[name for name in self._key_names() if name in X]))
        rows: list[dict[Any, Any]] = X.to_dict("records")
        return rows

    @property
    def metric_(self) -> Metric | None:
        """Metric on standardized features in the order of `feature_names`; None before the first row."""
        return None if self._learner is None else self._learner.state.phase.plain.metrics[0]

    @property
    def feature_importances(self) -> dict[Hashable, float]:
        """Share of each feature in the rise of the squared error if its values come from random earlier rows.

        Features that were not measured yet, and those that only grow, are left out.
        """
        return self._measured(lambda shares: shares.values)

    @property
    def feature_importances_std(self) -> dict[Hashable, float]:
        """Standard error of each of `feature_importances`."""
        return self._measured(lambda shares: shares.stds)

    @property
    def importances(self) -> Importances | None:
        """What drives the predictions, with time apart; None before the first row, or if it is not measured."""
        if self._learner is None:
            return None
        state = self._learner.state
        names = [str(name) for name in self.feature_names]
        return summarize_importances(state, [*names, *["no feature"] * (state.core.dimension - len(names))])

    def _measured(self, values: Callable[[Shares], Floats]) -> dict[Hashable, float]:
        shares = None if self._learner is None else summarize_features(self._learner.state.phase)
        if shares is None:
            return {}
        pairs = zip(self.feature_names, values(shares).tolist(), (~np.isnan(shares.stds)).tolist(), strict=False)
        return {name: value for name, value, known in pairs if known}

    @property
    def n_centers(self) -> int:
        """Number of centers."""
        return 0 if self._learner is None else self._learner.state.n_centers

    @property
    def effective_rank(self) -> int:
        """Effective rank of the metric at the last round; 0 before the first row."""
        return effective_rank_at(self.metric_, 0 if self._learner is None else self._learner.state.clock)


def _is_finite_number(value: Any) -> bool:
    try:
        return isinstance(value, int | float | np.number | np.bool_) and math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False
