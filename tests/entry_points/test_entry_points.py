"""Every method accepts each input, or refuses it without a change of the learner."""

from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ellipack.validation import Floats
from tests.entry_points.entry_points import ENTRY_POINTS, is_paper
from tests.entry_points.input_cases import Accepted, InputCase, Refused
from tests.entry_points.learners import FIRST, LEARNERS, bits, stream

BATCH = 12
"""Rows of a batch, in which phases of all learners that have them end: rounds 25 to 36, or 1 to 12 after a reset."""

CASES = [
    pytest.param(method, case, learner, id=f"{method}-{name}-{learner}")
    for method, entry_point in ENTRY_POINTS.items()
    for name, case, learner in entry_point.cases()
]


def cases(outcome: type[Accepted | Refused]) -> pytest.MarkDecorator:
    """Return the cases with an outcome of this class."""
    some = [case for case in CASES if isinstance(case.values[1].of(is_paper(case.values[2])), outcome)]  # type: ignore[union-attr, arg-type]
    return pytest.mark.parametrize(("method", "case", "learner"), some)


@cache
def _fitted(method: str, learner: str) -> Any:
    return LEARNERS[learner]().partial_fit(*ENTRY_POINTS[method].first(*stream(FIRST)))


def fitted(method: str, learner: str) -> Any:
    """Return a learner after a few rows."""
    return deepcopy(_fitted(method, learner))


@cases(Refused)
def test_refused_input_changes_nothing(method: str, case: InputCase, learner: str) -> None:
    entry_point, expected = ENTRY_POINTS[method], case.of(is_paper(learner))
    assert isinstance(expected, Refused)
    X, y = case.make(*stream(BATCH, seed=1))
    models = [fitted(method, learner)]
    if entry_point.learns and case.spoils != "width":
        models.append(LEARNERS[learner]())
    for model in models:
        before = bits(model)
        with pytest.raises(expected.error, match=expected.message):
            entry_point.call(model, X, y)
        assert bits(model) == before


def as_float64(values: Any) -> Any:
    """Return the same numbers as a new array of float64 in C order; names of columns are kept."""
    if hasattr(values, "columns"):
        return pd.DataFrame(np.array(values, dtype=np.float64), columns=list(values.columns))
    return np.array(values, dtype=np.float64, order="C")


@cases(Accepted)
def test_accepted_input_gives_the_results_of_plain_arrays(method: str, case: InputCase, learner: str) -> None:
    entry_point, expected = ENTRY_POINTS[method], case.of(is_paper(learner))
    assert isinstance(expected, Accepted)
    X, y = case.make(*stream(BATCH, seed=1))
    one, other = fitted(method, learner), fitted(method, learner)
    made: Floats = entry_point.call(one, X, y)
    assert np.isfinite(made).all()
    assert made.tobytes() == entry_point.call(other, as_float64(X), as_float64(y)).tobytes()
    assert bits(one) == bits(other)
    # The learner can continue afterwards.
    more, labels = entry_point.first(*stream(10, seed=2))
    assert np.isfinite(one.partial_fit(more, labels).predict(more)).all()
