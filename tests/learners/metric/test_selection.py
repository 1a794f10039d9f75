import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.selection import Jury, Reputation, Standing, candidates, choose
from ellipack.validation import Floats
from tests.strategies import seeds

CONFIG = MetricConfig()


def jury(n: int = 400, d: int = 4, seed: int = 0) -> Jury:
    rng = np.random.default_rng(seed)
    seen = rng.normal(size=(n, d))
    return Jury(seen, np.sin(2 * seen[:, 0]), np.arange(0, n, 2), 16)


def gop(*diagonal: float) -> Floats:
    return np.diag(np.array(diagonal))


def test_candidates_are_powers_of_the_gop_its_diagonal_and_both() -> None:
    matrix = np.array([[1.0, 0.4], [0.4, 0.5]])
    named = dict(candidates(matrix, 2 * np.eye(2), CONFIG))
    assert len(named) == 2 + 3 * len(CONFIG.ridges) * len(CONFIG.powers)
    np.testing.assert_array_equal(named["current"], 2 * np.eye(2))
    np.testing.assert_array_equal(named["identity"], np.eye(2))
    # A power of 0.5 is the paper's metric: the gradient outer product plus a ridge, over its norm.
    W = named["full, ridge 0.01, power 0.5"]
    expected = matrix / np.linalg.norm(matrix, 2) + 0.01 * np.eye(2)
    np.testing.assert_allclose(W @ W.T, expected / np.linalg.norm(expected, 2))
    D = named["diagonal, ridge 0.001, power 0.25"]
    assert abs((D @ D.T)[0, 1]) < 1e-12


@pytest.mark.parametrize("useless", [np.zeros((3, 3)), np.full((3, 3), np.nan), np.full((3, 3), np.inf)])
def test_without_a_gop_there_are_two_candidates(useless: Floats) -> None:
    assert [name for name, _ in candidates(useless, np.eye(3), CONFIG)] == ["current", "identity"]


def test_the_direction_that_matters_wins() -> None:
    reputation: Reputation = {}
    name, directions = choose(gop(1.0, 0.0, 0.0, 0.0), np.eye(4), jury(), CONFIG, reputation)
    assert name not in ("current", "identity")
    weights = np.diag(directions @ directions.T)
    assert weights[0] > 3 * weights[1:].max()
    assert "current" not in reputation
    assert all(standing.judges > 0 for standing in reputation.values())


def test_a_misleading_gop_loses() -> None:
    name, _ = choose(gop(0.0, 1.0, 1.0, 1.0), np.eye(4), jury(), CONFIG, {})
    assert name in ("current", "identity")


def test_the_present_metric_is_given_up_only_for_a_better_one() -> None:
    # With no gop the only other candidate is the identity, which is as good, being the same.
    assert choose(np.zeros((4, 4)), np.eye(4), jury(), CONFIG, {})[0] == "current"


def test_a_reputation_counts() -> None:
    known: Reputation = {"identity": Standing(-50.0, 1e6)}
    assert choose(gop(1.0, 0.0, 0.0, 0.0), np.diag([1.0, 0.1, 0.1, 0.1]), jury(), CONFIG, known)[0] == "identity"


def test_the_error_of_a_jury_is_of_leaving_each_judge_out() -> None:
    few = jury(30, 2)
    # A nugget of 0.05 and 16 neighbours: a label that differs from all others can't be foreseen by them.
    labels = np.zeros(30)
    labels[4] = 1.0
    alone = few._replace(labels=labels, judges=np.array([4]))
    assert alone.errors({"identity": np.eye(2)})["identity"] == pytest.approx(1.0)
    others = few._replace(labels=np.ones(30), judges=np.arange(30))
    assert others.errors({"identity": np.eye(2)})["identity"] == pytest.approx(0.0, abs=1e-12)


def test_a_small_jury_is_drawn_from_the_whole() -> None:
    whole = jury(2000)
    small = whole.part(8)
    assert len(small.seen) < len(whole.seen)
    np.testing.assert_array_equal(small.seen[small.judges], whole.seen[whole.judges[:: 8 // 2]])


@given(st.integers(6, 60), st.integers(1, 5), seeds)
def test_a_candidate_is_judged_alike_whoever_was_judged_before(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen = np.round(rng.normal(size=(n, d)), rng.integers(0, 4))  # many as far as each other, or in the same place
    judging = Jury(seen, rng.normal(size=n), np.flatnonzero(rng.random(n) < 0.5), 16)
    field = {str(k): rng.normal(size=(d, d)) * 10.0 ** rng.integers(-3, 3) for k in range(4)}
    together = judging.errors(field)
    assert together == {name: judging.errors({name: field[name]})[name] for name in field}


@pytest.mark.parametrize(("scale", "shift"), [(1e50, 0.0), (1e-50, 0.0), (1.0, 1e6), (1e-30, -1e-28)])
def test_what_labels_are_measured_in_is_no_matter(scale: float, shift: float) -> None:
    plain = jury(100)
    field = {"one": np.eye(4), "other": np.diag([1.0, 0.1, 0.1, 0.1])}
    errors, others = plain.errors(field), plain._replace(labels=scale * plain.labels + shift).errors(field)
    assert list(others) == list(errors)
    for name, error in errors.items():
        assert others[name] == pytest.approx(error, rel=1e-3)
