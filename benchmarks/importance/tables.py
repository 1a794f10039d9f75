"""Importance on real tables: against permutation of columns, and over several orders of the rows."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from benchmarks.comparison.datasets import read_flights, read_pydataset
from ellipack import MetricRegressor, TableRegressor
from ellipack.report.record import ColumnShare
from ellipack.validation import Floats

ALL_ROWS = 10**9
"""Number of rows that no table has."""

_FOLDS, _MAX_HELD_OUT = 4, 10_000  # one in four rows is held out, but no more than that
_PERMUTATIONS = 3
_DRAWS = 200  # of errors, for the rank correlation that standard errors allow
_BLOCK, _MAX_BLOCKS = 50, 200  # rows that are permuted before they are learned, and how often


def flights(rows: int) -> tuple[Any, str]:
    """Return the first flights of the table, with the target arr_delay."""
    return _known_at_departure(read_flights().dropna(subset=["arr_delay"]).head(rows))


def _known_at_departure(table: Any) -> tuple[Any, str]:
    return table.drop(columns=["year", "arr_time", "air_time", "time_hour", "tailnum", "flight"]), "arr_delay"


def diamonds(rows: int, seed: int = 0) -> tuple[Any, str]:
    """Return diamonds in random order, with the target price."""
    table = read_pydataset("ggplot2/diamonds")
    return table.sample(min(rows, len(table)), random_state=seed), "price"


def nox(rows: int) -> tuple[Any, str]:
    """Return emissions and wind with the target LNOx, in time order."""
    return read_pydataset("robustbase/NOxEmissions").head(rows), "LNOx"


def computers(rows: int) -> tuple[Any, str]:
    """Return prices of computers in time order."""
    return read_pydataset("Ecdat/Computers").head(rows), "price"


TABLES: dict[str, Callable[[int], tuple[Any, str]]] = {
    "flights": flights,
    "diamonds": diamonds,
    "nox": nox,
    "computers": computers,
}


def known_tables(folder: Path | None) -> dict[str, Callable[[int], tuple[Any, str]]]:
    """Return the tables above and those of a folder of CSV files, of which the last column is the target."""

    def reader(path: Path) -> Callable[[int], tuple[Any, str]]:
        return lambda rows: (table := pd.read_csv(path, nrows=rows), str(table.columns[-1]))

    paths = sorted(folder.glob("*.csv*")) if folder is not None else []
    return TABLES | {path.name.split(".")[0]: reader(path) for path in paths}


class Agreement(NamedTuple):
    """Rises of columns, correlated ones as one, in three ways; the most important of the held-out rows first.

    Attributes
    ----------
    columns : list of str
        Names of the columns.
    measured, stds : array of shape (n_learners, n)
        Rises that learners with different random states measured, and their standard errors.
    progressive : array of shape (n,)
        Rises by permuting each block of rows before it is learned.
    held_out : array of shape (2, n)
        Rises by permuting rows that were not learned, in two halves of these rows. Each quarter of the table is held
        out once, as far as there are learners: rises in a single quarter differ by chance.
    """

    columns: list[str]
    measured: Floats
    stds: Floats
    progressive: Floats
    held_out: Floats

    def rank_correlations(self) -> dict[str, float]:
        """Return the rank correlations of the rises, and what could be reached at most."""
        total = self.held_out.mean(axis=0)
        return {
            "measured and held-out": self._mean_correlation(total),
            "as standard errors allow": self._expected_correlation(total),
            "measured and progressive": self._mean_correlation(self.progressive),
            "progressive and held-out": _rank_correlation(self.progressive, total),
            "two halves of held-out": _rank_correlation(*self.held_out),
        }

    def _mean_correlation(self, truth: Floats) -> float:
        """Return the rank correlation of measured and other rises, on average over the learners."""
        return float(np.mean([_rank_correlation(each, truth) for each in self.measured]))

    def _expected_correlation(self, truth: Floats) -> float:
        """Return the mean rank correlation of rises with the same rises and errors as large as the standard errors."""
        errors = np.random.default_rng(0).normal(size=(_DRAWS, *self.stds.shape)) * self.stds
        return float(np.mean([_rank_correlation(truth, truth + each) for each in errors.reshape(-1, len(truth))]))

    def ordered_pairs(self) -> tuple[int, int]:
        """Return the number of pairs that learners tell apart and that are in the order of held-out, and of all.

        A learner tells columns apart whose rises differ by two standard errors.
        """
        total = self.held_out.mean(axis=0)
        right = count = 0
        for i, j in combinations(range(len(self.columns)), 2):
            differences = self.measured[:, i] - self.measured[:, j]
            clear = np.abs(differences) > 2 * np.hypot(self.stds[:, i], self.stds[:, j])
            right += int((differences[clear] * (total[i] - total[j]) > 0).sum())
            count += int(clear.sum())
        return right, count


def _rank_correlation(left: Floats, right: Floats) -> float:
    return float(spearmanr(left, right).statistic)


def compare_with_permutation(table: Any, target: str, learners: int) -> Agreement:
    """Return the rises that learners measure, and those by permutation, of the same rows and of held-out ones.

    Rows are in random order. Held-out rows between learned rows of the same time would say what the learner does with
    times that it knows, while it measures rises in rows of a time that it has not seen. Learners take turns in which
    quarter of the rows is held out, and the first one of each quarter is compared with permutation.
    """
    table = table.sample(frac=1.0, random_state=0)
    count = min(len(table) // _FOLDS, _MAX_HELD_OUT)
    places, numbers = np.arange(len(table)) // count, range(min(learners, _FOLDS))
    parts = [(table.iloc[places != fold], table.iloc[places == fold]) for fold in numbers]
    models = [
        TableRegressor(target, learner=MetricRegressor(past=False, random_state=seed)).fit(parts[seed % len(parts)][0])
        for seed in range(learners)
    ]
    measured = [{tuple(each.columns): each for each in _measured_groups(model)} for model in models]
    names = [list(columns) for columns in measured[0] if all(columns in each for each in measured)]
    rises = [
        [_rises_by_permutation(model, rows.iloc[half::2], target, names) for half in (0, 1)]
        for model, (_, rows) in zip(models, parts, strict=False)
    ]
    held_out = np.mean(rises, axis=0)
    order = np.argsort(-held_out.mean(axis=0))
    return Agreement(
        [" + ".join(names[k]) for k in order],
        np.array([[each[tuple(names[k])].rise for k in order] for each in measured]),
        np.array([[each[tuple(names[k])].rise_std for k in order] for each in measured]),
        progressive_rises(parts[0][0], target, names)[order],
        held_out[:, order],
    )


def _measured_groups(model: TableRegressor) -> list[ColumnShare]:
    importance = model.record_.importance
    assert importance is not None
    return [each for each in importance.groups if each.rise is not None]


def _rises_by_permutation(model: TableRegressor, rows: Any, target: str, groups: list[list[str]]) -> Floats:
    """Return the rise in squared error when the columns of each group are permuted together."""
    rng, labels = np.random.default_rng(0), rows[target].to_numpy(np.float64)
    errors = np.zeros(len(groups))
    for k, names in enumerate(groups):
        for _ in range(_PERMUTATIONS):
            errors[k] += _squared_error(model, _replaced(rows, rows.iloc[rng.permutation(len(rows))], names), labels)
    return errors / _PERMUTATIONS - _squared_error(model, rows, labels)


def progressive_rises(table: Any, target: str, groups: list[list[str]]) -> Floats:
    """Return the mean rises in squared error of blocks of rows that are predicted before they are learned.

    This is what the learner estimates: the columns of a group are taken from random earlier rows. Blocks are evenly
    spaced; the rows between them are only learned.
    """
    rng, model = np.random.default_rng(0), TableRegressor(target, learner=MetricRegressor(past=False))
    model.partial_fit(table.iloc[:_BLOCK])
    sums, step = np.zeros(len(groups)), max(_BLOCK, len(table) // _MAX_BLOCKS)
    starts = range(_BLOCK, len(table) - _BLOCK + 1, step)
    for start in starts:
        rows = table.iloc[start : start + _BLOCK]
        labels, sources = rows[target].to_numpy(np.float64), table.iloc[rng.integers(start, size=len(rows))]
        usual = _squared_error(model, rows, labels)
        for k, names in enumerate(groups):
            sums[k] += _squared_error(model, _replaced(rows, sources, names), labels) - usual
        model.partial_fit(table.iloc[start : start + step])
    return sums / len(starts)


def _replaced(rows: Any, sources: Any, names: list[str]) -> Any:
    """Return rows with some columns from other rows."""
    return rows.assign(**{name: sources[name].to_numpy() for name in names})


def _squared_error(model: TableRegressor, rows: Any, labels: Floats) -> float:
    return float(np.mean((model.predict(rows) - labels) ** 2))


class OrderShares(NamedTuple):
    """Shares of a column and of its group, and the rise of the column alone relative to that of its group."""

    column: float
    group: float
    alone: float


def shares_over_orders(rows: int, orders: int, column: str = "carat") -> list[OrderShares]:
    """Return the shares of a column of diamonds, for several random orders of the rows."""
    shares = []
    for seed in range(orders):
        table, target = diamonds(rows, seed)
        importance = TableRegressor(target).fit(table).record_.importance
        assert importance is not None
        own = next(each for each in importance.columns if each.columns[0] == column)
        group = next(each for each in importance.groups if column in each.columns)
        alone = (own.rise or 0.0) / (group.rise or 1.0)
        shares.append(OrderShares(own.share or 0.0, group.share or 0.0, alone))
    return shares
