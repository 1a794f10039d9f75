import json
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import StreamError
from ellipack.tabular import FileOptions, TableBatch, ndjson_reader, open_table
from ellipack.tabular.table_batch import to_strings
from tests.tabular.reading import read_batches

texts = st.text(st.sampled_from('ab{[\\"\n é😀:,'), max_size=5) | st.just("2024-01-01T00:00:00")
numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
values = st.none() | st.booleans() | numbers | texts
COLUMNS = ("a", "b", "c")


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, object]]:
    """Draw rows whose columns mostly have a single type."""
    kinds = {name: draw(st.sampled_from([numbers, texts, st.booleans(), values])) for name in COLUMNS}
    rows = st.fixed_dictionaries({}, optional={name: st.none() | kind for name, kind in kinds.items()})
    return [dict.fromkeys(COLUMNS), *draw(st.lists(rows, max_size=25))]


read = partial(read_batches, ndjson_reader)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ndjson") / "table.ndjson"


def as_texts(batches: list[TableBatch]) -> list[list[str | None]]:
    columns = [[to_strings(column).to_pylist() for column in batch.table.columns] for batch in batches]
    return [[cell for column in some for cell in column] for some in zip(*columns, strict=True)]


def literal(value: object) -> str | None:
    """Return the expected string of a cell: integers are exact."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    assert isinstance(value, float)
    return str(to_strings(pa.array([value]))[0])


@given(tables(), st.integers(1, 30), st.integers(30, 400), st.booleans())
def test_parsing_by_block_and_by_line_agree(
    path: Path, rows: list[dict[str, object]], batch_rows: int, block: int, blank: bool
) -> None:
    content = ("\n\n" if blank else "\n").join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    expected = [[literal(row.get(name)) for row in rows] for name in COLUMNS]
    assert as_texts(read(path, content, block, batch_rows=batch_rows)) == expected
    with patch.object(ndjson_reader.NdjsonReader, "_parse_with_pyarrow", return_value=None):
        assert as_texts(read(path, content, block, batch_rows=batch_rows)) == expected


@given(st.integers(0, 30), st.integers(20, 200), st.lists(st.booleans(), min_size=1, max_size=25))
def test_blank_lines_are_not_rows(path: Path, skipped: int, block: int, blanks: list[bool]) -> None:
    lines = ["" if blank else json.dumps({"n": i}) for i, blank in enumerate([False, *blanks])]
    whole = [json.loads(line)["n"] for line in lines if line]
    batches = read(path, "\n".join(lines).encode(), block, skip_rows=skipped)
    assert [n for batch in batches for n in batch.table.column("n").to_pylist()] == whole[skipped:]
    assert [n for batch in batches for n in batch.row_numbers] == list(range(skipped + 1, len(whole) + 1))


BAD = [
    (b'{"a": 1', None, "is not JSON"),
    (b"hello", None, "is not JSON"),
    (b'{"a": 1}{"a": 2}', None, "is not JSON"),
    (b'{"a": 1} // why', None, "is not JSON"),
    (b"7", None, "is not a JSON object: '7'"),
    (b"[1]", None, "is not a JSON object"),
    (
        b'{"a": [1, 2]}',
        "a",
        "is a list or an object: flatten the column, or run with --drop 'a'",
    ),
    (
        b'{"a": {"b": 2}}',
        "a",
        "is a list or an object: flatten the column, or run with --drop 'a'",
    ),
    (b'{"a": 1, "a": 2}', "a", "is a duplicate key"),
    (b'{"a": "\\ud800"}', "a", "is not valid Unicode"),
    (b'{"\\ud800": "a"}', None, "is not valid Unicode"),
    (b'{"a": "\xff"}', None, "is not valid UTF-8"),
    (b'{"z": 1}', "z", "is a key that does not occur in the first 8 bytes"),
    (b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", None, "is not JSON"),
    (b'{"a": ' + b'{"a": ' * 40_000 + b"1" + b"}" * 40_000 + b"}", None, "is not JSON"),
]


@pytest.mark.parametrize(("line", "column", "reason"), BAD)
def test_invalid_line_raises_or_is_skipped(path: Path, line: bytes, column: str | None, reason: str) -> None:
    content = b'{"a": 0}\n{"a": 1}\n\n' + line + b'\n{"a": 3}\n'
    with pytest.raises(StreamError, match=r"row 3[,:]") as caught:
        read(path, content, block=8)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    (batch,) = read(path, content, block=8, on_error="skip")
    assert batch.row_numbers.tolist() == [1, 2, 4]
    assert [(row.row_number, row.column) for row in batch.unreadable_rows] == [(3, column)]
    assert batch.unreadable_rows[0].reason.startswith(reason)


def test_every_key_of_the_first_block_is_a_column(path: Path) -> None:
    (batch,) = read(path, b'{"a": 1}\n{"b": 2}\n{"a": 3, "b": "x"}\n')
    assert batch.table.to_pydict() == {"a": [1.0, None, 3.0], "b": [None, "2", "x"]}


def test_too_long_line_raises(path: Path) -> None:
    with pytest.raises(StreamError, match="a line is longer than 16,777,216 bytes: is it one JSON object per line"):
        read(path, b'{"a": "' + b"x" * (1 << 25))


def test_no_columns_raises(path: Path) -> None:
    with pytest.raises(StreamError, match="has no columns"):
        read(path, b"{}\n{}\n")


def test_infinity_and_nan_are_read_as_floats(path: Path) -> None:
    (batch,) = read(path, b'{"a": 1e999}\n{"a": NaN}\n{"a": -Infinity}\n')
    assert str(batch.table.column("a").to_pylist()) == "[inf, nan, -inf]"


LARGE = 2**53 + 1


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([LARGE, LARGE - 1], pa.int64()),
        ([-LARGE, None, 3], pa.int64()),
        ([2**64 - 1, 5], pa.uint64()),
        ([2**64 - 1, -5], pa.string()),
        ([10**20 + 1, 10**20], pa.string()),
        ([10**5000, 1], pa.string()),
        ([LARGE, 0.5], pa.string()),
        ([3, 0.5], pa.float64()),
        ([1e300, 0.5], pa.float64()),
        ([LARGE, "x"], pa.string()),
    ],
)
def test_integers_are_exact(path: Path, values: list[object], kind: pa.DataType) -> None:
    text = [
        repr(value) if isinstance(value, float) else "1" + "0" * 5000 if value == 10**5000 else None for value in values
    ]
    cells = [own or json.dumps(value) for own, value in zip(text, values, strict=True)]
    content = "".join(f'{{"a": {cell}}}\n' for cell in cells).encode()
    (batch,) = read(path, content)
    assert batch.table.column("a").type == kind
    if kind == pa.string():
        expected = [cell.strip('"') for cell in cells]
        assert to_strings(batch.table.column("a")).to_pylist() == expected
    else:
        assert batch.table.column("a").to_pylist() == values


def test_large_integers_of_a_json_array_are_exact(path: Path) -> None:
    path.with_suffix(".json").write_text(f'[{{"a": {LARGE}}}, {{"a": {LARGE - 1}}}]')
    with open_table(str(path.with_suffix(".json"))) as stream:
        (batch,) = stream
    assert batch.table.column("a").to_pylist() == [LARGE, LARGE - 1]


@pytest.mark.parametrize("block", [1, 40, 1 << 20])
@pytest.mark.parametrize("batch_rows", [1, 2, 5])
def test_integers_are_the_same_whatever_comes_later(path: Path, block: int, batch_rows: int) -> None:
    values = [LARGE, LARGE - 1, 12_345_678_901, 1.5, "x", LARGE, True, 10**20]
    content = "\n".join(json.dumps({"a": value}) for value in values).encode()
    texts = ["9007199254740993", "9007199254740992", "12345678901", "1.5", "x", "9007199254740993", "true", str(10**20)]
    assert as_texts(read(path, content, block, batch_rows=batch_rows)) == [texts]


@pytest.mark.parametrize("options", [FileOptions(drop=["a"]), FileOptions(take=["y"])])
@pytest.mark.parametrize("block", [20, 1 << 20])
def test_nested_values_of_columns_that_are_no_features_are_text(path: Path, options: FileOptions, block: int) -> None:
    rows: list[dict[str, object]] = [{"a": {"b": [1, {"c": None}]}, "y": 2}, {"a": [3], "y": 4}, {"a": "é", "y": 5}]
    content = "\n".join(json.dumps(row) for row in rows).encode()
    assert as_texts(read(path, content, block, file_options=options)) == [
        ['{"b": [1, {"c": null}]}', "[3]", "é"],
        ["2", "4", "5"],
    ]
    path.with_suffix(".json").write_text(json.dumps(rows))
    with open_table(str(path.with_suffix(".json")), file_options=options) as stream:
        assert as_texts(list(stream))[1] == ["2", "4", "5"]


def test_only_nested_rows_raise_without_advice_that_cannot_help(path: Path) -> None:
    content = b'{"a": [1], "y": 2}\n{"a": [3], "y": 4}\n'
    with pytest.raises(StreamError, match=r"row 1, column 'a': .* run with --drop 'a': no row can be read$"):
        read(path, content, on_error="skip")
