"""Writes models of the present format, which later versions must load: ``python -m tests.checkpoint.make_fixtures``.

To be run once for each format, when it is new; what it wrote for earlier ones is never written again.
"""

import json
from pathlib import Path
from typing import Any

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
from tests.test_estimators import stream

FOLDER = Path(__file__).parent / "fixtures"

LEARNERS: dict[str, Any] = {
    "metric": MetricRegressor(24, neighbors=8, views=2, config=MetricConfig(judged=16, pool=32)),
    "packing": PackingRegressor([1.0, 0.5, 0.1]),
    "phased": PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10))),
    "rescaled": RescaledRegressor(PackingRegressor()),
}


def main() -> None:
    """Write a model of each learner, and what it predicts."""
    X, y = stream(80)
    folder = FOLDER / f"format{FORMAT}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, learner in LEARNERS.items():
        learner.fit(X, y).save(folder / f"{name}.ellipack")
        expected = {"X": X[:5].tolist(), "predictions": learner.predict(X[:5]).tolist()}
        (folder / f"{name}.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
