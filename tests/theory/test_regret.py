import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError, ShapeError
from ellipack.theory import ball_excess, estimation_bound, minimax_exponent, regret, regret_exponent
from tests.strategies import seeds

unit = st.floats(0, 1)


@given(st.lists(st.tuples(unit, unit, unit), min_size=1, max_size=20))
def test_regret_is_the_sum_of_equation_1(rounds: list[tuple[float, float, float]]) -> None:
    predictions, competitor, labels = (list(each) for each in zip(*rounds, strict=True))
    expected, total = [], 0.0
    for made, best, label in rounds:
        total += (made - label) ** 2 - (best - label) ** 2
        expected.append(total)
    assert regret(predictions, competitor, labels).tolist() == pytest.approx(expected, abs=1e-12)


def test_regret_has_one_value_of_each_kind_per_round() -> None:
    with pytest.raises(ShapeError, match="competitor must hold one label per row: 2 rows, got 1 labels"):
        regret([0.0, 0.0], [0.5], [1.0, 1.0])
    with pytest.raises(ShapeError, match=r"labels must be one-dimensional and not empty, got shape \(0,\)"):
        regret([], [], [])


@given(unit, st.lists(unit, min_size=1, max_size=30))
def test_excess_of_a_ball_is_its_loss_over_that_of_the_best_constant(first: float, labels: list[float]) -> None:
    y = np.array(labels)
    predictions = np.array([first, *(y[:k].mean() for k in range(1, len(y)))])
    loss, best = np.sum((predictions - y) ** 2), np.sum((y.mean() - y) ** 2)
    assert ball_excess(predictions, y) == pytest.approx(loss - best, abs=1e-12)
    assert ball_excess(predictions, y) <= estimation_bound([len(y)])


def test_excess_of_a_ball_can_exceed_an_eighth_of_its_bound() -> None:
    # The paper's constant is 8, and 1 suffices. Greedily chosen labels show that no constant below 0.28 does.
    y, predictions = [1.0], [0.0]
    for k in range(1, 5000):
        predictions.append(sum(y[-1:], predictions[-1] * (k - 1)) / k)
        y.append(1.0 if predictions[-1] < 0.5 else 0.0)
    assert ball_excess(predictions, y) > 0.28 * estimation_bound([len(y)])


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20))
def test_estimation_bound_adds_logarithms_and_is_concave(counts: list[int]) -> None:
    used = [each for each in counts if each]
    bound = estimation_bound(counts)
    assert bound == pytest.approx(sum(1 + np.log(each) for each in used))
    if used:
        assert bound <= len(used) * np.log(np.e * sum(used) / len(used)) * (1 + 1e-12)


def test_counts_are_not_negative() -> None:
    with pytest.raises(DomainError, match="label_counts must be >= 0, got -1"):
        estimation_bound([3, -1])


@given(st.integers(1, 30))
def test_no_bound_of_the_paper_is_below_the_minimax_rate(rank: int) -> None:
    assert regret_exponent(rank) == pytest.approx(rank / (rank + 1))
    assert rank / (rank + 2) <= minimax_exponent(rank) < regret_exponent(rank)
    assert minimax_exponent(rank) <= minimax_exponent(rank + 1)


def test_minimax_rates_of_few_dimensions() -> None:
    assert [minimax_exponent(rank) for rank in (1, 2, 3, 4)] == pytest.approx([1 / 3, 1 / 2, 2 / 3, 3 / 4])
    with pytest.raises(DomainError, match="rank must be an integer >= 1, got 0"):
        minimax_exponent(0)


@given(seeds)
def test_exponents_are_those_of_the_balanced_bound(seed: int) -> None:
    # With n**d centers of radius 1/n, regret is n**d + T/n: the minimum over n is of order T**(d/(1+d)).
    d, T = int(np.random.default_rng(seed).integers(1, 6)), 10.0**12
    n = T ** (1 / (1 + d))
    assert np.log(n**d) / np.log(T) == pytest.approx(regret_exponent(d))
    assert n**d == pytest.approx(T / n)
