"""The contract of all learners, kept on any features and labels."""

import pickle
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ellipack import GradientOuterProduct, LocalSlopes, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack import RescaledRegressor as Rescaled
from ellipack.errors import DomainError, EllipackError, InputError, NonFiniteError
from ellipack.learners.packing import PackingState
from ellipack.validation import Floats
from tests.strategies import cuts, seeds

LEARNERS: dict[str, Callable[[], Rescaled]] = {
    "euclidean": lambda: Rescaled(PackingRegressor()),
    "diagonal": lambda: Rescaled(PackingRegressor([1.0, 0.1, 0.01])),
    "as printed": lambda: Rescaled(PackingRegressor(keep_founding_label=False)),
    "phased": lambda: Rescaled(PhasedRegressor()),
    "phased, slopes": lambda: Rescaled(PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10), anchors=30))),
}
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())


def stream(n: int = 80, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 1e6, 1e-6] + [0.0, 3.0, 5.0]
    X[rng.random(n) < 0.05] *= 20  # out of the box, now and then
    return X, -1e4 + 500 * np.sin(X[:, 0]) + 50 * rng.normal(size=n)


def bits(learner: Rescaled) -> list[bytes]:
    """Return everything a learner has learned, to the bit."""
    inner, box = learner.state_.inner, learner.state_.box
    packing = inner if isinstance(inner, PackingState) else inner.packing
    arrays = [packing.metric.eigenvectors, packing.metric.eigenvalues, *map(np.array, packing.core.to_arrays())]
    arrays += [np.array(inner.clock), box.low, box.high, box.label]
    if not isinstance(inner, PackingState):
        arrays += [inner.rows, inner.labels, *(phase.gop for phase in inner.phases)]
    return [np.ascontiguousarray(array).tobytes() for array in arrays]


@learners
@settings(max_examples=10)
@given(seeds, st.data())
def test_one_by_one_and_in_batches_are_the_same_bits(
    make: Callable[[], Rescaled], seed: int, data: st.DataObject
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
def test_progressive_predicts_what_predict_would_have(make: Callable[[], Rescaled]) -> None:
    X, y = stream()
    learner = make().fit(X[:1], y[:1])
    for x, label in zip(X[1:], y[1:], strict=True):
        expected = learner.predict(x[None])
        assert learner.progressive(x[None], [label]).tolist() == expected.tolist()


@learners
def test_predicting_changes_nothing_and_inputs_are_not_changed(make: Callable[[], Rescaled]) -> None:
    X, y = stream()
    copies = X.copy(), y.copy()
    X.flags.writeable = y.flags.writeable = False
    learner = make().fit(X, y)
    before = bits(learner)
    learner.predict(1e3 * X)
    assert bits(learner) == before
    learner.partial_fit(X, y)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(y, copies[1])


@learners
@pytest.mark.parametrize("at", [1, 14, 37])
def test_going_on_from_a_pickle_is_going_on(make: Callable[[], Rescaled], at: int) -> None:
    X, y = stream()
    straight = make().fit(X, y)
    resumed = pickle.loads(pickle.dumps(make().fit(X[:at], y[:at])))
    assert bits(resumed.partial_fit(X[at:], y[at:])) == bits(straight)


@learners
def test_a_clone_is_fresh_and_fit_forgets(make: Callable[[], Rescaled]) -> None:
    X, y = stream()
    learner = make().fit(*stream(seed=3))
    copy = clone(learner)
    assert not hasattr(copy, "state_")
    assert not hasattr(learner.regressor, "state_")
    assert bits(copy.fit(X, y)) == bits(learner.fit(X, y)) == bits(make().fit(X, y))


@learners
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[np.nan, 0, 0]], [0.5], "X must be finite, got NaN at row 0, column 0"),
        ([[1e9, 0, 0], [0, -np.inf, 0]], [0.5, 0.5], "X must be finite, got -inf at row 1, column 1"),
        ([[1e9, 0, 0]], [np.nan], "y must be finite, got NaN at row 0"),
        ([[0, 0]], [0.5], "X has 2 features, but RescaledRegressor is expecting 3 features"),
        (np.empty((0, 3)), [], r"X must have at least one row and one column, got 0 sample\(s\) \(shape=\(0, 3\)\)"),
        ([[0, 0, 0]], [0.5, 0.5], "y must hold one label per row: 1 rows, got 2 labels"),
        ([["a", "b", "c"]], [0.5], "X must hold real numbers"),
    ],
)
def test_bad_rows_are_refused_and_change_nothing(
    make: Callable[[], Rescaled], X: object, y: object, message: str
) -> None:
    learner = make().fit(*stream())
    before = bits(learner)
    for door in (learner.partial_fit, learner.progressive):
        with pytest.raises(EllipackError, match=message):
            door(X, y)
    assert bits(learner) == before
    with pytest.raises(NonFiniteError):
        learner.fit([[0.0, np.nan]], [0.5])
    assert bits(learner) == before


def test_bad_parameters_are_refused_with_nothing_changed() -> None:
    X, y = stream()
    for wrapped in (MetricRegressor(), PackingRegressor, None):
        with pytest.raises(InputError, match="regressor must be a PackingRegressor or a PhasedRegressor, got "):
            Rescaled(wrapped).fit(X, y)  # type: ignore[arg-type]
    learner = Rescaled(PhasedRegressor()).fit(X, y)
    before = bits(learner)
    with pytest.raises(DomainError, match="alpha must be > 0, got -1"):
        learner.set_params(regressor__alpha=-1.0).partial_fit(100 * X, y)
    assert bits(learner) == before
    with pytest.raises(EllipackError, match="X must have 2 columns, got 3"):
        Rescaled(PackingRegressor([1.0, 1.0])).fit(X, y)


@learners
def test_predicting_before_learning_says_so(make: Callable[[], Rescaled]) -> None:
    with pytest.raises(NotFittedError):
        make().predict([[0.0, 0.0, 0.0]])
    with pytest.raises(NotFittedError):
        _ = make().metric_
    assert not hasattr(make(), "n_centers_")


@learners
@pytest.mark.parametrize("size", [1e-300, 1e-12, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("kind", ["varied", "constant", "labels constant", "jumps"])
def test_anything_finite_goes(make: Callable[[], Rescaled], size: float, kind: str) -> None:
    rng = np.random.default_rng(0)
    X, y = size * rng.normal(size=(40, 3)), size * rng.normal(size=40)
    if kind == "constant":
        X[:] = size
    elif kind == "labels constant":
        y[:] = -size
    elif kind == "jumps":
        X[::7], y[::5] = 1.7e308, -1.7e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = make().progressive(X, y)
    assert np.isfinite(made).all()
    assert np.all((made >= min(0.0, y.min())) & (made <= max(0.0, y.max())))


def test_what_was_learned_can_be_read() -> None:
    X, y = stream(200)
    learner = Rescaled(PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10)))).fit(X, y)
    inner = learner.regressor_
    assert isinstance(inner, PhasedRegressor)
    assert [phase.number for phase in inner.phases_] == [1, 2, 3, 4, 5, 6]
    assert learner.metric_ is inner.metric_
    assert (learner.n_centers_, learner.effective_rank_, learner.radius_) == (
        inner.n_centers_,
        inner.effective_rank_,
        inner.radius_,
    )
    assert 0 < learner.radius_ <= 1
    assert 1 <= learner.effective_rank_ <= 3


def test_features_in_any_units_are_learned_from() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3000, 2)) * [1e5, 1e-5]
    y = 1e6 * np.sin(X[:, 0] / 4e4) + 1e6 * X[:, 1] / 1e-5
    made = Rescaled(PackingRegressor()).progressive(X, y)
    assert np.std((made - y)[1500:]) < 0.3 * np.std(y)


def test_widening_goes_on_with_all_that_was_learned() -> None:
    X, y = stream(300)
    late = 1e4 * np.random.default_rng(1).normal(size=300)
    learner = Rescaled(PackingRegressor()).fit(X, y)
    expected = learner.predict(X)
    learner.add_features([123.0])
    np.testing.assert_allclose(learner.predict(np.column_stack([X, np.zeros(300)])), expected, rtol=1e-12)
    assert learner.n_features_in_ == learner.metric_.dimension == 4
    assert np.isfinite(learner.progressive(np.column_stack([X, late]), y + late)).all()


def test_it_goes_in_a_pipeline() -> None:
    X, y = stream(300)
    assert make_pipeline(StandardScaler(), Rescaled(PackingRegressor())).fit(X, y).predict(X[:5]).shape == (5,)
