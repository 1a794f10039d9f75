"""Dates of the sampled rows in the record of a run."""

import numpy as np
import pytest

from ellipack import TableRegressor

DAYS = np.datetime64("2024-03-01") + np.arange(60)


@pytest.mark.parametrize("order", ["ascending", "nearly", "random"])
def test_sampled_rows_have_dates_if_they_ascend(order: str) -> None:
    days = {"ascending": DAYS, "nearly": DAYS, "random": np.random.default_rng(0).permutation(DAYS)}[order]
    if order == "nearly":
        days = days.copy()
        days[[20, 21]] = days[[21, 20]]
    table = {"day": [str(day) for day in days], "x": np.arange(60) % 7, "y": np.arange(60) % 7 * 2.0}
    times = TableRegressor("y", kinds={"day": "time"}).fit(table).record_.residuals.times
    if order == "random":
        assert times == []
    else:
        assert len(times) == 60
        assert times[:2] == ["2024-03-01", "2024-03-02"]
        assert times == sorted(times)


def test_rows_without_a_date_have_no_times() -> None:
    table = {"day": [str(day) for day in DAYS[:-1]] + [None], "y": np.arange(60.0)}
    assert TableRegressor("y", kinds={"day": "time"}).fit(table).record_.residuals.times == []
