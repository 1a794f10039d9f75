"""Hypothesis strategies: spectra, metrics, streams and their batches."""

import numpy as np
from hypothesis import strategies as st

from ellipack.metric import Metric
from ellipack.validation import Floats

seeds = st.integers(0, 2**32 - 1)


@st.composite
def spectra(draw: st.DrawFn, max_d: int = 6) -> Floats:
    """Return eigenvalues in descending order; the largest is 1."""
    logarithms = draw(st.lists(st.floats(-12, 0), min_size=0, max_size=max_d - 1))
    return np.sort(np.exp([0.0, *logarithms]))[::-1].copy()


@st.composite
def metrics(draw: st.DrawFn, max_d: int = 6) -> Metric:
    """Return a metric with random eigenvectors, a diagonal one, or the identity."""
    eigenvalues = draw(spectra(max_d))
    kind = draw(st.sampled_from(["rotated", "diagonal", "identity"]))
    if kind == "identity":
        return Metric.identity(len(eigenvalues))
    if kind == "diagonal":
        return Metric.from_diagonal(np.random.default_rng(draw(seeds)).permutation(eigenvalues))
    basis, _ = np.linalg.qr(np.random.default_rng(draw(seeds)).normal(size=(len(eigenvalues),) * 2))
    matrix = (basis * eigenvalues) @ basis.T
    return Metric.from_matrix((matrix + matrix.T) / 2)


def ball(rng: np.random.Generator, n: int, d: int) -> Floats:
    """Return points from the uniform distribution on the unit ball."""
    points = rng.normal(size=(n, d))
    radii = rng.random((n, 1)) ** (1 / d)
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True) * radii * (1 - 1e-12))


@st.composite
def streams(draw: st.DrawFn, d: int, max_rows: int = 60) -> tuple[Floats, Floats]:
    """Return instances in the unit ball, some of them copies of earlier ones or close to them, and labels."""
    n = draw(st.integers(1, max_rows))
    rng = np.random.default_rng(draw(seeds))
    X = ball(rng, n, d)
    for t in np.flatnonzero(rng.random(n) < draw(st.sampled_from([0.0, 0.3]))):
        X[t] = X[rng.integers(t + 1)] * (1 if rng.random() < 0.5 else 1 - 1e-3)
    return X, rng.random(n)


@st.composite
def cuts(draw: st.DrawFn, n: int) -> list[slice]:
    """Return consecutive slices that cover n rows."""
    edges = sorted(draw(st.sets(st.integers(1, n - 1), max_size=5))) if n > 1 else []
    return [slice(a, b) for a, b in zip([0, *edges], [*edges, n], strict=True)]
