"""One contract, which every learner keeps."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import ellipack
from ellipack import (
    GradientOuterProduct,
    KernelDifferences,
    LocalSlopes,
    Metric,
    MetricConfig,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
)
from ellipack.errors import DomainError, EllipackError, MetricError, NonFiniteError
from ellipack.validation import Floats
from tests.strategies import ball, cuts, seeds

Regressor = PackingRegressor | PhasedRegressor | MetricRegressor

LEARNERS: dict[str, Callable[[], Regressor]] = {
    "euclidean": PackingRegressor,
    "diagonal": lambda: PackingRegressor([1.0, 0.1, 0.01]),
    "as printed": lambda: PackingRegressor(keep_founding_label=False),
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(KernelDifferences(mass_scale=0.02))),
    "phased, slopes": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10), anchors=30)),
    "phased, weights": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10), diagonal=True)),
}
PRACTICAL: dict[str, Callable[[], Regressor]] = {
    "practical": lambda: MetricRegressor(config=MetricConfig(validation_points=16, pool=64)),
    "practical, two views": lambda: MetricRegressor(
        views=2, neighbors=8, config=MetricConfig(validation_points=16, pool=32)
    ),
    "practical, bounded": lambda: MetricRegressor(
        max_centers=24, n_jobs=1, config=MetricConfig(validation_points=16, pool=32)
    ),
}
EVERY = LEARNERS | PRACTICAL
papers = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())
learners = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY.keys())


def stream(n: int = 80, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = ball(rng, n, 3)
    return X, np.clip(0.5 + 0.4 * np.sin(4 * X[:, 0]) + 0.05 * rng.normal(size=n), 0, 1)


def bits(learner: Regressor) -> list[bytes]:
    """Return everything a learner has learned, to the bit."""
    archive = learner.to_archive()
    arrays = [archive.arrays[name] for name in sorted(archive.arrays)]
    return [repr(archive.facts).encode(), *(np.ascontiguousarray(array).tobytes() for array in arrays)]


@learners
@settings(max_examples=10)
@given(seeds, st.data())
def test_one_by_one_and_in_batches_are_the_same_bits(
    make: Callable[[], Regressor], seed: int, data: st.DataObject
) -> None:
    X, y = stream(40, seed)
    whole, parts = make(), make()
    expected = whole.progressive(X, y)
    slices = data.draw(cuts(len(X)) | st.just([slice(t, t + 1) for t in range(len(X))]))
    made = np.concatenate([parts.progressive(X[part], y[part]) for part in slices])
    assert made.tobytes() == expected.tobytes()
    assert bits(parts) == bits(whole)
    probe = ball(np.random.default_rng(seed), 9, 3)
    singly = np.concatenate([whole.predict(x[None]) for x in probe])
    assert singly.tobytes() == whole.predict(probe).tobytes()


@learners
def test_progressive_predicts_what_predict_would_have(make: Callable[[], Regressor]) -> None:
    X, y = stream()
    learner = make().fit(X[:1], y[:1])
    for x, label in zip(X[1:], y[1:], strict=True):
        expected = learner.predict(x[None])
        assert learner.progressive(x[None], [label]).tolist() == expected.tolist()


@learners
def test_predicting_changes_nothing(make: Callable[[], Regressor]) -> None:
    X, y = stream()
    learner = make().fit(X, y)
    before = bits(learner)
    learner.predict(stream(seed=1)[0])
    assert bits(learner) == before


@learners
def test_inputs_are_not_changed(make: Callable[[], Regressor]) -> None:
    X, y = stream()
    copies = X.copy(), y.copy()  # and not made read-only: that would be copied before it is learned from
    make().fit(X, y).partial_fit(X, y).predict(X)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(y, copies[1])


@learners
@pytest.mark.parametrize("at", [1, 14, 37])
def test_going_on_from_a_pickle_is_going_on(make: Callable[[], Regressor], at: int) -> None:
    X, y = stream()
    straight = make().fit(X, y)
    resumed = pickle.loads(pickle.dumps(make().fit(X[:at], y[:at])))
    assert bits(resumed.partial_fit(X[at:], y[at:])) == bits(straight)


@learners
def test_a_clone_is_fresh_and_fit_forgets(make: Callable[[], Regressor]) -> None:
    X, y = stream()
    learner = make().fit(*stream(seed=3))
    copy = clone(learner)
    assert not hasattr(copy, "state_")
    assert bits(copy.fit(X, y)) == bits(learner.fit(X, y)) == bits(make().fit(X, y))


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
def test_the_papers_learners_keep_to_their_domain(
    make: Callable[[], Regressor], X: object, y: object, message: str
) -> None:
    learner = make().fit(*stream())
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
        ([[0, 0, 0]], [np.nan], "y must be finite, got NaN at row 0"),
        ([[0, 0]], [0.5], "X has 2 features, but .* is expecting 3 features"),
        (np.empty((0, 3)), [], r"X must have at least one row and one column, got 0 sample\(s\) \(shape=\(0, 3\)\)"),
        ([0.0, 0.0, 0.0], [0.5], r"X must be two-dimensional \(rows, columns\), got shape \(3,\): Reshape your data"),
        ([[0, 0, 0]], [0.5, 0.5], "y must hold one label per row: 1 rows, got 2 labels"),
        ([[0, 0, 0]], [[0.5, 0.5]], r"y must be one-dimensional, got shape \(1, 2\)"),
        ([[0, 0, 0]], None, "requires y to be passed, but the target y is None"),
        ([["a", "b", "c"]], [0.5], "X must hold real numbers"),
        ([[1j, 0, 0]], [0.5], "X must hold real numbers, got complex128"),
    ],
)
def test_bad_rows_are_refused_and_change_nothing(
    make: Callable[[], Regressor], X: object, y: object, message: str
) -> None:
    learner = make().fit(*stream())
    before = bits(learner)
    for door in (learner.partial_fit, learner.progressive):
        with pytest.raises(EllipackError, match=message):
            door(X, y)
        with pytest.raises(EllipackError, match=message):
            door(np.array(X), None if y is None else np.array(y))
    if message.startswith("X"):
        for table in (X, np.array(X)):
            with pytest.raises(EllipackError, match=message):
                learner.predict(table)
    assert bits(learner) == before


@learners
def test_a_fit_that_fails_leaves_what_was_fitted(make: Callable[[], Regressor]) -> None:
    learner = make().fit(*stream())
    before = bits(learner)
    with pytest.raises(NonFiniteError):
        learner.fit([[0.0, np.nan]], [0.5])
    assert bits(learner) == before
    assert learner.n_features_in_ == 3


@learners
def test_predicting_before_learning_says_so(make: Callable[[], Regressor]) -> None:
    with pytest.raises(NotFittedError):
        make().predict([[0.0, 0.0, 0.0]])
    assert not hasattr(make(), "n_centers_")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = make().metric_


@pytest.mark.parametrize(
    ("learner", "error", "message"),
    [
        (PackingRegressor(np.diag([1.0, -1.0, 1.0])), MetricError, "matrix must be positive definite"),
        (PackingRegressor([1.0, 0.0, 1.0]), MetricError, "diagonal must be > 0, got 0 at 1"),
        (PackingRegressor([1.0, 1.0]), EllipackError, "X must have 2 columns, got 3"),
        (PhasedRegressor(alpha=0.0), DomainError, "alpha must be > 0, got 0"),
        (PhasedRegressor(gop=GradientOuterProduct(anchors=0)), DomainError, "anchors must be an integer >= 1"),
        (PhasedRegressor(gop=GradientOuterProduct("slopes")), EllipackError, "gradients must be an estimator such as"),  # type: ignore[arg-type]
    ],
)
def test_bad_parameters_are_refused_before_anything_is_learned(
    learner: Regressor, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        learner.fit(*stream())
    assert not hasattr(learner, "state_")


def test_what_was_learned_can_be_read() -> None:
    X, y = stream()
    learner = PackingRegressor(Metric.from_diagonal([1.0, 0.5, 0.1])).fit(X, y)
    assert learner.n_centers_ == len(learner.centers_)
    founders = X[learner.state_.core.founded - 1]
    np.testing.assert_allclose(learner.centers_, founders, atol=1e-12)
    past = learner.history()
    assert (past.radius[-1], past.effective_rank[-1]) == (learner.radius_, learner.effective_rank_)
    phased = PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10))).fit(X, y)
    assert [phase.number for phase in phased.phases_] == [1, 2, 3, 4, 5]
    assert 1 <= phased.effective_rank_ <= 3
    assert 1 <= phased.n_centers_ <= 80 - 62
    assert len(phased.history().t) == 80
    assert phased.history().radius[-1] == phased.radius_
    assert phased.fit(X[:62], y[:62]).n_centers_ == 0
    assert phased.predict(X[:1]).tolist() == [0.5]


def test_the_gradient_outer_product_projects_on_the_directions_that_matter() -> None:
    X = np.random.default_rng(0).normal(size=(400, 4))
    gop = GradientOuterProduct(LocalSlopes(), n_components=2).fit(X, 3 * X[:, 2] + 0.5 * X[:, 0] ** 2)
    assert gop.gop_.shape == (4, 4)
    assert gop.eigenvalues_[0] == pytest.approx(9, rel=0.1)
    np.testing.assert_allclose(np.abs(gop.directions_), [[0, 0, 1, 0], [1, 0, 0, 0]], atol=0.1)
    np.testing.assert_allclose(gop.transform(X), X @ gop.directions_.T, atol=1e-12)
    assert gop.get_feature_names_out().tolist() == ["gradientouterproduct0", "gradientouterproduct1"]
    with pytest.raises(DomainError, match="n_components must be at most the number of columns, 4, got 5"):
        clone(gop).set_params(n_components=5).fit(X, X[:, 0])


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (MetricRegressor(max_centers=3), "max_centers must be an integer >= 16, got 3"),
        (MetricRegressor(neighbors=1), "neighbors must be an integer from 2 to 512, got 1"),
        (MetricRegressor(views=0), "views must be an integer from 1 to 2, got 0"),
        (MetricRegressor(n_jobs=0), "n_jobs must be >= 1"),
        (MetricRegressor(random_state=-1), "random_state must be an integer >= 0, got -1"),
    ],
)
def test_the_practical_learners_parameters_are_checked(learner: MetricRegressor, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        learner.fit(*stream())
    assert not hasattr(learner, "state_")


def test_the_practical_learner_can_be_read() -> None:
    X = np.random.default_rng(0).normal(size=(500, 4)) * [1.0, 100.0, 0.01, 1.0]
    learner = MetricRegressor().fit(X, np.sin(X[:, 1] / 50) + 0.1 * X[:, 0])
    assert learner.feature_importances_.sum() == pytest.approx(1)
    assert learner.feature_importances_.argmax() == 1
    assert learner.expert_weights_.sum() == pytest.approx(1)
    assert len(learner.expert_names_) == len(learner.expert_weights_)
    assert learner.eigenvalues_[0] == 1
    # Along the first direction, in the features' own units, a standard deviation of the second is worth about 1.
    assert abs(learner.directions_[0] @ [0.0, 100.0, 0.0, 0.0]) == pytest.approx(1, abs=0.1)
    assert 1 <= learner.effective_rank_ <= 4
    assert learner.n_centers_ == 500
    past = learner.history()
    phases = len(past.end)
    assert past.eigenvalues.shape == past.feature_importances.shape == (phases, 4)
    assert past.expert_weights.shape == (phases, len(learner.expert_names_))
    np.testing.assert_allclose(past.feature_importances[-1], learner.feature_importances_)
    assert past.end.tolist() == sorted(past.end.tolist())
    assert len(past.choices) == len(past.effective_rank) == len(past.n_centers) == phases


def test_directions_are_not_made_up_where_none_was_found() -> None:
    X, y = stream(300)
    with pytest.raises(DomainError, match=r"the gop estimated from 300 samples is 0: .*try LocalSlopes"):
        GradientOuterProduct(n_components=1).fit(X, y)
    assert not GradientOuterProduct().fit(X, y).gop_.any()


def test_it_goes_in_front_of_a_learner_in_a_pipeline() -> None:
    X, y = stream(200)
    pipeline = make_pipeline(GradientOuterProduct(LocalSlopes(), n_components=1), PackingRegressor())
    assert pipeline.fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.8


def test_everything_named_is_there() -> None:
    assert all(hasattr(ellipack, name) for name in ellipack.__all__)
    assert ellipack.__version__
