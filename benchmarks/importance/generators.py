"""Streams of which the share of each feature in the variance of the labels is known.

A share is the total Sobol index of a feature, relative to the sum of all. Correlated features count as one, and divide
its share by Shapley effects.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ellipack.validation import Floats


class Stream(NamedTuple):
    """Rows, labels and the true share of each column; of the recent rows, if the shares change."""

    X: Floats
    y: Floats
    shares: Floats
    columns: tuple[str, ...] | None = None  # of each feature
    recent: bool = False


def independent(rng: np.random.Generator, n: int) -> Stream:
    """Return linear effects of independent features."""
    X = rng.normal(size=(n, 6))
    return Stream(X, 3 * X[:, 0] + 2 * X[:, 1] + X[:, 2] + rng.normal(size=n), np.array([9, 4, 1, 0, 0, 0]) / 14)


def interaction(rng: np.random.Generator, n: int) -> Stream:
    """Return a product of two features, and a third one."""
    X = rng.normal(size=(n, 5))
    y = 2 * X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n)
    return Stream(X, y, np.array([4, 4, 1, 0, 0]) / 9)


def correlated(rng: np.random.Generator, n: int) -> Stream:
    """Return two features with a correlation of 0.9 and a third one; the sum of the two has a variance of 3.8."""
    X = rng.normal(size=(n, 5))
    X[:, 1] = 0.9 * X[:, 0] + np.sqrt(1 - 0.81) * X[:, 1]
    return Stream(X, X[:, :3].sum(axis=1) + 0.5 * rng.normal(size=n), np.array([1.9, 1.9, 1, 0, 0]) / 4.8)


def categorical(rng: np.random.Generator, n: int) -> Stream:
    """Return a column of four levels, as indicators, and two numbers."""
    level = rng.integers(4, size=n)
    numbers = rng.normal(size=(n, 2))
    y = np.array([-2.0, 0.0, 0.0, 2.0])[level] + numbers[:, 0] + 0.5 * rng.normal(size=n)
    columns = "level", "level", "level", "level", "a", "b"
    return Stream(np.column_stack([np.eye(4)[level], numbers]), y, np.array([2, 1, 0]) / 3, columns)


def trend(rng: np.random.Generator, n: int) -> Stream:
    """Return two features, and a row number with autocorrelated noise, which is time."""
    X = rng.normal(size=(n, 2))
    noise = np.zeros(n)
    for t in range(1, n):
        noise[t] = 0.9 * noise[t - 1] + 0.5 * rng.normal()
    return Stream(np.column_stack([X, np.arange(n)]), 3 * X[:, 0] + X[:, 1] + noise, np.array([9, 1]) / 10)


def late(rng: np.random.Generator, n: int) -> Stream:
    """Return two features from the start, and two that are 0 in the first fifth of the rows, one of them useless.

    If its values come from random earlier rows, a feature loses half the mean squared difference from these. In the
    last quarter, about 0.23 of the earlier rows have no late feature.
    """
    X = rng.normal(size=(n, 4))
    X[: n // 5, 2:] = 0
    y = X[:, 0] + 2 * X[:, 2] + 0.5 * rng.normal(size=n)
    without = np.mean(0.2 / np.linspace(0.75, 1.0, 100))
    rises = np.array([2.0, 0.0, 4 * (2 - without), 0.0])
    return Stream(X, y, rises / rises.sum(), recent=True)


def drifting(rng: np.random.Generator, n: int) -> Stream:
    """Return an effect that moves from one feature to another after a quarter, beside a constant one."""
    X = rng.normal(size=(n, 4))
    moved = np.arange(n) >= n // 4
    y = 2 * np.where(moved, X[:, 1], X[:, 0]) + X[:, 2] + 0.5 * rng.normal(size=n)
    return Stream(X, y, np.array([0, 4, 1, 0]) / 5, recent=True)


STREAMS: dict[str, Callable[[np.random.Generator, int], Stream]] = {
    "independent": independent,
    "interaction": interaction,
    "correlated": correlated,
    "categorical": categorical,
    "time trend": trend,
    "late": late,
    "drifting": drifting,
}
