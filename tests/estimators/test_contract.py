"""The contract that every learner keeps."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ellipack import RescaledRegressor
from ellipack.errors import DomainError, EllipackError, NonFiniteError
from ellipack.learners.intervals import check_coverage, empty_predictions, select_intervals
from ellipack.validation import Floats
from tests.entry_points.learners import bits
from tests.entry_points.learners import stream as unit_stream
from tests.estimators.factories import PAPER, PRACTICAL, RESCALED, Factory, Regressor, unscaled_stream
from tests.strategies import cuts, seeds

Stream = Callable[[int, int], tuple[Floats, Floats]]

CASES = {name: (make, unit_stream) for name, make in (PAPER | PRACTICAL).items()} | {
    name: (make, unscaled_stream) for name, make in RESCALED.items()
}
learners = pytest.mark.parametrize(("make", "stream"), CASES.values(), ids=CASES.keys())
papers = pytest.mark.parametrize("make", PAPER.values(), ids=PAPER.keys())


@cache
def _fitted(make: Factory, stream: Stream) -> Regressor:
    return make().fit(*stream(80, 0))


def fitted(make: Factory, stream: Stream) -> Regressor:
    """Return a learner after 80 rows."""
    return deepcopy(_fitted(make, stream))


@learners
@settings(max_examples=10)
@given(seeds, st.data())
def test_single_rows_and_batches_give_the_same_bits(
    make: Factory, stream: Stream, seed: int, data: st.DataObject
) -> None:
    X, y = stream(40, seed)
    whole, parts = make(), make()
    expected = whole.progressive(X, y)
    slices = data.draw(cuts(len(X)) | st.just([slice(t, t + 1) for t in range(len(X))]))
    made = np.concatenate([parts.progressive(X[part], y[part]) for part in slices])
    assert made.tobytes() == expected.tobytes()
    assert bits(parts) == bits(whole)
    probe = stream(9, seed + 1)[0]
    singly = np.concatenate([whole.predict(x[None]) for x in probe])
    assert singly.tobytes() == whole.predict(probe).tobytes()


@learners
def test_rows_are_counted_and_their_predictions_written(make: Factory, stream: Stream) -> None:
    X, y = stream(30, 0)
    learner, expected = make(), make()
    assert learner.n_rounds == 0
    for part in (slice(0, 7), slice(7, 8), slice(8, 30)):
        written = empty_predictions(part.stop - part.start, with_intervals=True)
        learner.learn_into(X[part], y[part], written)
        values, intervals = expected.progressive(X[part], y[part], coverage=0.8)
        assert written.values.tobytes() == values.tobytes()
        assert select_intervals(written.bounds, check_coverage(0.8)).lower.tobytes() == intervals.lower.tobytes()
        assert learner.n_rounds == part.stop
    assert bits(learner) == bits(expected)


def test_a_row_with_an_outlier_as_label_is_counted() -> None:
    X, y = unit_stream(12, 0)
    y[10] = 1e9
    assert PRACTICAL["practical"]().fit(X, y).n_rounds == 12


@learners
def test_progressive_returns_predictions_of_the_next_row(make: Factory, stream: Stream) -> None:
    X, y = stream(80, 0)
    learner = make().fit(X[:1], y[:1])
    predict = getattr(learner, "predict_next", learner.predict)
    for x, label in zip(X[1:], y[1:], strict=True):
        expected = predict(x[None])
        assert learner.progressive(x[None], [label]).tolist() == expected.tolist()


@learners
def test_predict_does_not_change_the_state(make: Factory, stream: Stream) -> None:
    learner = fitted(make, stream)
    before = bits(learner)
    learner.predict(stream(80, 1)[0])
    if isinstance(learner, RescaledRegressor):
        learner.predict(1e3 * stream(80, 0)[0])  # outside of the ranges
    assert bits(learner) == before


@learners
@pytest.mark.parametrize("writeable", [True, False])  # read-only arrays are copied, others are not
def test_inputs_are_not_changed(make: Factory, stream: Stream, writeable: bool) -> None:
    X, y = stream(80, 0)
    copies = X.copy(), y.copy()
    X.flags.writeable = y.flags.writeable = writeable
    make().fit(X, y).partial_fit(X, y).predict(X)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(y, copies[1])


@learners
@pytest.mark.parametrize("at", [1, 14, 37])
def test_an_unpickled_learner_continues_with_the_same_bits(make: Factory, stream: Stream, at: int) -> None:
    X, y = stream(80, 0)
    resumed = pickle.loads(pickle.dumps(make().fit(X[:at], y[:at])))
    assert bits(resumed.partial_fit(X[at:], y[at:])) == bits(fitted(make, stream))


@learners
def test_clone_is_not_fitted_and_fit_resets(make: Factory, stream: Stream) -> None:
    X, y = stream(80, 0)
    learner = make().fit(*stream(80, 3))
    copy = clone(learner)
    assert not hasattr(copy, "state_")
    if isinstance(learner, RescaledRegressor):
        assert not hasattr(learner.regressor, "state_")
    assert bits(copy.fit(X, y)) == bits(learner.fit(X, y)) == bits(fitted(make, stream))


@papers
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0, 0, 0], [0, 0, 0]], [0.5, 1.5], r"y must lie in \[0, 1\], got 1.5 at row 1"),
        ([[0, 0, 0]], [-1e-9], r"y must lie in \[0, 1\], got -1e-09 at row 0"),
        (
            [[0, 0, 0], [0.9, 0.9, 0]],
            [0.5, 0.5],
            r"X must lie in the unit ball \(norm <= 1\), got norm 1.27\d* at row 1",
        ),
        ([[1e300, 0, 0]], [0.5], "X must lie in the unit ball"),
    ],
)
def test_the_papers_learners_refuse_data_outside_their_domain(
    make: Factory, X: object, y: object, message: str
) -> None:
    learner = fitted(make, unit_stream)
    before = bits(learner)
    with pytest.raises(DomainError, match=message):
        learner.partial_fit(X, y)
    assert bits(learner) == before


@learners
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[np.nan, 0, 0]], [0.5], "X must be finite, got NaN at row 0, column 0"),
        ([[0, 0, 0], [0, -np.inf, 0]], [0.5, 0.5], "X must be finite, got -inf at row 1, column 1"),
        ([[1e9, 0, 0], [0, -np.inf, 0]], [0.5, 0.5], "X must be finite, got -inf at row 1, column 1"),
        ([[0, 0, 0]], [np.nan], "y must be finite, got NaN at row 0"),
        ([[0, 0]], [0.5], "X has 2 features, but NAME is expecting 3 features"),
        (np.empty((0, 3)), [], r"X must have at least one row and one column, got 0 sample\(s\) \(shape=\(0, 3\)\)"),
        ([0.0, 0.0, 0.0], [0.5], r"X must be two-dimensional \(rows, columns\), got shape \(3,\): Reshape your data"),
        ([[0, 0, 0]], [0.5, 0.5], "y must hold one label per row: 1 rows, got 2 labels"),
        ([[0, 0, 0]], [[0.5, 0.5]], r"y must be one-dimensional, got shape \(1, 2\)"),
        ([[0, 0, 0]], None, "requires y to be passed, but the target y is None"),
        ([["a", "b", "c"]], [0.5], "X must hold real numbers"),
        ([[1j, 0, 0]], [0.5], "X must hold real numbers, got complex128"),
    ],
)
def test_invalid_rows_are_refused_and_change_nothing(
    make: Factory, stream: Stream, X: object, y: object, message: str
) -> None:
    learner = fitted(make, stream)
    before, message = bits(learner), message.replace("NAME", type(learner).__name__)
    for method in (learner.partial_fit, learner.progressive):
        with pytest.raises(EllipackError, match=message):
            method(X, y)
        with pytest.raises(EllipackError, match=message):
            method(np.array(X), None if y is None else np.array(y))
    if message.startswith("X"):
        for table in (X, np.array(X)):
            with pytest.raises(EllipackError, match=message):
                learner.predict(table)
    assert bits(learner) == before


@learners
def test_a_failed_fit_keeps_the_fitted_state(make: Factory, stream: Stream) -> None:
    learner = fitted(make, stream)
    before = bits(learner)
    with pytest.raises(NonFiniteError):
        learner.fit([[0.0, np.nan]], [0.5])
    assert bits(learner) == before
    assert learner.n_features_in_ == 3


@learners
def test_predict_before_fit_is_refused(make: Factory, stream: Stream) -> None:
    with pytest.raises(NotFittedError):
        make().predict(stream(1, 0)[0])
    assert not hasattr(make(), "n_centers_")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = make().metric_
