"""Small fixed measures of the installed library: requests as JSON on standard input, answers on standard output.

This file is run as a script with the library of either tree. It imports nothing else from the benchmarks, uses only the
public interface of the library, and generates its own streams, so that an older library runs exactly the same measures.
If a library lacks something that a measure needs, the answer says so.

    {"name": "Algorithm 1", "size": 1.0}  ->  {"value": 0.12}  or  {"missing": "module 'ellipack' has no attribute ..."}
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Measure = Callable[[float], float]

_MIN_ROWS = 60  # of a stream, whatever the size


def ball(n: int, d: int, size: float, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return rows in the unit ball, labels in [0, 1] that depend on two directions, and these directions as columns."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(d, 2)))[0]
    count = max(_MIN_ROWS, int(n * size))
    X = rng.normal(size=(count, d))
    X *= rng.random((count, 1)) ** (1 / d) / np.linalg.norm(X, axis=1, keepdims=True)
    angles = X @ directions * np.sqrt(d + 2)
    y = 0.5 + 0.25 * np.sin(1.3 * angles[:, 0] + 0.4) + 0.15 * np.sin(1.3 * angles[:, 1] + 1.1)
    return X, np.clip(y + rng.normal(0, 0.02, count), 0, 1), directions


def friedman(size: float) -> tuple[Array, Array]:
    """Return Friedman's first stream: five of ten features are irrelevant."""
    rng = np.random.default_rng(1)
    X = rng.random((max(_MIN_ROWS, int(3_000 * size)), 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + rng.normal(size=len(y))


def steps(size: float) -> tuple[Array, Array]:
    """Return a discontinuous stream with heavy-tailed features of very different scales."""
    rng = np.random.default_rng(2)
    X = rng.standard_t(3, size=(max(_MIN_ROWS, int(3_000 * size)), 6))
    y = np.floor(X[:, 0]).clip(-3, 3) + (X[:, 1] > 0) * X[:, 2] + 0.1 * rng.normal(size=len(X))
    return X * 10.0 ** np.arange(-3, 3), y


def late_nrmse(learner: Any, X: Array, y: Array) -> float:
    """Return the root mean squared error over the second half, divided by the standard deviation of its labels."""
    late = slice(len(y) // 2, None)
    predictions = learner.progressive(X, y)
    return float(np.sqrt(np.mean((predictions[late] - y[late]) ** 2)) / np.std(y[late]))


def _library() -> Any:
    import ellipack  # noqa: PLC0415 - the import itself is one of the measures

    return ellipack


def _phased() -> Any:
    library = _library()
    return library.PhasedRegressor(gop=library.GradientOuterProduct(library.LocalSlopes()))


@cache
def _learned(size: float) -> tuple[Any, Array]:
    """Return a fitted learner, and rows to predict."""
    X, y, _ = ball(8_000, 8, size)
    known = len(X) // 4
    learner = _library().MetricRegressor()
    learner.progressive(X[:known], y[:known])
    return learner, X[known:]


def _seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a function, over all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _algorithm(size: float) -> float:
    X, y, _ = ball(120_000, 5, size)
    learner = _library().PackingRegressor()
    return _seconds(lambda: learner.progressive(X, y))


def _phases(size: float) -> float:
    X, y, _ = ball(8_000, 5, size)
    learner = _phased()
    return _seconds(lambda: learner.progressive(X, y))


def _one_call(size: float) -> float:
    X, y, _ = ball(3_000, 8, size)
    learner = _library().MetricRegressor()
    return _seconds(lambda: learner.progressive(X, y))


def _row_by_row(size: float) -> float:
    X, y, _ = ball(1_500, 8, size)
    learner = _library().MetricRegressor()

    def rows() -> None:
        for t in range(len(y)):
            learner.predict(X[t : t + 1]) if t else None
            learner.partial_fit(X[t : t + 1], y[t : t + 1])

    return _seconds(rows)


def _predict(size: float) -> float:
    learner, X = _learned(size)
    return _seconds(lambda: learner.predict(X))


def _import(size: float) -> float:
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import ellipack"], check=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


def _save_and_load(size: float) -> float:
    learner, _ = _learned(size)
    load, save = _library().load, learner.save
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner"

        def save_and_load() -> None:
            for _ in range(10):
                save(path)
                load(path)

        return _seconds(save_and_load)


def _angle(size: float) -> float:
    X, y, truth = ball(3_000, 8, size)
    learner = _library().MetricRegressor()
    learner.progressive(X, y)
    found = np.linalg.qr(learner.directions_[:2].T)[0]
    cosines = np.linalg.svd(found.T @ truth, compute_uv=False)
    return float(np.degrees(np.arccos(np.clip(cosines.min(), -1, 1))))


SPEED: dict[str, Measure] = {
    "import": _import,
    "Algorithm 1": _algorithm,
    "phased": _phases,
    "MetricRegressor, one call": _one_call,
    "MetricRegressor, one row per call": _row_by_row,
    "MetricRegressor, predict many rows": _predict,
    "MetricRegressor, save and load": _save_and_load,
}
"""Seconds of processor time."""

ACCURACY: dict[str, Measure] = {
    "late NRMSE, Algorithm 1, sines": lambda size: late_nrmse(_library().PackingRegressor(), *ball(8_000, 5, size)[:2]),
    "late NRMSE, phased, sines": lambda size: late_nrmse(_phased(), *ball(4_000, 5, size)[:2]),
    "late NRMSE, MetricRegressor, sines": lambda size: late_nrmse(
        _library().MetricRegressor(), *ball(3_000, 8, size)[:2]
    ),
    "late NRMSE, MetricRegressor, Friedman": lambda size: late_nrmse(_library().MetricRegressor(), *friedman(size)),
    "late NRMSE, MetricRegressor, steps": lambda size: late_nrmse(_library().MetricRegressor(), *steps(size)),
    "late NRMSE, MetricRegressor, 300 centers": lambda size: late_nrmse(
        _library().MetricRegressor(300), *friedman(size)
    ),
    "degrees from the true directions": _angle,
}
"""Deterministic errors."""


def measure(name: str, size: float) -> dict[str, Any]:
    """Return the value of a measure, or why the library does not support it."""
    try:
        return {"value": (SPEED | ACCURACY)[name](size)}
    except Exception as error:  # an older library may fail in any way
        return {"missing": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(measure(request["name"], request["size"])), flush=True)


if __name__ == "__main__":
    main()
