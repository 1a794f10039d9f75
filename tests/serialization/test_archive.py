import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import ModelFileError
from ellipack.serialization import Archive

PART = Archive(
    {"n": 3, "yes": True, "x": 0.5, "names": ["a", "b"], "infinite": float("inf")},
    {
        "f": np.ones((2, 3)),
        "i": np.array([1, 2]),
        "nan": np.array([np.nan]),
        "ends": np.array([0, np.inf]),
        "low": np.array([-np.inf]),
    },
).with_parts(q=Archive(arrays={"x": np.ones(1)}))
PART = Archive({**PART.facts, "both": {}}, {**PART.arrays, "both": np.ones(1)})
WHOLE = Archive().with_parts(p=PART)


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (lambda c: c.integer("missing", 0), "p/missing must be an integer, got nothing"),
        (lambda c: c.integer("x", 0), "p/x must be an integer, got 0.5"),
        (lambda c: c.integer("yes", 0), "p/yes must be an integer, got True"),
        (lambda c: c.integer("n", 4), "p/n must be from 4 to 4611686018427387904, got 3"),
        (lambda c: c.number("names"), "p/names must be a finite number, got "),
        (lambda c: c.number("infinite"), "p/infinite must be a finite number, got inf"),
        (lambda c: c.fact("n", str), "p/n must be a string, got 3"),
        (lambda c: c.strings("names", 3), "p/names must be a list of 3 strings, got"),
        (lambda c: c.strings("n"), "p/n must be a list, got 3"),
        (lambda c: c.part("n"), "p/n must be an object, got 3"),
        (lambda c: c.floats("f", 3, 2), r"p/f must be float64 of shape \(3, 2\), got float64 of shape \(2, 3\)"),
        (lambda c: c.floats("i", 2), r"p/i must be float64 of shape \(2,\), got int64 of shape \(2,\)"),
        (lambda c: c.floats("nan", 1), "p/nan must be finite, got NaN or an infinity"),
        (lambda c: c.floats_between(0.0, 1.0, "nan", 1), "p/nan must be finite, got NaN or an infinity"),
        (lambda c: c.floats_between(0.0, np.inf, "ends", 2), "p/ends must be finite, got NaN or an infinity"),
        (lambda c: c.floats_between(-np.inf, 0.0, "low", 1), "p/low must be finite, got NaN or an infinity"),
        (lambda c: c.floats_between(1.5, 2.0, "f", 2, 3), "p/f must be from 1.5 to 2, got 1 to 1"),
        (lambda c: c.floats_between(0.0, 0.5, "f", 2, 3), "p/f must be from 0 to 0.5, got 1 to 1"),
        (lambda c: c.floats_above(1.0, "f", 2, 3), "p/f must be > 1, got 1"),
        (lambda c: c.ints("i", 2, least=2), "p/i must be >= 2, got 1"),
        (lambda c: c.ints("missing", 2), r"p/missing must be int64 of shape \(2,\), got nothing"),
        (lambda c: c.part("f"), "p/f must be an object, got nothing"),
        (lambda c: c.ints("q", 2), r"p/q must be int64 of shape \(2,\), got nothing"),
        (lambda c: c.shape("q", 1), "p/q must be an array of 1 dimensions, got nothing"),
        (lambda c: c.part("q").floats("r", 1), r"p/q/r must be float64 of shape \(1,\), got nothing"),
        (lambda c: c.part("both"), "p/both must be a part, got an array"),
        (lambda c: c.shape("i", 2), r"p/i must be an array of 2 dimensions, got shape \(2,\)"),
    ],
)
def test_values_of_another_type_shape_or_range_are_refused(access: Callable[[Archive], object], message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        access(WHOLE.part("p"))


def test_accessors_return_values_and_copies_of_arrays() -> None:
    part = WHOLE.part("p")
    assert (part.integer("n", 3, 3), part.number("x"), part.number("n"), part.strings("names", 2)) == (
        3,
        0.5,
        3,
        ["a", "b"],
    )
    given = part.floats("f", 2, 3)
    given[:] = 7
    assert (PART.arrays_by_full_name()["f"] == 1).all()
    assert np.isnan(part.any_floats("nan", 1)).all()
    WHOLE.copy().arrays_by_full_name()["p/i"][:] = 7
    assert PART.arrays_by_full_name()["i"].tolist() == [1, 2]


def names() -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_characters="/"), max_size=3)


@given(st.recursive(st.just(None), lambda children: st.dictionaries(names(), children, max_size=4)))
def test_arrays_of_parts_are_found_by_full_name(tree: dict[str, Any] | None) -> None:
    count = itertools.count()

    def archive(part: dict[str, Any]) -> Archive:
        arrays = {name: np.full(1, next(count)) for name, inner in part.items() if inner is None}
        parts = {name: archive(inner) for name, inner in part.items() if inner is not None}
        return Archive({"fact": next(count)}, arrays).with_parts(**parts)

    def literal(one: Archive, part: dict[str, Any], prefix: str) -> dict[str, int]:
        values = {}
        for name, inner in part.items():
            if inner is None:
                values[f"{prefix}{name}"] = int(one.ints(name, 1)[0])
            else:
                values |= literal(one.part(name), inner, f"{prefix}{name}/")
        return values

    whole = archive(tree or {})
    by_name = whole.arrays_by_full_name()
    assert {name: int(array[0]) for name, array in by_name.items()} == literal(whole, tree or {}, "")
    again = Archive.from_full_names(whole.facts, by_name)
    assert literal(again, tree or {}, "") == literal(whole, tree or {}, "")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (["p", "p/x"], "the array 'p/x' must be in a part"),
        (["p/x", "p"], "the array 'p' must not have the name of a part"),
        (["p/q/x", "p/q"], "the array 'p/q' must not have the name of a part"),
        (["n/x"], "the array 'n/x' must be in a part"),
        (["none/x"], "the array 'none/x' must be in a part"),
        (["p/none/x"], "the array 'p/none/x' must be in a part"),
        (["/x"], "the array '/x' must be in a part"),
        (["p//x"], "the array 'p//x' must be in a part"),
        (["a/" * 100 + "x"], "the array 'a/a/a"),
    ],
)
def test_arrays_outside_of_parts_are_refused(arrays: list[str], message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        Archive.from_full_names({"n": 3, "p": {"q": {}}}, {name: np.ones(1) for name in arrays})


@pytest.mark.parametrize("archive", [Archive(arrays={"a/b": np.ones(1)}), Archive().with_parts(**{"a/b": PART})])
def test_names_with_a_slash_are_not_written(archive: Archive) -> None:
    with pytest.raises(ValueError, match="names of arrays and parts must not have a slash, got 'a/b'"):
        archive.arrays_by_full_name()
