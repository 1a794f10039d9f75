"""Columns of centers in the compiled core, compared with NumPy and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from ellipack.validation import Floats
from tests.core.builds import Core, builds
from tests.strategies import seeds


def standardized(values: Floats) -> Floats:
    """Return a column of mean 0 and length 1, or 0 if it is constant."""
    scaled = values / max(np.abs(values).max(), 1e-300)
    centered = scaled - scaled.mean()
    length = np.linalg.norm(centered)
    return np.asarray(centered / length if length > 1e-9 else 0 * centered)


@builds
@given(seeds, st.integers(1, 60), st.integers(1, 4), st.integers(1, 70), st.integers(-150, 150))
def test_columns_are_those_of_evenly_spaced_centers(
    core: Core, seed: int, count: int, d: int, most: int, exponent: int
) -> None:
    rng = np.random.default_rng(seed)
    rows, labels = rng.normal(size=(count, d)) * 10.0**exponent, rng.normal(size=count)
    rows[:, 0] = 3.0
    counts, rounds = rng.integers(1, 9, size=count), np.sort(rng.uniform(1, 1000, size=count))
    centers = core.CenterMemory(rows, labels * counts, counts, rounds * counts, np.zeros(count))
    taken = min(count, most)
    picked = np.arange(taken) * (count - 1) // max(1, taken - 1)
    columns = [rounds[picked], labels[picked], *rows[picked].T]
    found = core.standardized_columns(centers, most)
    assert found == pytest.approx(np.array([standardized(column) for column in columns]), abs=1e-9)
    assert not found[2].any()


@builds
@given(seeds, st.integers(2, 60), st.integers(1, 5))
def test_rank_correlation_is_that_of_spearman(core: Core, seed: int, count: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    values, tied = rng.normal(size=count), rng.integers(levels + 1, size=count).astype(float)
    tied[:2] = 0, 1
    assert core.rank_correlation(values, tied) == pytest.approx(spearmanr(values, tied).statistic, abs=1e-12)
    assert core.rank_correlation(values, values) == pytest.approx(1)
    assert core.rank_correlation(values, np.zeros(count)) == 0


@builds
def test_rank_correlation_refuses_other_lengths_and_values_that_are_not_finite(core: Core) -> None:
    with pytest.raises(ValueError, match="other must have 2 entries, got 3"):
        core.rank_correlation(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="values must be finite"):
        core.rank_correlation(np.zeros(2), np.array([0.0, np.nan]))
