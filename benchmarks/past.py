"""What the past of the label is worth: ``python -m benchmarks.past``, or `make bench-past`.

Each stream is learned three times in the same run: from the features alone, with the past of the stream, and with the
past of the same key, too. Errors are late NRMSE: over the second half of the rows, relative to the standard deviation
of its labels. The cost is that of the run with the past over that of the run without it.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.command_line import make_parser, new_table, require_positive
from benchmarks.comparison.datasets import read_flights, read_pydataset
from benchmarks.streams import late_nrmse
from ellipack import MetricRegressor
from ellipack.validation import Floats

ROWS = 20_000
"""Default largest number of rows of a stream."""


class KeyedStream(NamedTuple):
    """A stream whose rows may have keys."""

    X: Floats
    y: Floats
    keys: NDArray[Any] | None = None


class PastResult(NamedTuple):
    """Late errors on a stream, and the cost of the past."""

    rows: int
    features_alone: float
    with_past: float
    by_key: float | None
    cost: float  # of the run with the past, relative to that without

    @property
    def ratio(self) -> float:
        """The best error with the past over that of the features alone."""
        best = self.with_past if self.by_key is None else min(self.with_past, self.by_key)
        return best / self.features_alone


def _flights(key: str, features: tuple[str, ...]) -> Callable[[], KeyedStream]:
    def draw() -> KeyedStream:
        table = read_flights().dropna(subset=["arr_delay", "tailnum"])
        table = table.sort_values(["month", "day", "sched_dep_time"], kind="stable")
        table["route"] = table["origin"] + table["dest"]
        carrier = np.unique(table["carrier"], return_inverse=True)[1]
        X = np.column_stack([table[list(features)].to_numpy(np.float64), carrier[:, None] == np.arange(16)])
        return KeyedStream(np.ascontiguousarray(X), table["arr_delay"].to_numpy(np.float64), table[key].to_numpy(str))

    return draw


_PLANNED = ("month", "day", "sched_dep_time", "sched_arr_time", "distance")
_DEPARTED = (*_PLANNED, "dep_time", "dep_delay", "air_time")


def _panel(path: str, order: str, key: str, label: str, features: tuple[str, ...]) -> Callable[[], KeyedStream]:
    def draw() -> KeyedStream:
        table = read_pydataset(path).dropna().sort_values([order, key], kind="stable")
        X = np.ascontiguousarray(table[list(features)].to_numpy(np.float64))
        return KeyedStream(X, table[label].to_numpy(np.float64), table[key].to_numpy(str))

    return draw


def _emissions() -> KeyedStream:
    table = read_pydataset("robustbase/NOxEmissions")
    X = np.ascontiguousarray(table[["LNOxEm", "sqrtWS"]].to_numpy(np.float64))
    return KeyedStream(X, table["LNOx"].to_numpy(np.float64))


def autoregressive_stream(rows: int = 8000, seed: int = 0) -> KeyedStream:
    """Return a function of the features plus errors that depend on the error before."""
    rng = np.random.default_rng(seed)
    X, errors = rng.normal(size=(rows, 5)), np.zeros(rows)
    for t in range(1, rows):
        errors[t] = 0.9 * errors[t - 1] + 0.3 * rng.normal()
    return KeyedStream(X, np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + errors)


def panel_stream(rows: int = 20_000, keys: int = 200, seed: int = 0) -> KeyedStream:
    """Return keys in random order, each with a level of its own that moves slowly."""
    rng = np.random.default_rng(seed)
    key, levels, moves = rng.integers(keys, size=rows), 2 * rng.normal(size=keys), np.zeros(keys)
    X, y = rng.normal(size=(rows, 3)), np.empty(rows)
    for t, k in enumerate(key):
        moves[k] = 0.8 * moves[k] + 0.5 * rng.normal()
        y[t] = levels[k] + moves[k] + np.sin(2 * X[t, 0]) + 0.2 * rng.normal()
    return KeyedStream(X, y, key)


def independent_stream(rows: int = 10_000, seed: int = 0) -> KeyedStream:
    """Return rows in random order, for which the past is of no use."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    return KeyedStream(X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=rows))


STREAMS: Final[dict[str, Callable[[], KeyedStream]]] = {
    "planned flights, by plane": _flights("tailnum", _PLANNED),
    "planned flights, by route": _flights("route", _PLANNED),
    "departed flights, by carrier": _flights("carrier", _DEPARTED),
    "departed flights, by route": _flights("route", _DEPARTED),
    "employment in firms": _panel("plm/EmplUK", "year", "firm", "emp", ("wage", "capital", "output")),
    "gasoline in countries": _panel(
        "plm/Gasoline", "year", "country", "lgaspcar", ("year", "lincomep", "lrpmg", "lcarpcap")
    ),
    "nitrogen oxides, hourly": _emissions,
    "autoregressive errors": autoregressive_stream,
    "keys with own levels": panel_stream,
    "rows in random order": independent_stream,
}
"""Streams by name."""


def measure(stream: KeyedStream) -> PastResult:
    """Return the errors on a stream without the past, with it, and by key."""
    alone, seconds = _run(MetricRegressor(past=False), stream)
    past, seconds_with_past = _run(MetricRegressor(), stream)
    by_key = None if stream.keys is None else _run(MetricRegressor(by="key"), stream, stream.keys)[0]
    return PastResult(len(stream.y), alone, past, by_key, seconds_with_past / seconds)


def _run(model: MetricRegressor, stream: KeyedStream, keys: NDArray[Any] | None = None) -> tuple[float, float]:
    """Return the late error and the processor time of a run."""
    start = time.process_time()
    predictions = model.progressive(stream.X, stream.y, keys=keys)
    return late_nrmse(predictions, stream.y), time.process_time() - start


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = make_parser("past", __doc__)
    parser.add_argument(
        "--rows", type=int, default=ROWS, help="largest number of rows of a stream (default: %(default)s)"
    )
    parser.add_argument("--streams", nargs="*", choices=STREAMS, help="names of streams (default: all)")
    options: argparse.Namespace = parser.parse_args(arguments)
    require_positive(parser, options, "rows")
    table = new_table("Late NRMSE", ["stream", "rows", "features", "past", "by key", "ratio", "cost"])
    console, ratios = Console(), []
    with console.status("") as status:
        for name in options.streams or STREAMS:
            status.update(name)
            stream = STREAMS[name]()
            keys = None if stream.keys is None else stream.keys[: options.rows]
            result = measure(KeyedStream(stream.X[: options.rows], stream.y[: options.rows], keys))
            by_key = "" if result.by_key is None else f"{result.by_key:.3f}"
            numbers = f"{result.features_alone:.3f}", f"{result.with_past:.3f}", by_key, f"{result.ratio:.3f}"
            table.add_row(name, f"{result.rows:,}", *numbers, f"{result.cost:.2f}")
            ratios.append(result.ratio)
    console.print(table)
    console.print(f"geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.3f}")


if __name__ == "__main__":
    main()
