"""Tables with one learner per key, in Python and from the command line."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ellipack
from ellipack import KeyedRegressor, MetricConfig, MetricRegressor, TableRegressor
from ellipack.report.page import render_page

SMALL = MetricConfig(validation_points=8, pool=16, powers=(0.5,), ridges=(0.01,))


def sales(rows: int = 90, seed: int = 0) -> pd.DataFrame:
    """Return sales whose dependence on the price differs between stores."""
    rng = np.random.default_rng(seed)
    store = rng.integers(3, size=rows)
    price = rng.normal(size=rows)
    names = np.array(["north", "south", "east"])[store]
    return pd.DataFrame(
        {"id": np.arange(rows).astype(str), "store": names, "price": price, "sales": (2 * store - 2) * price + 1}
    )


def model(**parameters: Any) -> TableRegressor:
    learner = KeyedRegressor(
        "store",
        learner=MetricRegressor(24, neighbors=4, past=False, n_jobs=1, config=SMALL),
        pooled=MetricRegressor(neighbors=4, n_jobs=1, config=SMALL),
        max_learners=2,
    )
    return TableRegressor("sales", learner=learner, drop=["id"], **parameters)


def test_a_run_is_resumed_with_the_same_bits(tmp_path: Path) -> None:
    table = sales()
    whole, first = model(), model()
    expected, (lower, upper) = whole.progressive(table, coverage=0.9)
    found, _ = first.progressive(table[:50], coverage=0.9)
    first.save(tmp_path / "model")
    second = ellipack.load(tmp_path / "model")
    assert isinstance(second, TableRegressor)
    more, _ = second.progressive(table[50:], coverage=0.9)
    assert np.append(found, more).tolist() == expected.tolist()
    assert (lower <= expected).all()
    assert (expected <= upper).all()
    assert second.predict(table).tolist() == whole.predict(table).tolist()
    assert second.predict_interval(table).lower.tolist() == whole.predict_interval(table).lower.tolist()


def test_predictions_depend_on_the_key() -> None:
    learner = model().fit(sales(200))
    prices = pd.DataFrame({"store": ["north", "south", "east"], "price": [1.0, 1.0, 1.0]})
    assert learner.predict(prices).round(1).tolist() == pytest.approx([-1.0, 1.0, 3.0], abs=0.3)


def test_the_record_has_errors_by_key() -> None:
    table = sales()
    learner = model()
    errors = learner.progressive(table) - table["sales"].to_numpy()
    keys = learner.record_.keys
    assert keys is not None
    assert (keys.name, keys.count, keys.on_disk) == ("store", 3, 1)
    assert keys.rmse == pytest.approx(np.sqrt(np.mean(errors**2)))
    for name, rows, rmse in zip(keys.names, keys.rows, keys.key_rmse, strict=True):
        mine = (table["store"] == name).to_numpy()
        assert rows == mine.sum()
        assert rmse == pytest.approx(np.sqrt(np.mean(errors[mine] ** 2)))
    assert "Each of 3 keys (store) has a learner of its own" in render_page(learner.record_)
    assert learner.partial_dependence("price")


def test_labels_may_come_late(tmp_path: Path) -> None:
    """Rows wait for their labels, also in a file."""
    table, late = sales(), sales()[60:70]
    parts = [table[:60], late.assign(sales=None), table[70:80], late]
    learner, resumed = model(id_column="id"), model(id_column="id")
    for part in parts:
        learner.progressive(part)
    for part in parts[:2]:
        resumed.progressive(part)
    resumed.save(tmp_path / "model")
    loaded = ellipack.load(tmp_path / "model")
    for part in parts[2:]:
        loaded.progressive(part)
    assert loaded.predict(table).tolist() == learner.predict(table).tolist()
    assert learner.run_.late_labels == 10
