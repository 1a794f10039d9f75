"""Runs over tables with columns that are empty at first."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import ellipack
from ellipack import MetricRegressor, TableRegressor
from ellipack.errors import StreamError
from ellipack.evaluation.prediction_options import PredictionOptions
from ellipack.evaluation.run import Run, load_run
from ellipack.tabular import MIN_VALUES, TableBatch, TableEncoder
from ellipack.validation import Floats

HEIGHT, HEAD = 160, 10


def table() -> dict[str, list[str | None]]:
    """Return rows whose label depends on a sensor, a date and a word that are empty at first."""
    rng = np.random.default_rng(3)
    x, sensor, word = rng.normal(size=HEIGHT), 300 + rng.normal(size=HEIGHT), rng.integers(0, 3, HEIGHT)
    labels = x + 3 * (sensor - 300) + 2 * word
    return {
        "x": [f"{each:.3f}" for each in x],
        "sensor": [None if t < 30 or t % 9 == 0 else f"{sensor[t]:.3f} K" for t in range(HEIGHT)],
        "day": [None if t < 12 else f"{1 + t % 28:02d}.{1 + t // 28:02d}.2024" for t in range(HEIGHT)],
        "word": [None if t < 15 else "abc"[word[t]] for t in range(HEIGHT)],
        "note": [f"n{t}" if t % 20 == 0 else None for t in range(HEIGHT)],
        "ride": [str(t) for t in range(HEIGHT)],
        "y": [None if t % 7 == 6 else f"{labels[t]:.3f}" for t in range(HEIGHT)],
    }


def batch(start: int, stop: int) -> TableBatch:
    rows = pa.table({name: pa.array(cells[start:stop], pa.string()) for name, cells in table().items()})
    return TableBatch.from_table(rows, first=start + 1)


def new_run(id_column: str | None = None) -> Run:
    encoder = TableEncoder.from_head(batch(0, HEAD), "y", drop=["ride"], min_values=MIN_VALUES)
    return Run(MetricRegressor(), encoder, "t.csv", options=PredictionOptions(id_column=id_column, coverages=(0.8,)))


def learn(run: Run, ends: list[int]) -> Floats:
    results = [run.learn_batch(batch(start, stop)) for start, stop in zip([0, *ends], ends, strict=False)]
    return np.concatenate([np.column_stack([each.predictions, each.interval_ends]) for each in results])


def test_results_do_not_depend_on_batches_or_saving(tmp_path: Path) -> None:
    run, one_by_one, resumed = new_run(), new_run(), new_run()
    expected = learn(run, [HEIGHT])
    assert learn(one_by_one, list(range(1, HEIGHT + 1))).tobytes() == expected.tobytes()
    found = []
    for start, stop in ((0, 20), (20, 45), (45, 51), (51, 53), (53, 100), (100, HEIGHT)):
        result = resumed.learn_batch(batch(start, stop))
        found.append(np.column_stack([result.predictions, result.interval_ends]))
        resumed.save(tmp_path / "m")
        resumed = load_run(tmp_path / "m")
    assert np.concatenate(found).tobytes() == expected.tobytes()
    paths = [tmp_path / name for name in ("whole", "one by one", "resumed")]
    for each, path in zip((run, one_by_one, resumed), paths, strict=True):
        each.save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes() == paths[2].read_bytes()
    assert run.encoder.undecided_columns == ["note"]
    assert run.encoder.decisions == [
        "column 'day' has its first 20 values: dates or times (%d.%m.%Y) from row 33 on",
        "column 'word' has its first 20 values: text from row 36 on",
        "column 'sensor' has its first 20 values: numbers (in K) from row 53 on",
    ]


def test_a_late_column_helps_to_predict() -> None:
    run = new_run()
    predictions = learn(run, [HEIGHT])[:, 0]
    labels = np.array([np.nan if cell is None else float(cell) for cell in table()["y"]])
    errors = (predictions - labels)[100:]
    assert np.nanstd(errors) < 0.5 * np.nanstd(labels[100:])


def test_a_bad_cell_behind_the_decision_changes_nothing(tmp_path: Path) -> None:
    run = new_run()
    run.learn_batch(batch(0, 40))
    run.save(tmp_path / "before")
    rows = batch(40, HEIGHT)
    cells = rows.table.column("sensor").to_pylist()
    cells[60] = "broken"
    table = rows.table.set_column(1, "sensor", pa.array(cells))
    bad = TableBatch(table, rows.row_numbers, "t.csv")
    with pytest.raises(StreamError, match=r"t.csv, row 101, column 'sensor': 'broken' is not a number \(in K\)"):
        run.learn_batch(bad)
    run.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    result = run.learn_batch(bad, "skip")
    assert [row.row_number for row in result.bad_rows] == [101]
    assert len(result.predictions) == HEIGHT - 41


def test_labels_come_late_for_rows_of_which_a_column_was_undecided(tmp_path: Path) -> None:
    """The first value of the sensor does not fit the kind that the others decide."""
    run = new_run(id_column="ride")
    rows = batch(0, HEIGHT).table.to_pydict()
    rows["sensor"][31], rows["y"][31] = "warming up", None
    run.learn_batch(TableBatch.from_table(pa.table(rows)))
    assert "such as 'warming up' in row 32" in str(run.encoder.warnings)
    run.save(tmp_path / "m")
    later = {name: [cells[31]] for name, cells in rows.items()} | {"y": ["1.5"]}
    for each in (run, load_run(tmp_path / "m")):
        assert each.learn_batch(TableBatch.from_table(pa.table(later), first=HEIGHT + 1), "skip").labels.size == 0
        good = pa.table(later | {"sensor": [None]}, schema=pa.table(rows).schema)
        result = each.learn_batch(TableBatch.from_table(good, first=HEIGHT + 2))
        assert (result.labels.tolist(), each.late_labels) == ([1.5], 1)


def test_python_models_decide_late_too(tmp_path: Path) -> None:
    """Rows come one by one, and the first ones neither have a value of the sensor nor tell what text is."""
    rows = table()
    model = TableRegressor("y", drop=["ride"])
    for t in range(60):
        model.partial_fit({name: [cells[t]] for name, cells in rows.items()})
    run = new_run()
    run.learn_batch(batch(0, 60))
    assert model.run_.encoder.decisions == run.encoder.decisions
    few = {name: cells[50:55] for name, cells in rows.items()}
    model.save(tmp_path / "m")
    loaded = ellipack.load(tmp_path / "m")
    assert (
        loaded.predict(few).tolist()
        == model.predict(few).tolist()
        == run.learner.predict(run.encoder.transform(run.encoder.parse(batch(50, 55)))).tolist()
    )
    assert "sensor is present" in loaded.encoded_feature_names_
    early = TableRegressor("y", drop=["ride"]).partial_fit({name: cells[:10] for name, cells in rows.items()})
    bad = {name: cells[10:] for name, cells in rows.items()}
    bad["sensor"][90] = "broken"
    with pytest.raises(StreamError, match="row 101, column 'sensor': 'broken' is not a number"):
        early.partial_fit(bad)
    assert early.scores_.n_rows == 9
    few.pop("sensor")
    assert len(early.predict(few)) == 5  # an undecided column is not needed to predict
