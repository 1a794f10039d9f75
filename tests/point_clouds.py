"""Hypothesis strategies for points of an index: orders of insertion, spectra and scales."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from ellipack.validation import Floats

ORDERS = ("random", "sorted", "reversed", "clustered", "walk", "duplicates", "lattice", "one point")
SCALES = (1e-160, 1e-150, 1e-30, 1.0, 1e20, 1e150)


def arranged(order: str, count: int, d: int, rng: np.random.Generator) -> Floats:
    """Return points in an order that may unbalance a tree."""
    normal = rng.normal(size=(count, d))
    centers = np.repeat(10 * rng.normal(size=(count // 50 + 1, d)), 50, axis=0)[:count]
    return {
        "random": normal,
        "sorted": np.sort(normal, axis=0),
        "reversed": np.sort(normal, axis=0)[::-1],
        "clustered": centers + 0.01 * normal,
        "walk": np.cumsum(normal, axis=0),
        "duplicates": normal[rng.integers(0, min(count, 5), size=count)],
        "lattice": rng.integers(0, 3, size=(count, d)).astype(float),
        "one point": np.repeat(normal[:1], count, axis=0),
    }[order].copy()


@dataclass
class Cloud:
    """Points in order of insertion, and queries: points, midpoints, and others near and far."""

    points: Floats
    queries: Floats


def cloud(order: str, steepness: float, count: int, d: int, seed: int, scale: float = 1.0) -> Cloud:
    rng = np.random.default_rng(seed)
    points = arranged(order, count, d, rng) * np.exp(-steepness * np.arange(d))
    picked = points[rng.integers(0, count, size=(2, 6))]
    far = 3 * rng.normal(size=(3, d)) * np.abs(points).max(axis=0)
    queries = np.concatenate([picked[0], picked.mean(axis=0), picked[1] + 1e-9, far])
    return Cloud(scale * points, scale * queries)


def clouds(most: int = 3000, widest: int = 40) -> st.SearchStrategy[Cloud]:
    return st.builds(
        cloud,
        order=st.sampled_from(ORDERS),
        steepness=st.sampled_from([0.0, 0.1, 0.5, 2.0]),
        count=st.integers(1, most) | st.integers(1, 130),
        d=st.integers(1, widest),
        seed=st.integers(0, 2**32 - 1),
        scale=st.just(1.0) | st.sampled_from(SCALES),
    )
