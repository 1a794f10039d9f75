"""Selection of the metric at the end of a phase.

Candidates are the current metric, the identity, and powers of the gradient outer product. Each is scored by the
leave-one-out error of kriging in its coordinates, averaged with its scores of earlier phases.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ellipack._core import LeaveOneOutScorer, project
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.subspace import has_slopes, squared_slopes
from ellipack.parallel import for_row_slices
from ellipack.validation import Floats, Ints

_CURRENT_BONUS = 0.01  # by which the score of the current metric is reduced, so that noise does not replace it
_DECAY = 0.5  # factor of the weight of a score from one phase to the next
_SUBSET_STEP, _VALIDATION_STEP = 8, 4  # the subset has one in eight centers and one in four validation points
_SUBSET_NEIGHBORS = 20
_CHALLENGERS = 5  # scored on all points, like the current metric
_MIN_ERROR = 1e-300
_MIN_RANGE = 1e-300
_MIN_POINTS_FOR_THREADS = 4000


class Score(NamedTuple):
    """Score of a candidate. Lower is better.

    Attributes
    ----------
    value : float
        Logarithm of the leave-one-out error, relative to the mean of all candidates.
    weight : float
        Number of validation points that it is based on, discounted by age.
    """

    value: float
    weight: float


CandidateScores = dict[str, Score]
"""Scores by the names of candidates."""


class Candidate(NamedTuple):
    """Candidate for the metric.

    Attributes
    ----------
    basis : array of shape (d, rank)
        Directions as columns. Candidates that differ only in the lengths share it.
    lengths : array of shape (rank,)
        Factor of each direction.
    """

    basis: Floats
    lengths: Floats

    @property
    def directions(self) -> Floats:
        """Columns of the whitening projection."""
        return np.asarray(self.basis * self.lengths)


class ValidationSet(NamedTuple):
    """Data on which candidates are scored.

    Attributes
    ----------
    standard : array of shape (n, d)
        Standardized centers.
    labels : array of shape (n,)
        Their mean labels.
    validation : array of int
        Positions of the validation points: the centers that are predicted from the others.
    neighbors : int
        Number of neighbors for each prediction.
    """

    standard: Floats
    labels: Floats
    validation: Ints
    neighbors: int

    def subset(self) -> "ValidationSet":
        """Return a subset: one in eight centers, and one in four validation points."""
        step = _SUBSET_STEP if len(self.standard) >= _SUBSET_STEP * self.neighbors else 1
        validation = self.validation[::_VALIDATION_STEP]
        kept = np.union1d(np.arange(0, len(self.standard), step), validation)
        neighbors = min(self.neighbors, _SUBSET_NEIGHBORS)
        return ValidationSet(self.standard[kept], self.labels[kept], np.searchsorted(kept, validation), neighbors)

    def errors(self, candidates: dict[str, Candidate], n_jobs: int) -> dict[str, float]:
        """Return the sum of squared leave-one-out errors of each candidate, by name."""
        names, labels = list(candidates), scale_to_unit_interval(self.labels)
        neighbors = min(self.neighbors, len(self.standard) - 1)
        bases = {id(each.basis): each.basis for each in candidates.values()}  # each is projected on once
        projected = {key: project(self.standard, basis) for key, basis in bases.items()}
        errors = np.empty(len(names))

        def score(part: slice) -> None:
            scorer = LeaveOneOutScorer(labels, self.validation, neighbors)
            for i in range(part.start, part.stop):
                candidate = candidates[names[i]]
                errors[i] = scorer.score(projected[id(candidate.basis)], candidate.lengths)

        small = len(names) * len(self.standard) < _MIN_POINTS_FOR_THREADS
        for_row_slices(score, len(names), 1 if small else n_jobs)
        return dict(zip(names, errors.tolist(), strict=True))


def scale_to_unit_interval(labels: Floats) -> Floats:
    """Scale labels to [0, 1], so that scores do not depend on their units.

    Examples
    --------
    >>> scale_to_unit_interval(np.array([2.0, 6.0, 3.0])).tolist()
    [0.0, 1.0, 0.25]
    """
    least = labels.min()
    return np.asarray((labels - least) / max(labels.max() - least, _MIN_RANGE))


class GradientOuterProducts(NamedTuple):
    """Gradient outer product, and the matrix of its diagonal, in the coordinates of a subspace."""

    full: Floats
    diagonal: Floats


def restrict_gop(gop: Floats, basis: Floats) -> GradientOuterProducts:
    """Return the gradient outer product in the coordinates of an orthonormal basis.

    Parameters
    ----------
    gop : array of shape (n_features, n_features) or (n_slopes, n_features)
        Sum of outer products of slopes, or fewer slopes than features, one per row.
    basis : array of shape (n_features, rank)
        Basis vectors as columns.

    Returns
    -------
    products : GradientOuterProducts
        0 if there are no slopes.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # if it is not finite, it is not used
        diagonal = (basis.T * squared_slopes(gop)) @ basis
        if not has_slopes(gop):
            return GradientOuterProducts(basis.T @ gop @ basis, diagonal)
        slopes = gop @ basis
        return GradientOuterProducts(slopes.T @ slopes, diagonal)


def generate_candidates(
    gop: GradientOuterProducts, current: Floats, config: MetricConfig
) -> Iterator[tuple[str, Candidate]]:
    """Yield the names of candidates and the candidates.

    These are the current metric, the identity, and powers ``(matrix / norm + ridge I)**(2 power)`` of three matrices:
    the gradient outer product, its diagonal, and the mean of both.

    Parameters
    ----------
    gop : GradientOuterProducts
        Gradient outer product. If it is 0 or not finite, there are only the first two candidates.
    current : array of shape (d, rank)
        Directions of the current metric.
    config : MetricConfig
        Powers and ridges.

    Yields
    ------
    name : str
    candidate : Candidate

    Examples
    --------
    >>> gop = restrict_gop(np.diag([4.0, 1.0]), np.eye(2))
    >>> config = MetricConfig(powers=(0.5,), ridges=(0.01,))
    >>> [name for name, _ in generate_candidates(gop, np.eye(2), config)][:3]
    ['current', 'identity', 'full, ridge 0.01, power 0.5']
    """
    d = len(gop.full)
    yield "current", Candidate(current, np.ones(current.shape[1]))
    yield "identity", Candidate(np.eye(d), np.ones(d))
    norm = np.linalg.norm(gop.full, 2) if np.isfinite(gop.full).all() else 0.0
    if not norm > 0:
        return
    full, diagonal = gop.full / norm, gop.diagonal / norm
    for name, matrix in (("full", full), ("diagonal", diagonal), ("mixed", (full + diagonal) / 2)):
        ascending, columns = np.linalg.eigh(matrix)
        values, basis = ascending[::-1], np.ascontiguousarray(columns[:, ::-1])  # largest first, for faster searches
        for ridge in config.ridges:
            for power in config.powers:
                weights = (np.maximum(values, 0) + ridge) ** (2 * power)
                candidate = Candidate(basis, np.sqrt(weights / weights.max()))
                yield f"{name}, ridge {ridge:g}, power {power:g}", candidate


def select_metric(
    candidates: dict[str, Candidate], data: ValidationSet, past_scores: CandidateScores, n_jobs: int = 1
) -> tuple[str, CandidateScores]:
    """Return the name of the best candidate, and updated scores.

    All candidates are scored on a subset of the data. The five best and the current metric are scored on all data.
    Scores are averaged with those of earlier phases, because the same kinds of candidates tend to be good again.

    Parameters
    ----------
    candidates : dict of str to Candidate
        Candidates, among them "current".
    data : ValidationSet
        Data on which candidates are scored.
    past_scores : dict of str to Score
        Scores of earlier phases. They are not changed.
    n_jobs : int, default 1
        Number of threads, as in scikit-learn.

    Returns
    -------
    name : str
        Name of the best candidate.
    scores : dict of str to Score
        Scores for the next phase.
    """
    subset_scores = _average_scores(_score_candidates(data.subset(), candidates, n_jobs), past_scores)
    others = sorted(set(subset_scores) - {"current"}, key=lambda name: (subset_scores[name].value, name))
    finalists = {name: candidates[name] for name in ["current", *others[:_CHALLENGERS]]}
    # Scores of finalists are relative to their own mean. The shift makes them comparable with those of all candidates.
    shift = float(np.mean([subset_scores[name].value for name in finalists]))
    scores = {name: Score(s.value + shift, s.weight) for name, s in _score_candidates(data, finalists, n_jobs).items()}
    final_scores = _average_scores(scores, past_scores)
    updated = {name: Score(s.value, s.weight * _DECAY) for name, s in {**subset_scores, **final_scores}.items()}
    updated.pop("current")  # the name will mean another metric in the next phase
    best = min(finalists, key=lambda name: final_scores[name].value - (_CURRENT_BONUS if name == "current" else 0.0))
    return best, {**past_scores, **updated}


def _score_candidates(data: ValidationSet, candidates: dict[str, Candidate], n_jobs: int) -> CandidateScores:
    """Return the scores of candidates: logarithms of errors minus their mean."""
    values = {name: _log_error(error) for name, error in data.errors(candidates, n_jobs).items()}
    mean = sum(values.values()) / len(values)
    return {name: Score(value - mean, float(len(data.validation))) for name, value in values.items()}


def _log_error(error: float) -> float:
    """Return the logarithm of an error, or an upper bound if the error is infinite or NaN after an overflow."""
    return math.log(max(error, _MIN_ERROR)) if error <= 1 / _MIN_ERROR else -math.log(_MIN_ERROR)


def _average_scores(scores: CandidateScores, past_scores: CandidateScores) -> CandidateScores:
    """Return means of scores and earlier scores, by their weights."""
    averaged = {}
    for name, (value, weight) in scores.items():
        past, past_weight = past_scores.get(name, Score(0.0, 0.0))
        total = weight + past_weight
        averaged[name] = Score((weight * value + past_weight * past) / total, total)
    return averaged
