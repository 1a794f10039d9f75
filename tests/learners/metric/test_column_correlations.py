"""Correlated columns, and how they divide their importance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.learners.metric.column_correlations import StandardizedCenters, correlated_columns, divide_importance
from ellipack.validation import Floats


def standardized(table: Floats) -> Floats:
    """Return columns of mean 0 and length 1."""
    centered = table - table.mean(axis=0)
    return np.asarray(centered / np.sqrt((centered**2).sum(axis=0)))


def divide(table: Floats, labels: Floats, columns: list[list[int]]) -> tuple[float, ...]:
    """Return the fractions of raw columns."""
    labels = standardized(labels[:, None])[:, 0]
    return divide_importance(StandardizedCenters(np.zeros(len(table)), labels, standardized(table)), columns).fractions


def clipped(values: Floats) -> Floats:
    """Return columns with outliers at 2.5 mean absolute deviations from the mean."""
    gaps = values - values.mean(axis=0)
    return np.asarray(np.sign(gaps) * np.minimum(np.abs(gaps), 2.5 * np.abs(gaps).mean(axis=0)))


def explained(table: Floats, labels: Floats) -> float:
    """Return the fraction of the variance that a linear regression explains, with clipped outliers."""
    left, right = standardized(clipped(table)), standardized(clipped(labels[:, None]))[:, 0]
    fit = left @ np.linalg.lstsq(left, right, rcond=None)[0]
    return float(fit @ fit)


@given(st.integers(0, 10_000), st.floats(0.0, 3.0), st.floats(-2.0, 2.0))
def test_two_columns_divide_what_each_adds_on_average_over_both_orders(seed: int, noise: float, effect: float) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, 60))
    table, labels = np.column_stack([a, a + 0.4 * b]), a + effect * b + noise * c
    alone, both = [explained(table[:, [k]], labels) for k in (0, 1)], explained(table, labels)
    shapley = [(alone[0] + both - alone[1]) / 2, (alone[1] + both - alone[0]) / 2]
    expected = [each + (1 - both) / 2 for each in shapley]  # what is not explained is divided equally
    assert divide(table, labels, [[0], [1]]) == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 10_000))
def test_fractions_add_up_to_one_and_follow_their_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(50, 4)) + rng.normal(size=(50, 1)) * 2
    labels = table @ rng.normal(size=4) + rng.normal(size=50)
    fractions = divide(table, labels, [[0], [1, 2], [3]])
    assert sum(fractions) == pytest.approx(1)
    assert min(fractions) >= 0
    assert divide(table, labels, [[3], [0], [1, 2]]) == pytest.approx([fractions[k] for k in (2, 0, 1)])


def test_copies_have_equal_parts_and_so_have_columns_that_explain_nothing() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400))
    assert divide(np.column_stack([a, -2 * a, 3 * a]), a + b, [[0], [1], [2]]) == pytest.approx([1 / 3] * 3)
    even = np.column_stack([a, a + 0.1 * b])
    assert divide(even, a**2, [[0], [1]]) == pytest.approx([0.5, 0.5], abs=0.02)


def test_one_wrong_row_hardly_changes_the_fractions() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 500))
    table, labels = np.column_stack([a, a + 0.05 * b, a + 0.05 * c]), np.exp(a / 3)
    wrong = table.copy()
    wrong[7, 1:] = -20
    columns = [[0], [1], [2]]
    assert divide(wrong, labels, columns) == pytest.approx(divide(table, labels, columns), abs=0.02)


def test_with_too_few_rows_fractions_are_equal_and_uncertain() -> None:
    few = StandardizedCenters(np.zeros(0), np.zeros(0), np.zeros((0, 3)))
    assert divide_importance(few, [[0], [1, 2]]) == ((0.5, 0.5), (0.5, 0.5))


def test_standard_errors_cover_the_variation_over_samples() -> None:
    found = []
    for seed in range(40):
        a, b, c = np.random.default_rng(seed).normal(size=(3, 500))
        table = np.column_stack([a, a + 0.4 * b])
        found.append(divide_importance(StandardizedCenters(np.zeros(500), a + c, table), [[0], [1]]))
    spread = np.std([each.fractions[0] for each in found])
    assert np.mean([each.stds[0] for each in found]) == pytest.approx(spread, rel=0.4)


def correlated(correlation: float, before: tuple[tuple[int, ...], ...] = ()) -> tuple[tuple[int, ...], ...]:
    """Return the sets for two features of a given correlation, and a third one."""
    table = np.linalg.qr(standardized(np.random.default_rng(0).normal(size=(300, 3))))[0]
    table[:, 1] = correlation * table[:, 0] + np.sqrt(1 - correlation**2) * table[:, 1]
    return correlated_columns(table, (0, 1, 2), before)


def test_columns_are_together_above_a_correlation_and_stay_so_somewhat_below() -> None:
    assert correlated(0.81) == correlated(-0.81) == ((0, 1),)
    assert correlated(0.79) == ()
    assert correlated(0.79, ((0, 1),)) == correlated(0.71, ((0, 1),)) == ((0, 1),)
    assert correlated(0.69, ((0, 1),)) == ()
    assert correlated(0.79, ((0, 2),)) == ()


def test_columns_are_connected_by_any_two_of_their_features() -> None:
    rng = np.random.default_rng(0)
    a, b, c, d = rng.normal(size=(4, 300))
    table = standardized(np.column_stack([a, b, a + 0.1 * c, c, b + 0.1 * d]))
    assert correlated_columns(table, (0, 0, 1, 2, 3)) == ((0, 1, 3),)
    assert correlated_columns(np.zeros((0, 5)), (0, 0, 1, 2, 3)) == ()


def test_levels_of_few_rows_do_not_connect_columns() -> None:
    table = np.zeros((300, 2))
    table[:4] = 1
    assert correlated_columns(standardized(table), (0, 1)) == ()
    table[:10] = 1
    assert correlated_columns(standardized(table), (0, 1)) == ((0, 1),)
