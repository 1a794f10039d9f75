import copy
import json
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.errors import DomainError, ModelFileError, StreamError
from ellipack.tabular import MISSING_VALUES, CellOptions, LevelOptions, ParsedRows, TableBatch, TableEncoder
from tests.fuzz.strategies import n_examples
from tests.strategies import cuts
from tests.tabular.reference_encoder import ReferenceEncoder, Row

padding = st.sampled_from(["", "", "", " ", "\t"])
numbers = st.floats(-1e9, 1e9).map(repr) | st.integers(-3, 3).map(str) | st.sampled_from(["1e3", ".5", "-0", "+2"])
booleans = st.sampled_from(["true", "False", "YES", "no", "t", "f", "1", "0"])
dates = st.dates().map(str) | st.dates(date(2024, 1, 1), date(2024, 3, 3)).map(str)
seconds = st.sampled_from(["", ":59", ":05.25", ":00.123456"])
zones = st.sampled_from(["Z", "+02:00", "-0930"])
datetimes = st.builds(
    lambda moment, second: moment.isoformat(timespec="minutes") + second,
    st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1)),
    seconds,
)
zoned = st.builds(lambda moment, zone: moment + zone, datetimes, zones)
times_of_day = st.builds(lambda clock, second: f"{clock:%H:%M}{second}", st.times(), seconds)
categories = st.sampled_from(["rain", "sun", "other", "fog", "snow", "x=y"])
labels = st.integers(-8, 8).map(lambda i: i / 8) | st.floats(-3, 3) | st.sampled_from([1e9, -1e60, 1e60])
CELLS = {
    "number": [numbers],
    "boolean": [booleans],
    "time": [dates, datetimes, zoned, dates | datetimes, dates | zoned, times_of_day],
    "category": [categories, st.sampled_from("ab")],
}


@st.composite
def columns(draw: st.DrawFn, rows: int) -> tuple[str, list[str | None]]:
    kind = draw(st.sampled_from(sorted(CELLS)))
    cell = st.builds(lambda a, cell, b: a + cell + b, padding, draw(st.sampled_from(CELLS[kind])), padding)
    missing = draw(st.sampled_from([0, 0, 1]))
    cells = st.one_of(cell, *[st.sampled_from([None, *MISSING_VALUES, " NA "])] * missing)
    drawn = draw(st.lists(cells, min_size=rows, max_size=rows))
    drawn[draw(st.integers(0, rows - 1))] = draw(cell)  # a column without values is undecided
    return kind, drawn


class Table:
    """Generated table with labels, column kinds, and parameters of the encoder."""

    def __init__(
        self, kinds: dict[str, str], cells: dict[str, list[str | None]], labels: list[float], levels: LevelOptions
    ) -> None:
        self.kinds, self.cells, self.levels = kinds, cells, levels
        self.height = len(next(iter(cells.values())))
        self.labels = [repr(label) for label in labels]

    def batch(self, rows: slice = slice(None)) -> TableBatch:
        cells = {name: pa.array(some[rows], pa.string()) for name, some in self.cells.items()}
        return TableBatch.from_table(
            pa.table(cells | {"y": pa.array(self.labels[rows], pa.string())}), first=1 + (rows.start or 0)
        )

    def rows(self) -> list[Row]:
        return [{name: some[i] for name, some in self.cells.items()} for i in range(self.height)]

    def encoder(self) -> TableEncoder:
        trend = tuple(name for name, form in self.reference().forms.items() if form == "date")
        cells = CellOptions(trend=trend)
        return TableEncoder.from_head(self.batch(), "y", kinds=self.kinds, levels=self.levels, cells=cells)

    def reference(self) -> ReferenceEncoder:
        return ReferenceEncoder(self.kinds, self.rows(), self.levels)

    def __repr__(self) -> str:
        return f"Table({self.kinds}, {self.cells}, {self.labels}, {self.levels})"


@st.composite
def tables(draw: st.DrawFn, min_rows: int = 1) -> Table:
    rows = draw(st.integers(min_rows, 25))
    drawn = draw(st.lists(columns(rows), min_size=1, max_size=4))
    kinds = {f"c{i}": kind for i, (kind, _) in enumerate(drawn)}
    cells = {f"c{i}": some for i, (_, some) in enumerate(drawn)}
    levels = LevelOptions(draw(st.integers(1, 4)), draw(st.integers(0, 5)), draw(st.integers(1, 7)))
    return Table(kinds, cells, draw(st.lists(labels, min_size=rows, max_size=rows)), levels)


def features(encoder: TableEncoder, rows: ParsedRows) -> list[list[float]]:
    """Encode rows; return the features of each row, without features that appear later."""
    found: list[list[float]] = []
    width = len(encoder.feature_names)
    for block in encoder.partial_fit_transform(rows):
        assert block.X.flags.c_contiguous
        assert block.rows == slice(len(found), len(found) + len(block.X))
        assert block.X.shape[1] == width + len(block.new_scales)
        assert (block.new_scales > 0).all()
        width += len(block.new_scales)
        found += block.X.tolist()
    assert len(found) == len(rows)
    assert width == len(encoder.feature_names)
    return found


def same(found: list[list[float]], expected: list[list[float]]) -> bool:
    """Return whether features are identical, including the sign of zero."""
    return repr(found) == repr(expected)


@settings(max_examples=n_examples(30))
@given(tables())
def test_features_equal_those_of_the_reference_encoder(table: Table) -> None:
    encoder, reference = table.encoder(), table.reference()
    assert encoder.feature_names == reference.names
    expected = [reference.encode(row, float(label)) for row, label in zip(table.rows(), table.labels, strict=True)]
    assert same(features(encoder, encoder.parse(table.batch())), expected)
    assert encoder.feature_names == reference.names


@settings(max_examples=n_examples(20))
@given(tables(), st.data())
def test_features_do_not_depend_on_batching_or_saving(table: Table, data: st.DataObject) -> None:
    whole, cut = table.encoder(), table.encoder()
    expected = features(whole, whole.parse(table.batch()))
    found = []
    for rows in data.draw(cuts(table.height)):
        found += features(cut, cut.parse(table.batch(rows)))
        if data.draw(st.booleans()):
            cut = TableEncoder.from_dict(json.loads(json.dumps(cut.to_dict())))
    assert same(found, expected)
    assert cut.feature_names == whole.feature_names
    assert json.dumps(cut.to_dict()) == json.dumps(whole.to_dict())
    assert cut.column_summaries() == whole.column_summaries()


@given(tables(min_rows=2), st.data())
def test_features_do_not_depend_on_later_rows(table: Table, data: st.DataObject) -> None:
    until = data.draw(st.integers(1, table.height - 1))
    encoder, other = table.encoder(), table.encoder()
    order = [*range(until), *data.draw(st.permutations(range(until, table.height)))]
    shuffled = copy.copy(table)
    shuffled.cells = {name: [some[i] for i in order] for name, some in table.cells.items()}
    one = features(encoder, encoder.parse(table.batch()))
    assert same(features(other, other.parse(shuffled.batch()))[:until], one[:until])


@given(tables(), st.data())
def test_a_label_changes_features_of_later_rows_only(table: Table, data: st.DataObject) -> None:
    changed = data.draw(st.integers(0, table.height - 1))
    other = copy.copy(table)
    other.labels = list(table.labels)
    other.labels[changed] = repr(data.draw(labels))
    found = [features(encoder, encoder.parse(each.batch())) for each in (table, other) for encoder in [each.encoder()]]
    assert same(found[0][: changed + 1], found[1][: changed + 1])


@given(tables())
def test_transform_equals_partial_fit_transform_without_new_features(table: Table) -> None:
    encoder = table.encoder()
    encoder.partial_fit_transform(encoder.parse(table.batch()))
    for i, row in enumerate(table.rows()):
        before, again = json.dumps(encoder.to_dict()), encoder.parse(table.batch(slice(i, i + 1)))
        (alone,) = encoder.transform(again).tolist()
        assert json.dumps(encoder.to_dict()) == before
        width = len(encoder.feature_names)
        (learned,) = features(encoder, again)
        filled = any(cell is None or cell.strip() in MISSING_VALUES for cell in row.values())
        if not filled and not any(learned[width:]):
            assert repr(alone) == repr(learned[:width])


@given(tables())
def test_rows_without_labels_cannot_be_learned(table: Table) -> None:
    encoder = table.encoder()
    before = json.dumps(encoder.to_dict())
    with pytest.raises(DomainError, match=f"rows must have one label each, got 0 labels of {table.height} rows"):
        encoder.partial_fit_transform(encoder.parse_unlabeled(table.batch()))
    assert json.dumps(encoder.to_dict()) == before


@given(tables(), st.randoms(use_true_random=False))
def test_columns_are_matched_by_name(table: Table, random: Any) -> None:
    encoder = table.encoder()
    encoder.partial_fit_transform(encoder.parse(table.batch()))
    columns = {**table.batch().table.to_pydict(), "extra": [None] * table.height}
    names = random.sample(sorted(columns), len(columns))
    mixed = TableBatch.from_table(
        pa.table({name: pa.array(columns[name], pa.string()) for name in names if name != "y"})
    )
    np.testing.assert_array_equal(
        encoder.transform(encoder.parse_unlabeled(mixed)), encoder.transform(encoder.parse(table.batch()))
    )
    assert encoder.unused_columns(names) == ["extra"]
    for name in table.kinds:
        with pytest.raises(StreamError, match=rf"table has no column named '{name}' \(a feature column\)"):
            encoder.parse_unlabeled(TableBatch.from_table(mixed.table.drop_columns([name])))


INVALID_VALUES = {
    "number": ["abc", "inf", "-Infinity", "1e141", "1,5", "0x10", "1 2"],
    "boolean": ["maybe", "2"],
    "time": ["yesterday", "2024-02-30", "12-30", "2024-13-01T00:00", "31/12/2024", "2024-01-01T25:00"],
}


@given(tables(), st.data())
def test_skipped_bad_rows_have_no_effect(table: Table, data: st.DataObject) -> None:
    bad = data.draw(st.sets(st.integers(0, table.height - 1)))
    damaged, reasons = copy.deepcopy(table), {}
    for row in bad:
        name = data.draw(
            st.sampled_from([*(name for name, kind in table.kinds.items() if kind in INVALID_VALUES), "y"])
        )
        if name == "y":
            value = data.draw(st.sampled_from(["abc", "inf", "1e61"]))
            damaged.labels[row] = value
        else:
            value = data.draw(st.sampled_from(INVALID_VALUES[table.kinds[name]]))
            damaged.cells[name][row] = value
        reasons[row + 1] = name, value
    encoder, expected = table.encoder(), table.encoder()
    rows = encoder.parse(damaged.batch(), on_error="skip")
    assert {row.row_number: row.column for row in rows.bad_rows} == {
        number: name for number, (name, _) in reasons.items()
    }
    good = [i for i in range(table.height) if i not in bad]
    assert rows.row_numbers.tolist() == [i + 1 for i in good]
    assert rows.labels.tolist() == [float(table.labels[i]) for i in good]
    alone = TableBatch.from_table(table.batch().table.take(pa.array(good, pa.int64())))
    assert same(features(encoder, rows), features(expected, expected.parse(alone)))
    assert encoder.to_dict() == expected.to_dict()
    if bad:
        untouched = json.dumps(encoder.to_dict())
        name, value = reasons[min(reasons)]
        with pytest.raises(StreamError, match=f"^table, row {min(reasons)}, column '{name}': ") as caught:
            encoder.parse(damaged.batch())
        assert str(caught.value).endswith(": fix it, or run with --on-error skip")
        assert ("the label is missing" if value in MISSING_VALUES else repr(value)) in str(caught.value)
        assert json.dumps(encoder.to_dict()) == untouched


@st.composite
def mutated_json(draw: st.DrawFn, value: Any) -> Any:
    """Draw JSON data with one entry replaced, removed or duplicated."""
    if isinstance(value, dict) and value and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(value)))
        if draw(st.integers(0, 4)) == 0:
            return {name: entry for name, entry in value.items() if name != key}
        return value | {key: draw(mutated_json(value[key]))}
    if isinstance(value, list) and value and draw(st.integers(0, 9)):
        place = draw(st.integers(0, len(value) - 1))
        kept = value[place + 1 :] if draw(st.booleans()) else [value[place], *value[place + 1 :]]
        return [*value[:place], draw(mutated_json(value[place])), *kept]
    junk: list[Any] = [
        None,
        True,
        -1,
        10**30,
        0.5,
        float("nan"),
        float("inf"),
        1e308,
        "x",
        "time",
        "category",
        [],
        {},
        [[]],
        [1, 2],
    ]
    return draw(st.sampled_from(junk))


@settings(max_examples=n_examples(40))
@given(tables(), st.data())
def test_mutated_state_raises_or_works(table: Table, data: st.DataObject) -> None:
    encoder = table.encoder()
    encoder.partial_fit_transform(encoder.parse(table.batch()))
    try:
        loaded = TableEncoder.from_dict(data.draw(mutated_json(encoder.to_dict())))
    except ModelFileError:
        return
    try:
        rows = loaded.parse(table.batch(), on_error="skip")
    except StreamError:  # the name of a column was changed
        assert {column.name for column in loaded.column_summaries()} | {loaded.target} != {*table.kinds, "y"}
        return
    assert np.isfinite(loaded.transform(rows)).all()
    assert all(np.isfinite(block.X).all() for block in loaded.partial_fit_transform(rows))
    assert TableEncoder.from_dict(json.loads(json.dumps(loaded.to_dict()))).feature_names == loaded.feature_names
