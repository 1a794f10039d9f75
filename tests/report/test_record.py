import json
import math
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError, InputError, NonFiniteError, ShapeError
from ellipack.report.record import (
    ColumnRecord,
    Direction,
    Experts,
    ImportanceRecord,
    KeysRecord,
    PastRecord,
    PhaseRecord,
    Progress,
    Record,
    SampledRows,
)
from tests.report import records

numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
whole = st.integers(0, 10**12)


def lists_of(entry: st.SearchStrategy[Any], size: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(entry, min_size=size, max_size=size)


def ends(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, 10**9), min_size=size, max_size=size, unique=True).map(sorted)


def shares(size: int) -> st.SearchStrategy[list[float]]:
    return lists_of(st.floats(0.01, 1), size).map(lambda values: [value / math.fsum(values) for value in values])


positive = st.floats(0, 1e300)
falling = st.lists(st.floats(0, 1e300), max_size=4).map(lambda values: sorted(values, reverse=True))


@st.composite
def any_record(draw: st.DrawFn) -> Record:
    d, bins, experts = draw(st.integers(0, 4)), draw(st.integers(0, 4)), draw(st.integers(0, 3))
    maybe = lists_of(st.none() | numbers, bins)
    weights = shares(experts)
    phases = [
        PhaseRecord(end, draw(whole), draw(whole), draw(falling), draw(weights | st.just([])), draw(st.text()))
        for end in draw(ends(draw(st.integers(0, 3))))
    ]
    sample = draw(st.integers(0, 3))
    key_columns = [lists_of(each, 2) for each in (st.text(), st.integers(1, 9), positive, positive)]
    return replace(
        records.full(),
        source=draw(st.text()),
        target=draw(st.text()),
        parameters=draw(st.dictionaries(st.text(), json_values, max_size=3)),
        progress=Progress(draw(ends(bins)), draw(maybe), draw(maybe), draw(maybe)),
        features=draw(lists_of(st.text(), d)),
        eigenvalues=draw(falling),
        directions=[Direction(draw(numbers), draw(lists_of(numbers, d)))],
        phases=phases,
        keys=draw(st.none() | st.builds(KeysRecord, st.text(), whole, whole, positive, positive, *key_columns)),
        past=draw(st.none() | st.builds(PastRecord, positive, positive, lists_of(st.text(), 2), shares(2))),
        experts=Experts(draw(lists_of(st.text(), experts)), draw(weights)),
        residuals=SampledRows(*(draw(lists_of(entry, sample)) for entry in (whole, numbers, numbers))),
        columns=[ColumnRecord(draw(st.text()), draw(st.text()), draw(st.text()), draw(whole))],
        speed=[(end, draw(numbers)) for end in draw(ends(2))],
    )


@given(any_record())
def test_json_round_trip(record: Record) -> None:
    text = record.to_json()
    assert text.isascii()
    again = Record.from_json(text)
    assert again == record
    assert again.to_json() == text


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value in a tree, but only of the first entry of each list."""
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*path, key))
    if isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


FULL = replace(records.full(), residuals=SampledRows([1], [2.0], [3.0]), phases=records.full().phases[:2]).to_json()
"""A record with all parts. Its long lists are short, since most tests parse them again and again."""


def tree() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(FULL)
    made["parameters"] = {"a": [1.5]}
    return made


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


PATHS = list(places(tree()))[1:]
NUMBERS = [path for path in PATHS if isinstance(at(tree(), path), float)]


def dotted(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)


FIELDS = [path for path in PATHS if isinstance(path[-1], str) and path[0] != "parameters"] + [("parameters",)]


@pytest.mark.parametrize("path", FIELDS, ids=dotted)
def test_missing_and_unknown_fields_are_named(path: tuple[str | int, ...]) -> None:
    value = tree()
    holder, name = at(value, path[:-1]), path[-1]
    kept = holder.pop(name)
    with pytest.raises(InputError, match=rf"^record\S* must have the field '{name}', got only "):
        Record.from_json(json.dumps(value))
    holder[name] = kept
    holder["unheard of"] = 1
    with pytest.raises(InputError, match=r"^record\S* must have only the fields .*, got 'unheard of'$"):
        Record.from_json(json.dumps(value))


@pytest.mark.parametrize("path", FIELDS, ids=dotted)
def test_wrong_types_are_named(path: tuple[str | int, ...]) -> None:
    value = tree()
    for wrong in (True, [True], {"x": True}):
        at(value, path[:-1])[path[-1]] = wrong
        if (path == ("parameters",) and wrong == {"x": True}) or (path[-1] == "is_driver" and wrong is True):
            continue  # a valid value
        with pytest.raises(InputError, match=r"^record\S* must (be|have) .*, got "):
            Record.from_json(json.dumps(value))


@pytest.mark.parametrize("path", NUMBERS, ids=dotted)
def test_non_finite_numbers_raise(path: tuple[str | int, ...]) -> None:
    value = tree()
    for wrong in (math.nan, math.inf, -math.inf):
        at(value, path[:-1])[path[-1]] = wrong
        with pytest.raises(NonFiniteError, match=r"^record must contain finite numbers or null, got -?(NaN|Infinity)$"):
            Record.from_json(json.dumps(value))
    text = json.dumps(value).replace("-Infinity", "1e999")  # which Python parses as infinity
    with pytest.raises(NonFiniteError, match=r"^record\S* must be finite, got inf$"):
        Record.from_json(text)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nul", "[" * 100_000, '{"source": ' + "[" * 600 + "]" * 600 + "}"])
def test_invalid_json_raises(text: str) -> None:
    with pytest.raises(InputError, match=r"^record"):
        Record.from_json(text)


def test_too_deeply_nested_parameters_raise() -> None:
    text = json.dumps(tree()).replace("[1.5]", "[" * 900 + "]" * 900)
    with pytest.raises(InputError, match=r"^record must be JSON: "):
        Record.from_json(text)


def test_integer_too_large_for_a_float_raises() -> None:
    text = json.dumps(tree()).replace('"rmse": 58.27', f'"rmse": {10**400}')
    with pytest.raises(InputError, match=r"^record\.summary\.rmse must be a number that a float can hold, got 1000"):
        Record.from_json(text)


def test_integers_are_accepted_as_floats() -> None:
    text = json.dumps(tree()).replace('"rmse": 58.27', '"rmse": 58')
    rmse = Record.from_json(text).summary.rmse
    assert rmse == 58
    assert isinstance(rmse, float)


def test_record_is_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        records.full().source = "other"  # type: ignore[misc]  # frozen on purpose


BROKEN: list[tuple[Callable[[Record], dict[str, Any]], type[InputError], str]] = [
    (lambda r: {"n_centers": np.int64(3)}, InputError, r"n_centers must be a whole number, got np.int64\(3\)"),
    (lambda r: {"eigenvalues": np.ones(2)}, InputError, r"eigenvalues must be a list, got array\("),
    (lambda r: {"parameters": {"x": object()}}, InputError, r"parameters.x must be null, true, false, a number"),
    (lambda r: {"parameters": {1: 2}}, InputError, "parameters must have strings as keys, got 1"),
    (lambda r: {"parameters": {"x": [math.nan]}}, NonFiniteError, r"parameters.x\[0\] must be finite, got NaN"),
    (
        lambda r: {"features": r.features[1:]},
        ShapeError,
        r"directions\[0\].loadings must have one entry for each of 13 features",
    ),
    (lambda r: {"past": PastRecord(2.0, 1.0, ["a"], [2.0])}, DomainError, "past.metric_weights must sum to 1, got 2"),
    (
        lambda r: {"past": PastRecord(2.0, 1.0, ["a"], [1e309])},
        NonFiniteError,
        r"past.metric_weights\[0\] must be finite, got inf",
    ),
    (
        lambda r: {"past": PastRecord(2.0, 1.0, ["a", "b"], [-0.5, 1.5])},
        DomainError,
        r"past.metric_weights\[0\] must be >= 0, got -0.5",
    ),
    (
        lambda r: {"importance": ImportanceRecord([], [], [], None, math.nan)},
        NonFiniteError,
        "importance.rmse must be finite, got NaN",
    ),
    (
        lambda r: {"directions": [Direction(1.0, [1.0])]},
        ShapeError,
        r"directions\[0\].loadings must have one entry for each of 14 features, got 1",
    ),
    (lambda r: {"eigenvalues": [0.5, 1.0]}, DomainError, "eigenvalues must be in decreasing order, got 1 after 0.5"),
    (lambda r: {"eigenvalues": [1.0, -0.1]}, DomainError, "eigenvalues must be >= 0, got -0.1"),
    (lambda r: {"effective_rank": -1}, DomainError, "effective_rank must be >= 0, got -1"),
    (lambda r: {"summary": replace(r.summary, rows=-1)}, DomainError, "summary.rows must be >= 0, got -1"),
    (lambda r: {"summary": replace(r.summary, mae=-1.0)}, DomainError, "summary.mae must be >= 0, got -1"),
    (
        lambda r: {"progress": replace(r.progress, last_rmse=[1.0])},
        ShapeError,
        "progress.last_rmse must have one entry for each of 60 bins, got 1",
    ),
    (
        lambda r: {"progress": Progress([5, 5], [1.0, 1.0], [None, None], [None, None])},
        DomainError,
        "progress.end must be increasing row numbers, got 5 after 5",
    ),
    (
        lambda r: {"residuals": SampledRows([1], [1.0], [])},
        ShapeError,
        "residuals.labels must have one entry for each of 1 rows, got 0",
    ),
    (lambda r: {"speed": [(0, 1.0)]}, DomainError, "speed must be increasing row numbers, got 0 after 0"),
    (lambda r: {"speed": [(1, 1.0, 2)]}, InputError, r"speed\[0\] must be a list of 2, got \(1, 1.0, 2\)"),
    (
        lambda r: {"phases": [replace(r.phases[0], expert_weights=[1.0])]},
        ShapeError,
        r"phases\[0\].expert_weights must have one entry for each of 15 experts, got 1",
    ),
    (
        lambda r: {"phases": r.phases[::-1]},
        DomainError,
        r"phases: end must be increasing row numbers, got \d+ after \d+",
    ),
    (
        lambda r: {"columns": [ColumnRecord("<x>", "number", "", -1)]},
        DomainError,
        "columns: '<x>' missing must be >= 0, got -1",
    ),
]


@pytest.mark.parametrize(("change", "error", "message"), BROKEN, ids=[message for _, _, message in BROKEN])
def test_inconsistent_record_raises(
    change: Callable[[Record], dict[str, Any]], error: type[InputError], message: str
) -> None:
    record = records.full()
    with pytest.raises(error, match=f"^{message}"):
        replace(record, **change(record))
