"""Checks of River, and the contract of its classifier."""

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from river import base, checks

from ellipack.errors import EllipackError
from ellipack.river import PackingClassifier, load

Rows = list[tuple[dict[Any, float], Any]]


def rows(count: int, classes: list[Any], seed: int = 0) -> Rows:
    """Return rows in which features appear late, whose class depends on them."""
    rng, made = np.random.default_rng(seed), []
    for t in range(count):
        x: dict[Any, float] = {"a": float(rng.normal()), 7: float(rng.normal(100, 30))}
        if t >= count // 3:
            x["late"] = float(rng.random())
        made.append((x, classes[min(int(abs(x["a"])), len(classes) - 1)]))
    return made


def bits(model: PackingClassifier, path: Path) -> bytes:
    model.save(path)
    return path.read_bytes()


def river_checks() -> Iterator[Any]:
    for check in checks.yield_checks(PackingClassifier()):
        yield pytest.param(PackingClassifier(), check, id=check.__name__)


@pytest.mark.parametrize(("model", "check"), list(river_checks()))
def test_checks_of_river(model: PackingClassifier, check: Callable[[base.Estimator], None]) -> None:
    check(model)


@pytest.mark.parametrize("classes", [[False, True], ["x", "y", "z"], [3, 1, 2]])
@pytest.mark.parametrize("at", [0, 1, 20, 45])
def test_a_loaded_model_continues_with_the_same_bits(classes: list[Any], at: int, tmp_path: Path) -> None:
    straight, begun, stream = PackingClassifier(), PackingClassifier(), rows(90, classes)
    expected = []
    for x, y in stream:
        expected.append(straight.predict_proba_one(x))
        straight.learn_one(x, y)
    for x, y in stream[:at]:
        begun.learn_one(x, y)
    begun.save(tmp_path / "model")
    for resumed in (load(tmp_path / "model"), pickle.loads(pickle.dumps(begun))):
        made = []
        for x, y in stream[at:]:
            made.append(resumed.predict_proba_one(x))
            resumed.learn_one(x, y)
        assert made == expected[at:]
        assert bits(resumed, tmp_path / "resumed") == bits(straight, tmp_path / "straight")
    assert straight.classes == sorted(classes)
    assert straight.n_centers > 0
    assert straight.mistakes.sum() > 0


def test_it_learns() -> None:
    model, wrong = PackingClassifier(), []
    for x, _ in rows(1500, [0]):
        side = "left" if x["a"] < 0 else "right"
        wrong.append(model.predict_one(x) != side)
        model.learn_one(x, side)
    assert np.mean(wrong[1000:]) < 0.25


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ({"a": float("nan")}, True, "must be a finite number, got nan"),
        ({"a": 1.0}, None, "y must be finite, got None"),
        ({"a": 1.0}, "text", "y must be a class of the same type as False, got 'text'"),
        ({"a": 1.0}, 0.5, "y must hold classes, got 0.5"),
    ],
)
def test_invalid_input_is_refused_and_changes_nothing(x: Any, y: Any, message: str, tmp_path: Path) -> None:
    model = PackingClassifier()
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert (model.n_centers, model.mistakes.tolist(), model.classes) == (0, [0], [])
    for each in rows(30, [False, True]):
        model.learn_one(*each)
    before = bits(model, tmp_path / "before")
    with pytest.raises(EllipackError, match=message):
        model.learn_one(x, y)
    assert bits(model, tmp_path / "after") == before
    with pytest.raises(EllipackError, match="clock must be one of packing, ball"):
        PackingClassifier("time").learn_one({"a": 1.0}, True)
