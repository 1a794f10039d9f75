"""What the past of the label is worth: ``python -m benchmarks.past``, or `make bench-past`.

Each stream is learned three times in the same run: from the features alone, with the past of the stream, and with the
past of the same key, too. Errors are late NRMSE: over the second half of the rows, relative to the standard deviation
of its labels. The cost is that of the run with the past over that of the run without it.

Where the past gains little, the column "linear" says why: it is the ratio that correcting each prediction from the
features by a multiple of the last error, of the stream or of the same key, would give over the same rows, with the best
multiple in hindsight. If errors are hardly correlated with the last ones, it is close to 1.
"""

import argparse
import math
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
    linear: float  # ratio of errors if predictions from the features are corrected by the last error
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


def panel(path: str, order: str, key: str, label: str, features: tuple[str, ...]) -> Callable[[], KeyedStream]:
    """Return a function that reads a table of `pydataset`, whose rows have keys, in the order of a column."""

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
    "employment in firms": panel("plm/EmplUK", "year", "firm", "emp", ("wage", "capital", "output")),
    "gasoline in countries": panel(
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
    by_key = None
    if stream.keys is not None:
        by_key = late_nrmse(_run(MetricRegressor(by="key"), stream, stream.keys)[0], stream.y)
    linear = linear_ratio(stream.y - alone, stream.keys)
    late = late_nrmse(alone, stream.y), late_nrmse(past, stream.y)
    return PastResult(len(stream.y), *late, by_key, linear, seconds_with_past / seconds)


def linear_ratio(errors: Floats, keys: NDArray[Any] | None) -> float:
    """Return by how much the last error, of the stream or of the same key, can reduce the late errors, as a ratio.

    Examples
    --------
    >>> linear_ratio(np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), None)  # each error is twice the last one
    0.0
    """
    orders = [np.zeros(len(errors), dtype=int)] + ([] if keys is None else [np.unique(keys, return_inverse=True)[1]])
    return min(_uncorrelated_share(errors, _last_errors(errors, order)) for order in orders)


def _last_errors(errors: Floats, keys: NDArray[Any]) -> Floats:
    """Return the last error before each row of the same key, 0 if there is none."""
    last, known = np.zeros(len(errors)), dict[int, float]()
    for t, (key, error) in enumerate(zip(keys.tolist(), errors.tolist(), strict=True)):
        last[t] = known.get(key, 0.0)
        known[key] = error
    return last


def _uncorrelated_share(errors: Floats, last: Floats) -> float:
    """Return the root of the share of the late squared errors that no multiple of the last errors explains."""
    late = slice(len(errors) // 2, None)
    now, before = errors[late], last[late]
    size = float(before @ before)
    explained = float(now @ before) ** 2 / size if size > 0 else 0.0
    return math.sqrt(max(0.0, 1 - explained / float(now @ now)))


def _run(model: MetricRegressor, stream: KeyedStream, keys: NDArray[Any] | None = None) -> tuple[Floats, float]:
    """Return the predictions and the processor time of a run."""
    start = time.process_time()
    predictions = model.progressive(stream.X, stream.y, keys=keys)
    return predictions, time.process_time() - start


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = make_parser("past", __doc__)
    parser.add_argument(
        "--rows", type=int, default=ROWS, help="largest number of rows of a stream (default: %(default)s)"
    )
    parser.add_argument("--streams", nargs="*", choices=STREAMS, help="names of streams (default: all)")
    options: argparse.Namespace = parser.parse_args(arguments)
    require_positive(parser, options, "rows")
    table = new_table("Late NRMSE", ["stream", "rows", "features", "past", "by key", "ratio", "linear", "cost"])
    console, ratios = Console(), []
    with console.status("") as status:
        for name in options.streams or STREAMS:
            status.update(name)
            stream = STREAMS[name]()
            keys = None if stream.keys is None else stream.keys[: options.rows]
            result = measure(KeyedStream(stream.X[: options.rows], stream.y[: options.rows], keys))
            by_key = "" if result.by_key is None else f"{result.by_key:.3f}"
            numbers = f"{result.features_alone:.3f}", f"{result.with_past:.3f}", by_key, f"{result.ratio:.3f}"
            table.add_row(name, f"{result.rows:,}", *numbers, f"{result.linear:.3f}", f"{result.cost:.2f}")
            ratios.append(result.ratio)
    console.print(table)
    console.print(f"geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.3f}")


if __name__ == "__main__":
    main()
