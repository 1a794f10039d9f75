"""What makes numba compile the kernels: each task asks some of them, on a few rows.

``python -m ellipack.compiling.tasks`` reads names of tasks from standard input, a line each, and repeats a name when
the task is done.
"""

import os
import sys

import numpy as np

from ellipack.learners import packing, phased
from ellipack.learners.metric import desks, engine
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.state import Size, init
from ellipack.learners.rescaled import engine as rescaled
from ellipack.learners.rescaled.rows import PackingRows
from ellipack.metric import GopEstimator, KernelDifferences, LocalSlopes, Metric
from ellipack.metric.gradients import GradientEstimator
from ellipack.packing.index import Index

_X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(100, 3))
_y = 0.5 + _X[:, 0]


def practical_learner() -> None:
    """Ask what `MetricRegressor` is made of, up to where its memory is full."""
    state = init(3, Size(views=1, neighbors=8, max_centers=64), 0, MetricConfig())
    desks.take(state)  # its rounds first: much of the rest may be on disk by then
    engine.learn(state, _X, _y)


def algorithm_1() -> None:
    """Ask what `PackingRegressor` is made of."""
    state = packing.init(Metric.identity(3))
    packing.learn(state, _X, _y)
    packing.predict(state, _X)


def any_units() -> None:
    """Ask what `RescaledRegressor` and River's learners are made of."""
    learner = PackingRows(rescaled.init(packing.init(Metric.identity(3)), 3), True)
    learner.learn_rows(_X, _y)
    learner.predict(_X[0].tolist())


def index() -> None:
    """Ask the index."""
    points = Index.build(_X)
    points.insert(_X)
    points.nearest(_X)
    points.k_nearest(_X, 3)
    points.within(_X, 0.5)


def local_slopes() -> None:
    """Ask what `PhasedRegressor` is made of, by slopes."""
    _play_phases(LocalSlopes())


def kernel_differences() -> None:
    """Ask what `PhasedRegressor` is made of, by appendix A's estimator."""
    _play_phases(KernelDifferences())


def _play_phases(gradients: GradientEstimator) -> None:
    phased.learn(phased.init(3), _X, _y, alpha=0.5, estimator=GopEstimator(gradients))


if __name__ == "__main__":
    for line in sys.stdin:
        globals()[line.strip()]()
        print(line, end="", flush=True)
    os._exit(0)  # at once: to take apart what numba has made takes most of a second
