"""`TableRegressor` and `run` on frames of all kinds, against the command line."""

import copy
import pickle
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import ellipack
from ellipack import KeyedRegressor, MetricRegressor, TableRegressor, Workers
from ellipack.errors import EllipackError, InputError, KindError, NonFiniteError, StreamError, TableWarning
from ellipack.evaluation.run import load_run
from ellipack.tables.frames import to_arrow
from ellipack.tabular import CellOptions
from tests.cli.runner import CliRunner
from tests.cli.tables import COLUMNS, TARGET, rides, write

ROWS = 150


@pytest.fixture(scope="module")
def folder(cli: CliRunner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, and the model and predictions of the command."""
    folder = tmp_path_factory.mktemp("rides")
    rows = rides(ROWS)
    for t in range(0, ROWS, 9):
        rows[t][-1] = ""
    write(folder / "rides.csv", rows, COLUMNS)
    run = "run", "rides.csv", "-t", TARGET, "--min", "0", "--keep", "zone", "--predictions", "p.csv", "--save", "m"
    assert cli(*run, folder=folder).code == 0
    return folder


def texts(folder: Path) -> pa.Table:
    """Return the table as text."""
    types = csv.ConvertOptions(column_types=dict.fromkeys(COLUMNS, pa.string()), strings_can_be_null=True)
    return csv.read_csv(folder / "rides.csv", convert_options=types)


FORMS: dict[str, Callable[[Path], Any]] = {
    "Arrow": texts,
    "pandas": lambda folder: pd.read_csv(folder / "rides.csv"),
    "pandas with dates and categories": lambda folder: pd.read_csv(
        folder / "rides.csv", parse_dates=["when"], dtype={"zone": "category"}, index_col=False
    ).set_index(pd.Index(range(7, ROWS + 7))),
    "polars": lambda folder: pl.read_csv(folder / "rides.csv", try_parse_dates=True),
    "columns": lambda folder: texts(folder).to_pydict(),
    "rows": lambda folder: texts(folder).to_pylist(),
    "iterator": lambda folder: (texts(folder).slice(start, 40) for start in range(0, ROWS, 40)),
    "reader": lambda folder: pa.RecordBatchReader.from_batches(texts(folder).schema, texts(folder).to_batches()),
    "list of frames": lambda folder: [pl.read_csv(folder / "rides.csv")[:90], pl.read_csv(folder / "rides.csv")[90:]],
    "path": lambda folder: folder / "rides.csv",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_predictions_of_the_command(form: str, folder: Path) -> None:
    result = ellipack.run(FORMS[form](folder), TARGET, minimum=0, keep=["zone"])
    expected = csv.read_csv(folder / "p.csv", convert_options=csv.ConvertOptions(strings_can_be_null=True))
    assert result.to_arrow().column_names == expected.column_names
    np.testing.assert_array_equal(result.predictions, expected["prediction"])
    np.testing.assert_array_equal(result.labels, expected["label"])
    assert result.to_arrow()["label"].null_count == result.scores.unlabeled == 17
    assert result.kept["zone"] == expected["zone"].to_pylist()
    assert result.scores.rmse == load_run(folder / "m").scores.rmse


def test_models_are_the_same_files_as_those_of_the_command(folder: Path, cli: CliRunner, tmp_path: Path) -> None:
    model = ellipack.load(folder / "m")
    assert isinstance(model, TableRegressor)
    assert model.feature_names_in_.tolist() == list(COLUMNS[:-1])
    assert model.get_params(deep=False)["target"] == TARGET
    frame = pd.read_csv(folder / "rides.csv")
    expected = cli("predict", "m", "rides.csv", folder=folder).out.splitlines()[1:]
    predictions = model.predict(frame.drop(columns=TARGET))
    assert predictions.tolist() == [float(line.split(",")[1]) for line in expected]
    follow = cli("predict", "m", "rides.csv", "--follow", folder=folder).out.splitlines()[1:]
    assert model.predict_next(frame).tolist() == [float(line.split(",")[1]) for line in follow]
    own = TableRegressor(TARGET, minimum=0)
    own.progressive(frame)
    own.save(tmp_path / "own")
    (tmp_path / "rides.csv").write_bytes((folder / "rides.csv").read_bytes())
    assert cli("predict", "own", "rides.csv", folder=tmp_path).out.splitlines()[1:] == expected
    assert "│ rows without a label        │      17 │" in cli("inspect", "own", folder=tmp_path).out
    model.write_report(tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_verbs_learn_the_same_in_any_batches(folder: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(folder / "rides.csv")
    X, y = frame.drop(columns=TARGET), frame[TARGET]
    model = TableRegressor().fit(X, y)
    whole = model.predict(X)
    assert TableRegressor(TARGET).fit(frame).predict(X).tolist() == whole.tolist()
    parts = TableRegressor().partial_fit(X[:100], y[:100])
    parts.save(tmp_path / "between")
    parts = copy.deepcopy(pickle.loads(pickle.dumps(ellipack.load(tmp_path / "between"))))
    first = parts.progressive(X[100:], y[100:])
    assert len(first) == 50
    assert parts.predict(X).tolist() == whole.tolist()
    known = ~np.isnan(y)
    assert model.score(X[known], y[known]) > 0.8
    assert (model.scores_.n_rows, parts.scores_.n_rows, model.n_features_in_) == (133, 133, 6)
    again = clone(model).set_params(learner=MetricRegressor(past=False), maximum=10.0)
    assert again.get_params()["learner__past"] is False
    with pytest.raises(NotFittedError):
        again.predict(X)
    assert again.fit(X, y).predict(X).max() == 10.0


def test_keys_and_late_labels(tmp_path: Path) -> None:
    table = {"store": ["a", "b"] * 60, "id": range(120), "x": [float(t % 7) for t in range(120)]}
    y = [10.0 * (t % 2) + t % 7 for t in range(120)]
    model = TableRegressor(by="store", drop=["store"], id_column="id")
    unlabeled = model.progressive(table, [None, *y[1:]])
    assert unlabeled[0] == 0.0
    model.partial_fit({"store": ["a"], "id": [0], "x": [None]}, [y[0]])
    assert (model.run_.late_labels, model.scores_.n_rows) == (1, 120)
    model.save(tmp_path / "m")
    nexts = ellipack.load(tmp_path / "m").predict_next({"store": ["b", "a"], "id": [0, 1], "x": [1.0, 2.0]})
    assert nexts[0] > nexts[1] + 5  # nothing but the past of the store tells the two apart


def test_bad_rows_name_the_cell_and_change_nothing(folder: Path, tmp_path: Path) -> None:
    table = texts(folder).to_pydict()
    model = TableRegressor(TARGET).fit(table)
    model.save(tmp_path / "before")
    bad = {name: column[:3] for name, column in table.items()} | {"km": ["3", "far", "4"]}
    with pytest.raises(StreamError, match=r"row 152, column 'km': 'far' is not a number: .*set on_error=\"skip\""):
        model.partial_fit(bad)
    model.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    model.set_params(on_error="skip")
    assert np.isnan(model.predict(bad)).tolist() == [False, True, False]
    assert np.isnan(model.progressive(bad)).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TableRegressor().fit({"a": [1]}), "target must name the column of the labels, or y must hold them"),
        (lambda: TableRegressor("b").fit({"a": [1]}), "table has no column named 'b' (the target)"),
        (lambda: TableRegressor("a").fit({"a": [1]}, [1]), "X must not have the column 'a', if y holds the labels"),
        (lambda: TableRegressor().fit({"a": [1, 2]}, [1]), "y must hold one label per row, 2, got 1"),
        (lambda: TableRegressor().fit({"a": [1, 2], "b": [1]}, [1]), "same number of rows, got a: 2, b: 1"),
        (lambda: TableRegressor().fit(iter([{"a": [1]}]), [1]), "y must be None if X is an iterator"),
        (lambda: TableRegressor("a").fit(iter([])), "X must have at least one row"),
        (lambda: TableRegressor("a").fit(3), "X must be a data frame, an Arrow table, a dictionary of columns"),
        (lambda: TableRegressor("a").fit(np.ones(3)), "or an iterator of these, got ndarray of shape (3,)"),
        (lambda: TableRegressor("y", by="c").fit({"a": [1], "y": [1]}), "by must be one of the columns of table: a, y"),
        (lambda: TableRegressor("y", by="y").fit({"a": [1], "y": [1]}), "by must not be the target, because a row is"),
        (lambda: TableRegressor(by=["a", "y"]).fit({"a": [1]}, [1]), "by must not be the target, because a row is"),
        (
            lambda: ellipack.run({"a": [1], "y": [1]}, "y", learner=KeyedRegressor("y")),
            "by must not be the target, because a row is predicted without it, got 'y'",
        ),
        (lambda: TableRegressor("y", minimum=3, maximum=2).fit({"a": [1], "y": [1]}), "the minimum must be at most"),
        (lambda: TableRegressor("y", id_column="c").fit({"a": [1], "y": [1]}), "the id column must be one of"),
    ],
)
def test_invalid_input_raises(call: Callable[[], object], message: str) -> None:
    with pytest.raises(EllipackError) as caught:
        call()
    assert message in str(caught.value)


def test_columns_of_several_types_become_text() -> None:
    frame = pd.DataFrame({"a": [1, "x", None, float("nan"), pd.NA], 3: [1.0, None, 3.0, 4.0, 5.0]})
    assert to_arrow(frame).to_pydict() == {"a": ["1", "x", None, None, None], "3": [1.0, None, 3.0, 4.0, 5.0]}
    with pytest.raises(InputError, match="distinct names, got 'a' twice"):
        to_arrow(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert to_arrow(np.array([[1.0, 2.0]])).to_pydict() == {"x0": [1.0], "x1": [2.0]}


HOURS = pd.date_range("2024-01-01", periods=100, freq="h")
NO_COLUMN = "is not a column, and so not a feature: df.reset_index() makes it one"


@pytest.mark.parametrize(
    ("index", "start"),
    [
        (HOURS.rename("when"), "the index 'when' "),
        (HOURS, "the index, which holds dates, "),
        (HOURS.tz_localize("Europe/Berlin"), "the index, which holds dates, "),
        (HOURS.to_period(), "the index, which holds dates, "),
        (pd.Index(HOURS.date), "the index, which holds dates, "),
        (pd.RangeIndex(100, name="ride"), "the index 'ride' "),
        (pd.MultiIndex.from_product([range(50), ["a", "b"]], names=["shop", None]), "the index 'shop' "),
        (pd.MultiIndex.from_product([HOURS[:50], ["a", "b"]]), "the index, which holds dates, "),
    ],
)
def test_an_index_that_may_be_missed_is_said_once(index: pd.Index, start: str) -> None:
    frame = pd.DataFrame({"x": np.arange(100) % 7, "y": np.arange(100.0)}, index=index)
    halves = [frame[:50], frame[50:]]
    workers = Workers(ThreadPoolExecutor(1))
    calls: list[Callable[[TableRegressor], Any]] = [
        lambda model: model.fit(frame),
        lambda model: model.fit(halves),
        lambda model: model.fit(halves, workers=workers),
        lambda model: model.progressive(iter(halves)),
        lambda model: model.set_params(target=None).fit(frame[["x"]], frame["y"]),
    ]
    for call in calls:
        model = TableRegressor("y")
        with pytest.warns(TableWarning) as caught:
            call(model)
        assert [str(each.message) for each in caught] == [start + NO_COLUMN]
        model.set_params(target="y").partial_fit(frame)  # without another warning
        model.predict(frame)


@pytest.mark.parametrize("index", [pd.RangeIndex(5, 105), pd.Index(range(100, 0, -1)), pd.Index(list("abcd") * 25)])
def test_an_index_that_nobody_will_miss_is_left_out(index: pd.Index) -> None:
    frame = pd.DataFrame({"x": np.arange(100) % 7, "y": np.arange(100.0)}, index=index)
    plain = TableRegressor("y").fit(frame.reset_index(drop=True))
    assert TableRegressor("y").fit(frame).predict(frame).tolist() == plain.predict(frame).tolist()


def test_the_target_can_not_be_an_index() -> None:
    frame = pd.DataFrame({"x": range(100), "y": range(100)})
    with pytest.raises(
        InputError, match=rf"table has no column named 'y' \(the target\): the index 'y' {re.escape(NO_COLUMN)}"
    ):
        TableRegressor("y").fit(frame.set_index("y"))
    with pytest.raises(
        InputError, match=f"X must have at least one column, got none: the index 'y' {re.escape(NO_COLUMN)}"
    ):
        ellipack.run(frame[["y"]].set_index("y"), "y")
    with pytest.raises(InputError, match=r"X must have at least one column, got none$"):
        TableRegressor("y").fit(frame[[]])


def test_metric_regressor_points_to_it() -> None:
    hint = "; TableRegressor takes text, dates and missing values"
    for values, kind, message in (
        (["x", "y"], KindError, "got 'x' at row 0, column 'sky'"),
        ([1.0, None], NonFiniteError, "got NaN at row 1, column 'sky'"),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]), KindError, "in column 'sky'"),
    ):
        with pytest.raises(kind) as caught:
            MetricRegressor().fit(pd.DataFrame({"a": [1.0, 2.0], "sky": values}), [1.0, 2.0])
        assert message in str(caught.value)
        assert str(caught.value).endswith(hint)


def test_models_with_other_learners_can_be_fitted_again(folder: Path, cli: CliRunner, tmp_path: Path) -> None:
    run = "run", str(folder / "rides.csv"), "-t", TARGET, "--learner", "packing", "--save", "m"
    assert cli(*run, folder=tmp_path).code == 0
    model = ellipack.load(tmp_path / "m")
    frame = pl.read_csv(folder / "rides.csv")
    before = model.predict(frame)
    assert model.fit(frame).predict(frame).tolist() == before.tolist()
    with pytest.raises(InputError, match="predict_next needs a MetricRegressor that uses the past"):
        model.predict_next(frame)


def test_intervals_of_a_run_are_those_of_the_command(folder: Path, cli: CliRunner, tmp_path: Path) -> None:
    options = "-t", TARGET, "--min", "0", "--interval", "0.8", "--interval", "0.95", "--predictions", "p.csv"
    assert cli("run", folder / "rides.csv", *options, folder=tmp_path).code == 0
    expected = csv.read_csv(tmp_path / "p.csv", convert_options=csv.ConvertOptions(strings_can_be_null=True))
    result = ellipack.run(texts(folder), TARGET, minimum=0, coverage=[0.8, 0.95])
    assert result.to_arrow().equals(expected)
    assert result.record.intervals
    model = TableRegressor(TARGET, minimum=0)
    predictions, (lower, upper) = model.progressive(texts(folder), coverage=[0.8, 0.95])
    np.testing.assert_array_equal(predictions, expected["prediction"])
    np.testing.assert_array_equal(lower[:, 0], expected["lower_80"])
    np.testing.assert_array_equal(upper[:, 1], expected["upper_95"])


def test_intervals_may_begin_later_and_skipped_rows_have_none(folder: Path, tmp_path: Path) -> None:
    table = texts(folder).append_column("ride", pa.array(range(ROWS)))
    model = TableRegressor(TARGET, id_column="ride", on_error="skip").partial_fit(table[:100])
    assert len(model.run_.waiting) > 0
    cells = ["far", *table["km"].to_pylist()[101:]]
    bad = table[100:].set_column(1, "km", pa.array(cells))
    predictions, (lower, upper) = model.progressive(bad, coverage=0.9)
    assert lower.shape == upper.shape == predictions.shape == (50,)
    assert np.isnan([predictions[0], lower[0], upper[0]]).all()
    assert (lower[1:] < predictions[1:]).all()
    model.save(tmp_path / "m")
    late = {name: [table[name][0].as_py()] for name in table.column_names} | {TARGET: [3.0]}
    _, (first, _) = ellipack.load(tmp_path / "m").progressive(late, coverage=0.9)
    assert first.tolist() == [-np.inf]


def test_what_columns_are_taken_for_is_said_and_warnings_name_parameters() -> None:
    numbers = [str(t % 7) for t in range(60)]
    table = {"a": ["1,234"] * 60, "b": ["few" if t % 9 == 0 else f"{t % 50}" for t in range(60)], "y": numbers}
    model = TableRegressor("y")
    with pytest.warns(TableWarning) as caught:
        model.fit(table)
    first, second = (str(each.message) for each in caught)
    assert (
        first == "column 'a': '1,234' is read as 1234; if it is a decimal comma, set cells=CellOptions(decimal=\",\")"
    )
    assert second.startswith("column 'b' is treated as text, although it looks like numbers: 7 of its first 60 values")
    assert second.endswith(
        "correct them, name spellings of missing values with cells=CellOptions(na=...), "
        'skip their rows (set kinds={"b": "number"} and on_error="skip"), or leave it out (drop=[\'b\'])'
    )
    assert model.describe_columns() == "numbers (thousands separated by ','): a; text: b"
    assert "looks like numbers: 7 of its first 60" in model.record_.columns[1].note
    with pytest.warns(TableWarning, match="column 'y': '1,234' is read as 1234"):
        TableRegressor("y").fit({"a": ["1"] * 3, "y": ["1,234"] * 3})


def test_intervals_are_those_of_the_command_within_the_bounds(folder: Path, cli: CliRunner, tmp_path: Path) -> None:
    result = cli("predict", folder / "m", folder / "rides.csv", "-o", "p.csv", "--interval", "0.8", folder=tmp_path)
    assert result.code == 0, result.err
    expected = csv.read_csv(tmp_path / "p.csv")
    model = ellipack.load(folder / "m")
    lower, upper = model.predict_interval(texts(folder), 0.8)
    np.testing.assert_array_equal(lower, expected["lower_80"])
    np.testing.assert_array_equal(upper, expected["upper_80"])
    assert (lower < upper).all()
    both = model.predict_interval(texts(folder), [0.8, 0.95])
    np.testing.assert_array_equal(both.lower[:, 0], lower)
    assert (both.upper[:, 1] >= upper).all()
    bounded = TableRegressor(TARGET, minimum=20).fit(texts(folder))
    assert bounded.predict_interval(texts(folder)).lower.min() == 20


def test_a_separator_that_other_columns_explain_is_said() -> None:
    prices, counts = [f"{k % 9},{k % 7}5" for k in range(60)], [f"{k % 5 + 1}.{100 + k}" for k in range(60)]
    table = {"price": prices, "count": counts, "whole": [str(k % 4) for k in range(60)], "y": np.arange(60.0)}
    said = TableRegressor("y").fit(table).describe_columns()
    assert "numbers (decimal comma, thousands separated by '.'): count" in said
    assert said.endswith("; numbers: whole")


def test_numbers_do_not_become_text_if_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    make_array, errors = pa.array, [pa.ArrowMemoryError("malloc of size 64 failed")]

    def fail_once(*args: object, **options: object) -> object:
        if errors:
            raise errors.pop()
        return make_array(*args, **options)

    monkeypatch.setattr(pa, "array", fail_once)
    with pytest.raises(MemoryError):
        TableRegressor().fit({"x": [1.0, 2.0, 3.0]}, [1.0, 2.0, 3.0])


def test_a_bound_that_is_an_integer_is_saved_as_the_number_that_is_loaded(tmp_path: Path) -> None:
    model = TableRegressor("y", minimum=0, maximum=9).fit({"a": [1.0, 2.0], "y": [1.0, 2.0]})
    model.save(tmp_path / "model")
    ellipack.load(tmp_path / "model").save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_column_without_a_name_in_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(",a,y\n0,1,2\n1,2,3\n")
    with pytest.warns(TableWarning, match=r"a column without a name is called 'column 1': .* use drop=\['column 1'\]"):
        ellipack.run(tmp_path / "t.csv", target="y")


@pytest.mark.parametrize(("unit", "is_time"), [("Y", True), ("h", False)])
def test_a_date_is_time_if_its_trend_is_its_only_feature(unit: str, is_time: bool) -> None:
    dates = np.arange(600).astype(f"M8[{unit}]")
    x = np.random.default_rng(0).normal(size=600)
    cells = CellOptions(trend=("ts",))
    model = TableRegressor("y", cells=cells).fit({"ts": dates.astype("M8[s]").astype(str), "x": x, "y": x})
    measured = model.record_.importance
    assert measured is not None
    assert measured.time_columns == (["ts"] if is_time else [])
    assert ("ts" in [name for each in measured.groups for name in each.columns]) != is_time
