"""Measured importance against known variance shares, and its cost.

Run ``python -m benchmarks.importance``. Shares are compared with the total Sobol indices, relative to their sum.
"""

import argparse
from collections.abc import Callable
from time import process_time
from typing import NamedTuple

import numpy as np

from ellipack import MetricRegressor
from ellipack.learners.metric.config import MetricConfig
from ellipack.validation import Floats


class Stream(NamedTuple):
    """Rows, labels and the true share of each feature."""

    X: Floats
    y: Floats
    shares: Floats


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
    """Return two features with a correlation of 0.9 and a third one; replaced alone, each loses the same variance."""
    X = rng.normal(size=(n, 5))
    X[:, 1] = 0.9 * X[:, 0] + np.sqrt(1 - 0.81) * X[:, 1]
    return Stream(X, X[:, :3].sum(axis=1) + 0.5 * rng.normal(size=n), np.array([1, 1, 1, 0, 0]) / 3)


def categorical(rng: np.random.Generator, n: int) -> Stream:
    """Return a column of four levels, as indicators, and two numbers."""
    level = rng.integers(4, size=n)
    numbers = rng.normal(size=(n, 2))
    y = np.array([-2.0, 0.0, 0.0, 2.0])[level] + numbers[:, 0] + 0.5 * rng.normal(size=n)
    return Stream(np.column_stack([np.eye(4)[level], numbers]), y, np.array([2, 1, 0]) / 3)


def trend(rng: np.random.Generator, n: int) -> Stream:
    """Return two features, and a row number with autocorrelated noise, which is time."""
    X = rng.normal(size=(n, 2))
    noise = np.zeros(n)
    for t in range(1, n):
        noise[t] = 0.9 * noise[t - 1] + 0.5 * rng.normal()
    return Stream(np.column_stack([X, np.arange(n)]), 3 * X[:, 0] + X[:, 1] + noise, np.array([9, 1]) / 10)


STREAMS: dict[str, tuple[Callable[[np.random.Generator, int], Stream], list[str] | None]] = {
    "independent": (independent, None),
    "interaction": (interaction, None),
    "correlated": (correlated, None),
    "categorical": (categorical, ["level"] * 4 + ["a", "b"]),
    "time trend": (trend, None),
}


def shares_of(learner: MetricRegressor, columns: list[str] | None, count: int) -> Floats:
    """Return the share of each column."""
    if columns is None:
        return learner.feature_importances_[:count]
    measured = learner.importances_
    assert measured is not None
    by_name = {each.columns[0]: each.share for each in measured.columns}
    return np.array([by_name[name] for name in dict.fromkeys(columns)])


def measure_truth(seeds: int, rows: int) -> None:
    """Print the largest difference from the true shares, over seeds, and how often the ranking is right."""
    print(f"shares after {rows:,} rows, {seeds} seeds: largest difference from the truth, in points")
    for name, (make, columns) in STREAMS.items():
        differences, right = [], 0
        for seed in range(seeds):
            stream = make(np.random.default_rng(seed), rows)
            learner = MetricRegressor(random_state=seed)
            if columns is not None:
                learner.set_columns(columns)
            found = shares_of(learner.fit(stream.X, stream.y), columns, len(stream.shares))
            differences.append(100 * np.abs(found - stream.shares).max())
            right += _ranks_right(found, stream.shares)
        mean, most = np.mean(differences), np.max(differences)
        print(f"  {name:12s} mean {mean:4.1f}  largest {most:4.1f}  ranking right {right} of {seeds}")


def _ranks_right(found: Floats, truth: Floats) -> bool:
    """Return whether every pair of different true shares has the right order."""
    return all(found[i] > found[j] for i in range(len(truth)) for j in range(len(truth)) if truth[i] > truth[j])


def measure_cost(rows: int, repeats: int) -> None:
    """Print the time of a run with measurements, relative to one without."""
    print(f"time with measurements relative to without, best of {repeats}")
    for name, (make, _) in STREAMS.items():
        stream = make(np.random.default_rng(0), rows)
        times = {True: np.inf, False: np.inf}
        for _ in range(repeats):
            for on in (True, False):
                learner = MetricRegressor(n_jobs=1, config=MetricConfig(importance=on))
                start = process_time()
                learner.fit(stream.X, stream.y)
                times[on] = min(times[on], process_time() - start)
        print(f"  {name:12s} {times[True] / times[False] - 1:+.1%}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    measure_truth(arguments.seeds, arguments.rows)
    measure_cost(arguments.rows, arguments.repeats)


if __name__ == "__main__":
    main()
