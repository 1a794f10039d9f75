"""`TableRegressor` and `ellipack.run` on many workers."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ellipack
from ellipack import KeyedRegressor, MetricRegressor, Sharding, TableRegressor, Workers
from ellipack.errors import InputError
from ellipack.tables.frames import regroup_tables, to_arrow
from tests.learners.metric.learners import QUICK

ROWS = 1300
SHARDING = Sharding(shards=2, exchange=0.5, min_rows=40)


def messy_table(rows: int = ROWS) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    sky, wind = rng.choice(["clear", "rain", "snow"], rows), rng.normal(size=rows)
    delay = 10 * (sky == "rain") + np.sin(wind) + 0.1 * rng.normal(size=rows)
    days = [f"2024-01-{1 + t // 60:02}" for t in range(rows)]
    known = [None if t % 7 == 0 else float(each) for t, each in enumerate(wind)]
    return {"day": days, "sky": sky.tolist(), "wind": known, "delay": delay.tolist()}


def model() -> TableRegressor:
    return TableRegressor("delay", learner=MetricRegressor(n_jobs=1, neighbors=16, past=False, config=QUICK))


def part(table: dict[str, list[Any]], rows: slice) -> dict[str, list[Any]]:
    return {name: column[rows] for name, column in table.items()}


def test_the_result_depends_on_the_rows_and_not_on_how_they_are_divided(tmp_path: Path) -> None:
    table, found = messy_table(), []
    parts = [part(table, rows) for rows in (slice(0, 100), slice(100, 1150), slice(1150, 1151), slice(1151, None))]
    with ThreadPoolExecutor(2) as executor:
        workers = Workers(executor, SHARDING)
        for rows in (table, iter(parts)):
            learner = model()
            predictions, intervals = learner.progressive(rows, coverage=0.9, workers=workers)
            learner.save(tmp_path / "model")
            found.append((predictions.tobytes(), intervals.lower.tobytes(), (tmp_path / "model").read_bytes()))
        result = ellipack.run(table, "delay", learner=model().learner, workers=workers)
    assert all(each == found[0] for each in found)
    assert result.predictions.tobytes() == found[0][0]
    alone, errors = model().progressive(table), np.array(table["delay"])[650:]
    assert alone[:512].tobytes() == np.frombuffer(found[0][0])[:512].tobytes()
    together = np.frombuffer(found[0][0])
    assert not np.array_equal(alone, together)
    assert np.std(together[650:] - errors) < 1.1 * np.std(alone[650:] - errors)
    assert pickle.loads(pickle.dumps(learner)).run_.workers is None


def test_files_are_learned_by_workers_as_tables_are(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(messy_table(1100))
    frame.to_parquet(tmp_path / "t.parquet")
    with ThreadPoolExecutor(1) as executor:
        workers = Workers(executor, SHARDING)
        found = ellipack.run(tmp_path / "t.parquet", "delay", learner=model().learner, workers=workers)
        expected = model().progressive(frame, workers=workers)
    assert found.predictions.tobytes() == expected.tobytes()


def test_other_learners_need_no_workers() -> None:
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(InputError, match="workers need a MetricRegressor, got KeyedRegressor"),
    ):
        TableRegressor("delay", learner=KeyedRegressor("sky")).fit(messy_table(30), workers=Workers(executor))


def test_tables_with_columns_of_other_types_or_names_are_regrouped_or_rejected() -> None:
    tables = [to_arrow(each) for each in ({"a": [1], "b": [2.5]}, {"b": [1], "a": ["x"]}, {"a": [None], "b": [3]})]
    batches = list(regroup_tables(tables, 1, lambda rows, columns: 2))
    assert [batch.row_numbers.tolist() for batch in batches] == [[1, 2], [3]]
    assert batches[0].table.to_pydict() == {"a": ["1", "x"], "b": [2.5, 1.0]}
    with pytest.raises(InputError, match="one lacks: b"):
        list(regroup_tables([*tables, to_arrow({"a": [1]})], 1, lambda rows, columns: 9))
