from collections.abc import Callable

import numpy as np
import pytest

from ellipack.errors import ModelFileError
from ellipack.serialization import Archive

PART = Archive(
    {"n": 3, "yes": True, "x": 0.5, "names": ["a", "b"], "infinite": float("inf")},
    {"f": np.ones((2, 3)), "i": np.array([1, 2]), "nan": np.array([np.nan])},
)
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
        (lambda c: c.floats_above(1.0, "f", 2, 3), "p/f must be > 1, got 1"),
        (lambda c: c.ints("i", 2, least=2), "p/i must be >= 2, got 1"),
        (lambda c: c.ints("missing", 2), r"p/missing must be int64 of shape \(2,\), got nothing"),
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
    assert (PART.arrays["f"] == 1).all()
    assert np.isnan(part.any_floats("nan", 1)).all()
    copy = PART.copy()
    copy.arrays["i"][:] = 7
    assert PART.arrays["i"].tolist() == [1, 2]
