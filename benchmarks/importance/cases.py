"""Tables on which weights of the metric, read as importances, are wrong: time that grows, and features that come late.

Each case prints what the learner says drives it.
"""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.importance.generators import trend
from benchmarks.importance.tables import flights, nox
from ellipack import MetricRegressor, TableRegressor
from ellipack.report.headline import build_headline
from ellipack.report.record import Record
from ellipack.river import MetricRegressor as RiverMetricRegressor


def headline(record: Record) -> str:
    """Return the headline of the report as plain text."""
    return "".join(part if isinstance(part, str) else part.text for part in build_headline(record))


def growing_day(rows: int) -> Iterator[str]:
    """Describe emissions with the day since the start of the year, which explains little alone."""
    table, target = nox(rows)
    yield headline(TableRegressor(target).fit(table).record_)


def row_number(rows: int) -> Iterator[str]:
    """Describe ``3a + b`` with autocorrelated noise and a row number."""
    stream = trend(np.random.default_rng(0), rows)
    table = dict(zip(("a", "b", "row", "y"), [*stream.X.T, stream.y], strict=True))
    yield headline(TableRegressor("y").fit(table).record_)


def days_since_start(rows: int) -> Iterator[str]:
    """Describe flights with the days since the first one."""
    table, target = flights(rows)
    first = (table["month"] - 1) * 31 + table["day"]
    table = table.drop(columns=["month", "day"]).assign(days=first + table["hour"] / 24)
    yield headline(TableRegressor(target).fit(table).record_)


def rare_carriers(rows: int) -> Iterator[str]:
    """Describe flights of which two carriers have a dozen rows: levels of a column count together."""
    table, target = flights(rows)
    rarest = table["carrier"].value_counts().tail(2).to_dict()
    importance = TableRegressor(target).fit(table).record_.importance
    assert importance is not None
    share = next(each for each in importance.groups if "carrier" in each.columns)
    yield f"rows of the rarest {rarest}; share of all carriers {share.share:.1%} +- {share.share_std:.1%}"


def useless_flag(rows: int) -> Iterator[str]:
    """Describe a stream of River in which a flag without effect appears after 1,000 rows."""
    rng, model = np.random.default_rng(0), RiverMetricRegressor()
    for t in range(1200):
        a, b = rng.normal(size=2)
        flag = {"flag": float(rng.integers(2))} if t >= 1000 else {}
        model.learn_one({"a": a, "b": b, **flag}, 2 * a + b)
        if t in (999, 1001, 1199):
            shares = {name: f"{share:.0%}" for name, share in model.feature_importances.items()}
            yield f"after {t + 1:,} rows: {shares}, effective rank {model.effective_rank}"


def late_features(rows: int) -> Iterator[str]:
    """Compare predictions with late features to those of a learner that has them, as zeros, from the start."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 4))
    X[: rows // 3, 2:] = 0
    y = X[:, 0] + 2 * X[:, 2] + 0.5 * rng.normal(size=rows)
    river, late = RiverMetricRegressor(), []
    for t in range(rows):
        row = dict(enumerate(X[t, : 4 if t >= rows // 3 else 2].tolist()))
        late.append(river.predict_one(row))
        river.learn_one(row, float(y[t]))
    known = MetricRegressor().progressive(X, y)
    errors = [float(np.sqrt(np.mean((each - y)[rows // 3 :] ** 2))) for each in (np.array(late), known)]
    yield f"RMSE once they are there: {errors[0]:.4f}, known from the start {errors[1]:.4f}"


CASES: dict[str, Callable[[int], Iterator[str]]] = {
    "NOx with julday": growing_day,
    "3a + b, autocorrelated noise, row number": row_number,
    "flights with days since the start": days_since_start,
    "rare carriers": rare_carriers,
    "a useless flag that comes late (River)": useless_flag,
    "features that come late (River)": late_features,
}
