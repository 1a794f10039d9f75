"""One learner per key, beside one learner for all: ``python -m benchmarks.keyed``, or `make bench-keyed`.

Each panel is learned four times in the same run: by one `MetricRegressor` that does not know the keys (none), by one
that uses the past of the same key (by key), by one per key that starts from nothing (own), and by `KeyedRegressor`
(keyed). Errors are late NRMSE: over the second half of the rows, relative to the standard deviation of its labels. The
ratio of errors, and the cost, a ratio of processor times, are those of `KeyedRegressor` to `MetricRegressor(by=...)`.

A second table has the cost and the memory of thousands of keys, with all learners in memory and with most on disk.
"""

import argparse
import gc
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.command_line import make_parser, new_table, require_positive
from benchmarks.measurement import memory_bytes
from benchmarks.past import STREAMS as PAST_STREAMS
from benchmarks.past import KeyedStream, panel, panel_stream
from benchmarks.streams import late_nrmse
from ellipack import KeyedRegressor, MetricConfig, MetricRegressor
from ellipack.validation import Floats

ROWS = 10_000
"""Default largest number of rows of a panel."""

KEYS = 3_000
"""Default number of keys of the second table."""

ROWS_PER_KEY = 4
"""Rows of each key of the second table."""

KEY_LEARNER: Final = MetricRegressor(2_000, past=False, n_jobs=1, config=MetricConfig(importance=False))
"""Parameters of the learner of a key, those of `KeyedRegressor`."""


class KeyedResult(NamedTuple):
    """Late errors on a panel, and processor time in microseconds per row."""

    rows: int
    keys: int
    no_keys: float
    by_key: float
    from_nothing: float
    keyed: float
    by_key_cost: float
    keyed_cost: float

    @property
    def cost(self) -> float:
        """Processor time of `KeyedRegressor` over that of `MetricRegressor(by=...)`."""
        return self.keyed_cost / self.by_key_cost

    @property
    def ratio(self) -> float:
        """Error of `KeyedRegressor` over that of `MetricRegressor(by=...)`."""
        return self.keyed / self.by_key


class StoreResult(NamedTuple):
    """Cost and memory of many keys."""

    on_disk: int
    microseconds: float  # of processor time per row, files included
    kilobytes: float  # of resident memory per key


def draw_panel(
    labels: Callable[[Floats, NDArray[np.int64], np.random.Generator], Floats], keys: int, rows: int = 10_000
) -> KeyedStream:
    """Return rows with three normal features, keys in random order, and noise of size 0.2."""
    rng = np.random.default_rng(0)
    X, key = rng.normal(size=(rows, 3)), rng.integers(keys, size=rows)
    return KeyedStream(X, labels(X, key, rng) + 0.2 * rng.normal(size=rows), key)


def equal_keys() -> KeyedStream:
    """Return 200 keys that are all alike."""
    return draw_panel(lambda X, *_: np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], 200)


def own_levels() -> KeyedStream:
    """Return 200 keys that differ in their level."""
    return draw_panel(lambda X, key, rng: np.sin(2 * X[:, 0]) + (2 * rng.normal(size=200))[key], 200)


def own_slopes() -> KeyedStream:
    """Return 100 keys that differ in their slopes."""
    return draw_panel(lambda X, key, rng: (rng.normal(size=(100, 3))[key] * X).sum(axis=1) + np.sin(2 * X[:, 0]), 100)


def own_scales() -> KeyedStream:
    """Return 100 keys whose labels are multiples of each other."""
    return draw_panel(lambda X, key, rng: np.exp(rng.normal(size=100))[key] * (3 + np.sin(2 * X[:, 0]) + X[:, 1]), 100)


def own_functions() -> KeyedStream:
    """Return 20 keys that have nothing in common."""
    return draw_panel(lambda X, key, rng: np.sin(2 * (rng.normal(size=(20, 3))[key] * X).sum(axis=1)), 20)


PANELS: Final[dict[str, Callable[[], KeyedStream]]] = {
    "equal keys": equal_keys,
    "own levels": own_levels,
    "moving levels": lambda: panel_stream(10_000),
    "own scales": own_scales,
    "own slopes": own_slopes,
    "own functions": own_functions,
    "firms": PAST_STREAMS["employment in firms"],
    "gasoline": PAST_STREAMS["gasoline in countries"],
    "states": panel("plm/Produc", "year", "state", "gsp", ("pcap", "pc", "emp", "unemp")),
    "wages": panel("plm/Males", "year", "nr", "wage", ("school", "exper")),
    "flights by route": PAST_STREAMS["departed flights, by route"],
    "flights by carrier": PAST_STREAMS["departed flights, by carrier"],
    "flights by plane": PAST_STREAMS["planned flights, by plane"],
}
"""Panels by name."""


def measure(stream: KeyedStream) -> KeyedResult:
    """Return the errors on a panel."""
    X, y, keys = stream.X, stream.y, np.asarray(stream.keys)
    no_keys, _ = _run(lambda: MetricRegressor(n_jobs=1).progressive(X, y))
    by_key, by_key_cost = _run(lambda: MetricRegressor(n_jobs=1, by="key").progressive(X, y, keys=keys))
    keyed, keyed_cost = _run(
        lambda: KeyedRegressor("key", pooled=MetricRegressor(n_jobs=1)).progressive(X, y, keys=keys)
    )
    return KeyedResult(
        rows=len(y),
        keys=len(np.unique(keys)),
        no_keys=late_nrmse(no_keys, y),
        by_key=late_nrmse(by_key, y),
        from_nothing=late_nrmse(predict_from_nothing(stream), y),
        keyed=late_nrmse(keyed, y),
        by_key_cost=by_key_cost,
        keyed_cost=keyed_cost,
    )


def predict_from_nothing(stream: KeyedStream) -> Floats:
    """Return the predictions of learners, one per key, that know nothing of each other."""
    predictions, codes = np.empty(len(stream.y)), np.unique(np.asarray(stream.keys), return_inverse=True)[1]
    for code in range(codes.max() + 1):
        mine = codes == code
        predictions[mine] = _new_key_learner().progressive(stream.X[mine], stream.y[mine])
    return predictions


def _new_key_learner() -> MetricRegressor:
    return MetricRegressor(**KEY_LEARNER.get_params(deep=False))


def _run(learn: Callable[[], Floats]) -> tuple[Floats, float]:
    """Return predictions and the microseconds of processor time per row."""
    start = time.process_time()
    predictions = learn()
    return predictions, 1e6 * (time.process_time() - start) / len(predictions)


def measure_store(keys: int, max_learners: int) -> StoreResult:
    """Return the cost and the memory of many keys, each of which comes again after all the others.

    The memory is that of this process, which should have done nothing else before.
    """
    rng = np.random.default_rng(0)
    X, y, key = rng.normal(size=(ROWS_PER_KEY * keys, 5)), rng.normal(size=ROWS_PER_KEY * keys), np.arange(keys)
    learner = KeyedRegressor("key", pooled=MetricRegressor(n_jobs=1), max_learners=max_learners)
    gc.collect()
    before, start = memory_bytes("VmRSS"), time.process_time()
    learner.fit(X, y, keys=np.tile(key, ROWS_PER_KEY))
    seconds = time.process_time() - start
    return StoreResult(learner.n_keys_on_disk_, 1e6 * seconds / len(y), (memory_bytes("VmRSS") - before) / 1024 / keys)


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = make_parser("keyed", __doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="largest number of rows (default: %(default)s)")
    parser.add_argument("--keys", type=int, default=KEYS, help="keys of the second table (default: %(default)s)")
    parser.add_argument("--panels", nargs="*", choices=PANELS, help="names of panels (default: all)")
    options: argparse.Namespace = parser.parse_args(arguments)
    require_positive(parser, options, "rows", "keys")
    table = new_table("Late NRMSE", ["panel", "keys", "none", "by key", "own", "keyed", "ratio", "cost"])
    console, ratios = Console(), []
    with console.status("") as status:
        for name in PANELS if options.panels is None else options.panels:
            status.update(name)
            result = measure(_head(PANELS[name](), options.rows))
            numbers = [f"{each:.3f}" for each in (*result[2:6], result.ratio)]
            table.add_row(name, f"{result.keys:,}", *numbers, f"{result.cost:.1f}")
            ratios.append(result.ratio)
        stores = new_table(f"{options.keys:,} keys", ["learners in memory", "on disk", "us/row", "KB/key"])
        for most in (max(1, options.keys // 20), options.keys):
            status.update(f"{most} learners in memory")
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                store = process.submit(measure_store, options.keys, most).result()
            stores.add_row(f"{most:,}", f"{store.on_disk:,}", f"{store.microseconds:.0f}", f"{store.kilobytes:.1f}")
    if ratios:
        console.print(table)
        console.print(
            f"geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.3f}, largest: {max(ratios):.3f}"
        )
    console.print(stores)


def _head(stream: KeyedStream, rows: int) -> KeyedStream:
    keys: NDArray[Any] = np.asarray(stream.keys)
    return KeyedStream(stream.X[:rows], stream.y[:rows], keys[:rows])


if __name__ == "__main__":
    main()
