"""Saved and loaded learners continue with the same bits."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ellipack
from ellipack import (
    KeyedRegressor,
    LocalSlopes,
    Metric,
    MetricConfig,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
)
from ellipack.errors import ModelFileError, ShapeError
from ellipack.estimators import GradientOuterProduct
from ellipack.estimators.loading import learner_from_archive
from ellipack.serialization import Archive, write
from ellipack.validation import Floats
from tests.entry_points.learners import bits, stream
from tests.estimators.factories import PAPER, PRACTICAL, Factory, Regressor
from tests.strategies import seeds

EVERY: dict[str, Factory] = {
    **PAPER,
    **PRACTICAL,
    "rescaled": lambda: RescaledRegressor(PackingRegressor()),
    "rescaled, phased": lambda: RescaledRegressor(PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10)))),
}
learners = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY.keys())
ARCHIVED = {name: make for name, make in EVERY.items() if name not in ("practical", "practical, bounded")}
"""Learners whose archives differ: that of two views has all entries of the others."""


@learners
@settings(max_examples=8)
@given(seed=seeds, at=st.integers(0, 49))
def test_a_loaded_learner_continues_with_the_same_bits(
    make: Factory, seed: int, at: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("saved") / "model"
    X, y = stream(50, seed)
    uninterrupted, started = make(), make()
    expected = uninterrupted.progressive(X, y)
    if at:
        started.partial_fit(X[:at], y[:at])
    started.save(path)
    resumed = ellipack.load(path)
    assert type(resumed) is type(started)
    if at:
        assert resumed.predict(X).tobytes() == started.predict(X).tobytes()
    assert resumed.progressive(X[at:], y[at:]).tobytes() == expected[at:].tobytes()
    assert bits(resumed) == bits(uninterrupted)
    resumed.save(path)
    again = path.read_bytes()
    uninterrupted.save(path)
    assert path.read_bytes() == again


RESUME = """
import sys
import numpy as np
import ellipack
for folder in sys.argv[1:]:
    data = np.load(folder + "/rest.npz")
    learner = ellipack.load(folder + "/model")
    np.save(folder + "/predictions.npy", learner.progressive(data["X"], data["y"]))
    learner.save(folder + "/after")
"""


def test_another_process_continues_with_the_same_bits(tmp_path: Path) -> None:
    X, y = stream(80, 5)
    uninterrupted = {}
    for number, make in enumerate(EVERY.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        make().fit(X[:37], y[:37]).save(folder / "model")
        np.savez(folder / "rest.npz", X=X[37:], y=y[37:])
        learner = make()
        uninterrupted[folder] = learner.progressive(X, y)[37:].tobytes()
        learner.save(folder / "uninterrupted")
    subprocess.run([sys.executable, "-c", RESUME, *map(str, uninterrupted)], check=True, timeout=300)
    for folder, expected in uninterrupted.items():
        assert np.load(folder / "predictions.npy").tobytes() == expected
        assert (folder / "after").read_bytes() == (folder / "uninterrupted").read_bytes()


@pytest.mark.parametrize(
    "learner",
    [
        PackingRegressor(Metric.from_diagonal([1.0, 0.2]), keep_founding_label=False),
        PackingRegressor([[2.0, 0.1], [0.1, 1.0]]),
        PackingRegressor((1.0, 0.5)),
        PhasedRegressor(0.3, GradientOuterProduct(LocalSlopes(9, metric=Metric.identity(2)), anchors=7)),
        MetricRegressor(500, neighbors=9, views=2, config=MetricConfig(growth=2.0, powers=(0.5,))),
    ],
    ids=str,
)
def test_parameters_are_restored(learner: Regressor, tmp_path: Path) -> None:
    learner.save(tmp_path / "model")
    loaded = ellipack.load(tmp_path / "model")
    assert not hasattr(loaded, "state_")
    assert repr(loaded) == repr(learner)
    X, y = stream(40)
    assert loaded.progressive(X[:, :2], y).tobytes() == learner.progressive(X[:, :2], y).tobytes()


def test_objects_of_other_classes_are_not_saved(tmp_path: Path) -> None:
    class Mine:
        def gradients(self, X: object, y: object, anchors: object = None) -> object:
            raise NotImplementedError

    learner = PhasedRegressor(gop=GradientOuterProduct(Mine()))  # type: ignore[arg-type]
    with pytest.raises(
        ModelFileError, match=r"must be numbers, strings, arrays or objects of ellipack to be saved, got <.*Mine"
    ):
        learner.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_file_is_neither_a_pickle_nor_an_import(tmp_path: Path) -> None:
    MetricRegressor().fit(*stream(80)).save(tmp_path / "model")
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads((tmp_path / "model").read_bytes())
    write(tmp_path / "model", "os.system", Archive())
    with pytest.raises(ModelFileError, match=r"model: a learner must be one of MetricRegressor, .*, got 'os.system'"):
        ellipack.load(tmp_path / "model")


@pytest.mark.parametrize("make", ARCHIVED.values(), ids=ARCHIVED.keys())
def test_archives_with_missing_or_changed_entries_are_refused(make: Factory) -> None:
    """Remove or change each array and each fact in turn: the archive is refused, or the learner still predicts."""
    X, y = stream(13)  # two phases of the practical learner have ended
    X[:, 0] = np.clip(X[:, 0], 0, 0.25)  # two keys
    learner = make().fit(X, y)
    kind, archive = type(learner).__name__, learner.to_archive()
    by_name = archive.arrays_by_full_name()
    for name, array in by_name.items():
        others = {key: value for key, value in by_name.items() if key != name}
        changed = [
            array[..., None],
            np.concatenate([array, array]) if array.ndim else array[None],
            array.astype(np.int32),
        ]
        for arrays in [others, *({**others, name: each} for each in changed)]:
            changed_archive = Archive.from_full_names(archive.facts, arrays)
            _check_refused_or_usable(kind, changed_archive, X, missing=name not in arrays)
    for facts in _changed_facts(archive.facts):
        _check_refused_or_usable(kind, Archive(facts, archive.arrays), X)


def _check_refused_or_usable(kind: str, archive: Archive, X: Floats, *, missing: bool = False) -> None:
    try:
        learner = learner_from_archive(kind, archive)
    except ModelFileError:
        return
    assert not missing
    keys = {"keys": X[:3, 0]} if isinstance(learner, KeyedRegressor) else {}
    assert not hasattr(learner, "state_") or np.isfinite(learner.predict(X[:3], **keys)).all()


REPLACEMENTS: list[object] = [None, [], {}, "text", -1, 10**18, 0.5, True]


def _changed_facts(facts: dict[str, object]) -> list[dict[str, object]]:
    """Return versions of the facts with one of them, at any depth, removed or replaced by another type or size."""
    every: list[dict[str, object]] = []
    for name, value in facts.items():
        if isinstance(value, dict):
            every += [{**facts, name: each} for each in _changed_facts(value)]
        every += [{**facts, name: other} for other in REPLACEMENTS]
        every.append({key: each for key, each in facts.items() if key != name})
    return every


@learners
def test_the_archive_of_an_unfitted_learner_removes_the_fitted_state(make: Factory) -> None:
    X, y = stream(20)
    again = make().fit(X, y).restore_state(make().to_archive())
    assert not again.__sklearn_is_fitted__()
    assert bits(again.fit(X, y)) == bits(make().fit(X, y))


NAMED: dict[str, Callable[[], MetricRegressor | KeyedRegressor]] = {
    "metric": MetricRegressor,
    "keyed": lambda: KeyedRegressor(0),
}
named_learners = pytest.mark.parametrize("make", NAMED.values(), ids=NAMED.keys())


def column_names(learner: MetricRegressor | KeyedRegressor) -> set[str]:
    importances = (learner.pooled_ if isinstance(learner, KeyedRegressor) else learner).importances_
    assert importances is not None
    return {name for each in importances.columns for name in each.columns}


@named_learners
def test_names_of_columns_are_saved(make: Callable[[], MetricRegressor | KeyedRegressor], tmp_path: Path) -> None:
    X, y = stream(100)
    X[:, 0] = X[:, 0].round()
    unfitted, fitted = make().set_columns(["a", "b", "b"]), make().set_columns(["a", "b", "b"]).fit(X, y)
    for learner in (unfitted, fitted):
        learner.save(tmp_path / "model")
        loaded = ellipack.load(tmp_path / "model")
        assert isinstance(loaded, MetricRegressor | KeyedRegressor)
        if learner is fitted:
            assert column_names(loaded) == {"a", "b"}
        assert column_names(loaded.fit(X, y)) == {"a", "b"}
    assert column_names(fitted.restore_state(make().fit(X, y).to_archive())) == {"0", "1", "2"}


@named_learners
def test_a_wrong_number_of_names_of_columns_is_refused(make: Callable[[], MetricRegressor | KeyedRegressor]) -> None:
    X, y = stream(20)
    X[:, 0] = X[:, 0].round()
    message = "set_columns must name the column of each of 3 features, got 2 names"
    learner = make().set_columns(["a", "b"])
    with pytest.raises(ShapeError, match=message):
        learner.fit(X, y)
    assert not learner.__sklearn_is_fitted__()
    fitted = make().set_columns(["a", "b", "b"]).fit(X, y)
    with pytest.raises(ShapeError, match=message):
        fitted.set_columns(["a", "b"])
    assert column_names(fitted) == {"a", "b"}
