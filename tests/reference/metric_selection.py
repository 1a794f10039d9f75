"""Selection of the metric: candidates and their leave-one-out scores, in double precision."""

import math
from typing import NamedTuple

import numpy as np

from ellipack.learners.metric.config import MetricConfig
from tests.reference.feature_views import Floats, Ints
from tests.reference.local_experts import matern_correlation, nearest_neighbors, ordinary_kriging, pairwise_distances

LENGTH, NUGGET = 3.0, 0.05
FINALISTS = 5
CURRENT_BONUS = 0.01
"""Logarithm of the error by which another candidate must be better than the current metric."""


class Score(NamedTuple):
    """Logarithm of an error relative to the mean of all candidates, and the number of samples that it is based on."""

    value: float
    weight: float


class Validation(NamedTuple):
    """Standardized centers, their labels, positions of the validation points, and the number of neighbors."""

    rows: Floats
    labels: Floats
    left_out: Ints
    neighbors: int

    def subset(self) -> "Validation":
        """Return one in four validation points, and one in eight centers if there are enough, with 20 neighbors."""
        step = 8 if len(self.rows) >= 8 * self.neighbors else 1
        few = self.left_out[::4]
        kept = np.array(sorted({*range(0, len(self.rows), step), *few.tolist()}))
        at = np.array([int(np.flatnonzero(kept == each)[0]) for each in few])
        return Validation(self.rows[kept], self.labels[kept], at, min(self.neighbors, 20))


def candidates(gop: Floats, diagonal: Floats, current: Floats, config: MetricConfig) -> dict[str, Floats]:
    """Return whitening directions by name: the current ones, the identity, powers of the gradient outer product."""
    named = {"current": current, "identity": np.eye(len(gop))}
    norm = np.linalg.norm(gop, 2)
    if norm == 0:
        return named
    full, diagonal = gop / norm, diagonal / norm
    for kind, matrix in (("full", full), ("diagonal", diagonal), ("mixed", (full + diagonal) / 2)):
        values, vectors = np.linalg.eigh(matrix)
        for ridge in config.ridges:
            for power in config.powers:
                weights = (np.maximum(values, 0) + ridge) ** (2 * power)
                named[f"{kind}, ridge {ridge:g}, power {power:g}"] = vectors * np.sqrt(weights / weights.max())
    return named


def leave_one_out_error(validation: Validation, directions: Floats) -> float:
    """Return the sum of squared errors of kriging for the validation points, from their neighbors.

    The correlation length is in units of the distance to the last neighbor, where the point itself is a neighbor.
    """
    rows, labels, left_out, neighbors = validation
    count, points = min(neighbors, len(rows) - 1), rows @ directions
    scaled = (labels - labels.min()) / max(np.ptp(labels), 1e-300)
    near, squared = nearest_neighbors(points, points[left_out], count + 1)
    lengths = LENGTH * np.maximum(np.sqrt(squared[:, -1]), 1e-150)
    # A validation point may be missing among its own neighbors, if it has many duplicates.
    others = np.argsort(near == left_out[:, None], axis=1, kind="stable")[:, :count]  # the point itself comes last
    near, squared = np.take_along_axis(near, others, 1), np.take_along_axis(squared, others, 1)
    within = matern_correlation(pairwise_distances(points[near]), lengths[:, None, None])
    across = matern_correlation(np.sqrt(squared), lengths[:, None])
    differences = scaled[near] - scaled[left_out][:, None]
    return float((ordinary_kriging(within, across, np.full(count, NUGGET), differences) ** 2).sum())


def relative_scores(validation: Validation, named: dict[str, Floats]) -> dict[str, Score]:
    """Return logarithms of errors minus their mean over the candidates."""
    logs = {name: math.log(max(leave_one_out_error(validation, W), 1e-300)) for name, W in named.items()}
    mean = sum(logs.values()) / len(logs)
    return {name: Score(value - mean, float(len(validation.left_out))) for name, value in logs.items()}


def averaged(new: dict[str, Score], past: dict[str, Score]) -> dict[str, Score]:
    """Return scores averaged with those of earlier phases, by weight."""
    result = {}
    for name, (value, weight) in new.items():
        before = past.get(name, Score(0.0, 0.0))
        total = weight + before.weight
        result[name] = Score((weight * value + before.weight * before.value) / total, total)
    return result


class Selection(NamedTuple):
    """Scores of the finalists (lower is better), scores for the next phase, and the gap after the last finalist."""

    scores: dict[str, float]
    past: dict[str, Score]
    finalist_gap: float


def score_candidates(named: dict[str, Floats], validation: Validation, past: dict[str, Score]) -> Selection:
    """Score all candidates on a subset, then the five best and the current metric on all data."""
    first = averaged(relative_scores(validation.subset(), named), past)
    others = sorted((name for name in first if name != "current"), key=lambda name: (first[name].value, name))
    final = ["current", *others[:FINALISTS]]
    shift = float(np.mean([first[name].value for name in final]))
    whole = relative_scores(validation, {name: named[name] for name in final})
    last = averaged({name: Score(s.value + shift, s.weight) for name, s in whole.items()}, past)
    updated = {name: Score(s.value, s.weight / 2) for name, s in {**first, **last}.items() if name != "current"}
    gap = math.inf
    if len(others) > FINALISTS:
        gap = first[others[FINALISTS]].value - first[others[FINALISTS - 1]].value
    scores = {name: last[name].value - (CURRENT_BONUS if name == "current" else 0.0) for name in final}
    return Selection(scores, updated, gap)
