"""Writes models of the present format, which later versions must load: ``python -m tests.checkpoint.make_fixtures``.

To be run when a format is new, or something new can be saved; what is there already is never written again.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ellipack
import ellipack.river
from ellipack import (
    GradientOuterProduct,
    LocalSlopes,
    MetricConfig,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
)
from ellipack.checkpoint.file import FORMAT
from ellipack.stream.encoding import Encoding
from ellipack.stream.run import Run, load_run
from ellipack.stream.sources import Batch
from tests.fuzz.loading import table
from tests.river.test_saving import rows
from tests.test_estimators import stream

FOLDER = Path(__file__).parent / "fixtures"
ROWS, MORE = 80, 5

LEARNERS: dict[str, Callable[[], Any]] = {
    "metric": lambda: MetricRegressor(24, neighbors=8, views=2, config=MetricConfig(judged=16, pool=32)),
    "packing": lambda: PackingRegressor([1.0, 0.5, 0.1]),
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10))),
    "rescaled": lambda: RescaledRegressor(PackingRegressor()),
}
RIVER: dict[str, Callable[[], Any]] = {
    "river-metric": lambda: ellipack.river.MetricRegressor(24, neighbors=8, config=MetricConfig(judged=16, pool=32)),
    "river-packing": ellipack.river.PackingRegressor,
}


def make_learner(name: str, path: Path) -> dict[str, Any]:
    """Save a learner; return rows, and what it predicts for them."""
    X, y = stream(ROWS)
    learner = LEARNERS[name]().fit(X, y)
    learner.save(path)
    return {"X": X[:MORE].tolist(), "predictions": learner.predict(X[:MORE]).tolist()}


def make_river(name: str, path: Path) -> dict[str, Any]:
    """Save one of River's; return rows as pairs, since names need not be texts, and what it predicts for them."""
    learner, played = RIVER[name](), rows(ROWS)
    for x, y in played:
        learner.learn_one(x, y)
    learner.save(path)
    seen = [x for x, _ in played[-MORE:]]
    return {"X": [list(x.items()) for x in seen], "predictions": [learner.predict_one(x) for x in seen]}


def make_run(_: str, path: Path) -> dict[str, Any]:
    """Save a run, as `ellipack run --save` does; return the rows that come next, and what it predicts for each."""
    whole = table(ROWS + MORE)
    batch, more = Batch.of(whole[:ROWS]), whole[ROWS:]
    run = Run(MetricRegressor(24, neighbors=8, config=MetricConfig(judged=16, pool=32)), Encoding.begin(batch, "y"), "")
    run.play(batch)
    run.save(path)
    return {"rows": more.to_pylist(), "predictions": load_run(path).play(Batch.of(more)).predictions.tolist()}


MODELS: dict[str, Callable[[str, Path], dict[str, Any]]] = {
    **dict.fromkeys(LEARNERS, make_learner),
    **dict.fromkeys(RIVER, make_river),
    "run": make_run,
}


def main() -> None:
    """Write a model of everything that can be saved, and what it predicts."""
    folder = FOLDER / f"format{FORMAT}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        path = folder / f"{name}.ellipack"
        if not path.exists():
            path.with_suffix(".json").write_text(json.dumps(make(name, path)) + "\n")


if __name__ == "__main__":
    main()
