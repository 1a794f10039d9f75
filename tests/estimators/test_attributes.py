"""Parameters and fitted attributes of the learners."""

import pickle

import numpy as np
import pytest

from ellipack import GradientOuterProduct, LocalSlopes, Metric, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack.errors import DomainError, EllipackError, MetricError, NonFiniteError, ShapeError
from ellipack.learners.metric.state import MetricState, PhaseState
from tests.entry_points.learners import stream

Regressor = PackingRegressor | PhasedRegressor | MetricRegressor


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
def test_invalid_parameters_of_the_papers_learners_are_refused(
    learner: Regressor, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        learner.fit(*stream(80))
    assert not hasattr(learner, "state_")


def test_attributes_of_the_papers_learners() -> None:
    X, y = stream(80)
    learner = PackingRegressor(Metric.from_diagonal([1.0, 0.5, 0.1])).fit(X, y)
    assert learner.n_centers_ == len(learner.centers_)
    instances = X[learner.state_.core.creation_rounds - 1]
    np.testing.assert_allclose(learner.centers_, instances, atol=1e-12)
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


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (MetricRegressor(max_centers=3), "max_centers must be an integer from 16 to 2147483647, got 3"),
        (MetricRegressor(2**31), "max_centers must be an integer from 16 to 2147483647, got 2147483648"),
        (MetricRegressor(neighbors=1), "neighbors must be an integer from 2 to 512, got 1"),
        (MetricRegressor(views=0), "views must be an integer from 1 to 2, got 0"),
        (MetricRegressor(n_jobs=0), "n_jobs must be >= 1"),
        (MetricRegressor(random_state=-1), "random_state must be an integer from 0 to 4611686018427387904, got -1"),
    ],
)
def test_invalid_parameters_of_the_practical_learner_are_refused(learner: MetricRegressor, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        learner.fit(*stream(80))
    assert not hasattr(learner, "state_")


def test_attributes_of_the_practical_learner() -> None:
    X = np.random.default_rng(0).normal(size=(500, 4)) * [1.0, 100.0, 0.01, 1.0]
    learner = MetricRegressor().fit(X, np.sin(X[:, 1] / 50) + 0.1 * X[:, 0])
    assert learner.feature_importances_.sum() == pytest.approx(1)
    assert learner.feature_importances_.argmax() == 1
    assert learner.expert_weights_.sum() == pytest.approx(1)
    assert len(learner.expert_names_) == len(learner.expert_weights_)
    assert learner.eigenvalues_[0] == 1
    # Along the first direction, one standard deviation of the second feature has length 1.
    assert abs(learner.directions_[0] @ [0.0, 100.0, 0.0, 0.0]) == pytest.approx(1, abs=0.1)
    assert 1 <= learner.effective_rank_ <= 4
    assert (learner.n_centers_, learner.max_centers_) == (500, 100_000)
    past = learner.history()
    phases = len(past.end)
    assert past.eigenvalues.shape == past.feature_weights.shape == (phases, 4)
    assert past.expert_weights.shape == (phases, len(learner.expert_names_))
    weights = learner.metric_.feature_weights
    np.testing.assert_allclose(past.feature_weights[-1], weights / weights.sum())
    assert past.end.tolist() == sorted(past.end.tolist())
    assert len(past.choices) == len(past.effective_rank) == len(past.n_centers) == phases


class ChangingState(MetricState):
    """State in which another thread starts the next phase after each reading of `phase`."""

    def __init__(self, *phases: PhaseState) -> None:
        self._phases = [*phases]

    @property
    def phase(self) -> PhaseState:  # type: ignore[override]
        return self._phases.pop(0) if len(self._phases) > 1 else self._phases[0]


def test_directions_belong_to_one_phase() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 100.0, 0.01]
    learner = MetricRegressor().fit(X[:100], X[:100, 1])
    old, expected = learner.state_.phase, learner.directions_
    learner.partial_fit(5 * X[100:], 5 * X[100:, 1])
    new = learner.state_.phase
    assert len(new.summaries) > len(old.summaries)
    assert not np.allclose(new.core.feature_scales(), old.core.feature_scales())
    learner._fitted = ChangingState(old, new), None
    np.testing.assert_array_equal(learner.directions_, expected)


def test_intervals_are_finite_if_squared_distances_are_hardly_above_zero() -> None:
    rng = np.random.default_rng(0)
    X, y = 1e-160 * rng.normal(size=(40, 3)), rng.normal(size=40)
    X[rng.random(40) < 0.5] = X[0]
    learner = pickle.loads(pickle.dumps(MetricRegressor(neighbors=6).fit(X, y)))
    assert np.isfinite(learner.predict_interval(X)).all()


def test_partial_dependence_has_all_values() -> None:
    X, y = stream(80)
    learner, values = MetricRegressor().fit(X, y), [-1.0, 0.0, 1.0]
    assert learner.partial_dependence(0, values).values.tolist() == values
    with pytest.raises(ShapeError, match=r"values must be one-dimensional and not empty, got shape \(3, 1\)"):
        learner.partial_dependence(0, np.array(values)[:, None])
    with pytest.raises(ShapeError, match=r"values must be one-dimensional and not empty, got shape \(\)"):
        learner.partial_dependence(0, 1.0)
    with pytest.raises(NonFiniteError, match="values must be finite, got NaN"):
        learner.partial_dependence(0, [0.0, np.nan])
    with pytest.raises(ShapeError, match="values must be one-dimensional and not empty"):
        learner.partial_dependence(0, [])
    with pytest.raises(DomainError, match=r"values must be at most 1e\+140 in size, got 1e\+150"):
        learner.partial_dependence(0, [1e150])
