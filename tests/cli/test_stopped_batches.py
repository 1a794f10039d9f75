"""A signal at any line of a batch ends it after one of its rows; the results of these rows and the rest are complete.

Set ``INTERRUPTS=each`` to send a signal at each line where a sample of them is the default.
"""

import os
import signal
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ellipack import (
    GradientOuterProduct,
    KeyedRegressor,
    LocalSlopes,
    MetricConfig,
    MetricRegressor,
    PhasedRegressor,
    RescaledRegressor,
)
from ellipack.cli.signals import StopSignals
from ellipack.evaluation.prediction_options import PredictionOptions
from ellipack.evaluation.run import BatchResult, Run
from ellipack.tabular import LevelOptions, TableBatch, TableEncoder
from ellipack.tabular.arrow import pa
from tests.cli.tables import COLUMNS, TARGET, rides_with_late_labels
from tests.interrupts import InterruptAt

SMALL = MetricConfig(powers=(0.5,), ridges=(0.01,), validation_points=8, pool=8)
LEARNERS: dict[str, Callable[[], Any]] = {
    "metric": lambda: MetricRegressor(16, neighbors=4, n_jobs=1, config=SMALL),
    "keyed": lambda: KeyedRegressor(
        "zone",
        learner=MetricRegressor(16, neighbors=4, past=False, n_jobs=1, config=SMALL),
        pooled=MetricRegressor(16, neighbors=4, n_jobs=1, config=SMALL),
        max_learners=2,
    ),
    "phased": lambda: RescaledRegressor(PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(5)))),
}
PLACES = ("/evaluation/run.py", "/evaluation/batch_learning.py", "/learners/", "/cli/signals.py", "/contextlib.py")
FIRST, LAST = 24, 40
"""The batch: a phase ends in it. It has a label that comes late, new levels, and a column that is decided in it."""


class SignalAt(InterruptAt):
    """Trace function that sends SIGTERM after a number of lines."""

    def interrupt(self) -> None:
        """Send SIGTERM to this process."""
        signal.raise_signal(signal.SIGTERM)


@cache
def table() -> pa.Table:
    rows = rides_with_late_labels(40)
    columns = {name: [row[i] or None for row in rows] for i, name in enumerate(("id", *COLUMNS))}
    columns["zone"] = [f"{zone}{t // 4}" if t > FIRST else zone for t, zone in enumerate(columns["zone"])]
    columns["late"] = [None if t < FIRST + 3 else str(t * t % 17) for t in range(len(rows))]
    return pa.table(columns)


def batch(start: int, stop: int) -> TableBatch:
    return TableBatch.from_table(table().slice(start, stop - start), "rides", start + 1)


def new_run(learner: str) -> Run:
    levels = LevelOptions(min_frequency=2, one_hot=5, remembered=6)
    encoder = TableEncoder.from_head(batch(0, FIRST), TARGET, drop=["id"], levels=levels)
    options = PredictionOptions(keep=("zone",), id_column="id", coverages=(0.9,))
    return Run(LEARNERS[learner](), encoder, "rides", options=options)


def contents(results: list[BatchResult]) -> list[Any]:
    """Return the rows of results one after the other."""
    numbers = [np.column_stack([each.row_numbers, each.predictions, each.labels]) for each in results]
    ends, kept = [each.interval_ends for each in results], [each.kept[0] for each in results]
    return [np.concatenate(numbers).tobytes(), np.concatenate(ends).tobytes(), list(chain.from_iterable(kept))]


def bits(run: Run, folder: Path) -> bytes:
    run.save(folder / "run")
    return (folder / "run").read_bytes()


def learn_with_signal(run: Run, line: int) -> tuple[BatchResult, bool]:
    """Learn the batch with a signal after a number of lines; return the result, and whether there was a signal."""
    stop, before = StopSignals(), sys.gettrace()
    with stop.installed():
        sys.settrace(SignalAt(line, PLACES))
        try:
            result = run.learn_batch(batch(FIRST, LAST), stoppable=stop.raising)
        finally:
            sys.settrace(before)
    return result, stop.received()


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_signal_at_any_line_ends_a_batch_after_a_row(learner: str, tmp_path: Path) -> None:
    first, ends, step = new_run(learner), set[int](), 197 if learner == "keyed" else 97  # it has more lines
    first.learn_batch(batch(0, FIRST))
    whole = deepcopy(first)
    expected = contents([whole.learn_batch(batch(FIRST, LAST))])
    for line in count(0, 1 if os.environ.get("INTERRUPTS") in ("all", "each") else step):
        run = deepcopy(first)
        result, is_stopped = learn_with_signal(run, line)
        results = [result]
        if run.position < LAST:
            results.append(run.learn_batch(batch(run.position, LAST)))
        assert result.row_numbers.tolist() == [*range(FIRST + 1, FIRST + 1 + len(result.row_numbers))]
        assert contents(results) == expected
        assert bits(run, tmp_path) == bits(whole, tmp_path)
        ends.add(FIRST + len(result.row_numbers))
        if not is_stopped:
            break
    assert line > 300
    assert {FIRST, LAST} < ends
