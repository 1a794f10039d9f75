"""What can be saved can be loaded, whatever was done to the parameters after `fit`."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ellipack
from ellipack import (
    GradientOuterProduct,
    IntrinsicDimensionRegressor,
    KeyedRegressor,
    LocallyAdaptiveRegressor,
    LocalSlopes,
    MetricConfig,
    MetricRegressor,
    PackingClassifier,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
)
from ellipack.errors import InputError, ModelFileError
from ellipack.estimators.rescaled import PaperRegressor

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-0.5, 0.5, size=(12, 3)), RNG.integers(0, 2, size=12)
X[:, 0] = X[:, 0].round()  # two keys

LEARNERS: dict[str, Callable[[], Any]] = {
    "metric": MetricRegressor,
    "keyed": lambda: KeyedRegressor(0),
    "packing": PackingRegressor,
    "packing, diagonal": lambda: PackingRegressor([1.0, 0.5, 0.1]),
    "classifier": PackingClassifier,
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(4))),
    "tree": LocallyAdaptiveRegressor,
    "dimension": IntrinsicDimensionRegressor,
    "rescaled": lambda: RescaledRegressor(PackingRegressor()),
}
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())

VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2,
    16,
    10**30,
    2**70,
    0.5,
    1e400,
    float("nan"),
    "text",
    "noisy",
    "ball",
    np.int64(20),
    np.float32(0.5),
    np.bool_(True),
    [1.0, 0.5, 0.1],
    (1.0, 0.5),
    [],
    [[1.0]],
    np.eye(3),
    np.eye(2),
    np.zeros((2, 2, 2)),
    np.array(3.0),
    np.array(["a"]),
    MetricConfig(powers=[0.5, np.float32(0.25)], validation_points=np.int64(9)),  # type: ignore[arg-type]
    GradientOuterProduct(),
    GradientOuterProduct(anchors=-3),
    PackingRegressor(),
    PhasedRegressor(alpha=-1.0),
    object(),
    print,
]


def check_saving(learner: Any, path: Path) -> None:
    """Save and load a learner, or see it refused without a file."""
    path.unlink(missing_ok=True)
    try:
        learner.save(path)
    except (InputError, ModelFileError):
        assert not path.exists()
        return
    loaded = ellipack.load(path)
    keys = {"keys": [0.1, 0.2]} if isinstance(learner, KeyedRegressor) else {}
    expected = learner.predict(np.zeros((2, learner.n_features_in_)), **keys)
    assert loaded.predict(np.zeros((2, learner.n_features_in_)), **keys).tolist() == expected.tolist()


@learners
def test_a_model_with_any_parameter_can_be_loaded_or_is_not_saved(make: Callable[[], Any], tmp_path: Path) -> None:
    fitted = make().fit(X, Y)
    for name in fitted.get_params(deep=False):
        for value in VALUES:
            check_saving(deepcopy(fitted).set_params(**{name: value}), tmp_path / "model")


@learners
def test_a_model_fitted_with_any_parameter_can_be_loaded_or_is_not_saved(
    make: Callable[[], Any], tmp_path: Path
) -> None:
    for name in make().get_params(deep=False):
        for value in VALUES:
            learner = make().set_params(**{name: value})
            try:
                learner.fit(X, Y)
            except (InputError, TypeError):
                continue
            check_saving(learner, tmp_path / "model")


@learners
def test_a_model_with_added_features_can_be_loaded(make: Callable[[], Any], tmp_path: Path) -> None:
    learner = make().fit(X, Y).add_features([0.5])
    learner.save(tmp_path / "model")
    loaded = ellipack.load(tmp_path / "model")
    assert loaded.n_features_in_ == 4
    assert loaded.predict(np.zeros((1, 4))).tolist() == learner.predict(np.zeros((1, 4))).tolist()


def test_no_number_of_threads_is_one_thread(tmp_path: Path) -> None:
    learner = MetricRegressor().fit(X, Y).set_params(n_jobs=None)
    learner.save(tmp_path / "model")
    assert ellipack.load(tmp_path / "model").predict(X).tolist() == learner.predict(X).tolist()


def test_the_error_names_the_parameter(tmp_path: Path) -> None:
    learner = MetricRegressor().fit(X, Y).set_params(neighbors=1)
    with pytest.raises(InputError, match="neighbors must be an integer from 2 to 512, got 1"):
        learner.save(tmp_path / "model")


PAPER: list[Callable[[], PaperRegressor]] = [
    PackingRegressor,
    PhasedRegressor,
    LocallyAdaptiveRegressor,
    IntrinsicDimensionRegressor,
]


@pytest.mark.parametrize("fitted", PAPER)
@pytest.mark.parametrize("other", PAPER)
def test_a_rescaled_regressor_accepts_only_the_class_that_was_fitted(
    fitted: Callable[[], PaperRegressor], other: Callable[[], PaperRegressor], tmp_path: Path
) -> None:
    learner = RescaledRegressor(fitted()).fit(X, Y).set_params(regressor=other())
    if other is fitted:
        check_saving(learner, tmp_path / "model")
        assert (tmp_path / "model").exists()
        return
    message = f"regressor must be a {type(fitted()).__name__}, as when it was fitted, got a {type(other()).__name__}"
    calls: list[Callable[[], object]] = [
        lambda: learner.save(tmp_path / "model"),
        lambda: learner.predict(X),
        lambda: learner.partial_fit(X, Y),
        lambda: learner.regressor_,
    ]
    for call in calls:
        with pytest.raises(InputError, match=message):
            call()
    assert not (tmp_path / "model").exists()
    assert learner.n_rounds == len(X)
    assert learner.fit(X, Y).predict(X).shape == (len(X),)


@pytest.mark.parametrize(
    ("learner", "name", "value"),
    [
        (IntrinsicDimensionRegressor(), "labels", "noisy"),
        (RescaledRegressor(IntrinsicDimensionRegressor()), "regressor__labels", "noisy"),
        (LocallyAdaptiveRegressor(), "adapt", "dimension"),
        (PackingRegressor(), "keep_founding_label", False),
        (PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(4))), "alpha", 2.0),
        (PackingClassifier(), "clock", "ball"),
        (MetricRegressor(), "neighbors", 4),
        (KeyedRegressor(0), "learner", MetricRegressor(past=False, neighbors=4)),
    ],
    ids=lambda each: each if isinstance(each, str) else None,
)
def test_a_changed_parameter_has_the_same_effect_after_loading(
    learner: Any, name: str, value: object, tmp_path: Path
) -> None:
    rows, labels = RNG.uniform(-0.5, 0.5, size=(300, 3)), RNG.integers(0, 2, size=300)
    rows[:, 0] = rows[:, 0].round()
    learner.fit(rows[:150], labels[:150]).set_params(**{name: value})
    learner.save(tmp_path / "model")
    loaded = ellipack.load(tmp_path / "model")
    for each, path in ((learner, tmp_path / "kept"), (loaded, tmp_path / "loaded")):
        each.partial_fit(rows[150:], labels[150:]).save(path)
    assert loaded.predict(rows).tolist() == learner.predict(rows).tolist()
    assert (tmp_path / "loaded").read_bytes() == (tmp_path / "kept").read_bytes()
