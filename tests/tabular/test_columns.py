"""Column types, limits, names and options that the reference encoder does not cover."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from ellipack.errors import DomainError, ModelFileError, StreamError
from ellipack.tabular import CellOptions, LevelOptions, TableBatch, TableEncoder, open_table
from ellipack.tabular.table_batch import to_clean_strings
from ellipack.validation import Floats


def encoded(columns: Mapping[str, Any], **choice: Any) -> tuple[TableEncoder, list[Floats]]:
    first = next(iter(columns.values()))
    batch = TableBatch.from_table(pa.table({**columns, "y": np.arange(len(first))}))
    levels = {name: choice.pop(name) for name in ("min_frequency", "one_hot", "remembered") if name in choice}
    encoder = TableEncoder.from_head(batch, "y", levels=LevelOptions(**levels), **choice)
    return encoder, [block.X for block in encoder.partial_fit_transform(encoder.parse(batch))]


def typed_columns_and_json_rows(count: int) -> tuple[dict[str, pa.Array], list[dict[str, object]]]:
    start = datetime(2024, 2, 27, 22, tzinfo=UTC)
    datetimes = [None if i % 11 == 5 else start + timedelta(hours=5 * i, microseconds=7 * i) for i in range(count)]
    typed = {
        "i": pa.array([None if i % 7 == 3 else i * i for i in range(count)], pa.int32()),
        "f": pa.array([float("nan") if i % 9 == 4 else i / 7 for i in range(count)]),
        "d": pa.array([Decimal(i) / 4 for i in range(count)], pa.decimal128(9, 2)),
        "b": pa.array([None if i % 5 == 2 else i % 3 == 0 for i in range(count)]),
        "s": pa.array(["rain", "sun", None, "fog"] * (count // 4)).dictionary_encode(),
        "t": pa.array(datetimes, pa.timestamp("ns", "Asia/Tokyo")),
        "day": pa.array([None if moment is None else moment.date() for moment in datetimes], pa.date64()),
        "time of day": pa.array([None if moment is None else moment.time() for moment in datetimes], pa.time64("ns")),
        "y": pa.array(range(count)),
    }
    rows = [{name: cells[i].as_py() for name, cells in typed.items()} for i in range(count)]
    for row, moment in zip(rows, datetimes, strict=True):
        row["t"] = None if moment is None else moment.isoformat()
        row |= {name: None if row[name] is None else str(row[name]) for name in ("d", "day", "time of day")}
    return typed, rows


def test_features_do_not_depend_on_file_format_or_column_type(tmp_path: Path) -> None:
    typed, rows = typed_columns_and_json_rows(80)
    parquet.write_table(pa.table(typed), tmp_path / "t.parquet")
    lines = [",".join("" if cell is None else str(cell) for cell in row.values()) for row in rows]
    (tmp_path / "t.csv").write_text("\n".join([",".join(typed), *lines, ""]))
    (tmp_path / "t.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    results = []
    for name in ("t.parquet", "t.csv", "t.ndjson"):
        with open_table(str(tmp_path / name), batch_rows=13) as source:
            encoder = TableEncoder.from_head(source.peek(1000), "y")
            parts = [
                block.X.tolist() for batch in source for block in encoder.partial_fit_transform(encoder.parse(batch))
            ]
        assert [column.kind for column in encoder.column_summaries()] == ["number"] * 3 + ["boolean", "category"] + [
            "time"
        ] * 3
        results.append((parts, encoder.feature_names, [column.n_missing for column in encoder.column_summaries()]))
    assert results[0] == results[1] == results[2]


def test_large_integers_are_rounded_to_floats() -> None:
    _, (X,) = encoded({"n": pa.array([2**53 + 1, -(2**63)])})
    assert X[:, 0].tolist() == [2.0**53, -(2.0**63)]


@pytest.mark.parametrize(
    "cells", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"x"]), pa.array([1], pa.duration("s"))]
)
def test_unsupported_types_raise_unless_dropped(cells: pa.Array) -> None:
    with pytest.raises(StreamError, match=r"table, column 'odd': type .* is not supported: run with --drop 'odd'"):
        encoded({"odd": cells, "a": [1]})
    assert encoded({"odd": cells, "a": [1]}, drop=["odd"])[0].feature_names == ["a"]


def test_times_outside_the_calendar_are_bad() -> None:
    batch = TableBatch.from_table(pa.table({"t": pa.array([0, 10**14, -(10**12)], pa.timestamp("s")), "y": [1, 2, 3]}))
    rows = TableEncoder.from_head(batch, "y").parse(batch, on_error="skip")
    assert [row.row_number for row in rows.bad_rows] == [2, 3]


STATISTICS = ["mean of y by s", "last y by s", "log count of s"]


def test_an_identifier_is_left_out_until_its_values_come_again() -> None:
    names = [f"row {i}" for i in range(400)]
    encoder, _ = encoded({"s": names, "x": [1, 2] * 200})
    assert encoder.feature_names == ["x"]
    assert encoder.describe_columns().endswith("left out: s (an identifier: 400 different values in 400 rows)")
    unlabeled = TableBatch.from_table(pa.table({"x": [1]}))
    assert encoder.transform(encoder.parse_unlabeled(unlabeled)).tolist() == [[1]]
    again = TableBatch.from_table(pa.table({"s": names[:30], "x": [1] * 30, "y": list(range(30))}))
    _, second = encoder.partial_fit_transform(encoder.parse(again))
    assert encoder.feature_names == ["x", *STATISTICS]
    assert second.rows == slice(21, 30)  # 22 of 422 rows have a known level, which is 5%
    assert (second.X[:, 3] > 0).all()
    assert encoded({"s": names, "x": [1, 2] * 200}, take=["s"])[0].feature_names == STATISTICS


def test_an_identifier_with_missing_values_is_used_only_if_they_are_many() -> None:
    names = [f"row {i}" for i in range(400)]
    few, _ = encoded({"s": [None if i % 40 == 7 else name for i, name in enumerate(names)], "x": [1, 2] * 200})
    assert few.feature_names == ["x"]
    assert few.warnings == []
    many, blocks = encoded({"s": [None if i % 4 == 3 else name for i, name in enumerate(names)], "x": [1, 2] * 200})
    assert many.feature_names == ["x", *STATISTICS]
    assert [len(block) for block in blocks] == [83, 317]  # the 21st missing value is in row 84


def test_the_features_of_a_constant_column_of_text_are_constant() -> None:
    encoder, (X,) = encoded({"s": ["x"] * 30, "n": [1] * 30})
    assert encoder.feature_names == ["s=other", "s=x", "n"]
    assert (X == [0, 1, 1]).all()
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    later = TableBatch.from_table(pa.table({"s": ["x", "y"] + ["y"] * 4, "n": [1] * 6, "y": [0] * 6}))
    first, second = again.partial_fit_transform(again.parse(later))
    assert first.X.tolist() == [[0, 1, 1], *[[1, 0, 1]] * 4]
    assert second.X.tolist() == [[0, 0, 1, 1]]
    assert encoded({"s": ["x"] * 19})[0].feature_names == ["s=other", "s=x"]
    assert len(encoded({"s": [*["x"] * 29, None]})[1]) == 2  # with a missing value, it is not constant
    assert encoded({"s": ["x" * 101] * 30})[0].feature_names == ["s=other"]


def test_more_spellings_of_missing_values_and_separators_can_be_given() -> None:
    columns = {"a": ["-999", "1.000", "n.v."], "b": [1.5, -999.0, 2.0], "c": ["x", "n.v.", "x"]}
    given = CellOptions(decimal=",", thousands=".", na=("-999", "n.v."))
    encoder, blocks = encoded(columns, cells=given)
    assert [column.n_missing for column in encoder.column_summaries()] == [2, 1, 1]
    assert blocks[-1].tolist()[-1][:2] == [1000.0, 2.0]
    restored = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert restored.to_dict() == encoder.to_dict()
    assert restored.cell_options == given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decimal": ";"}, "decimal must be '.' or ',', got ';'"),
        ({"thousands": "x"}, "thousands must be one of '', ',', '.', ' ', \"'\", '_', got 'x'"),
        ({"decimal": ",", "thousands": ","}, "decimal and thousands must be different characters, got ',' for both"),
        ({"na": ("-999", "\udcff")}, r"na must be text in UTF-8, got '\udcff'"),
    ],
)
def test_invalid_cell_options_raise(given: dict[str, object], message: str) -> None:
    with pytest.raises(DomainError, match=re.escape(message)):
        CellOptions(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cells", "row", "reason"),
    [
        (["3", "1e400"], 2, "'1e400' is too large (the maximum is 1e+"),
        (["3", "x", "4"], 2, "'x' is not a number; the target must contain numbers"),
        (["5%", "6%", "7"], 3, "'7' is not a number (in %)"),
    ],
)
def test_errors_of_the_target_name_the_cell(cells: list[str], row: int, reason: str) -> None:
    batch = TableBatch.from_table(pa.table({"a": list(range(len(cells))), "y": cells}))
    with pytest.raises(StreamError, match=re.escape(f"table, row {row}, column 'y': {reason}")):
        TableEncoder.from_head(batch, "y").parse(batch)


def test_long_strings_get_no_feature() -> None:
    assert encoded({"s": ["x" * 100, "x" * 101] * 9})[0].feature_names == ["s=other", "s=" + "x" * 100]


def test_a_column_with_more_levels_than_one_hot_has_statistics_only() -> None:
    few, _ = encoded({"s": [f"level {i % 32:02d}" for i in range(400)]}, min_frequency=1)
    assert few.feature_names == ["s=other", *(f"s=level {i:02d}" for i in range(32))]
    many, _ = encoded({"s": [f"level {i % 33:02d}" for i in range(400)]}, min_frequency=1)
    assert many.feature_names == STATISTICS


def test_a_column_that_grows_keeps_its_one_hot_features_and_gets_statistics() -> None:
    head = TableBatch.from_table(pa.table({"s": ["a", "b"] * 2, "y": [1.0, 5.0] * 2}))
    encoder = TableEncoder.from_head(head, "y", levels=LevelOptions(min_frequency=2, one_hot=2))
    encoder.partial_fit_transform(encoder.parse(head))
    more = TableBatch.from_table(pa.table({"s": ["a", "c", "c", "c"], "y": [1.0, 9.0, 9.0, 9.0]}))
    first, second = encoder.partial_fit_transform(encoder.parse(more))
    assert encoder.feature_names == ["s=other", "s=a", "s=b", *STATISTICS]
    assert first.X.tolist() == [[0, 1, 0]]
    assert second.X[:, :3].tolist() == [[1, 0, 0]] * 3  # "c" gets no one-hot feature
    assert second.X[0, 3:].tolist() == [0, 0, 0]
    assert second.X[1, 4] == 9 - (6 + 6 + 1 + 9) / 6
    assert second.new_scales[0] == second.new_scales[1] == np.sqrt((4.0 + (5 - 7 / 3) ** 2 + 4.0) / 3)
    assert second.new_scales[2] == 1
    (summary,) = encoder.column_summaries()
    assert summary.note == "5 rows in 'other'; statistics of 3 levels; 3 rows with a new or forgotten level"


def test_forgotten_levels_are_counted_and_memory_is_bounded() -> None:
    cells = [f"{i % 50}" + "x" * (i % 2) * 500 for i in range(1000)]  # long levels are stored as digests
    encoder, _ = encoded({"s": cells}, remembered=10, kinds={"s": "category"})
    (summary,) = encoder.column_summaries()
    assert summary.note.endswith("statistics of 10 levels; 1,000 rows with a new or forgotten level")
    assert len(str(encoder.to_dict())) < 3000
    encoder, _ = encoded({"s": cells}, remembered=50, kinds={"s": "category"})
    assert encoder.column_summaries()[0].note == "statistics of 50 levels; 50 rows with a new or forgotten level"


def test_feature_names_are_unique() -> None:
    columns = {"a": ["b=c", "other", "'other'"], "a=b": ["c", "c", "c"], "a=other": [1, 2, 3]}
    encoder, _ = encoded(columns, min_frequency=1)
    assert encoder.feature_names == [
        "a=other",
        "a=b=other",
        "a=other (2)",
        "a=b=c",
        "a=b=c (2)",
        "a='other'",
        "a='other' (2)",
    ]


def test_missing_is_distinct_from_a_category_named_missing() -> None:
    assert encoded({"s": ["missing", None, "missing", None]}, min_frequency=2)[0].feature_names == [
        "s=other",
        "s=missing",
        "s is missing",
    ]


HEAD = {"a": ["1", "2"], "b": ["x", "y"], "c": ["2", "1"]}


def test_take_drop_and_kinds_select_columns() -> None:
    assert encoded(HEAD)[0].feature_names == ["a", "b=other", "c"]
    assert encoded(HEAD, take=["c", "a"])[0].feature_names == ["a", "c"]
    assert encoded(HEAD, drop=["a"])[0].feature_names == ["b=other", "c"]
    assert encoded(HEAD, kinds={"a": "category"})[0].feature_names == ["a=other", "b=other", "c"]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"take": ["z"]}, r"table has no column named 'z' \(to take\); its columns are: a, b, c, y"),
        ({"drop": ["z"]}, r"table has no column named 'z' \(to drop\); its columns are: a, b, c, y"),
        (
            {"kinds": {"z": "category"}},
            r"table has no column named 'z' \(with a given kind\); its columns are: a, b, c, y",
        ),
        ({"drop": ["y"]}, "the target 'y' cannot also be taken or dropped"),
        ({"take": ["y", "a"]}, "the target 'y' cannot also be taken or dropped"),
        ({"drop": ["a", "b", "c"]}, "no column is left to predict 'y' from: take more columns or drop fewer"),
    ],
)
def test_invalid_column_selections_raise(choice: dict[str, object], message: str) -> None:
    with pytest.raises(StreamError, match=message):
        encoded(HEAD, **choice)


def test_a_table_without_features_is_refused() -> None:
    with pytest.raises(StreamError, match="no column is left to predict 'y' from: the table has no other column"):
        TableEncoder.from_head(TableBatch.from_table(pa.table({"y": [1.0, 2.0]})), "y")


@pytest.mark.parametrize("spelling", ["null", "Null", "NULL", "nil", "NIL", "none", "None", "NA", "na"])
def test_missing_values_in_any_case(spelling: str) -> None:
    assert to_clean_strings(pa.array([spelling, "rain"])).to_pylist() == [None, "rain"]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            {"kinds": {"a": "colour"}},
            "the kind of column 'a' must be one of number, boolean, time, category, got 'colour'",
        ),
        ({"min_frequency": 0}, "min_frequency must be an integer >= 1, got 0"),
        ({"one_hot": -1}, "one_hot must be an integer >= 0, got -1"),
        ({"remembered": 0}, "remembered must be an integer >= 1, got 0"),
    ],
)
def test_invalid_parameters_raise(choice: dict[str, object], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        encoded(HEAD, **choice)


def test_messages_escape_line_breaks_in_column_names() -> None:
    batch = TableBatch.from_table(pa.table({"two\nlines": ["1", "x"], "odd\n": [[1], [2]], "y": [1, 2]}))
    for target, drop in (("z", []), ("y", []), ("y", ["odd\n"])):
        with pytest.raises(StreamError) as caught:
            TableEncoder.from_head(batch, target, drop=drop, kinds={"two\nlines": "number"}).parse(batch)
        assert "\n" not in str(caught.value)
        assert r"two\nlines" in str(caught.value) or r"odd\n" in str(caught.value)


def test_target_must_contain_numbers_or_booleans() -> None:
    batch = TableBatch.from_table(
        pa.table({**HEAD, "when": ["2024-01-01", "2024-01-02"], "ok": ["yes", "no"], "none": [None, None]})
    )
    assert TableEncoder.from_head(batch, "c").parse(batch).labels.tolist() == [2.0, 1.0]
    assert TableEncoder.from_head(batch, "ok").parse(batch).labels.tolist() == [1.0, 0.0]
    assert np.isnan(TableEncoder.from_head(batch, "none").parse(batch).labels).all()  # the labels may come later
    for name, value in {"b": "'x'", "when": "'2024-01-01'"}.items():
        with pytest.raises(
            StreamError, match=f"the target '{name}' must contain numbers, got {value}: choose another column"
        ):
            TableEncoder.from_head(batch, name)
    with pytest.raises(StreamError, match=r"table has no column named 'z' \(the target\); its columns are: a, b, c"):
        TableEncoder.from_head(batch, "z")
    encoder = TableEncoder.from_head(batch, "c")
    unlabelled = TableBatch.from_table(batch.table.drop_columns(["c"]))
    assert len(encoder.parse_unlabeled(unlabelled)) == 2
    with pytest.raises(StreamError, match=r"table has no column named 'c' \(the target\)"):
        encoder.parse(unlabelled)
    with pytest.raises(DomainError, match="on_error must be one of stop, skip, got 'infer_kind'"):
        encoder.parse(batch, on_error="infer_kind")


def test_later_format_version_raises() -> None:
    encoder, _ = encoded(HEAD)
    saved = encoder.to_dict() | {"version": 2}
    with pytest.raises(ModelFileError, match="the encoder was saved by a later version of ellipack"):
        TableEncoder.from_dict(saved)


def test_columns_without_a_name_are_said_unless_they_are_left_out() -> None:
    numbers = list(range(30))
    columns = {"i": numbers, "a": [t % 7 for t in numbers], "b": [""] * 30, "y": numbers}
    batch = replace(TableBatch.from_table(pa.table(columns)), unnamed=("i", "a", "b"))
    encoder = TableEncoder.from_head(batch, "y", min_values=20)
    assert encoder.column_names == ["y", "a"]
    assert encoder.left_out == [("i", "counts the rows"), ("b", "no name and no values")]
    assert encoder.warnings == ["a column without a name is called 'a': to leave it out, use --drop 'a'"]
    taken = TableEncoder.from_head(batch, "y", take=["a", "b"], min_values=20)
    assert (taken.column_names, taken.left_out, taken.warnings) == (["y", "a", "b"], [], [])


def test_no_title_is_supposed_above_the_only_column_of_a_data_frame() -> None:
    with pytest.raises(StreamError, match=r"columns are: z$"):
        TableEncoder.from_head(TableBatch.from_table(pa.table({"z": [1.0]})), "y")


def test_a_title_above_the_header_is_supposed_if_there_is_a_single_column(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("My export\na;b;y\n1;2;3\n")
    with (
        open_table(str(tmp_path / "t.csv")) as stream,
        pytest.raises(StreamError, match=r"columns are: My export \(if this is a line above the header, remove it\)"),
    ):
        TableEncoder.from_head(stream.peek(10), "y")
