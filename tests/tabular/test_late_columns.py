"""Columns whose kind is decided after the first rows, at their first 20 values."""

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.errors import ModelFileError, StreamError
from ellipack.tabular import MIN_VALUES, BadRow, TableBatch, TableEncoder
from tests.strategies import cuts

Cells = list[str | None]


def batch(cells: dict[str, Cells], rows: slice = slice(None)) -> TableBatch:
    columns = {name: pa.array(some[rows], pa.string()) for name, some in cells.items()}
    height = len(next(iter(columns.values())))
    numbers = {"x": [0.5] * height, "y": np.arange(height, dtype=float)}
    return TableBatch.from_table(pa.table(columns | numbers), first=1 + (rows.start or 0))


def encode(encoder: TableEncoder, rows: TableBatch) -> list[list[float]]:
    """Encode rows, split where a kind is decided; return the features of each row."""
    found: list[list[float]] = []
    for part in encoder.split_at_decisions(rows):
        for block in encoder.partial_fit_transform(encoder.parse(part)):
            found += block.X.tolist()
        width = len(encoder.feature_names)
        scales = encoder.remember_values(part)
        assert (scales > 0).all()
        assert len(encoder.feature_names) == width + len(scales)
    return found


def late(values: Sequence[str | None]) -> Cells:
    """Return cells of which the first two are missing, so that two rows leave the column undecided."""
    return [None, "NA", *values]


def encoder_of(cells: dict[str, Cells], min_values: int = 1) -> TableEncoder:
    return TableEncoder.from_head(batch(cells, slice(0, 2)), "y", min_values=min_values)


def reference_features(cells: Cells) -> list[list[float]]:
    """Return the features of a column of numbers, by the definition."""
    first, rows = list[float](), list[list[float]]()
    for cell in cells:
        is_decided, values = len(first) >= MIN_VALUES, first[:MIN_VALUES]
        origin = sum(values) / len(values) if values else 0.0
        if is_decided:
            value = sum(first) / len(first) if cell is None or cell == "NA" else float(cell)
            rows.append([0.5, value - origin, float(cell is not None and cell != "NA")])
        else:
            rows.append([0.5])
        first += [] if cell is None or cell == "NA" else [float(cell)]
    return rows


@settings(max_examples=40)
@given(st.lists(st.none() | st.integers(-50, 50).map(str), min_size=15, max_size=60), st.data())
def test_numbers_enter_as_differences_from_the_first_mean(values: Cells, data: st.DataObject) -> None:
    cells = {"late": late(values)}
    whole, cut, expected = encoder_of(cells), encoder_of(cells), reference_features(cells["late"])
    found = encode(whole, batch(cells))
    assert [len(row) for row in found] == [len(row) for row in expected]
    np.testing.assert_allclose([x for row in found for x in row], [x for row in expected for x in row], atol=1e-12)
    parts: list[list[float]] = []
    for rows in data.draw(cuts(len(cells["late"]))):
        parts += encode(cut, batch(cells, rows))
        cut = TableEncoder.from_dict(json.loads(json.dumps(cut.to_dict())))
    assert parts == found
    assert json.dumps(cut.to_dict()) == json.dumps(whole.to_dict())


N = MIN_VALUES
DAYS = [f"{day:02d}.03.2024" for day in range(5, 5 + N)]
CASES: dict[str, tuple[Sequence[str | None], str, list[str]]] = {
    "numbers": (["1,5", "2,25 "] * N, "numbers (decimal comma) from row 23 on", ["late", "late is present"]),
    "units": (["1 km", "2 km"] * N, "numbers (in km) from row 23 on", ["late", "late is present"]),
    "Booleans": (["yes", "no"] * N, "Booleans from row 23 on", ["late", "late is present"]),
    "dates": (
        DAYS * 2,
        "dates or times (%d.%m.%Y) from row 23 on",
        ["late is present", *(f"late {part} {f}" for part in ("weekday", "day of year") for f in ("sin", "cos"))],
    ),
    "times": (["12:30", "9:05"] * N, "dates or times", ["late hour sin", "late hour cos", "late is present"]),
    "text": (["sun", "rain"] * N, "text from row 23 on", ["late=other", "late=sun", "late=rain"]),
    "identifier": ([f"k{i}" for i in range(2 * N)], f"left out (an identifier: {N} different values in {N} rows)", []),
    "counter": ([str(i) for i in range(2 * N)], "left out: counts the rows", []),
    "unclear": (["01/02/2024", "01/02/2024"] * N, "left out: column 'late': the order of day and month", []),
    "too few": (["5"] * (N - 1), "", []),
}


@pytest.mark.parametrize("case", CASES)
def test_kinds_are_decided_and_said_once(case: str) -> None:
    values, message, names = CASES[case]
    cells = {"late": late(values)}
    encoder = encoder_of(cells)
    assert encoder.describe_columns() == "numbers: x; undecided (too few values): late"
    encode(encoder, batch(cells))
    assert encoder.feature_names == ["x", *names]
    assert len(encoder.decisions) == (case != "too few")
    assert message in "".join(encoder.decisions)
    (summary,) = (each for each in encoder.column_summaries() if each.name == "late")
    assert summary.n_missing == 2
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    more = {"late": late(values)[-3:]}
    assert encode(again, batch(more)) == encode(encoder, batch(more))
    assert again.decisions == encoder.decisions


def test_a_few_values_decide_numbers_and_dates_but_not_text() -> None:
    cells: dict[str, Cells] = {
        "code": ["7", "8"],
        "day": ["2024-05-31", None],
        "word": ["none yet", None],
        "unclear": ["01/02/2024", "02/02/2024"],
        "thousands": ["1,234", None],
    }
    encoder = encoder_of(cells, min_values=MIN_VALUES)
    assert encoder.undecided_columns == ["word", "unclear", "thousands"]
    more: dict[str, Cells] = {
        name: late([values[0]] * 20) for name, values in cells.items() if name in encoder.undecided_columns
    }
    more |= {"word": ["none yet", *["1.5", "2.5"] * 10, "3.5"], "code": ["7"] * 22, "day": ["2024-05-31"] * 22}
    encode(encoder, batch(more))
    assert "treated as a number, although 1 of its first 20 values are not, such as 'none yet' in row 1" in str(
        encoder.warnings
    )
    assert "word" in encoder.feature_names


def test_typed_columns_are_not_read_as_text() -> None:
    """With decimal commas elsewhere, the number 1.125 must not become 1125."""
    types = {"late": pa.array([None] * 3 + [1.125] * 25), "price": pa.array(["1,5"] * 28), "y": pa.array(range(28))}
    rows = TableBatch.from_table(pa.table(types))
    head = TableBatch.from_table(pa.table({name: some.slice(0, 3) for name, some in types.items()}))
    encoder = TableEncoder.from_head(head, "y")
    assert encode(encoder, rows)[-1] == [1.5, 0.0, 1.0]


def test_bad_rows_keep_their_places_and_a_batch_is_split_behind_the_deciding_row() -> None:
    cells = {"a": late(["1"] * 30), "b": [None] * 10 + ["2"] * 22}
    whole = batch(cells)
    unreadable = tuple(BadRow(number, "is bad") for number in (5, 22, 23, 40))
    parts = encoder_of(cells).split_at_decisions(TableBatch(whole.table, whole.row_numbers, "t", unreadable))
    assert [part.row_numbers.tolist() for part in parts] == [[*range(1, 23)], [*range(23, 31)], [31, 32]]
    assert [[row.row_number for row in part.unreadable_rows] for part in parts] == [[5], [22, 23], [40]]


def test_a_table_without_values_uses_one_column_and_warns() -> None:
    rows = TableBatch.from_table(pa.table({"a": pa.nulls(3, pa.string()), "b": pa.nulls(3), "y": [1.0, 2.0, 3.0]}))
    encoder = TableEncoder.from_head(rows, "y")
    assert encoder.warnings == ["column 'a' has no values in the first 3 rows, as all others, and is treated as text"]
    assert (encoder.feature_names, encoder.undecided_columns) == (["a=other"], ["b"])


@pytest.mark.parametrize(
    ("entry", "value"),
    [("values", ["1"]), ("rows", [1, 2]), ("is_numeric", True), ("values", ["1"] * 30), ("left_out", 3)],
)
def test_invalid_states_are_refused(entry: str, value: object) -> None:
    cells = {"late": late(["a", "b", "c"])}
    encoder = encoder_of(cells)
    encode(encoder, batch(cells))
    state = json.loads(json.dumps(encoder.to_dict()))
    TableEncoder.from_dict(state)
    state["columns"][0][entry] = value
    with pytest.raises(ModelFileError):
        TableEncoder.from_dict(state)


def test_a_draft_parses_rows_behind_a_decision() -> None:
    cells = {"late": late(["1"] * MIN_VALUES + ["far"])}
    encoder = encoder_of(cells)
    before = json.dumps(encoder.to_dict())
    trial = encoder.draft()
    first, second = trial.split_at_decisions(batch(cells))
    trial.parse(first)
    trial.remember_values(first)
    with pytest.raises(StreamError, match="row 23, column 'late': 'far' is not a number"):
        trial.parse(second)
    assert json.dumps(encoder.to_dict()) == before
