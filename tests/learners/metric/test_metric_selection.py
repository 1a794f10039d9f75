import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.metric_selection import (
    Candidate,
    CandidateScores,
    Score,
    ValidationSet,
    generate_candidates,
    restrict_gop,
    scale_to_unit_interval,
    select_metric,
)
from ellipack.validation import Floats
from tests.reference.metric_selection import Validation, leave_one_out_error
from tests.strategies import seeds

CONFIG = MetricConfig()


def sample(n: int = 400, d: int = 4, seed: int = 0) -> ValidationSet:
    rng = np.random.default_rng(seed)
    standard = rng.normal(size=(n, d))
    return ValidationSet(standard, np.sin(2 * standard[:, 0]), np.arange(0, n, 2), 16)


def candidate(directions: Floats) -> Candidate:
    return Candidate(directions, np.ones(directions.shape[1]))


def gop(*diagonal: float) -> Floats:
    return np.diag(np.array(diagonal))


def select(
    gop: Floats, current: Floats, data: ValidationSet, past_scores: CandidateScores
) -> tuple[str, Floats, CandidateScores]:
    candidates = dict(generate_candidates(restrict_gop(gop, np.eye(len(gop))), current, CONFIG))
    name, after = select_metric(candidates, data, past_scores)
    return name, candidates[name].directions, after


def test_candidates_are_powers_of_the_gop_of_its_diagonal_and_of_their_mean() -> None:
    matrix = np.array([[1.0, 0.4], [0.4, 0.5]])
    named = {
        name: each.directions
        for name, each in generate_candidates(restrict_gop(matrix, np.eye(2)), 2 * np.eye(2), CONFIG)
    }
    assert len(named) == 2 + 3 * len(CONFIG.ridges) * len(CONFIG.powers)
    np.testing.assert_array_equal(named["current"], 2 * np.eye(2))
    np.testing.assert_array_equal(named["identity"], np.eye(2))
    # A power of 0.5 is the paper's metric: the gradient outer product plus a ridge, over its norm.
    W = named["full, ridge 0.01, power 0.5"]
    expected = matrix / np.linalg.norm(matrix, 2) + 0.01 * np.eye(2)
    np.testing.assert_allclose(W @ W.T, expected / np.linalg.norm(expected, 2))
    D = named["diagonal, ridge 0.001, power 0.25"]
    assert abs((D @ D.T)[0, 1]) < 1e-12
    mixed = named["mixed, ridge 0.001, power 0.5"]
    half = (matrix + np.diag(np.diag(matrix))) / 2 / np.linalg.norm(matrix, 2) + 0.001 * np.eye(2)
    np.testing.assert_allclose(mixed @ mixed.T, half / np.linalg.norm(half, 2))


@pytest.mark.parametrize("useless", [np.zeros((3, 3)), np.full((3, 3), np.nan), np.full((3, 3), np.inf)])
def test_without_a_gop_there_are_two_candidates(useless: Floats) -> None:
    assert [name for name, _ in generate_candidates(restrict_gop(useless, np.eye(3)), np.eye(3), CONFIG)] == [
        "current",
        "identity",
    ]


def test_metric_of_the_true_direction_is_selected() -> None:
    name, directions, past_scores = select(gop(1.0, 0.0, 0.0, 0.0), np.eye(4), sample(), {})
    assert name not in ("current", "identity")
    weights = np.diag(directions @ directions.T)
    assert weights[0] > 3 * weights[1:].max()
    assert "current" not in past_scores
    assert all(score.weight > 0 for score in past_scores.values())


def test_misleading_gop_is_not_selected() -> None:
    assert select(gop(0.0, 1.0, 1.0, 1.0), np.eye(4), sample(), {})[0] in ("current", "identity")


def test_current_metric_is_replaced_only_by_a_better_one() -> None:
    # Without a gop the only other candidate is the identity, which is as good, being the same.
    assert select(np.zeros((4, 4)), np.eye(4), sample(), {})[0] == "current"


def test_past_scores_influence_the_selection() -> None:
    known: CandidateScores = {"identity": Score(-50.0, 1e6)}
    current = np.diag([1.0, 0.1, 0.1, 0.1])
    assert select(gop(1.0, 0.0, 0.0, 0.0), current, sample(), {})[0] != "identity"
    assert select(gop(1.0, 0.0, 0.0, 0.0), current, sample(), known)[0] == "identity"
    assert known == {"identity": Score(-50.0, 1e6)}  # nothing changes before the phase ends


def test_weights_of_past_scores_decay() -> None:
    known: CandidateScores = {"of another phase": Score(-1.0, 8.0)}
    _, _, after = select(gop(1.0, 0.0, 0.0, 0.0), np.eye(4), sample(), known)
    assert after["of another phase"] == known["of another phase"]
    data = sample()
    weights = {score.weight for name, score in after.items() if name != "of another phase"}
    assert weights == {len(data.validation) / 2, len(data.subset().validation) / 2}


def test_score_is_the_leave_one_out_error() -> None:
    few = sample(30, 2)
    # A label that differs from all others cannot be predicted from them.
    labels = np.zeros(30)
    labels[4] = 1.0
    alone = few._replace(labels=labels, validation=np.array([4]))
    assert alone.errors({"identity": candidate(np.eye(2))}, 1)["identity"] == pytest.approx(1.0)
    others = few._replace(labels=np.ones(30), validation=np.arange(30))
    assert others.errors({"identity": candidate(np.eye(2))}, 1)["identity"] == pytest.approx(0.0, abs=1e-12)


@given(st.integers(6, 80), st.integers(1, 5), seeds)
def test_errors_equal_the_reference(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = ValidationSet(rng.normal(size=(n, d)), rng.normal(size=n), np.flatnonzero(rng.random(n) < 0.5), 16)
    directions = np.linalg.qr(rng.normal(size=(d, d)))[0] * 10.0 ** rng.uniform(-2, 0, size=d)
    expected = leave_one_out_error(Validation(*data), directions)
    assert data.errors({"": candidate(directions)}, 1)[""] == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_a_subset_is_drawn_from_the_whole() -> None:
    whole = sample(2000)
    small = whole.subset()
    assert len(small.standard) < len(whole.standard) / 2
    np.testing.assert_array_equal(small.standard[small.validation], whole.standard[whole.validation[::4]])
    np.testing.assert_array_equal(small.labels[small.validation], whole.labels[whole.validation[::4]])
    assert len(sample(100).subset().standard) == 100  # too few to leave any out


@given(st.integers(6, 60), st.integers(1, 5), seeds)
def test_a_score_depends_neither_on_other_candidates_nor_on_threads(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    standard = np.round(rng.normal(size=(n, d)), rng.integers(0, 4))  # many equally near, or equal
    data = ValidationSet(standard, rng.normal(size=n), np.flatnonzero(rng.random(n) < 0.5), 16)
    candidates = {str(k): candidate(rng.normal(size=(d, d)) * 10.0 ** rng.integers(-3, 3)) for k in range(4)}
    together = data.errors(candidates, 1)
    assert together == {name: data.errors({name: candidates[name]}, 1)[name] for name in candidates}
    assert together == data.errors(candidates, 3)


def test_scores_do_not_depend_on_threads() -> None:
    data = sample(3000)
    candidates = dict(generate_candidates(restrict_gop(gop(1.0, 0.5, 0.1, 0.0), np.eye(4)), np.eye(4), CONFIG))
    assert data.errors(candidates, 1) == data.errors(candidates, 3)


@pytest.mark.parametrize(("scale", "shift"), [(1e50, 0.0), (1e-50, 0.0), (1.0, 1e6), (1e-30, -1e-28)])
def test_scores_do_not_depend_on_units_of_labels(scale: float, shift: float) -> None:
    plain = sample(100)
    candidates = {"one": candidate(np.eye(4)), "other": candidate(np.diag([1.0, 0.1, 0.1, 0.1]))}
    errors, others = (
        plain.errors(candidates, 1),
        plain._replace(labels=scale * plain.labels + shift).errors(candidates, 1),
    )
    assert list(others) == list(errors)
    for name, error in errors.items():
        assert others[name] == pytest.approx(error, rel=1e-3)


def test_labels_are_scaled_to_the_unit_interval() -> None:
    assert scale_to_unit_interval(np.array([2.0, 6.0, 3.0])).tolist() == [0.0, 1.0, 0.25]
    assert scale_to_unit_interval(np.full(3, 5.0)).tolist() == [0.0, 0.0, 0.0]
