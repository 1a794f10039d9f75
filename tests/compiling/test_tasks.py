import json
import subprocess
import sys

from ellipack.compiling import tasks
from ellipack.compiling.workers import TASKS

_COUNT = """
import importlib, json, pkgutil
import numpy as np
import ellipack
from ellipack import GradientOuterProduct, LocalSlopes, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack import KernelDifferences, RescaledRegressor, river
from ellipack.compiling import tasks
from ellipack.compiling.workers import TASKS
from ellipack.packing.index import Index

homes = [m.name for m in pkgutil.walk_packages(ellipack.__path__, "ellipack.") if m.name.endswith("._kernels")]
kernels = {
    f"{home}.{name}": value
    for home in homes
    for name, value in vars(importlib.import_module(home)).items()
    if getattr(getattr(value, "stats", None), "cache_path", None) and value.py_func.__module__ == home
}

def counts():
    return {name: len(kernel.overloads) for name, kernel in kernels.items()}

for task in TASKS:
    getattr(tasks, task)()
before = counts()
for d in (1, 5):
    X = np.random.default_rng(d).uniform(-0.4, 0.4, size=(90, d))
    y = 0.5 + X[:, 0]
    slopes, differences = (GradientOuterProduct(each) for each in (LocalSlopes(), KernelDifferences()))
    phased = PhasedRegressor(gop=slopes), PhasedRegressor(gop=differences)
    for learner in (PackingRegressor(), *phased, RescaledRegressor(PackingRegressor()), MetricRegressor(32, n_jobs=2)):
        learner.fit(X, y).partial_fit(X[:1], y[:1]).predict(X[::2])
    for model in (river.PackingRegressor(), river.PhasedRegressor(gop=slopes), river.MetricRegressor(max_centers=32)):
        for x, label in zip(X, y):
            row = dict(enumerate(x.tolist()))
            model.predict_one(row)
            model.learn_one(row, float(label))
    Index.build(X).keep(y > 0.5).within(X, 0.1, n_jobs=2)
print(json.dumps([before, counts()]))
"""


def test_tasks_compile_every_kernel_and_learners_need_no_others() -> None:
    """In a process of its own, where nothing has been compiled or loaded by others."""
    run = subprocess.run([sys.executable, "-c", _COUNT], capture_output=True, text=True, check=True)
    before, after = json.loads(run.stdout)
    assert len(before) > 15
    assert [name for name, count in before.items() if count == 0] == []
    assert after == before


def test_every_task_has_a_name_that_workers_know() -> None:
    public = {name for name, each in vars(tasks).items() if getattr(each, "__module__", "") == tasks.__name__}
    assert {name for name in public if not name.startswith("_")} == set(TASKS)
