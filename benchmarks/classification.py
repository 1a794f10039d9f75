"""Error rates of classifiers on public streams: ``python -m benchmarks.classification``.

The streams are those of the comparison of regressors; the class of a row is whether its label exceeds the median. Every
model predicts each row before it sees the class. Settings are the defaults of each library. The baseline is a nearest
neighbor that stores only the rows that it got wrong, as `PackingClassifier` does, but never averages: it is what
remains of the algorithm with a radius of 0.
"""

import argparse
import pickle
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from benchmarks.command_line import new_table
from benchmarks.comparison.adapters import RunningScaler
from benchmarks.comparison.datasets import DATASETS
from benchmarks.streams import Stream
from ellipack.river import PackingClassifier
from ellipack.validation import Floats

ROWS = 5000
"""Default number of rows of each stream."""


class NearestMistake:
    """Nearest neighbor among the rows that it got wrong, with features standardized by the rows so far."""

    def __init__(self) -> None:
        self._scaler = RunningScaler()
        self._rows: list[Floats] = []
        self._labels: list[bool] = []

    def predict_one(self, x: dict[Any, float]) -> bool:
        """Return the class of the nearest stored row; False if there is none."""
        if not self._rows:
            return False
        row = self._scaler.transform(np.array(list(x.values())))
        apart = self._scaler.transform(np.array(self._rows)) - row
        return self._labels[int((apart**2).sum(axis=1).argmin())]

    def learn_one(self, x: dict[Any, float], y: bool) -> None:
        """Store the row if the prediction is wrong."""
        row = np.array(list(x.values()))
        self._scaler.update(row)
        if self.predict_one(x) != y:
            self._rows.append(row)
            self._labels.append(y)


def _scaled(model: Any) -> Any:
    from river.preprocessing import StandardScaler  # noqa: PLC0415

    return StandardScaler() | model


def _logistic() -> Any:
    from river.linear_model import LogisticRegression  # noqa: PLC0415

    return _scaled(LogisticRegression())


def _knn() -> Any:
    from river.neighbors import KNNClassifier, LazySearch  # noqa: PLC0415

    return _scaled(KNNClassifier(engine=LazySearch(window_size=1000)))


def _hoeffding() -> Any:
    from river.tree import HoeffdingAdaptiveTreeClassifier  # noqa: PLC0415

    return HoeffdingAdaptiveTreeClassifier(seed=0)


def _amf() -> Any:
    from river.forest import AMFClassifier  # noqa: PLC0415

    return AMFClassifier(n_estimators=10, seed=0)


MODELS: dict[str, Callable[[], Any]] = {
    "PackingClassifier": PackingClassifier,
    "PackingClassifier, ball clocks": lambda: PackingClassifier("ball"),
    "nearest mistake": NearestMistake,
    "KNN of 1,000 rows": _knn,
    "Hoeffding adaptive tree": _hoeffding,
    "AMF, 10 trees": _amf,
    "logistic regression": _logistic,
}
"""Classifiers by name."""


class Result(NamedTuple):
    """A classifier on a stream."""

    error_rate: float
    microseconds: float  # per row, to predict and to learn it
    saved_bytes: int


def classify(stream: Stream, make: Callable[[], Any]) -> Result:
    """Run a classifier over a stream whose classes are whether labels exceed their median."""
    model, wrong = make(), 0
    labels = (stream.y > np.median(stream.y)).tolist()
    rows = [dict(enumerate(row)) for row in stream.X.tolist()]
    start = time.thread_time()
    for x, label in zip(rows, labels, strict=True):
        wrong += bool(model.predict_one(x)) != label
        model.learn_one(x, label)
    cost = 1e6 * (time.thread_time() - start) / len(rows)
    return Result(wrong / len(rows), cost, len(pickle.dumps(model)))


def main() -> None:
    """Print a table of error rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each stream")
    parser.add_argument("--full", action="store_true", help="all streams instead of the quick ones")
    arguments = parser.parse_args()
    chosen = {name: each for name, each in DATASETS.items() if each.quick or arguments.full}
    streams = {name: each.draw(0, arguments.rows).head(arguments.rows) for name, each in chosen.items()}
    table = new_table("Error rates", ["classifier", *streams, "mean", "us per row"])
    for name, make in MODELS.items():
        results = [classify(stream, make) for stream in streams.values()]
        rates = [each.error_rate for each in results]
        cost = float(np.mean([each.microseconds for each in results]))
        table.add_row(name, *(f"{rate:.3f}" for rate in rates), f"{np.mean(rates):.3f}", f"{cost:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
