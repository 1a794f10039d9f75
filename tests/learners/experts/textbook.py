"""Kriging by the textbook."""

import numpy as np

from ellipack.validation import Floats


def kriging(correlations: Floats, to_query: Floats, nuggets: Floats, labels: Floats) -> float:
    """Return ordinary kriging's prediction: a mean by generalised least squares, and then the rest."""
    K = correlations + np.diag(np.maximum(nuggets, 1e-6))
    ones = np.ones(len(K))
    mean = ones @ np.linalg.solve(K, labels) / (ones @ np.linalg.solve(K, ones))
    return float(mean + to_query @ np.linalg.solve(K, labels - mean))


def correlation(kind: str, distance: Floats, reach: float, length: float) -> Floats:
    """Return what distances come to, in so many lengths of a neighbourhood's reach."""
    if kind == "exponential":
        return np.exp(-distance / (length * reach))
    u = np.sqrt(3) * distance / (length * reach)
    return np.asarray((1 + u) * np.exp(-u))
