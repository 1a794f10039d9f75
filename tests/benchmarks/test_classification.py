import numpy as np
import pytest

from benchmarks.classification import MODELS, NearestMistake, classify
from benchmarks.streams import Stream
from tests.strategies import ball


def halves(n: int = 120) -> Stream:
    X = ball(np.random.default_rng(0), n, 2)
    return Stream("halves", X, X[:, 0])


@pytest.mark.parametrize("name", MODELS)
def test_every_classifier_tells_two_halves_apart(name: str) -> None:
    result = classify(halves(400), MODELS[name])
    assert 0 < result.error_rate < 0.3
    assert result.saved_bytes > 0


def test_the_baseline_stores_only_mistakes() -> None:
    model, mistakes = NearestMistake(), 0
    for row, label in zip(halves().X.tolist(), (halves().y > 0).tolist(), strict=True):
        x = dict(enumerate(row))
        mistakes += model.predict_one(x) != label
        model.learn_one(x, label)
    assert 0 < mistakes <= len(model._rows) + 5  # the scale may move between prediction and learning
    assert len(model._rows) < 60
