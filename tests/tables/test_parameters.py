"""Every parameter of `TableRegressor` and `run` is accepted in each documented form, or refused by name."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score

import ellipack
from ellipack import MetricRegressor, PackingRegressor, RescaledRegressor, TableRegressor
from ellipack.errors import InputError, ShapeError, StreamError
from ellipack.tabular import CellOptions, LevelOptions, TableBatch

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "target": ({"target": ("y",)}, r"target must be the name of a column, got \('y',\)"),
    "target is a Boolean": ({"target": True}, "target must be the name of a column, got True"),
    "learner of scikit-learn": (
        {"learner": Ridge()},
        r"learner must be a regressor of ellipack, such as MetricRegressor\(\), or None, got Ridge",
    ),
    "class of a learner": ({"learner": MetricRegressor}, "learner must be a regressor of ellipack, .*, got <class"),
    "by": ({"by": 1.5}, "by must be the name of a column, or a list of names, got 1.5"),
    "by names a column twice": ({"by": ["cat", "cat"]}, "columns of by must be distinct, got cat, cat"),
    "by without a past": (
        {"by": "cat", "learner": RescaledRegressor(PackingRegressor())},
        "by needs a MetricRegressor or a KeyedRegressor as learner, got a RescaledRegressor",
    ),
    "take": ({"take": [None]}, r"take must be the name of a column, or a list of names, got \[None\]"),
    "drop": ({"drop": {"cat": 1}}, "drop must be the name of a column, or a list of names, got {'cat': 1}"),
    "kinds": (
        {"kinds": "cat"},
        "kinds must be a dictionary from names of columns to kinds, which are number, boolean, time, category, got 'c",
    ),
    "a kind": ({"kinds": {"cat": 3}}, "kinds must be a dictionary .*, got {'cat': 3}"),
    "a name of kinds": ({"kinds": {None: "number"}}, "kinds, for each key, must be the name of a column, got None"),
    "levels": ({"levels": "8"}, "levels must be an integer >= 0, LevelOptions or None, got '8'"),
    "levels below 0": ({"levels": -1}, "levels must be an integer >= 0, got -1"),
    "levels is a Boolean": ({"levels": True}, "levels must be an integer >= 0, LevelOptions or None, got True"),
    "cells": (
        {"cells": {"na": ["-999"]}},
        r'cells must be CellOptions, such as CellOptions\(decimal=","\), or None, got {\'na\'',
    ),
    "minimum": ({"minimum": "a"}, "minimum must be a number or None, got 'a'"),
    "maximum": ({"maximum": [1]}, r"maximum must be a number or None, got \[1\]"),
    "maximum is infinite": ({"maximum": np.inf}, "the maximum must be a number of at most 1e[+]60 in size, got inf"),
    "maximum beyond floats": (
        {"maximum": 10**400},
        "the maximum must be a number of at most 1e[+]60 in size, got inf",
    ),
    "id_column": ({"id_column": ["cat"]}, r"id_column must be the name of a column, got \['cat'\]"),
    "on_error": ({"on_error": None}, "on_error must be one of stop, skip, got None"),
    "keep": ({"keep": 1.5}, "keep must be the name of a column, or a list of names, got 1.5"),
    "coverage": ({"coverage": "high"}, "coverage must hold real numbers, got 'high'"),
    "workers": ({"workers": 4}, r"workers must be ellipack.Workers\(executor\) or None, got 4"),
}


def table(rows: int = 60) -> dict[str, Any]:
    numbers = np.arange(rows)
    return {"cat": np.array(["a", "b", "c"])[numbers % 3], "url": numbers % 7, "y": 1.0 * (numbers % 3)}


@pytest.mark.parametrize("name", REFUSED)
def test_parameters_are_refused_by_name_rule_and_value(name: str, tmp_path: Path) -> None:
    parameters, message = REFUSED[name]
    pd.DataFrame(table()).to_csv(tmp_path / "t.csv", index=False)
    for rows in (table(), tmp_path / "t.csv"):
        with pytest.raises(InputError, match=message):
            ellipack.run(rows, **({"target": "y"} | parameters))
    if not parameters.keys() & {"keep", "coverage", "workers"}:
        model = TableRegressor(**({"target": "y"} | parameters))
        with pytest.raises(InputError, match=message):
            model.fit(table())
        assert not hasattr(model, "run_")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (CellOptions(trend=("y",)), "the target 'y' cannot also be a trend"),
        (CellOptions(time_formats={"y": "iso"}), "the target 'y' cannot have a time format"),
    ],
)
def test_the_target_is_not_a_time(cells: CellOptions, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        ellipack.run(table(), target="y", cells=cells)


def test_the_target_of_a_stream_is_not_guessed() -> None:
    batches = iter([TableBatch.from_table(pa.table(table()))])
    with pytest.raises(InputError, match="target must name the column of the labels, got None"):
        TableRegressor().learn_stream(batches)
    assert len(list(batches)) == 1
    with pytest.raises(StreamError, match=r"table has no column named '' \(the target\)"):
        TableRegressor("").fit(table())


def test_a_run_needs_a_target(tmp_path: Path) -> None:
    pd.DataFrame(table()).to_csv(tmp_path / "t.csv", index=False)
    for rows in (table(), tmp_path / "t.csv"):
        with pytest.raises(InputError, match="target must be the name of a column, got None"):
            ellipack.run(rows, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("names", [["url"], ("url",), {"url"}, np.array(["url"]), pd.Index(["url"]), "url"])
def test_columns_are_named_one_by_one_or_in_a_list(names: Any) -> None:
    assert TableRegressor("y", drop=names).fit(table()).feature_names_in_.tolist() == ["cat"]
    assert TableRegressor("y", take=names).fit(table()).feature_names_in_.tolist() == ["url"]
    assert ellipack.run(table(), "y", keep=names).to_arrow().column_names == ["row", "url", "prediction", "label"]


def test_none_is_the_default() -> None:
    none: dict[str, Any] = dict.fromkeys(("drop", "take", "kinds", "levels", "cells", "minimum", "maximum", "by"))
    assert TableRegressor("y", **none).fit(table()).feature_names_in_.tolist() == ["cat", "url"]


def test_integers_name_the_columns_of_a_data_frame() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(5, size=(50, 4)))
    result = ellipack.run(frame, target=3, drop=[0], keep=1, by=2, kinds={1: "number"})
    assert result.model.feature_names_in_.tolist() == ["1", "2"]
    named = frame.rename(columns=str)
    expected = ellipack.run(named, target="3", drop=["0"], keep=["1"], by="2", kinds={"1": "number"})
    assert result.to_arrow().equals(expected.to_arrow())
    with pytest.raises(StreamError, match=r"table has no column named '4' \(the target\); its columns are: 0, 1, 2, 3"):
        TableRegressor(4).fit(frame)


@pytest.mark.parametrize(("levels", "features"), [(0, 3), (2, 3), (8, 4), (np.int64(8), 4)])
def test_levels_are_a_number_as_on_the_command_line(levels: int, features: int) -> None:
    model = TableRegressor("y", drop="url", levels=levels).fit(table())
    options = TableRegressor("y", drop="url", levels=LevelOptions(one_hot=int(levels))).fit(table())
    assert model.encoded_feature_names_ == options.encoded_feature_names_
    assert len(model.encoded_feature_names_) == features


def test_options_of_cells_are_checked() -> None:
    single: dict[str, Any] = {"na": "-999", "trend": "day"}
    assert CellOptions(**single) == CellOptions(na=("-999",), trend=("day",))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"na": (-999,)}, r"na must be a string, or a tuple of strings, got \(-999,\)"),
        ({"trend": 3}, "trend must be a string, or a tuple of strings, got 3"),
        ({"time_formats": "iso"}, "time_formats must be a dictionary from names of columns to formats, got 'iso'"),
        ({"time_formats": {"day": 3}}, "time_formats must be a dictionary .*, got {'day': 3}"),
    ]
    for options, message in refused:
        with pytest.raises(InputError, match=message):
            CellOptions(**options)


def test_the_score_of_a_table_is_that_of_its_target() -> None:
    frame = pd.DataFrame(table())
    X, y = frame.drop(columns="y"), frame["y"]
    model = TableRegressor("y").fit(frame)
    expected = TableRegressor().fit(X, y).score(X, y)
    assert model.score(frame) == model.score(X, y) == expected > 0.9
    assert model.score(frame[i : i + 20] for i in (0, 20, 40)) == expected
    assert (cross_val_score(TableRegressor("y"), frame, cv=3) > 0.9).all()
    without = frame.assign(y=y.where(y.index >= 30))
    assert model.score(without) == model.score(frame[30:]) == model.score(X, without["y"])
    with pytest.raises(StreamError, match=r"table has no column named 'y' \(the target\)"):
        model.score(X)
    with pytest.raises(InputError, match="X must have at least one row with a label, got none in 60 rows"):
        model.score(frame.assign(y=None))
    with pytest.raises(ShapeError, match=r"y must hold one number per row, 60, got an array of shape \(59,\)"):
        model.score(X, y[1:])


def test_scorers_and_searches_of_scikit_learn_need_labels_apart() -> None:
    frame = pd.DataFrame(table())
    X, y = frame.drop(columns="y"), frame["y"]
    scores = cross_val_score(TableRegressor(), X, y, cv=3, scoring="neg_root_mean_squared_error")
    assert (scores > -0.3).all()
    search = GridSearchCV(TableRegressor(), {"drop": ["url", "cat"]}, cv=3, scoring="neg_mean_absolute_error")
    assert search.fit(X, y).best_params_ == {"drop": "url"}
    message = (
        "X must not have the column 'y', if y holds the labels: omit y, or use TableRegressor() without a target and "
        "leave the column out of X; scoring= of scikit-learn needs labels as y"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        TableRegressor("y").fit(frame, y)


def test_the_score_leaves_out_rows_that_are_skipped() -> None:
    frame = pd.DataFrame(table())
    model = TableRegressor("y", on_error="skip").fit(frame)
    bad = frame.assign(url=["far", *map(str, frame["url"][1:])])
    assert model.score(bad) == model.score(frame[1:])
    weights = 1.0 + np.arange(60) % 2
    assert model.score(bad, sample_weight=weights) == model.score(frame[1:], sample_weight=weights[1:])


def test_importances_are_those_of_columns() -> None:
    model = TableRegressor("y").fit(table(300))
    assert model.importances_ is not None
    assert model.importances_.columns[0].columns == ("cat",)
    other = TableRegressor("y", learner=RescaledRegressor(PackingRegressor())).fit(table())
    assert other.importances_ is None
