import numpy as np
import pytest

from ellipack.checkpoint import Contents
from ellipack.errors import CheckpointError
from ellipack.learners.metric import engine, saved, state
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.state import Size

D = 3


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("memory/round_sums", -1.0, "round_sums must be those of label_counts rounds of at most 30"),
        ("memory/round_sums", 1e9, "round_sums must be those of label_counts rounds of at most 30"),
        ("memory/round_sums", None, "memory/round_sums must be float64"),
        ("mixture/priors", -1e3, "mixture/priors must be from -50 to 1, got -1000 to -1000"),
        ("fading/inverse", None, "fading/inverse must be float64"),
        ("view0/directions", 1e-6, "view0/directions must be at least 1e-05 long, got 1.7"),
        ("view0/directions", 1.0, "view0/directions must be at right angles to each other"),
    ],
)
def test_contents_that_do_not_fit_together_are_refused(name: str, value: float | None, message: str) -> None:
    X = np.random.default_rng(0).normal(size=(30, D))
    learner = state.init(D, Size(1, 8, 40), 0, MetricConfig(judged=16, pool=64))
    engine.learn(learner, X, np.sin(X[:, 0]) + X[:, 1])
    contents = saved.contents(learner)
    arrays = dict(contents.arrays)
    if value is None:
        del arrays[name]
    else:
        arrays[name] = np.full_like(arrays[name], value)
    with pytest.raises(CheckpointError, match=message):
        saved.restore(Contents(contents.facts, arrays), D)
