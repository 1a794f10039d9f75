import re
from datetime import date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from ellipack.tables.python_messages import to_python
from ellipack.tabular import CellOptions, TableBatch, TableEncoder
from ellipack.tabular.kind_inference import InferredKind, Sample, infer_kind

DAYS = [f"2024-01-{i:02d}" for i in range(1, 31)]
IDENTIFIERS = [f"{a}{b}" for a in "abcde" for b in "abcde"]


def infer(cells: pa.Array, kind: str | None = None) -> InferredKind:
    return infer_kind(Sample.of("c", cells), kind)


@pytest.mark.parametrize(
    ("cells", "kind", "pattern"),
    [
        (["1", " 2.5", "?", None, "-3e4"], "number", "iso"),
        (["0", "1", "1"], "number", "iso"),
        (["5", "5", "5"], "number", "iso"),
        (["2019", "2020"], "number", "iso"),
        (["yes", "No", "NA", "yes"], "boolean", "iso"),
        (["T", "F"], "boolean", "iso"),
        (["true", "true"], "category", "iso"),  # other values than "false" may follow
        (["F", "F", "F"], "category", "iso"),
        (["t", "no"], "category", "iso"),
        (["yes", "no", "maybe"], "category", "iso"),
        (DAYS, "time", "iso"),
        (["2024-01-01 00:00", "2024-01-02 00:00"], "time", "iso"),
        (["2024-01-01T12:30:00Z", "2024-01-02", "2024-01-01T12:30:00.123456789+02:00"], "time", "iso"),
        (["12:30", "9:05", "23:59:59.5"], "time", "time of day"),
        (["31/12/2024", "30/12/2024"], "time", "%d/%m/%Y"),
        (["rain", "sun", "rain"], "category", "iso"),
        (["1"] * 99 + ["one"], "number", "iso"),  # a single error, which is reported when it is parsed
        ([*DAYS, "soon"], "time", "iso"),
        (["1"] * 9 + ["one"], "category", "iso"),
        (["1"] * 90 + ["one"] * 10, "category", "iso"),
        ([None, "NA", ""], "category", "iso"),
    ],
)
def test_infers_kind_from_strings(cells: list[str | None], kind: str, pattern: str) -> None:
    found = infer(pa.array(cells, pa.string()))
    assert (found.kind, found.time_format.pattern) == (kind, pattern)


@pytest.mark.parametrize(
    ("cells", "kind", "pattern"),
    [
        (pa.array([1, 2], pa.uint8()), "number", "iso"),
        (pa.array([1.5, None], pa.float32()), "number", "iso"),
        (pa.array([Decimal("1.5")]), "number", "iso"),
        (pa.array([None, None], pa.float64()), "number", "iso"),
        (pa.array([True, True]), "boolean", "iso"),
        (pa.array([date(2024, 1, 1)]), "time", "iso"),
        (pa.array([datetime(2024, 1, 1)], pa.timestamp("ns")), "time", "iso"),
        (pa.array([datetime(2024, 1, 1, 3)], pa.timestamp("s", "Asia/Tokyo")), "time", "iso"),
        (pa.array([time(3)], pa.time32("s")), "time", "time of day"),
        (pa.array(["a", "b"]).dictionary_encode(), "category", "iso"),
        (pa.array(["1", "2"], pa.large_string()), "number", "iso"),
        (pa.nulls(3), "category", "iso"),
    ],
)
def test_infers_kind_from_types(cells: pa.Array, kind: str, pattern: str) -> None:
    found = infer(cells.cast(pa.string()) if pa.types.is_dictionary(cells.type) else cells)
    assert (found.kind, found.time_format.pattern) == (kind, pattern)


@pytest.mark.parametrize(
    ("cells", "note", "left_out", "warning"),
    [
        (IDENTIFIERS, "an identifier: 25 different values in 25 rows", True, ""),
        ([*IDENTIFIERS, None, ""], "an identifier: 25 different values in 25 rows", True, ""),
        ([*IDENTIFIERS, "aa"], "an identifier at first", False, "25 different values in 26 rows, which help"),
        ([str(i) for i in range(7, 30)], "counts the rows", True, ""),
        (
            ["1", "2", "1", "3"] * 20 + ["one"],
            "",
            False,
            "as a number, although 1 of its first 81 values are not, such as 'one' in row 81",
        ),
        (["7"] * 30, "constant at first", False, ""),
        (["x"] * 30, "constant at first", False, ""),
        ([str(i) for i in range(7, 15)], "", False, ""),  # too few values
        (["a", "b"] * 20, "", False, ""),
        ([str(-i) for i in range(30)], "", False, ""),
        (
            ["1", "x", "2"],
            "looks like numbers: 1 of its first 3 values are not, such as 'x' in row 2",
            False,
            "as text, although it looks like numbers: 1 of its first 3 values are not, such as 'x' in row 2: correct",
        ),
        (["1,50 €", "12,00 €"], "decimal comma, in €", False, ""),
        (["1,234", "5,678"], "thousands separated by ','", False, "'1,234' is read as 1234; .* --decimal ,"),
    ],
)
def test_notes_and_warnings(cells: list[str | None], note: str, left_out: bool, warning: str) -> None:
    found = infer(pa.array(cells, pa.string()))
    assert found.note == note
    assert bool(found.left_out) == left_out
    assert len(found.warnings) == bool(warning)
    assert all(re.fullmatch(f"column 'c'.* {warning}.*", each) for each in found.warnings)


def test_given_kind_is_not_inferred() -> None:
    assert infer(pa.array(["1", "2"]), "category").kind == "category"
    assert infer(pa.array(["12:30", "2:30"]), "time").time_format.pattern == "time of day"
    assert infer(pa.array(["1", "x", "2"]), "category").warnings == []
    assert infer(pa.array(["x"]), "number").warnings == [
        "column 'c' is treated as a number, although 1 of its first 1 values are not, such as 'x' in row 1; "
        "--on-error skip skips such rows"
    ]


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([3, None, -(2**53) - 1]),
        pa.array(["3", "", "-9007199254740993"]),
        pa.array([3, 4, 2**64 - 1], pa.uint64()),
    ],
)
def test_integers_that_lose_digits_as_numbers_are_named(cells: pa.Array) -> None:
    table = TableBatch.from_table(pa.table({"c": cells, "y": pa.array([1, 2, 2**60])}))
    value = str(cells[2])
    assert TableEncoder.from_head(table, "y").warnings == [
        f"column 'c' has whole numbers beyond 2^53, such as '{value}' in row 3, which lose digits as numbers: "
        "run with --kind 'c=category' or --drop 'c'"
    ]
    assert TableEncoder.from_head(table, "y", kinds={"c": "category"}).warnings == []
    small = TableBatch.from_table(pa.table({"c": pa.array([2**53, 1.5, 3]), "y": pa.array([1, 2, 3])}))
    assert TableEncoder.from_head(small, "y").warnings == []


@pytest.mark.parametrize(
    ("options", "cell", "given"),
    [
        (CellOptions(decimal=","), "1.25", "--decimal ','"),
        (CellOptions(thousands="."), "1.25", "--thousands '.'"),
        (CellOptions(decimal=".", thousands=" "), "1,25", "--decimal '.' and --thousands ' '"),
    ],
)
def test_an_option_that_makes_numbers_text_is_named(options: CellOptions, cell: str, given: str) -> None:
    for cells in ([cell] * 30, [cell] * 10 + ["2"] * 20, [f"{k}{cell}" for k in range(1, 31)]):
        (said,) = infer_kind(Sample.of("c", pa.array(cells)), None, options).warnings
        n_bad = len([each for each in cells if each != "2"])
        assert said == (
            f"column 'c' is treated as text, although it looks like numbers: with {given}, {n_bad} of its first 30 "
            f"values are not, such as '{cells[0]}' in row 1: omit {given}, so that the format of each column is "
            "inferred, or run with --drop 'c'"
        )
        assert to_python(said).endswith("is inferred, or set drop=['c']")
    assert 'omit decimal="' in to_python(said) or 'omit thousands="."' in to_python(said)
    assert infer_kind(Sample.of("c", pa.array(["rain", "sun"] * 20)), None, options).warnings == []
    assert infer_kind(Sample.of("c", pa.array([cell] * 30)), "category", options).warnings == []
