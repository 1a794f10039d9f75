"""Importance on real tables: against permutation of held-out rows, and over several orders of the rows."""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from benchmarks.comparison.datasets import read_flights, read_pydataset
from ellipack import MetricRegressor, TableRegressor
from ellipack.validation import Floats

HELD_OUT = 0.25
"""Fraction of the rows at the end that are permuted."""

_PERMUTATIONS = 5


def flights(rows: int) -> tuple[Any, str]:
    """Return the first flights in time order, with the target arr_delay."""
    table = read_flights().dropna(subset=["arr_delay"]).head(rows)
    return table.drop(columns=["year", "arr_time", "air_time", "time_hour", "tailnum", "flight"]), "arr_delay"


def diamonds(rows: int, seed: int = 0) -> tuple[Any, str]:
    """Return diamonds in random order, with the target price."""
    return read_pydataset("ggplot2/diamonds").sample(rows, random_state=seed), "price"


def nox(rows: int) -> tuple[Any, str]:
    """Return emissions and wind with the target LNOx, in time order."""
    return read_pydataset("robustbase/NOxEmissions").head(rows), "LNOx"


def computers(rows: int) -> tuple[Any, str]:
    """Return prices of computers in time order."""
    return read_pydataset("Ecdat/Computers").head(rows), "price"


TABLES = {"flights": flights, "diamonds": diamonds, "nox": nox, "computers": computers}


class Agreement(NamedTuple):
    """Columns, their measured rises and those by permutation, and the rank correlation of both."""

    columns: list[str]
    measured: list[float]
    permuted: list[float]
    rank_correlation: float


def compare_with_permutation(table: Any, target: str) -> Agreement:
    """Return how well the measured rises agree with those of permuted columns in held-out rows."""
    split = round(len(table) * (1 - HELD_OUT))
    model = TableRegressor(target, learner=MetricRegressor(past=False)).fit(table.iloc[:split])
    importance = model.record_.importance
    assert importance is not None
    known = {each.columns[0]: each.rise for each in importance.columns if each.rise is not None}
    rest, rng = table.iloc[split:], np.random.default_rng(0)
    labels = rest[target].to_numpy(np.float64)
    error = _mean_squared_error(model, rest, labels)
    permuted = {name: _rise(model, rest, labels, name, rng) - error for name in known}
    names = sorted(known, key=lambda name: -permuted[name])
    pair = [known[name] for name in names], [permuted[name] for name in names]
    return Agreement(names, *pair, float(spearmanr(*pair).statistic))


def _rise(model: TableRegressor, rest: Any, labels: Floats, name: str, rng: np.random.Generator) -> float:
    """Return the mean squared error with a permuted column."""
    errors = []
    for _ in range(_PERMUTATIONS):
        shuffled = rest.assign(**{name: rest[name].to_numpy()[rng.permutation(len(rest))]})
        errors.append(_mean_squared_error(model, shuffled, labels))
    return float(np.mean(errors))


def _mean_squared_error(model: TableRegressor, rows: Any, labels: Floats) -> float:
    return float(np.mean((model.predict(rows) - labels) ** 2))


def shares_over_orders(rows: int, orders: int, column: str = "carat") -> list[float]:
    """Return the share of a column of diamonds, for several random orders of the rows."""
    shares = []
    for seed in range(orders):
        table, target = diamonds(rows, seed)
        importance = TableRegressor(target).fit(table).record_.importance
        assert importance is not None
        shares.append(next(each.share or 0.0 for each in importance.columns if each.columns[0] == column))
    return shares
