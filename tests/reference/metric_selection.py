"""Choice of the metric: candidates from the gradient outer product, and leave-one-out scores, in double precision."""

import math
from typing import NamedTuple

import numpy as np

from ellipack.learners.metric.config import MetricConfig
from tests.reference.feature_views import Floats, Ints
from tests.reference.local_experts import matern_correlation, nearest_neighbors, ordinary_kriging, pairwise_distances

LENGTH, NUGGET = 3.0, 0.05
FINALISTS = 5
LOYALTY = 0.01
"""In log error: by how much another candidate must beat the current metric."""


class Score(NamedTuple):
    """A log error relative to the other candidates', and its weight (how many samples it is from)."""

    value: float
    weight: float


class Validation(NamedTuple):
    """Centers in standard units, their labels, which of them are left out in turn, and from how many neighbors."""

    rows: Floats
    labels: Floats
    left_out: Ints
    neighbors: int

    def small(self) -> "Validation":
        """Return every fourth of those that are left out and an eighth of all, if that is enough; 20 neighbors."""
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
        for ridge in config.ridges:
            for power in config.powers:
                values, vectors = np.linalg.eigh(matrix)
                weights = (np.maximum(values, 0) + ridge) ** (2 * power)
                named[f"{kind}, ridge {ridge:g}, power {power:g}"] = vectors * np.sqrt(weights / weights.max())
    return named


def leave_one_out_error(validation: Validation, directions: Floats) -> float:
    """Return the sum of squared errors of kriging each label that is left out from its neighbors' labels.

    The length is in units of the distance to the last of the neighbors, the left-out center being one of them.
    """
    rows, labels, left_out, neighbors = validation
    count, points = min(neighbors, len(rows) - 1), rows @ directions
    scaled = (labels - labels.min()) / max(np.ptp(labels), 1e-300)
    near, squared = nearest_neighbors(points, points[left_out], count + 1)
    lengths = LENGTH * np.maximum(np.sqrt(squared[:, -1]), 1e-150)
    # A left-out center may be missing among its own neighbors, if many others are in the same place.
    others = [np.flatnonzero(each != own)[:count] for each, own in zip(near, left_out, strict=True)]
    near, squared = np.take_along_axis(near, np.array(others), 1), np.take_along_axis(squared, np.array(others), 1)
    within = matern_correlation(pairwise_distances(points[near]), lengths[:, None, None])
    across = matern_correlation(np.sqrt(squared), lengths[:, None])
    differences = scaled[near] - scaled[left_out][:, None]
    return float((ordinary_kriging(within, across, np.full(count, NUGGET), differences) ** 2).sum())


def relative_scores(validation: Validation, named: dict[str, Floats]) -> dict[str, Score]:
    """Return log errors less their mean over the candidates."""
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
    """The finalists' scores (lower is better), all scores to remember, and how clearly the last finalist got in."""

    scores: dict[str, float]
    past: dict[str, Score]
    finalist_gap: float


def score_candidates(named: dict[str, Floats], validation: Validation, past: dict[str, Score]) -> Selection:
    """Score all candidates on a small set, then the five best and the current metric on the whole one."""
    first = averaged(relative_scores(validation.small(), named), past)
    others = sorted((name for name in first if name != "current"), key=lambda name: (first[name].value, name))
    final = ["current", *others[:FINALISTS]]
    lift = float(np.mean([first[name].value for name in final]))
    whole = relative_scores(validation, {name: named[name] for name in final})
    last = averaged({name: Score(s.value + lift, s.weight) for name, s in whole.items()}, past)
    remembered = {name: Score(s.value, s.weight / 2) for name, s in {**first, **last}.items() if name != "current"}
    gap = math.inf
    if len(others) > FINALISTS:
        gap = first[others[FINALISTS]].value - first[others[FINALISTS - 1]].value
    scores = {name: last[name].value - (LOYALTY if name == "current" else 0.0) for name in final}
    return Selection(scores, remembered, gap)
