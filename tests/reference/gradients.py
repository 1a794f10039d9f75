"""Projections and estimates of gradients in plain Python, each sum in the order in which compiled code takes it."""

import math

from ellipack.validation import Floats
from tests.reference import brute_force_neighbors


def project(rows: Floats, directions: Floats) -> list[list[float]]:
    """Return ``rows @ directions``, each sum from the first entry of a row to the last."""
    out = []
    for row in rows.tolist():
        sums = [0.0] * directions.shape[1]
        for entry, direction in zip(row, directions.tolist(), strict=True):
            sums = [total + entry * each for total, each in zip(sums, direction, strict=True)]
        out.append(sums)
    return out


def kernel_weight(squared: float, powers: tuple[int, int]) -> float:
    """Return ``(1 - u^a)^b`` for the powers a and b, given ``u^2``; powers are products from left to right."""
    inner, outer = powers
    u = math.sqrt(squared)
    below = 1.0 - (squared if inner == 2 else math.prod([u] * inner))
    return math.prod([below] * outer)


def difference_gradient(
    anchor: list[float],
    X: list[list[float]],
    y: list[float],
    scales: tuple[float, float, float],
    powers: tuple[int, int],
) -> tuple[list[float], list[bool]]:
    """Return appendix A's gradient at an anchor, and which entries have enough mass.

    `scales` are the bandwidth, the step and the mass threshold.
    """
    bandwidth, step, mass_threshold = scales
    inverse, everyone = 1.0 / (bandwidth * bandwidth), sum_in_order(y) / len(y)
    gradient, enough = [], []
    for i in range(len(anchor)):
        regressions, masses = [], []
        for sign in (1.0, -1.0):
            weights = labels = nearby = 0.0
            for x, label in zip(X, y, strict=True):
                squared = step * step
                for a, b in zip(anchor, x, strict=True):
                    squared += (a - b) * (a - b)
                relative = max(squared + sign * (2.0 * step * (anchor[i] - x[i])), 0.0) * inverse
                nearby += relative <= 0.25
                weight = kernel_weight(min(relative, 1.0), powers)
                weights += weight
                labels += weight * label
            regressions.append(labels / weights if weights > 0.0 else everyone)
            masses.append(nearby)
        enough.append(min(masses) >= mass_threshold)
        gradient.append((regressions[0] - regressions[1]) / (2.0 * step) if enough[-1] else 0.0)
    return gradient, enough


def local_slope(points: Floats, labels: Floats, query: Floats, k: int, ridge: float) -> list[float]:
    """Return the slope at a query of a weighted ridge regression on the k nearest points."""
    positions, squared = (each[0].tolist() for each in brute_force_neighbors.k_nearest(points, query[None], k))
    d = len(query)
    near = [labels.tolist()[position] for position in positions]
    offsets = [
        [a - b for a, b in zip(points[position].tolist(), query.tolist(), strict=True)] for position in positions
    ]
    weights = [1.0 - each / squared[-1] if squared[-1] > 0.0 else 0.0 for each in squared]
    total = sum_in_order(weights)
    if total <= 0.0:
        return [0.0] * d
    label_mean = sum_in_order([w * label for w, label in zip(weights, near, strict=True)]) / total
    mean = [sum_in_order([w * o[i] for w, o in zip(weights, offsets, strict=True)]) / total for i in range(d)]
    gram = [[0.0] * d for _ in range(d)]
    right = [0.0] * d
    for weight, offset, label in zip(weights, offsets, near, strict=True):
        centered = [offset[i] - mean[i] for i in range(d)]
        for i in range(d):
            scaled = weight * centered[i]
            right[i] += scaled * (label - label_mean)
            for m in range(i + 1):
                gram[i][m] += scaled * centered[m]
    trace = sum_in_order([gram[i][i] for i in range(d)])
    if trace <= 1e-290:
        return [0.0] * d
    for i in range(d):
        gram[i][i] += ridge * trace / d
    return solve(gram, right)


def sum_in_order(values: list[float]) -> float:
    """Sum from the first to the last; the built-in sum of newer Pythons compensates for rounding."""
    total = 0.0
    for value in values:
        total += value
    return total


def solve(gram: list[list[float]], right: list[float]) -> list[float]:
    """Solve a positive definite system by Cholesky, given its lower triangle."""
    d = len(right)
    factor = [[0.0] * d for _ in range(d)]
    for i in range(d):
        for j in range(i + 1):
            value = gram[i][j]
            for m in range(j):
                value -= factor[i][m] * factor[j][m]
            factor[i][j] = math.sqrt(value) if i == j else value / factor[j][j]
    out = list(right)
    for i in range(d):
        for m in range(i):
            out[i] -= factor[i][m] * out[m]
        out[i] /= factor[i][i]
    for i in reversed(range(d)):
        for m in range(i + 1, d):
            out[i] -= factor[m][i] * out[m]
        out[i] /= factor[i][i]
    return out
