"""Literal transcriptions of the paper in plain Python, slow and independent of the package.

Comments mark the errata of the paper.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

Vector = Sequence[float]
Matrix = Sequence[Sequence[float]]


def mahalanobis(x: Vector, z: Vector, M: Matrix) -> float:
    d = len(x)
    difference = [x[i] - z[i] for i in range(d)]
    form = math.fsum(difference[i] * M[i][j] * difference[j] for i in range(d) for j in range(d))
    return math.sqrt(max(form, 0.0))


def kappa(eigenvalues: Vector, r: int, t: float) -> int:
    members = [m for m in range(1, len(eigenvalues) + 1) if eigenvalues[m - 1] >= float(t) ** (-2 / (1 + r))]
    return max(members, default=0)


def effective_rank(eigenvalues: Vector, t: float) -> int:
    d = len(eigenvalues)
    return min(r for r in range(1, d + 1) if kappa(eigenvalues, r, t) <= r)


def algorithm_1(
    X: Matrix, y: Vector, M: Matrix, eigenvalues: Vector, keep_founding_label: bool
) -> tuple[list[float], dict[int, list[int]]]:
    """Return the predictions, and T_s (the rounds whose labels count) for each center s in S."""
    S: list[int] = []
    T: dict[int, list[int]] = {}
    predictions = []
    for t in range(1, len(X) + 1):
        rho = effective_rank(eigenvalues, t)
        epsilon = float(t) ** (-1 / (1 + rho))
        x = X[t - 1]
        if not S:
            S = [t]
            T[t] = []
        s = min(S, key=lambda center: mahalanobis(x, X[center - 1], M))  # the first of equals
        if not T[s]:
            predictions.append(0.5)  # erratum 1: the prediction, not the label
        else:
            predictions.append(sum(y[other - 1] for other in T[s]) / len(T[s]))
        if mahalanobis(x, X[s - 1], M) <= epsilon:
            T[s].append(t)
        else:
            S.append(t)  # erratum 2: t, not s
            T[t] = [t] if keep_founding_label else []  # erratum 3: the proof keeps t, the printed algorithm does not
    return predictions, T


def kernel_value(name: str, u: float) -> float:
    if u >= 1:
        return 0.0
    return {
        "triangular": 1 - u,
        "epanechnikov": 1 - u**2,
        "biweight": (1 - u**2) ** 2,
        "triweight": (1 - u**2) ** 3,
        "tricube": (1 - u**3) ** 3,
    }[name]


def kernel_regression(x: Vector, X: Matrix, y: Vector, bandwidth: float, kernel: str) -> float:
    weights = [kernel_value(kernel, math.dist(x, point) / bandwidth) for point in X]
    if sum(weights) > 0:
        return sum(w * label for w, label in zip(weights, y, strict=True)) / sum(weights)
    return sum(y) / len(y)


def shifted(x: Vector, i: int, by: float) -> list[float]:
    return [x[j] + (by if j == i else 0.0) for j in range(len(x))]


def enough_mass(x: Vector, X: Matrix, bandwidth: float, step: float, mass_scale: float) -> list[bool]:
    n, d = len(X), len(X[0])

    def mass(center: Vector) -> float:
        return sum(math.dist(center, point) <= bandwidth / 2 for point in X) / n

    threshold = mass_scale * (2 * d / n) * math.log(2 * n)
    return [min(mass(shifted(x, i, by)) for by in (-step, step)) >= threshold for i in range(d)]


def difference_gradient(
    x: Vector, X: Matrix, y: Vector, bandwidth: float, step: float, mass_scale: float, kernel: str
) -> list[float]:
    enough = enough_mass(x, X, bandwidth, step, mass_scale)
    gradient = []
    for i in range(len(x)):
        ahead = kernel_regression(shifted(x, i, step), X, y, bandwidth, kernel)
        behind = kernel_regression(shifted(x, i, -step), X, y, bandwidth, kernel)
        gradient.append((ahead - behind) / (2 * step) if enough[i] else 0.0)
    return gradient


def mean_outer_product(gradients: Matrix) -> list[list[float]]:
    """Return the exact mean of each entry, rounded once."""
    d, n = len(gradients[0]), len(gradients)
    return [[float(sum(Fraction(g[i] * g[j]) for g in gradients) / n) for j in range(d)] for i in range(d)]


Spectral = Callable[[Matrix], tuple[list[float], list[list[float]]]]
"""Function from a symmetric matrix to the eigenvalues, in descending order, and the matrix divided by its norm."""


def phased(
    X: Matrix,
    y: Vector,
    alpha: float,
    gop: Callable[[Matrix, Vector], Matrix],
    normalize: Spectral,
    keep_founding_label: bool,
) -> list[float]:
    d = len(X[0])
    M = [[1.0 if i == j else 0.0 for j in range(d)] for i in range(d)]
    eigenvalues = [1.0] * d
    predictions: list[float] = []
    phase = 1
    while len(predictions) < len(X):
        start, end = len(predictions), 2 ** (phase + 1) - 2
        made, _ = algorithm_1(X[start:end], y[start:end], M, eigenvalues, keep_founding_label)
        predictions += made
        if len(predictions) == end:
            G = gop(X[:end], y[:end])
            gamma = float(end) ** -alpha
            ridged = [[G[i][j] + (gamma if i == j else 0.0) for j in range(d)] for i in range(d)]
            eigenvalues, M = normalize(ridged)
        phase += 1
    return predictions


def squared_distance(point: Vector, query: Vector) -> float:
    total = 0.0
    for a, b in zip(point, query, strict=True):
        total += (b - a) * (b - a)
    return total


def neighbors(points: Matrix, query: Vector) -> list[tuple[float, int]]:
    """Return all points as (squared distance, position), sorted."""
    return sorted((squared_distance(point, query), position) for position, point in enumerate(points))


def within(points: Matrix, query: Vector, radius: float) -> list[tuple[float, int]]:
    return [pair for pair in neighbors(points, query) if pair[0] <= radius * radius]
