from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError
from ellipack.learners import packing
from ellipack.metric import Metric
from ellipack.theory import (
    ball_excess,
    center_bound,
    determinant_center_bound,
    fixed_metric_regret_bound,
    phase_length,
    phase_regret_bound,
    phased_regret_bound,
    printed_fixed_metric_regret_bound,
    printed_phase_regret_bound,
    radius,
    regret,
    sharp_fixed_metric_regret_bound,
)
from ellipack.validation import Floats
from tests.strategies import ball, spectra


def test_theorem_1_worked_by_hand() -> None:
    # The identity in 2 dimensions at T = 8: rho = kappa = 2, the last radius 1/2 is the smallest, the rate 4.
    per_center = 8 * (1 + np.log(8))
    assert fixed_metric_regret_bound([1.0, 1.0], 8, 3.0) == pytest.approx(
        per_center * (16 * np.sqrt(2)) ** 2 + 4 * 3.0 * 4
    )
    assert printed_fixed_metric_regret_bound([1.0, 1.0], 8, 3.0) == pytest.approx((per_center * 128 + 12) * 4)


def test_the_sharp_theorem_1_worked_by_hand() -> None:
    # The identity in 2 dimensions at T = 10**6: a radius of 1/100, 201**2 centers by Lemma 1, and a rate of 10**4.
    centers = 201**2
    expected = centers * (1 + np.log(10**6 / centers)) + 2 * 3.0 * 1.5 * 10**4
    assert sharp_fixed_metric_regret_bound([1.0, 1.0], 10**6, 3.0) == pytest.approx(expected)
    # At T = 8 there can be a center in each round.
    assert sharp_fixed_metric_regret_bound([1.0, 1.0], 8, 0.0) == pytest.approx(8.0)


@given(spectra(), st.integers(1, 10**6), st.floats(0, 100))
def test_the_sharp_theorem_1_is_below_the_others(eigenvalues: Floats, rounds: int, lipschitz: float) -> None:
    sharp = sharp_fixed_metric_regret_bound(eigenvalues, rounds, lipschitz)
    assert sharp <= fixed_metric_regret_bound(eigenvalues, rounds, lipschitz)


@given(spectra(), st.integers(1, 10**6), st.floats(0, 100))
def test_theorem_1_keeps_its_rate_and_its_determinant(eigenvalues: Floats, rounds: int, lipschitz: float) -> None:
    centers = 8 * np.log(np.e * rounds) * determinant_center_bound(eigenvalues, rounds)
    rate = rounds * float(radius(eigenvalues, rounds))
    bound = fixed_metric_regret_bound(eigenvalues, rounds, lipschitz)
    assert bound <= (centers + 4 * lipschitz * rate) * (1 + 1e-9)


def run(rows: Floats, y: Floats) -> Floats:
    return packing.learn(packing.init(Metric.identity(rows.shape[1])), rows, y)


@pytest.mark.parametrize(("d", "rounds"), [(1, 2**8), (2, 2**12), (3, 2**17)])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_the_sharp_theorem_1_where_it_is_below_the_number_of_rounds(d: int, rounds: int, noise: float) -> None:
    rng = np.random.default_rng(d)
    X = ball(rng, rounds, d)
    f = 0.5 + 0.5 * X[:, 0] / np.sqrt(d)
    y = np.where(rng.random(rounds) < noise, (rng.random(rounds) < f).astype(float), f)
    bound = sharp_fixed_metric_regret_bound(np.ones(d), rounds, 0.5 / np.sqrt(d))
    assert bound < rounds
    assert regret(run(X, y), f, y)[-1] <= bound
    # A learner that ignores labels exceeds it on labels of 1.
    ones = np.ones(rounds)
    assert regret(0 * ones, ones, ones)[-1] > bound >= regret(run(X, ones), ones, ones)[-1]


def test_theorem_1_as_printed_where_it_is_below_the_number_of_rounds() -> None:
    # In one dimension, from 2**21 rounds on; in two, only from 2**46.
    rounds, rng = 2**21, np.random.default_rng(0)
    X = ball(rng, rounds, 1)
    f = 0.5 + 0.25 * X[:, 0]
    y = (rng.random(rounds) < f).astype(float)
    found = regret(run(X, y), f, y)[-1]
    for bound in (printed_fixed_metric_regret_bound, fixed_metric_regret_bound):
        assert bound([1.0], rounds // 2, 0.25) > rounds // 2
        assert found <= bound([1.0], rounds, 0.25) < rounds
    # What it costs in fact is between a thousandth of the printed bound and a third of the sharp one.
    sharp = sharp_fixed_metric_regret_bound([1.0], rounds, 0.25)
    assert 1e-3 * printed_fixed_metric_regret_bound([1.0], rounds, 0.25) < found < sharp / 3


def test_each_ball_of_a_run_satisfies_the_identity() -> None:
    rng = np.random.default_rng(3)
    X, y = ball(rng, 400, 2), rng.random(400)
    made = run(X, y)
    # Algorithm 1 in the Euclidean metric: which ball has the label of each round.
    centers: list[int] = []
    owner = np.empty(400, dtype=np.int64)
    for t, x in enumerate(X):
        apart = [float(np.linalg.norm(x - X[s])) for s in centers]
        if not centers or min(apart) > (t + 1) ** (-1 / 3):
            centers.append(t)
            owner[t] = t
        else:
            owner[t] = centers[int(np.argmin(apart))]
    for s in centers:
        own = owner == s
        excess = np.sum((made[own] - y[own]) ** 2) - np.sum((y[own].mean() - y[own]) ** 2)
        assert ball_excess(made[own], y[own]) == pytest.approx(excess, abs=1e-12)
    assert len(centers) <= center_bound([1.0, 1.0], 400)


def test_the_balls_of_the_proof_overlap_and_founders_lie_beyond_the_radius() -> None:
    # Erratum 11: T_s is defined as all rounds within the radius of x_s, which can be several balls.
    X = np.array([[0.0], [0.8], [0.4]])  # radii 1, 0.707, 0.577
    radii = radius([1.0], [1, 2, 3])
    inside = [[t for t in range(s, 3) if abs(X[t, 0] - X[s, 0]) <= radii[t]] for s in (0, 1)]
    assert inside == [[0, 2], [1, 2]]
    assert abs(X[1, 0] - X[0, 0]) > radii[1]  # round 2 is predicted by the first ball and founds the second


def test_the_bound_of_a_phase_worked_by_hand() -> None:
    per_center = 8 * (1 + np.log(8))
    proved = per_center * (16 * np.sqrt(2)) ** 2 + 4 * 3.0 * 4
    assert phase_regret_bound([1.0, 1.0], 3, 3.0) == pytest.approx(proved)
    assert printed_phase_regret_bound([1.0, 1.0], 3, 3.0) == pytest.approx((per_center * 128 + 12) * 4)


@given(spectra(), st.integers(1, 20), st.floats(0, 100))
def test_the_bound_of_a_phase_is_that_of_its_rounds(eigenvalues: Floats, phase: int, lipschitz: float) -> None:
    expected = fixed_metric_regret_bound(eigenvalues, phase_length(phase), lipschitz)
    assert phase_regret_bound(eigenvalues, phase, lipschitz) == expected


def test_the_bound_of_a_phase_allows_for_erratum_5() -> None:
    # The squared radius is 1/2: 0.3 is below it but above its eighth, so one axis counts as printed, eight as proved.
    eigenvalues = [1.0] + [0.3] * 7
    assert phase_regret_bound(eigenvalues, 1, 0.0) > printed_phase_regret_bound(eigenvalues, 1, 0.0)


def test_the_last_phase_has_a_bound_and_the_one_after_it_is_refused() -> None:
    for bound in (phase_regret_bound, printed_phase_regret_bound):
        assert np.isfinite(bound([1.0, 0.5], 62, 1.0))
        with pytest.raises(DomainError, match="phase must be at most 62, got 2000"):
            bound([1.0, 0.5], 2000, 1.0)


@given(spectra(max_d=4), st.integers(1, 6), st.floats(0, 100))
def test_phases_add_up(eigenvalues: Floats, phases: int, lipschitz: float) -> None:
    single = [phase_regret_bound(eigenvalues, i, lipschitz) for i in range(1, phases + 1)]
    assert phased_regret_bound([eigenvalues] * phases, [lipschitz] * phases) == pytest.approx(sum(single))


@pytest.mark.parametrize(
    "bound",
    [
        fixed_metric_regret_bound,
        printed_fixed_metric_regret_bound,
        sharp_fixed_metric_regret_bound,
        phase_regret_bound,
        printed_phase_regret_bound,
    ],
)
def test_a_negative_lipschitz_constant_is_refused(bound: Callable[[list[float], int, float], float]) -> None:
    with pytest.raises(DomainError, match="lipschitz must be >= 0, got -1"):
        bound([1.0], 2, -1.0)


@pytest.mark.parametrize(
    "bound", [fixed_metric_regret_bound, printed_fixed_metric_regret_bound, sharp_fixed_metric_regret_bound]
)
def test_rounds_must_be_integers(bound: Callable[[list[float], float, float], float]) -> None:
    with pytest.raises(DomainError, match=r"rounds must be an integer >= 1, got 2\.5"):
        bound([1.0], 2.5, 1.0)
