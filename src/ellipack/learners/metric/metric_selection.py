"""Choice of the metric at the end of a phase: candidates are scored by leave-one-out kriging."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ellipack._core import LeaveOneOutScorer, project
from ellipack.learners.metric.config import MetricConfig
from ellipack.parallel import for_row_slices
from ellipack.validation import Floats, Ints

_PREFERENCE_FOR_CURRENT = 0.01  # by which another candidate must be better than the present metric, lest noise decide
_KEPT_WEIGHT = 0.5  # part of a phase's score that remains in the next
_SUBSET_SHARE, _SUBSET_NEIGHBORS = 8, 20  # all candidates are scored on an eighth of the points, by fewer neighbors
_FINALISTS = 5
_LEAST_ERROR = 1e-300
_LEAST_RANGE = 1e-300
_POINTS_PER_THREAD = 4000  # below that many points to score, a thread does not pay


class Score(NamedTuple):
    """How well a candidate did: a log error relative to the others', and the number of validation points behind it."""

    value: float
    weight: float


CandidateScores = dict[str, Score]
"""Scores of candidates over all phases so far, by name."""


class Candidate(NamedTuple):
    """A metric as an orthogonal basis, which several candidates share, and the length of each of its directions."""

    basis: Floats
    lengths: Floats

    @property
    def directions(self) -> Floats:
        """The columns that whitening projects on."""
        return np.asarray(self.basis * self.lengths)


class ValidationSet(NamedTuple):
    """What candidates are scored on: centers in standard units, their mean labels, and which of them are predicted."""

    standard: Floats
    labels: Floats
    validation: Ints
    neighbors: int

    def subset(self) -> "ValidationSet":
        """Return a small part: every eighth center, and every fourth validation point."""
        share = _SUBSET_SHARE if len(self.standard) >= _SUBSET_SHARE * self.neighbors else 1
        few = self.validation[:: _SUBSET_SHARE // 2]
        kept = np.union1d(np.arange(0, len(self.standard), share), few)
        neighbors = min(self.neighbors, _SUBSET_NEIGHBORS)
        return ValidationSet(self.standard[kept], self.labels[kept], np.searchsorted(kept, few), neighbors)

    def errors(self, candidates: dict[str, Candidate], n_jobs: int) -> dict[str, float]:
        """Return the sum of squared leave-one-out errors in the metric of each candidate."""
        names, labels = list(candidates), scale_to_unit_interval(self.labels)
        neighbors = min(self.neighbors, len(self.standard) - 1)
        projected = {id(each.basis): project(self.standard, each.basis) for each in candidates.values()}
        errors = np.empty(len(names))

        def score(part: slice) -> None:
            scorer = LeaveOneOutScorer(labels, self.validation, neighbors)
            for i in range(part.start, part.stop):
                candidate = candidates[names[i]]
                errors[i] = scorer.score(projected[id(candidate.basis)], candidate.lengths)

        few = len(names) * len(self.standard) < _POINTS_PER_THREAD
        for_row_slices(score, len(names), 1 if few else n_jobs)
        return dict(zip(names, errors.tolist(), strict=True))


def scale_to_unit_interval(labels: Floats) -> Floats:
    """Scale labels to [0, 1]; scores do not depend on units."""
    least = labels.min()
    return np.asarray((labels - least) / max(labels.max() - least, _LEAST_RANGE))


class GradientOuterProducts(NamedTuple):
    """The gradient outer product, and its diagonal alone, both in the coordinates of a subspace."""

    full: Floats
    diagonal: Floats


def restrict_gop(gop: Floats, basis: Floats) -> GradientOuterProducts:
    """Return the gradient outer product in the coordinates of an orthonormal basis."""
    with np.errstate(over="ignore", invalid="ignore"):  # if it is not finite, there are no candidates from it
        return GradientOuterProducts(basis.T @ gop @ basis, (basis.T * np.diag(gop)) @ basis)


def generate_candidates(
    gop: GradientOuterProducts, current: Floats, config: MetricConfig
) -> Iterator[tuple[str, Candidate]]:
    """Yield names and candidates: the present metric, the identity, and powers of the gradient outer product.

    The gradient outer product is taken as it is, as its diagonal alone (for streams whose axes matter), and as the
    mean of both.
    """
    d = len(gop.full)
    yield "current", Candidate(current, np.ones(current.shape[1]))
    yield "identity", Candidate(np.eye(d), np.ones(d))
    norm = np.linalg.norm(gop.full, 2) if np.isfinite(gop.full).all() else 0.0
    if not norm > 0:
        return
    full, diagonal = gop.full / norm, gop.diagonal / norm
    for name, matrix in (("full", full), ("diagonal", diagonal), ("mixed", (full + diagonal) / 2)):
        rising, columns = np.linalg.eigh(matrix)
        values, basis = rising[::-1], np.ascontiguousarray(columns[:, ::-1])  # the heaviest first: searches end sooner
        for ridge in config.ridges:
            for power in config.powers:
                weights = (np.maximum(values, 0) + ridge) ** (2 * power)
                candidate = Candidate(basis, np.sqrt(weights / weights.max()))
                yield f"{name}, ridge {ridge:g}, power {power:g}", candidate


def select_metric(
    candidates: dict[str, Candidate], data: ValidationSet, past_scores: CandidateScores, n_jobs: int = 1
) -> tuple[str, CandidateScores]:
    """Return the name of the best candidate, and the past_scores of all after this phase.

    All candidates are scored on a small part of the data; the best of them and the present metric on all of it. What
    counts is the logarithm of the leave-one-out error, averaged with that of earlier phases: a kind of candidate that
    did well will do well again.
    """
    first = _average_scores(_score_candidates(data.subset(), candidates, n_jobs), past_scores)
    others = sorted(set(first) - {"current"}, key=lambda name: (first[name].value, name))
    finalists = {name: candidates[name] for name in ["current", *others[:_FINALISTS]]}
    # Scores of finalists are relative to each other: shifted to where these stand among all.
    shift = float(np.mean([first[name].value for name in finalists]))
    scores = {name: Score(s.value + shift, s.weight) for name, s in _score_candidates(data, finalists, n_jobs).items()}
    last = _average_scores(scores, past_scores)
    after = {name: Score(s.value, s.weight * _KEPT_WEIGHT) for name, s in {**first, **last}.items()}
    after.pop("current")  # it will be another metric next time
    best = min(finalists, key=lambda name: last[name].value - (_PREFERENCE_FOR_CURRENT if name == "current" else 0.0))
    return best, {**past_scores, **after}


def _score_candidates(data: ValidationSet, candidates: dict[str, Candidate], n_jobs: int) -> CandidateScores:
    """Return the scores of candidates: log errors less their mean."""
    values = {name: _log_error(error) for name, error in data.errors(candidates, n_jobs).items()}
    mean = sum(values.values()) / len(values)
    return {name: Score(value - mean, float(len(data.validation))) for name, value in values.items()}


def _log_error(error: float) -> float:
    """Return the logarithm of an error; of the worst error there is if an overflow made it infinite or NaN."""
    return math.log(max(error, _LEAST_ERROR)) if error <= 1 / _LEAST_ERROR else -math.log(_LEAST_ERROR)


def _average_scores(scores: CandidateScores, before: CandidateScores) -> CandidateScores:
    """Return scores averaged with earlier ones, by the validation points behind them."""
    averaged = {}
    for name, (value, weight) in scores.items():
        past, earlier = before.get(name, Score(0.0, 0.0))
        averaged[name] = Score((weight * value + earlier * past) / (weight + earlier), weight + earlier)
    return averaged
