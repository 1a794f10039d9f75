"""A slow, literal `MetricRegressor` in plain Python and NumPy.

Searches are brute force, kriging solves the ordinary kriging equations, regressions keep Gram matrices instead of their
inverses, and candidates for the metric are scored in double precision.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.subspace import leading_subspace
from tests.reference.aggregation import BernsteinAggregation, LeastSquares
from tests.reference.algorithm_1 import Algorithm1, effective_rank
from tests.reference.conformal import ReferenceIntervals
from tests.reference.eviction import evicted_centers
from tests.reference.feature_views import FeatureView, Floats, Ints, RunningStatistics, standard_deviations
from tests.reference.local_experts import Neighborhood, local_predictions, nearest_neighbors
from tests.reference.metric_selection import Score, Validation, candidates, score_candidates

MIN_PHASE_ROUNDS = 4
MAX_FIT_DIMENSION = 40  # coordinates in local fits
MIN_CENTERS = 8  # centers, for a choice of the metric
KNOTS = 256
REFIT_CENTERS, REFIT_ROUNDS = 1000, 100  # up to which regressions are fitted again at the end of a phase
MAX_RATIO = 1e3  # of new to old scales, by which gradients and directions are converted
MIN_EIGENVALUE = 1e-8
MAX_VARIANCE_GROWTH = 1e4  # of labels, after which the stack restarts
TIE = 2e-4
"""Difference of log errors below which scores are tied, because the learner scores in single precision."""


@dataclass
class Centers:
    """Centers. Equal rows share one. `coordinates` has an array for each view."""

    rows: Floats
    label_sums: Floats
    label_counts: Floats
    round_sums: Floats
    error_sums: Floats  # of predictions, in units of the mean error of their time
    coordinates: list[Floats]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def labels(self) -> Floats:
        return np.asarray(self.label_sums / self.label_counts)

    def absorb(self, at: int, row: Floats, label: float, error: float, clock: int) -> None:
        self.label_sums[at] += label
        self.error_sums[at] += error
        self.label_counts[at] += 1
        self.round_sums[at] += clock
        self.rows[at] += (row - self.rows[at]) / self.label_counts[at]

    def append(self, row: Floats, label: float, error: float, clock: int, queries: list[Floats]) -> None:
        self.rows = np.vstack([self.rows, row])
        self.label_sums = np.append(self.label_sums, label)
        self.label_counts = np.append(self.label_counts, 1.0)
        self.round_sums = np.append(self.round_sums, float(clock))
        self.error_sums = np.append(self.error_sums, error)
        self.coordinates = [np.vstack([own, q]) for own, q in zip(self.coordinates, queries, strict=True)]


class RowPrediction(NamedTuple):
    """A transformed row, and the predictions of experts, aggregation and stack for it."""

    row: Floats  # outliers clipped
    standard: Floats  # units of the first view, and the constant 1
    queries: list[Floats]  # whitened, for each view
    nearest: tuple[int, float]  # center in the first view, and its squared distance
    slopes: list[Floats]  # of the first local fit in each view
    experts: Floats
    mixture: float
    pair: Floats  # the mixture, and the stack
    prediction: float
    relative_scale: float  # error to expect, in units of the mean error


Published = tuple[float, list[float], float]
"""A prediction, its intervals (lower ends of all coverages, then upper ends), and the relative scale of its row."""


class Phase(NamedTuple):
    """Summary of a finished phase."""

    end: int
    n_centers: int
    effective_rank: int
    eigenvalues: Floats
    metric: Floats
    choices: tuple[str, ...]
    expert_weights: Floats
    finalist_gap: float  # the least over views


class ReferenceMetricLearner:
    """Reference for `ellipack.MetricRegressor`.

    Parameters
    ----------
    d : int
        Number of features.
    neighbors, max_centers, views, random_state, config
        Parameters of `MetricRegressor`.
    choices : sequence of tuples of str, default ()
        Names of the candidates that the tested learner selected. The reference scores all candidates itself, and uses
        these names only if its own scores are tied.
    seeds : tuple of int, default ()
        Seeds of random draws, in addition to `random_state` and the number of the phase.

    Attributes
    ----------
    selection_config : MetricConfig
        Settings by which the next metric is selected, `config` at first.
    """

    def __init__(
        self,
        d: int,
        *,
        neighbors: int = 32,
        max_centers: int = 100_000,
        views: int = 1,
        random_state: int = 0,
        config: MetricConfig | None = None,
        choices: Sequence[tuple[str, ...]] = (),
        seeds: tuple[int, ...] = (),
    ) -> None:
        self.seeds, self.selection_config = seeds, config or MetricConfig()
        self.d, self.neighbors, self.max_centers = d, neighbors, max_centers
        self.random_state, self.config, self.learner_choices = random_state, config or MetricConfig(), choices
        self.clock, self.phase_end = 0, MIN_PHASE_ROUNDS
        self.labels, self.features = RunningStatistics(), [RunningStatistics() for _ in range(d)]
        self.views = [FeatureView.initial(d) for _ in range(views)]
        self.past_scores: list[dict[str, Score]] = [{} for _ in range(views)]
        empty = np.zeros(0)
        rank = self.views[0].directions.shape[1]
        self.intervals = ReferenceIntervals()
        self.centers = Centers(np.zeros((0, d)), empty, empty, empty, empty, [np.zeros((0, rank))] * views)
        self.packing, self.coordinate_scale = Algorithm1(np.ones(rank), self._packing_size()), 1.0
        self.ridge = LeastSquares(np.eye(d + 1), np.zeros(d + 1))
        self.forgetting = LeastSquares(np.eye(d + 1), np.zeros(d + 1))
        experts = 4 + 11 * views
        self.aggregation = BernsteinAggregation(np.full(experts, 1 / experts))
        self.stack: LeastSquares | None = None  # starts when the variance of the labels is positive
        self.top = BernsteinAggregation(np.full(2, 0.5))
        self.metric = self.views[0].directions @ self.views[0].directions.T
        self.phases: list[Phase] = []
        self.evictions = 0
        self.finalist_gaps: list[float] = []  # of this end of a phase, for each view
        self._last: tuple[tuple[int, bytes], RowPrediction] | None = None

    def predict(self, row: Floats) -> float:
        """Return the prediction for a row, 0 before the first round."""
        return self._predict_row(row).prediction if self.labels.count else 0.0

    def gradient(self, row: Floats) -> Floats:
        """Return the gradient of the local fit at a row in the first view."""
        view = self.views[0]
        return view.gradient(self._predict_row(row).slopes[0], self.ridge.coefficients[:-1]) / view.scale

    def relative_scale(self, row: Floats) -> float:
        """Return the error to expect, in units of the mean error."""
        return self._predict_row(row).relative_scale if self.labels.count else 1.0

    def publish(self, row: Floats) -> Published:
        """Return the prediction for a row and its intervals."""
        prediction, relative_scale = self.predict(row), self.relative_scale(row)
        return prediction, self.intervals.around(prediction, relative_scale), relative_scale

    def learn(self, row: Floats, label: float, published: Published | None = None) -> Published:
        """Run a round and return its prediction and intervals, which do not use the label."""
        row_prediction = self._predict_row(row) if self.labels.count else None
        published = published or self.publish(row)
        self.clock += 1
        self.intervals.learn_label(label, published[1])
        self.intervals.learn_misses(label, published[1])
        if self.labels.is_outlier(label):
            self.labels.outliers += 1
        else:
            self._learn_label(row, label, row_prediction, published)
        self._finish_round()
        return published

    def store(self, row: Floats, label: float, published: Published) -> None:
        """Run a round that only adds the row to the centers."""
        self.clock += 1
        self.intervals.learn_label(label, published[1])
        self.intervals.learn_misses(label, published[1])
        if self.labels.is_outlier(label):
            self.labels.outliers += 1
        else:
            clipped = self._clipped(row)
            queries = [view.whiten(clipped[None])[0] for view in self.views]
            error = self.intervals.learn_error(label - published[0], published[2])
            self.centers.append(clipped, label, error, self.clock, queries)
            self._learn_statistics(row, clipped, label)
        self._finish_round()

    # ---------------------------------------------------------------------------------------------- prediction

    def _clipped(self, row: Floats) -> Floats:
        return np.array([known.clip_outlier(float(value)) for known, value in zip(self.features, row, strict=True)])

    def within_labels(self, value: float) -> float:
        """Return a prediction, clipped to the range of the labels plus a margin."""
        slack = self.config.label_margin * (self.labels.high - self.labels.low)
        return min(max(value, self.labels.low - slack), self.labels.high + slack)

    def _predict_row(self, row: Floats) -> RowPrediction:
        if self._last is None or self._last[0] != (self.clock, row.tobytes()):  # rows are asked for several times
            self._last = (self.clock, row.tobytes()), self._compute_prediction(row)
        return self._last[1]

    def _compute_prediction(self, row: Floats) -> RowPrediction:
        clipped = self._clipped(row)
        standard = np.append(self.views[0].standardize(clipped[None])[0], 1.0)
        queries = [view.whiten(clipped[None])[0] for view in self.views]
        predictions = [
            self.labels.mean,
            float(self.ridge.coefficients @ standard),
            self.packing.predict(queries[0] / self.coordinate_scale, otherwise=self.labels.mean),
            float(self.forgetting.coefficients @ standard),
        ]
        slopes, nearest = [], (0, math.inf)
        for v, query in enumerate(queries):
            near = self._neighborhood(v, query, standard)
            local, slope = local_predictions(near, self._fitted(v), self.neighbors)
            predictions.extend(local + self.centers.labels[near.positions[0]])
            slopes.append(slope)
            if v == 0:
                nearest = int(near.positions[0]), float(near.squared[0])
                relative_scale = self._relative_scale(near)
        experts = np.array([self.within_labels(value) for value in predictions])
        mixture = float(self.aggregation.weights() @ experts)
        correction = float(self.stack.coefficients @ (experts - mixture)) if self.stack else 0.0
        pair = np.array([mixture, self.within_labels(mixture + correction)])
        prediction = float(self.top.weights() @ pair)
        return RowPrediction(
            clipped, standard, queries, nearest, slopes, experts, mixture, pair, prediction, relative_scale
        )

    def _relative_scale(self, near: Neighborhood) -> float:
        """Return the mean of the errors at the neighbors, of which two have the mean error."""
        positions, squared = near.positions[: self.neighbors], near.squared[: self.neighbors]
        farthest = squared.max()
        weights = 1 - 0.9 * squared / farthest if farthest > 0 else np.ones(len(squared))
        errors = self.centers.error_sums[positions] / self.centers.label_counts[positions]
        return float((weights @ errors + 2) / (weights.sum() + 2))

    def _neighborhood(self, v: int, query: Floats, standard: Floats) -> Neighborhood:
        """Return the neighbors for kriging and local fits."""
        points, count = self.centers.coordinates[v], max(self.neighbors, 2 * self._fitted(v) + 10)
        near, squared = nearest_neighbors(points, query, count)
        counts, labels = self.centers.label_counts[near], self.centers.labels[near]
        gaps = self.views[0].standardize(self.centers.rows[near]) - standard[:-1]
        return Neighborhood(
            positions=near,
            squared=squared,
            offsets=points[near] - query,
            labels=labels - labels[0],
            counts=counts,
            trend=gaps @ self.ridge.coefficients[:-1],
            forgetting_trend=gaps @ self.forgetting.coefficients[:-1],
            ages=1 - self.centers.round_sums[near] / counts / (self.clock + 1),
        )

    # ------------------------------------------------------------------------------------------------ learning

    def _learn_label(
        self, row: Floats, label: float, row_prediction: RowPrediction | None, published: Published
    ) -> None:
        error = self.intervals.learn_error(label - published[0], published[2])
        if row_prediction is None:
            clipped, standard = row, np.append(self.views[0].standardize(row[None])[0], 1.0)
            queries, nearest = [view.whiten(row[None])[0] for view in self.views], (0, math.inf)
        else:
            clipped, standard, queries, nearest = row_prediction[:4]
            self._learn_aggregation(row_prediction, label)
            for view, slope in zip(self.views, row_prediction.slopes, strict=True):
                view.add_gradient(slope, self.ridge.coefficients[:-1])
        self._learn_regressions(standard, label)
        self.packing.learn(queries[0] / self.coordinate_scale, label)
        if nearest[1] == 0.0:
            self.centers.absorb(nearest[0], clipped, label, error, self.clock)
        else:
            self.centers.append(clipped, label, error, self.clock, queries)
        self._learn_statistics(row, clipped, label)

    def _learn_statistics(self, row: Floats, clipped: Floats, label: float) -> None:
        self.labels.add(label)
        for known, value, given in zip(self.features, clipped, row, strict=True):
            known.add(float(value), clipped=bool(value != given))

    def _learn_aggregation(self, row_prediction: RowPrediction, label: float) -> None:
        self.top.learn(row_prediction.pair, row_prediction.prediction, label)
        self.aggregation.learn(row_prediction.experts, row_prediction.mixture, label)
        if self.stack:
            self.stack.learn(row_prediction.experts - row_prediction.mixture, label - row_prediction.mixture)

    def _learn_regressions(self, standard: Floats, label: float) -> None:
        """Update both regressions. Every fourth round one forgets, with a span of an eighth of all rounds."""
        self.ridge.learn(standard, label)
        if self.labels.count % 4 == 0:
            span = max(self.labels.count / 8, 4 * (self._fitted(0) + 1))
            self.forgetting.forget(1 - 4 / span)
        self.forgetting.learn(standard, label)

    def _finish_round(self) -> None:
        if len(self.centers) == self.max_centers:
            self._evict()
        if self.clock == self.phase_end:
            self._end_phase()

    def _evict(self) -> None:
        self.evictions += 1
        centers = self.centers
        kept = np.setdiff1d(np.arange(len(centers)), evicted_centers(centers.coordinates[0], centers.labels))
        rows, label_sums = centers.rows[kept], centers.label_sums[kept]
        coordinates = [view.whiten(rows) for view in self.views]
        self.centers = Centers(
            rows,
            label_sums,
            centers.label_counts[kept],
            centers.round_sums[kept],
            centers.error_sums[kept],
            coordinates,
        )

    # ------------------------------------------------------------------------------------------ end of a phase

    def _end_phase(self) -> None:
        rng = np.random.default_rng([self.random_state, len(self.phases), *self.seeds])
        pool = _draw(rng, len(self.centers), self.selection_config.pool)
        old, self.finalist_gaps, names, spectra = self.views[0], [], [], []
        for v in range(len(self.views)):
            new_view = self._rescaled(v, pool)
            name, basis, directions = self._chosen(v, new_view, pool, rng)
            vectors, lengths, _ = np.linalg.svd(directions)
            eigenvalues = np.full(len(vectors), MIN_EIGENVALUE)
            eigenvalues[: len(lengths)] = np.maximum((lengths / lengths[0]) ** 2, MIN_EIGENVALUE)
            new_view.directions = basis @ vectors * np.sqrt(eigenvalues)
            self.views[v] = new_view
            self.centers.coordinates[v] = new_view.whiten(self.centers.rows)
            names.append(name)
            spectra.append(eigenvalues)
        self._record_phase(tuple(names), spectra[0])
        self._restart_experts(old, spectra[0])
        self.phase_end = self.clock + max(MIN_PHASE_ROUNDS, int((self.config.growth - 1) * self.clock))

    def _record_phase(self, names: tuple[str, ...], eigenvalues: Floats) -> None:
        self.metric = self.views[0].directions @ self.views[0].directions.T
        rank, weights = effective_rank(eigenvalues, self.clock), self.aggregation.weights()
        gap = min(self.finalist_gaps, default=math.inf)
        padded = np.append(eigenvalues, np.zeros(self.d - len(eigenvalues)))
        self.phases.append(Phase(self.clock, len(self.centers), rank, padded, self.metric, names, weights, gap))

    def _restart_experts(self, old: FeatureView, eigenvalues: Floats) -> None:
        """Restart Algorithm 1 and the aggregations, and convert or refit the regressions to the new units."""
        farthest = float(np.sqrt((self.centers.coordinates[0] ** 2).sum(axis=1)).max())
        self.coordinate_scale = farthest if farthest > 0 else 1.0
        self.packing = Algorithm1(eigenvalues, self._packing_size())
        conversion, refitted = _old_units_from_new(old, self.views[0]), self._refitted()
        self.ridge = refitted if len(self.centers) <= REFIT_CENTERS else self.ridge.converted(conversion)
        self.forgetting = refitted if self.clock <= REFIT_ROUNDS else self.forgetting.converted(conversion)
        if self.ridge is self.forgetting:
            self.forgetting = LeastSquares(refitted.gram, refitted.moments)
        self.aggregation, self.top = self.aggregation.restarted(), self.top.restarted()
        self._start_stack()
        for known in (self.labels, *self.features):
            known.outliers /= 2

    def _fitted(self, v: int) -> int:
        """Return the number of coordinates of local fits."""
        return min(int(self.views[v].directions.shape[1]), MAX_FIT_DIMENSION)

    def _packing_size(self) -> int:
        """Return the largest number of centers of Algorithm 1."""
        return max(64, self.max_centers // 4)

    def _rescaled(self, v: int, pool: Ints) -> FeatureView:
        """Return a view with new scales: of the features in the first, of their ranks among the pool in the second."""
        view = self.views[v]
        if v == 0:
            sizes = np.array([max(abs(known.low), abs(known.high)) for known in self.features])
            variances = np.array([known.variance for known in self.features])
            shift, scale = np.array([known.mean for known in self.features]), standard_deviations(variances, sizes)
            return FeatureView(None, shift, scale, view.directions, np.zeros((self.d, self.d)))
        rows = self.centers.rows[pool]
        knots = np.quantile(rows, np.linspace(0, 1, min(KNOTS, max(2, len(rows)))), axis=0)
        new_view = FeatureView(knots, view.shift, view.scale, view.directions, np.zeros((self.d, self.d)))
        ranks = new_view.values_or_ranks(rows)
        new_view.shift, new_view.scale = ranks.mean(axis=0), standard_deviations(ranks.var(axis=0), np.ones(self.d))
        return new_view

    def _chosen(
        self, v: int, new_view: FeatureView, pool: Ints, rng: np.random.Generator
    ) -> tuple[str, Floats, Floats]:
        """Return the candidate with the lowest score: its name, a basis of the subspace, directions in that basis.

        Gradients and directions are converted from the old units first. The subspace is computed by the tested code,
        which has its own tests.
        """
        view = self.views[v]
        ratio = np.minimum(new_view.scale / view.scale, MAX_RATIO)
        gop, current = view.gradient_sum * np.outer(ratio, ratio), np.diag(ratio) @ view.directions
        rows, labels = new_view.standardize(self.centers.rows[pool]), self.centers.labels[pool]
        basis = leading_subspace(gop, rows)
        current = basis.T @ current
        if len(pool) < MIN_CENTERS:
            return "current", basis, current
        most = self.selection_config.validation_points
        scored = max(min(60, most), min(most, len(pool) // 8))
        left_out = _draw(rng, len(pool), scored)
        diagonal = basis.T @ np.diag(np.diag(gop)) @ basis
        named = candidates(basis.T @ gop @ basis, diagonal, current, self.config)
        validation = Validation(rows @ basis, labels, left_out, self.neighbors)
        selection = score_candidates(named, validation, self.past_scores[v])
        self.past_scores[v] = selection.past
        self.finalist_gaps.append(selection.finalist_gap)
        name = self._best(v, selection.scores, named)
        return name, basis, named[name]

    def _best(self, v: int, scores: dict[str, float], named: dict[str, Floats]) -> str:
        """Return the name with the lowest score, or the choice of the learner if it is tied or the same metric."""
        best = min(scores, key=lambda name: scores[name])
        if len(self.phases) >= len(self.learner_choices):
            return best
        learner_choice = self.learner_choices[len(self.phases)][v]
        gap = scores.get(learner_choice, math.inf) - scores[best]
        if gap > TIE and not _same_metric(named[learner_choice], named[best]):
            phase = len(self.phases) + 1
            raise AssertionError(
                f"phase {phase}, view {v + 1}: {learner_choice!r} was chosen, {best!r} is better by {gap}"
            )
        return learner_choice

    def _refitted(self) -> LeastSquares:
        """Return the ridge regression of the labels of the centers, with a weak prior for the intercept."""
        standard = self.views[0].standardize(self.centers.rows)
        features = np.column_stack([standard, np.ones(len(standard))])
        prior = np.diag([*np.ones(self.d), 1e-6])
        gram = features.T @ np.diag(self.centers.label_counts) @ features + prior
        return LeastSquares(gram, features.T @ self.centers.label_sums)

    def _start_stack(self) -> None:
        """Start the stack once labels vary, and restart it when their variance has grown much."""
        if not self.labels.variance > 0:
            return
        prior = max(self.config.stack_prior * self.labels.variance, 1e-150)
        if self.stack is None or self.stack.variances.max() * prior >= MAX_VARIANCE_GROWTH:
            experts = len(self.aggregation.priors)
            self.stack = LeastSquares(prior * np.eye(experts), np.zeros(experts))


def _draw(rng: np.random.Generator, size: int, most: int) -> Ints:
    """Return all positions, or a random sample of them without replacement, in ascending order."""
    return np.arange(size) if size <= most else np.sort(rng.choice(size, most, replace=False))


def _same_metric(left: Floats, right: Floats) -> bool:
    """Return whether two sets of directions give the same metric up to a factor."""
    first, second = (directions @ directions.T for directions in (left, right))
    return np.allclose(first / np.trace(first), second / np.trace(second), rtol=0, atol=1e-9)


def _old_units_from_new(old: FeatureView, new: FeatureView) -> Floats:
    """Return the matrix that converts rows from the new units to the old ones, with a constant 1 as last entry."""
    d = len(new.scale)
    matrix = np.zeros((d + 1, d + 1))
    matrix[:d, :d] = np.diag(new.scale / old.scale)
    matrix[:d, d] = (new.shift - old.shift) / old.scale
    matrix[d, d] = 1.0
    return matrix
