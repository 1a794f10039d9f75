"""The contract of `PackingClassifier`: batches, resumes, invalid input, classes that appear late."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score

import ellipack
from ellipack import Metric, PackingClassifier
from ellipack.errors import DomainError, EllipackError, InputError, KindError, ModelFileError
from ellipack.serialization import Archive, write
from ellipack.validation import Floats
from tests.entry_points.learners import bits
from tests.strategies import ball, cuts, seeds

CASES: dict[str, tuple[Callable[[], PackingClassifier], list[Any]]] = {
    "two": (PackingClassifier, [0, 1]),
    "two, ball clocks": (lambda: PackingClassifier(clock="ball"), [False, True]),
    "three": (lambda: PackingClassifier([1.0, 0.1, 0.01]), ["a", "b", "c"]),
    "four": (lambda: PackingClassifier(Metric.identity(3), clock="ball"), [1.0, 2.0, 7.0, 9.0]),
}
learners = pytest.mark.parametrize(("make", "classes"), CASES.values(), ids=CASES.keys())


def stream(n: int, seed: int, classes: list[Any]) -> tuple[Floats, NDArray[Any]]:
    """Return rows in the unit ball and classes by their first coordinate, with some noise."""
    rng = np.random.default_rng(seed)
    X = ball(rng, n, 3)
    share = np.clip((X[:, 0] + 1) / 2 + 0.05 * rng.normal(size=n), 0, 0.999)
    return X, np.array(classes)[(share * len(classes)).astype(int)]


@learners
@settings(max_examples=10)
@given(seeds, st.data())
def test_single_rows_and_batches_give_the_same_bits(
    make: Callable[[], PackingClassifier], classes: list[Any], seed: int, data: st.DataObject
) -> None:
    X, y = stream(40, seed, classes)
    whole, parts = make(), make()
    expected = whole.progressive(X, y)
    slices = data.draw(cuts(len(X)) | st.just([slice(t, t + 1) for t in range(len(X))]))
    made = np.concatenate([parts.progressive(X[part], y[part]) for part in slices])
    assert made.tolist() == expected.tolist()
    assert bits(parts) == bits(whole) == bits(make().fit(X, y))
    probe = stream(9, seed + 1, classes)[0]
    singly = np.concatenate([whole.predict_proba(x[None]) for x in probe])
    assert singly.tobytes() == whole.predict_proba(probe).tobytes()
    assert whole.predict(probe).tolist() == whole.classes_[singly.argmax(axis=1)].tolist()


@learners
@pytest.mark.parametrize("at", [0, 1, 2, 37])
def test_a_loaded_or_unpickled_learner_continues_with_the_same_bits(
    make: Callable[[], PackingClassifier], classes: list[Any], at: int, tmp_path: Path
) -> None:
    X, y = stream(80, 0, classes)
    uninterrupted, begun = make(), make()
    expected = uninterrupted.progressive(X, y)
    if at:
        begun.partial_fit(X[:at], y[:at])
    begun.save(tmp_path / "model")
    for resumed in (ellipack.load(tmp_path / "model"), pickle.loads(pickle.dumps(begun))):
        assert resumed.progressive(X[at:], y[at:])[at == 0 :].tolist() == expected[at + (at == 0) :].tolist()
        assert bits(resumed) == bits(uninterrupted)
        assert resumed.classes_.dtype == uninterrupted.classes_.dtype


@learners
def test_progressive_returns_the_predictions_of_predict(
    make: Callable[[], PackingClassifier], classes: list[Any]
) -> None:
    X, y = stream(80, 0, classes)
    learner = make().fit(X[:1], y[:1])
    for x, label in zip(X[1:], y[1:], strict=True):
        expected = learner.predict(x[None])
        assert learner.progressive(x[None], [label]).tolist() == expected.tolist()
    assert learner.score(X, y) == accuracy_score(y, learner.predict(X)) > 1.5 / len(classes)


def test_right_rounds_change_nothing() -> None:
    X, y = stream(400, 0, [0, 1])
    learner = PackingClassifier().fit(X, y)
    predictions = learner.predict(X)
    before = bits(learner)
    learner.partial_fit(X, predictions)
    assert bits(learner) == before
    learner.partial_fit(X[:1], 1 - predictions[:1])
    assert bits(learner) != before


def test_classes_can_be_declared_before_they_appear() -> None:
    X, y = stream(60, 0, ["a", "b", "c"])
    learner = PackingClassifier().partial_fit(X[:1], y[:1], classes=["c", "a", "b"])
    assert learner.classes_.tolist() == ["a", "b", "c"]
    assert learner.predict_proba(X).shape == (60, 3)
    learner.partial_fit(X, y, classes=["d"])
    assert learner.classes_.tolist() == ["a", "b", "c", "d"]
    assert len(learner.mistakes_) == 4
    assert clone(learner).fit(X, y).classes_.tolist() == ["a", "b", "c"]


def test_large_classes_are_exact() -> None:
    X = [[0.0], [0.5], [0.9]]
    for kind in (object, np.int64, np.uint64):
        classes = np.array([2**53, 2**53 + 1, 2**63 - 1], dtype=kind)
        assert PackingClassifier().fit(X, classes).classes_.tolist() == classes.tolist()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.9, 0.9, 0]], [1], r"X must lie in the unit ball \(norm <= 1\), got norm 1.27\d* at row 0"),
        ([[np.nan, 0, 0]], [1], "X must be finite, got NaN at row 0, column 0"),
        ([[0, 0]], [1], "X has 2 features, but PackingClassifier is expecting 3 features"),
        ([[0, 0, 0]], [0.5], "y must hold classes, got 0.5 at row 0"),
        ([[0, 0, 0]], [np.nan], "y must be finite, got NaN at row 0"),
        ([[0, 0, 0]], ["a"], "y must hold classes of the same type as"),
        ([[0, 0, 0]], [1, 0], "y must hold one label per row: 1 rows, got 2 labels"),
        ([[0, 0, 0]], [[1, 0]], r"y must be one-dimensional, got shape \(1, 2\)"),
        ([[0, 0, 0]], None, "requires y to be passed, but the target y is None"),
        ([[0, 0, 0]], np.array(["a", 1], dtype=object), "y must hold numbers or strings, got both"),
        (
            [[0, 0, 0]],
            np.array([2**64 - 1], dtype=np.uint64),
            r"y must hold classes from -2\^63 to .*, got 18446",
        ),
        (
            [[0, 0, 0]],
            np.array([-(2**63) - 1], dtype=object),
            r"y must hold classes from -2\^63 to .*, got -9223",
        ),
    ],
)
def test_invalid_rows_are_refused_and_change_nothing(X: object, y: object, message: str) -> None:
    learner = PackingClassifier().fit(*stream(80, 0, [0, 1]))
    before = bits(learner)
    for method in (learner.partial_fit, learner.progressive):
        with pytest.raises(EllipackError, match=message):
            method(X, y)
    with pytest.raises(InputError, match="classes must hold classes of the same type"):
        learner.partial_fit([[0, 0, 0]], [1], classes=["a"])
    assert bits(learner) == before


def test_invalid_parameters_are_refused() -> None:
    with pytest.raises(DomainError, match="clock must be one of packing, ball, got 'time'"):
        PackingClassifier(clock="time").fit([[0.0]], [0])
    with pytest.raises(KindError, match="y must hold real numbers"):
        PackingClassifier().fit([[0.0]], np.array(["2020-01-01"], dtype="datetime64[D]"))
    with pytest.raises(NotFittedError):
        PackingClassifier().predict([[0.0]])
    assert not hasattr(PackingClassifier(), "classes_")


def test_attributes() -> None:
    X, y = stream(200, 0, ["a", "b", "c"])
    learner = PackingClassifier([1.0, 0.1, 0.01]).fit(X, y)
    assert learner.n_centers_ == learner.state_.centers.sizes.sum() > 3
    ranks = learner.effective_rank_
    np.testing.assert_allclose(learner.radius_, learner.mistakes_ ** (-1 / (1 + ranks)))
    assert learner.metric_.eigenvalues.tolist() == [1.0, 0.1, 0.01]
    wider = pickle.loads(pickle.dumps(learner)).add_features([2.0])
    assert wider.predict(np.pad(X, ((0, 0), (0, 1)))).tolist() == learner.predict(X).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class_type": "complex"}, "state/class_type must be one of bool, int64, float64, str, object, got 'complex'"),
        ({"classes": [1, 0]}, "state/classes must be in ascending order"),
        ({"classes": [0, "a"]}, "state/classes must be 1 to 65536 values of type int64"),
        ({"classes": [0, 2**70]}, "state/classes must be values of type int64"),
        ({"classes": []}, "state/classes must be 1 to 65536 values"),
        ({"classes": [0]}, "state/centers/coordinates must be empty for a single class"),
        ({"classes": [0, 1, 2]}, r"state/centers/sizes must be int64 of shape \(3,\)"),
    ],
)
def test_files_with_impossible_classes_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    archive = PackingClassifier().fit(*stream(80, 0, [0, 1])).to_archive()
    facts = {**archive.facts, "state": {**archive.facts["state"], **change}}
    write(tmp_path / "model", "PackingClassifier", Archive(facts, archive.arrays))
    with pytest.raises(ModelFileError, match=message):
        ellipack.load(tmp_path / "model")
