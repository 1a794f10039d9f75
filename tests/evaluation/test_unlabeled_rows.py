"""Rows without a label: they are predicted and not learned, unless their labels come later."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack import MetricRegressor, river, serialization
from ellipack.errors import InputError, ModelFileError
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.loading import RUN_KIND
from ellipack.evaluation import waiting_rows
from ellipack.evaluation.prediction_options import PredictionOptions
from ellipack.evaluation.run import Run, load_run
from ellipack.evaluation.scores import WARM_UP_ROWS
from ellipack.learners.intervals import RowPredictions
from ellipack.tabular import LevelOptions, TableBatch, TableEncoder
from ellipack.tabular.arrow import pa
from ellipack.validation import Floats
from tests.fuzz.strategies import n_examples
from tests.strategies import seeds

ROWS = 80
BY_ID = PredictionOptions(id_column="id", keep=("sky",))


def numbers(rows: int = ROWS) -> tuple[Floats, Floats]:
    """Return features and labels that depend on the features and on the label before."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(rows, 2)), np.zeros(rows)
    for t in range(rows):
        y[t] = 2 * X[t, 0] + 0.8 * y[t - 1]
    return X, y


def messy_table(seed: int, n_late: int) -> pa.Table:
    """Return a table in which some labels are missing, and some of these come later with the same id."""
    rng = np.random.default_rng(seed)
    (X, y), labels = numbers(), rng.uniform(size=ROWS) < 0.6
    rows = [
        [f"id {t}" if t % 9 else None, X[t, 0] if t % 11 else None, ["clear", "rain", "a, b"][t % 3], y[t]]
        for t in range(ROWS)
    ]
    for t in rng.choice(np.flatnonzero(~labels), min(n_late, int((~labels).sum())), replace=False):
        rows.append([rows[t][0], None, None, y[t]])
        rows[t][3] = None
    late = rng.permutation(np.arange(ROWS // 2, len(rows)))  # labels come later, but not in order
    rows = rows[: ROWS // 2] + [rows[i] for i in sorted(late, key=lambda i: i + 20 * (i >= ROWS) * rng.uniform())]
    return pa.table(dict(zip(("id", "x", "sky", "y"), map(list, zip(*rows, strict=True)), strict=True)))


def new_run(table: pa.Table, options: PredictionOptions, learner: StreamingRegressor | None = None) -> Run:  # type: ignore[type-arg]
    drop = [options.id_column] if options.id_column else []
    encoder = TableEncoder.from_head(TableBatch.from_table(table), "y", drop=drop)
    return Run(learner or MetricRegressor(n_jobs=1), encoder, "sky.csv", options=options)


@settings(max_examples=n_examples(10))
@given(seeds, st.lists(st.integers(1, 100), max_size=6))
def test_results_do_not_depend_on_batching_or_saving(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[int]
) -> None:
    folder, table = tmp_path_factory.mktemp("run"), messy_table(seed, 15)
    whole = new_run(table, BY_ID)
    expected = whole.learn_batch(TableBatch.from_table(table))
    run, predictions, kept = new_run(table, BY_ID), list[float](), list[str | None]()
    for start, stop in pairwise(sorted({0, table.num_rows, *(cut for cut in cuts if cut < table.num_rows)})):
        run.save(folder / "between")
        run = load_run(folder / "between")
        result = run.learn_batch(TableBatch.from_table(table.slice(start, stop - start), "sky.csv", start + 1))
        predictions += result.predictions.tolist()
        kept += result.kept[1]
    assert predictions == expected.predictions.tolist()
    assert kept == expected.kept[1] == table["sky"].to_pylist()
    whole.save(folder / "whole")
    run.save(folder / "parts")
    assert (folder / "whole").read_bytes() == (folder / "parts").read_bytes()


@pytest.mark.parametrize("learner", [MetricRegressor(n_jobs=1), MetricRegressor(past=False, n_jobs=1)])
def test_rows_without_a_label_change_nothing_but_their_count(learner: MetricRegressor) -> None:
    X, y = numbers()
    labels = [None if t % 4 == 2 or t == 0 else label for t, label in enumerate(y.tolist())]
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": pa.array(labels, pa.float64())})
    run = new_run(table, PredictionOptions(), learner)
    result = run.learn_batch(TableBatch.from_table(table))
    known = ~np.isnan(result.labels)
    expected = MetricRegressor(past=learner.past, n_jobs=1)
    np.testing.assert_array_equal(result.predictions[known], expected.progressive(X[known], y[known]))
    n_known = int(known.sum())
    assert (run.unlabeled, run.scores.n_rows, run.skipped) == (ROWS - n_known, n_known, 0)
    assert result.row_numbers.tolist() == list(range(1, ROWS + 1))
    assert result.predictions[0] == 0.0  # nothing was known
    for t in np.flatnonzero(~known)[1:]:
        before = MetricRegressor(past=learner.past, n_jobs=1).fit(X[:t][known[:t]], y[:t][known[:t]])
        assert result.predictions[t] == before.predict_next(X[t : t + 1])[0]


@pytest.mark.parametrize("delay", [1, 7])
def test_late_labels_give_the_predictions_and_intervals_of_river(delay: int) -> None:
    """River's model also learns late labels with the past and the intervals of their predictions.

    It is an independent implementation.
    """
    X, y = numbers()
    rows: list[tuple[str, float | None, float | None, float | None]] = []
    expected, ends, model = list[float](), list[list[float]](), river.MetricRegressor()
    for t in range(ROWS + delay):
        if t >= delay:
            rows.append((f"{t - delay}", None, None, y[t - delay]))
            model.learn_one({"a": X[t - delay, 0], "b": X[t - delay, 1]}, y[t - delay])
        if t < ROWS:
            rows.append((f"{t}", X[t, 0], X[t, 1], None))
            expected.append(model.predict_one({"a": X[t, 0], "b": X[t, 1]}))
            interval = model.predict_interval_one({"a": X[t, 0], "b": X[t, 1]}, coverage=0.8)
            ends.append([interval.lower, interval.upper])
    table = pa.table(dict(zip(("id", "a", "b", "y"), map(list, zip(*rows, strict=True)), strict=True)))
    run = new_run(table, PredictionOptions(id_column="id", coverages=(0.8,)))
    result = run.learn_batch(TableBatch.from_table(table))
    first = np.isnan(result.labels)
    assert result.interval_ends[first].tolist() == ends
    assert result.interval_ends[~first].tolist() == ends
    assert result.predictions[first].tolist() == expected
    assert result.predictions[~first].tolist() == expected  # with a late label comes the prediction of its row
    assert result.labels[~first].tolist() == y.tolist()
    assert (run.unlabeled, run.late_labels, run.scores.n_rows, len(run.waiting)) == (ROWS, ROWS, ROWS, 0)
    assert run.scores.rmse == pytest.approx(np.sqrt(np.mean((np.array(expected) - y)[WARM_UP_ROWS:] ** 2)))


def test_a_late_label_is_learned_with_the_features_of_the_prediction() -> None:
    """The statistics of the labels of store a are known when the second label comes, but were not at its prediction."""
    table = pa.table(
        {
            "id": ["1", "2", "1", "2"],
            "store": ["a", "a", None, None],
            "x": [1.0, 2.0, None, None],
            "y": [None, None, 5.0, 7.0],
        }
    )
    levels = LevelOptions(one_hot=0)
    encoder = TableEncoder.from_head(TableBatch.from_table(table), "y", drop=["id"], levels=levels)
    run = Run(MetricRegressor(n_jobs=1), encoder, "table", options=PredictionOptions(id_column="id"))
    run.learn_batch(TableBatch.from_table(table))
    rows = run.learner.state_.core.parts().plain.centers.rows
    place = encoder.feature_names.index("x")
    assert rows[:, place].tolist() == [1.0, 2.0]
    assert np.count_nonzero(rows) == 2  # all statistics are 0
    latest = TableBatch.from_table(pa.table({"store": ["a"], "x": [0.0]}))
    assert np.count_nonzero(encoder.transform(encoder.parse_unlabeled(latest))) > 0


def test_a_repeated_id_replaces_the_row_that_waits_and_too_many_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_rows, "MAX_WAITING", 2)
    table = pa.table(
        {"id": ["a", "b", "a", "c", "b", "a"], "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "y": [None] * 4 + [7.0, 8.0]}
    )
    run = new_run(table, PredictionOptions(id_column="id"))
    run.learn_batch(TableBatch.from_table(table))
    assert (run.waiting.forgotten, len(run.waiting)) == (1, 1)  # b is forgotten, c still waits
    assert (run.late_labels, run.scores.n_rows) == (1, 2)
    assert run.learner.state_.core.parts().plain.centers.rows[:, 0].tolist() == [5.0, 3.0]


def test_predictions_are_bounded() -> None:
    X, y = numbers()
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
    free = new_run(table, PredictionOptions()).learn_batch(TableBatch.from_table(table)).predictions
    run = new_run(table, PredictionOptions(minimum=-1.0, maximum=2.0))
    bounded = run.learn_batch(TableBatch.from_table(table)).predictions
    np.testing.assert_array_equal(bounded, np.clip(free, -1.0, 2.0))
    assert free.min() < -1 < 2 < free.max()
    assert run.scores.rmse == pytest.approx(np.sqrt(np.mean((bounded - y)[WARM_UP_ROWS:] ** 2)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minimum": 2.0, "maximum": 1.0}, "the minimum must be at most the maximum, 1, got 2"),
        ({"minimum": float("nan")}, "the minimum must be a number"),
        ({"maximum": 1e70}, "the maximum must be a number of at most 1e"),
        ({"keep": ("row",)}, "must not be called row, prediction, label, .* got 'row'"),
        ({"id_column": "label"}, "got 'label'"),
        ({"keep": ("a", "a")}, "must be distinct"),
    ],
)
def test_invalid_options_raise(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PredictionOptions(**options)  # type: ignore[arg-type]


def test_invalid_waiting_rows_raise(tmp_path: Path) -> None:
    table = messy_table(0, 0)
    run = new_run(table, BY_ID)
    run.learn_batch(TableBatch.from_table(table.slice(0, 30)))
    predictions = RowPredictions(np.array([0.5]), np.full((1, 16), 0.25), np.zeros((1, 5)))
    run.waiting.add("x", waiting_rows.WaitingRow(["1", None], np.ones(2), ["a", None], predictions))
    run.save(tmp_path / "model")
    restored = load_run(tmp_path / "model").waiting.pop("x")
    assert restored is not None
    assert restored.key == ["a", None]
    for own, expected in zip(restored.predictions, predictions, strict=True):
        assert own.tolist() == expected.tolist()
    _, archive = serialization.read(tmp_path / "model")
    waiting = archive.facts["waiting"]
    for change, message in (
        ({"waiting": waiting | {"cells": [["1"]]}}, "waiting/cells must be 2 strings or nulls for each of 1 rows"),
        ({"waiting": waiting | {"ids": ["x", "x"]}}, "waiting/ids must be at most 100,000 distinct strings"),
        ({"waiting": waiting | {"ids": []}}, "waiting/cells must be 2 strings"),
        ({"options": {"keep": [], "coverages": [], "minimum": 2, "maximum": 1}}, "options/the minimum must be at most"),
    ):
        serialization.write(
            tmp_path / "changed", RUN_KIND, serialization.Archive({**archive.facts, **change}, archive.arrays)
        )
        with pytest.raises(ModelFileError, match=message):
            load_run(tmp_path / "changed")
