"""Loading a hostile model file with a valid checksum raises an error or returns a working learner."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ellipack.river
from ellipack import (
    GradientOuterProduct,
    IntrinsicDimensionRegressor,
    KernelDifferences,
    LocallyAdaptiveRegressor,
    LocalSlopes,
    Metric,
    MetricConfig,
    MetricRegressor,
    PackingClassifier,
    PackingRegressor,
    PhasedRegressor,
)
from ellipack.evaluation.run import Run
from ellipack.tabular import TableBatch, TableEncoder
from tests.entry_points.learners import stream
from tests.fuzz.hostile_files import table
from tests.fuzz.strategies import FUZZ_FACTOR, n_examples

SMALL = MetricConfig(growth=2.0, powers=(0.5,), ridges=(0.01,), validation_points=16, pool=32)
SLOPES = GradientOuterProduct(LocalSlopes(8, metric=Metric.from_diagonal([1.0, 1.0, 0.5])), anchors=20)


def learned(learner: Any) -> Any:
    return learner.fit(*stream(80))


def classified(learner: Any) -> Any:
    X, y = stream(80)
    return learner.fit(X, np.array(["low", "middle", "high"])[(y * 2.99).astype(int)])


def learned_by_river(learner: Any) -> Any:
    X, y = stream(80)
    for t, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        learner.learn_one(dict(zip(["a", 7, "late"] if t > 30 else ["a", 7], row, strict=False)), label)
    return learner


def run_over_table() -> Run:
    batch = TableBatch.from_table(table(80))
    run = Run(MetricRegressor(24, neighbors=8, config=SMALL), TableEncoder.from_head(batch, "y"), "table")
    run.learn_batch(batch)
    return run


MODELS: dict[str, Callable[[], Any]] = {
    "metric": lambda: learned(MetricRegressor(24, neighbors=8, n_jobs=1, config=SMALL)),
    "views": lambda: learned(MetricRegressor(100, neighbors=8, views=2, n_jobs=2, config=SMALL)).add_features([1.0]),
    "packing": lambda: learned(PackingRegressor([1.0, 0.5, 0.1])),
    "tree": lambda: learned(LocallyAdaptiveRegressor([1.0, 0.5, 0.1], levels=3, lipschitz=4.0)),
    "dimension": lambda: learned(IntrinsicDimensionRegressor([1.0, 0.5, 0.1])),
    "classifier": lambda: classified(PackingClassifier([1.0, 0.5, 0.1])),
    "phased": lambda: learned(PhasedRegressor(gop=SLOPES)),
    "kernels": lambda: learned(PhasedRegressor(gop=GradientOuterProduct(KernelDifferences(mass_scale=0.02)))),
    "fresh": lambda: PackingRegressor([1.0, 0.5]),
    "run": run_over_table,
    "river-metric": lambda: learned_by_river(ellipack.river.MetricRegressor(24, neighbors=8, config=SMALL)),
    "river-packing": lambda: learned_by_river(ellipack.river.PackingRegressor()),
}


def test_hostile_files_raise_or_load_a_working_learner(tmp_path: Path) -> None:
    for name, make in MODELS.items():
        make().save(tmp_path / name)
    first = 0 if FUZZ_FACTOR == 1 else int(np.random.default_rng().integers(2**40))
    command = [sys.executable, "-m", "tests.fuzz.hostile_files", str(first), str(n_examples(30))]
    # A separate process, because a hostile file might crash it.
    command += [str(tmp_path / name) for name in MODELS]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if done.returncode:
        pytest.fail(f"at {lines[-1:]}, exit code {done.returncode}: {done.stderr[-3000:]}")
    counts = [int(line.split()[1]) for line in lines if line.endswith("refused")]
    assert len(counts) == len(MODELS)
    assert all(0 < count < n_examples(30) for count in counts)
