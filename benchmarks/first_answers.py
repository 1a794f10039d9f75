"""Ask every kernel of the package once, in a process of its own: ``python -m benchmarks.first_answers [index]``.

With ``index`` it asks the index alone, and prints the seconds from the end of the imports to the last answer.
"""

import sys
import time

import numpy as np

from ellipack import (
    GradientOuterProduct,
    KernelDifferences,
    LocalSlopes,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
)
from ellipack.packing.index import Index


def ask_index() -> None:
    """Build, insert and ask for neighbours of every kind."""
    points = np.random.default_rng(0).normal(size=(200, 3))
    index = Index.build(points)
    index.insert(points)
    index.nearest(points)
    index.k_nearest(points, 3)
    index.within(points, 0.5)


def ask_learners() -> None:
    """Fit every estimator and let it predict."""
    X = np.random.default_rng(0).uniform(-0.4, 0.4, size=(200, 3))
    y = 0.5 + 0.5 * X[:, 0]
    for gradients in (LocalSlopes(), KernelDifferences()):
        PhasedRegressor(gop=GradientOuterProduct(gradients)).fit(X, y).predict(X)
    PackingRegressor().fit(X, y).predict(X)
    MetricRegressor().fit(X, y).predict(X)


if __name__ == "__main__":
    start = time.perf_counter()
    ask_index()
    if sys.argv[1:] == ["index"]:
        print(time.perf_counter() - start)
    else:
        ask_learners()
