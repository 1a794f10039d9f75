"""The practical learner, whole rounds and ends of phases, in plain Python and NumPy: slow, literal, nothing compiled.

Neighbors are found by brute force, kriging solves the ordinary kriging equations, regressions keep Gram matrices
instead of their inverses, and candidates for the metric are scored in double precision.
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
from tests.reference.eviction import evicted_centers
from tests.reference.feature_views import FeatureView, Floats, Ints, RunningStatistics, standard_deviations
from tests.reference.local_experts import Neighborhood, local_predictions, nearest_neighbors
from tests.reference.metric_selection import Score, Validation, candidates, score_candidates

MIN_PHASE_ROUNDS = 4
MOST_FITTED = 40  # coordinates in local fits
FEWEST_SCORED = 8  # centers, for a choice of the metric
KNOTS = 256
REFIT_CENTERS, REFIT_ROUNDS = 1000, 100  # up to which regressions are fitted anew at the end of a phase
LARGEST_RATIO = 1e3  # of new to old scales, by which gradients and directions are converted
LEAST_EIGENVALUE = 1e-8
OUTGROWN = 1e4  # times the variance of the labels when the stack started: it starts anew
TIE = 2e-4
"""Log errors within this of each other are a tie: the learner scores in single precision, the reference does not."""


@dataclass
class Centers:
    """Rows that are remembered; labels of equal rows are absorbed. `coordinates` has an array for each view."""

    rows: Floats
    label_sums: Floats
    label_counts: Floats
    round_sums: Floats
    coordinates: list[Floats]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def labels(self) -> Floats:
        return np.asarray(self.label_sums / self.label_counts)

    def absorb(self, at: int, row: Floats, label: float, clock: int) -> None:
        self.label_sums[at] += label
        self.label_counts[at] += 1
        self.round_sums[at] += clock
        self.rows[at] += (row - self.rows[at]) / self.label_counts[at]

    def append(self, row: Floats, label: float, clock: int, queries: list[Floats]) -> None:
        self.rows = np.vstack([self.rows, row])
        self.label_sums = np.append(self.label_sums, label)
        self.label_counts = np.append(self.label_counts, 1.0)
        self.round_sums = np.append(self.round_sums, float(clock))
        self.coordinates = [np.vstack([own, q]) for own, q in zip(self.coordinates, queries, strict=True)]


class Consultation(NamedTuple):
    """A row as the learner sees it, and what experts, aggregation and stack predict for it."""

    row: Floats  # outliers clipped
    standard: Floats  # units of the first view, and the constant 1
    queries: list[Floats]  # whitened, for each view
    nearest: tuple[int, float]  # center in the first view, and its squared distance
    slopes: list[Floats]  # of the first local fit in each view
    experts: Floats
    mixture: float
    pair: Floats  # the mixture, and the stack
    prediction: float


class Phase(NamedTuple):
    """What was known and chosen at the end of a phase."""

    end: int
    n_centers: int
    effective_rank: int
    eigenvalues: Floats
    metric: Floats
    choices: tuple[str, ...]
    expert_weights: Floats
    finalist_gap: float  # the least over views


class ReferenceMetricLearner:
    """What `ellipack.MetricRegressor` is held to.

    Parameters
    ----------
    d : int
        Number of features.
    neighbors, max_centers, views, random_state, config
        As `MetricRegressor` takes them.
    choices : sequence of tuples of str, default ()
        Names of the candidates that the learner chose at the ends of phases. The reference scores all by itself, and
        follows the learner only where its own scores are tied.
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
    ) -> None:
        self.d, self.neighbors, self.max_centers = d, neighbors, max_centers
        self.random_state, self.config, self.learner_choices = random_state, config or MetricConfig(), choices
        self.clock, self.phase_end = 0, MIN_PHASE_ROUNDS
        self.labels, self.features = RunningStatistics(), [RunningStatistics() for _ in range(d)]
        self.views = [FeatureView.initial(d) for _ in range(views)]
        self.past_scores: list[dict[str, Score]] = [{} for _ in range(views)]
        empty = np.zeros(0)
        rank = self.views[0].directions.shape[1]
        self.centers = Centers(np.zeros((0, d)), empty, empty, empty, [np.zeros((0, rank))] * views)
        self.packing, self.coordinate_scale = Algorithm1(np.ones(rank), self._packing_size()), 1.0
        self.ridge = LeastSquares(np.eye(d + 1), np.zeros(d + 1))
        self.forgetting = LeastSquares(np.eye(d + 1), np.zeros(d + 1))
        experts = 4 + 11 * views
        self.aggregation = BernsteinAggregation(np.full(experts, 1 / experts))
        self.stack: LeastSquares | None = None  # starts when labels have shown a variance
        self.top = BernsteinAggregation(np.full(2, 0.5))
        self.metric = self.views[0].directions @ self.views[0].directions.T
        self.phases: list[Phase] = []
        self.evictions = 0
        self.finalist_gaps: list[float] = []  # of this end of a phase, for each view

    def predict(self, row: Floats) -> float:
        """Return the prediction for a row, 0 before the first round; nothing changes."""
        return self._consult(row).prediction if self.labels.count else 0.0

    def learn(self, row: Floats, label: float) -> float:
        """Play a round and return its prediction, which was made before the label was seen."""
        consulted = self._consult(row) if self.labels.count else None
        self.clock += 1
        if self.labels.is_outlier(label):
            self.labels.outliers += 1
        else:
            self._learn_label(row, label, consulted)
        if len(self.centers) == self.max_centers:
            self._evict()
        if self.clock == self.phase_end:
            self._end_phase()
        return consulted.prediction if consulted else 0.0

    # ---------------------------------------------------------------------------------------------- predicting

    def _clipped(self, row: Floats) -> Floats:
        return np.array([known.clip_outlier(float(value)) for known, value in zip(self.features, row, strict=True)])

    def _within_labels(self, value: float) -> float:
        """Return a prediction, clipped to the range of the labels and 5 % beyond."""
        slack = self.config.label_margin * (self.labels.high - self.labels.low)
        return min(max(value, self.labels.low - slack), self.labels.high + slack)

    def _consult(self, row: Floats) -> Consultation:
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
        experts = np.array([self._within_labels(value) for value in predictions])
        mixture = float(self.aggregation.weights() @ experts)
        correction = float(self.stack.coefficients @ (experts - mixture)) if self.stack else 0.0
        pair = np.array([mixture, self._within_labels(mixture + correction)])
        prediction = float(self.top.weights() @ pair)
        return Consultation(clipped, standard, queries, nearest, slopes, experts, mixture, pair, prediction)

    def _neighborhood(self, v: int, query: Floats, standard: Floats) -> Neighborhood:
        """Return as many neighbors as kriging or the local fits take, if there are so many."""
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

    def _learn_label(self, row: Floats, label: float, consulted: Consultation | None) -> None:
        if consulted is None:
            clipped, standard = row, np.append(self.views[0].standardize(row[None])[0], 1.0)
            queries, nearest = [view.whiten(row[None])[0] for view in self.views], (0, math.inf)
        else:
            clipped, standard, queries, nearest = consulted[:4]
            self._learn_aggregation(consulted, label)
            for view, slope in zip(self.views, consulted.slopes, strict=True):
                view.add_gradient(slope, self.ridge.coefficients[:-1])
        self._learn_regressions(standard, label)
        self.packing.learn(queries[0] / self.coordinate_scale, label)
        if nearest[1] == 0.0:
            self.centers.absorb(nearest[0], clipped, label, self.clock)
        else:
            self.centers.append(clipped, label, self.clock, queries)
        self.labels.add(label)
        for known, value, given in zip(self.features, clipped, row, strict=True):
            known.add(float(value), clipped=bool(value != given))

    def _learn_aggregation(self, consulted: Consultation, label: float) -> None:
        self.top.learn(consulted.pair, consulted.prediction, label)
        self.aggregation.learn(consulted.experts, consulted.mixture, label)
        if self.stack:
            self.stack.learn(consulted.experts - consulted.mixture, label - consulted.mixture)

    def _learn_regressions(self, standard: Floats, label: float) -> None:
        """Let both regressions learn; every fourth round one forgets, at a rate of an eighth of all rounds."""
        self.ridge.learn(standard, label)
        if self.labels.count % 4 == 0:
            span = max(self.labels.count / 8, 4 * (self._fitted(0) + 1))
            self.forgetting.forget(1 - 4 / span)
        self.forgetting.learn(standard, label)

    def _evict(self) -> None:
        self.evictions += 1
        centers = self.centers
        kept = np.setdiff1d(np.arange(len(centers)), evicted_centers(centers.coordinates[0], centers.labels))
        rows, label_sums = centers.rows[kept], centers.label_sums[kept]
        coordinates = [view.whiten(rows) for view in self.views]
        self.centers = Centers(rows, label_sums, centers.label_counts[kept], centers.round_sums[kept], coordinates)

    # ------------------------------------------------------------------------------------------ end of a phase

    def _end_phase(self) -> None:
        rng = np.random.default_rng([self.random_state, len(self.phases)])
        pool = _draw(rng, len(self.centers), self.config.pool)
        old, self.finalist_gaps, names, spectra = self.views[0], [], [], []
        for v in range(len(self.views)):
            fresh = self._rescaled(v, pool)
            name, basis, directions = self._chosen(v, fresh, pool, rng)
            vectors, lengths, _ = np.linalg.svd(directions)
            eigenvalues = np.full(len(vectors), LEAST_EIGENVALUE)
            eigenvalues[: len(lengths)] = np.maximum((lengths / lengths[0]) ** 2, LEAST_EIGENVALUE)
            fresh.directions = basis @ vectors * np.sqrt(eigenvalues)
            self.views[v] = fresh
            self.centers.coordinates[v] = fresh.whiten(self.centers.rows)
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
        """Return how many coordinates local fits use."""
        return min(int(self.views[v].directions.shape[1]), MOST_FITTED)

    def _packing_size(self) -> int:
        """Return how many centers Algorithm 1 may have: a quarter of all."""
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
        fresh = FeatureView(knots, view.shift, view.scale, view.directions, np.zeros((self.d, self.d)))
        ranks = fresh.values_or_ranks(rows)
        fresh.shift, fresh.scale = ranks.mean(axis=0), standard_deviations(ranks.var(axis=0), np.ones(self.d))
        return fresh

    def _chosen(self, v: int, fresh: FeatureView, pool: Ints, rng: np.random.Generator) -> tuple[str, Floats, Floats]:
        """Return the candidate with the lowest score: its name, a basis of the subspace, directions in that basis.

        Gradients and directions are in the old units; they are converted first. The subspace is the learner's, which
        has tests of its own.
        """
        view = self.views[v]
        ratio = np.minimum(fresh.scale / view.scale, LARGEST_RATIO)
        gop, current = view.gradient_sum * np.outer(ratio, ratio), np.diag(ratio) @ view.directions
        rows, labels = fresh.standardize(self.centers.rows[pool]), self.centers.labels[pool]
        basis = leading_subspace(gop, rows)
        current = basis.T @ current
        if len(pool) < FEWEST_SCORED:
            return "current", basis, current
        most = self.config.validation_points
        scored = max(min(60, most), min(most, len(self.centers) // 8))
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
        """Return the name with the lowest score, or the learner's choice if that is tied or the same metric."""
        best = min(scores, key=lambda name: scores[name])
        if len(self.phases) >= len(self.learner_choices):
            return best
        theirs = self.learner_choices[len(self.phases)][v]
        behind = scores.get(theirs, math.inf) - scores[best]
        if behind > TIE and not _same_metric(named[theirs], named[best]):
            phase = len(self.phases) + 1
            raise AssertionError(f"phase {phase}, view {v + 1}: {theirs!r} was chosen, {best!r} is better by {behind}")
        return theirs

    def _refitted(self) -> LeastSquares:
        """Return the ridge regression of the centers' labels, with a small prior for the constant."""
        standard = self.views[0].standardize(self.centers.rows)
        features = np.column_stack([standard, np.ones(len(standard))])
        prior = np.diag([*np.ones(self.d), 1e-6])
        gram = features.T @ np.diag(self.centers.label_counts) @ features + prior
        return LeastSquares(gram, features.T @ self.centers.label_sums)

    def _start_stack(self) -> None:
        """Start the stack once labels vary, and anew when they vary far more than when it started."""
        if not self.labels.variance > 0:
            return
        prior = max(self.config.stack_prior * self.labels.variance, 1e-150)
        if self.stack is None or self.stack.variances.max() * prior >= OUTGROWN:
            experts = len(self.aggregation.priors)
            self.stack = LeastSquares(prior * np.eye(experts), np.zeros(experts))


def _draw(rng: np.random.Generator, size: int, most: int) -> Ints:
    """Return all positions, or so many of them drawn without replacement, in order."""
    return np.arange(size) if size <= most else np.sort(rng.choice(size, most, replace=False))


def _same_metric(left: Floats, right: Floats) -> bool:
    """Whether two sets of directions whiten alike, up to a common factor; in one dimension all do."""
    first, second = (directions @ directions.T for directions in (left, right))
    return np.allclose(first / np.trace(first), second / np.trace(second), rtol=0, atol=1e-9)


def _old_units_from_new(old: FeatureView, new: FeatureView) -> Floats:
    """Return the matrix that takes new standard units and the constant 1 to the old ones."""
    d = len(new.scale)
    matrix = np.zeros((d + 1, d + 1))
    matrix[:d, :d] = np.diag(new.scale / old.scale)
    matrix[:d, d] = (new.shift - old.shift) / old.scale
    matrix[d, d] = 1.0
    return matrix
