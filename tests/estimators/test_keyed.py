"""`KeyedRegressor` against a literal reference, and the same bits whatever is in memory."""

import os
import pickle
import signal
import tempfile
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from copy import deepcopy
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import ellipack
from ellipack import KeyedRegressor, MetricConfig, MetricRegressor
from ellipack.errors import InputError, ModelFileError, ShapeError
from ellipack.learners.intervals import COVERAGES
from ellipack.learners.keyed import partitions, store
from ellipack.learners.keyed.nameless_file import NamelessFile
from ellipack.learners.keyed.partitions import Partition
from ellipack.row_keys import hash_row
from ellipack.validation import Floats
from tests.reference.keyed import ReferenceKeyed

SMALL = MetricConfig(validation_points=8, pool=16, powers=(0.5,), ridges=(0.01,), importance=False)


def key_learner() -> MetricRegressor:
    return MetricRegressor(24, neighbors=4, past=False, n_jobs=1, config=SMALL)


def pooled() -> MetricRegressor:
    return MetricRegressor(neighbors=4, by="key", n_jobs=1, config=SMALL)


def keyed(**parameters: Any) -> KeyedRegressor:
    return KeyedRegressor("key", **{"learner": key_learner(), "pooled": pooled(), **parameters})


def panel(rows: int, keys: int, seed: int = 0) -> tuple[Floats, Floats, NDArray[Any]]:
    """Return a stream whose keys have own slopes."""
    rng = np.random.default_rng(seed)
    X, key, slopes = rng.normal(size=(rows, 2)), rng.integers(keys, size=rows), 3 * rng.normal(size=keys)
    return X, slopes[key] * X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=rows), np.array(["a", "b", "c", "d", "e"])[key]


def state_bits(learner: KeyedRegressor) -> object:
    """Return the state without the parameters, to the bit."""
    saved = learner.to_archive().part("state")
    return saved.facts, {name: array.tobytes() for name, array in saved.arrays_by_full_name().items()}


@pytest.mark.parametrize(("n_keys", "seed"), [(1, 0), (3, 1), (5, 2)])
def test_the_reference(n_keys: int, seed: int) -> None:
    X, y, keys = panel(60, n_keys, seed)
    y[40] = 1e6  # an erroneous label
    reference, learner = ReferenceKeyed(pooled(), key_learner), keyed(max_learners=2)
    expected = [reference.learn(*each) for each in zip(X, keys, y, strict=True)]
    values, intervals = learner.progressive(X, y, keys=keys, coverage=COVERAGES)
    np.testing.assert_allclose(values, [each.value for each in expected], rtol=1e-9, atol=1e-9)
    ends = np.hstack(intervals)
    np.testing.assert_allclose(ends, [each.bounds for each in expected], rtol=1e-7, atol=1e-9)
    new, names = panel(8, n_keys, seed + 10)[0], [*keys[:7], "new"]
    apart = [reference.predict(*each) for each in zip(new, names, strict=True)]
    np.testing.assert_allclose(learner.predict(new, keys=names), [each.value for each in apart], rtol=1e-9)
    ends = np.hstack(learner.predict_interval(new, COVERAGES, keys=names))
    np.testing.assert_allclose(ends, [each.bounds for each in apart], rtol=1e-7)
    errors = learner.key_errors()
    assert errors.names == sorted(set(keys), key=lambda name: (-np.sum(keys == name), name))
    for name, rows, rmse, pooled_rmse in zip(*errors, strict=True):
        both = np.sqrt(np.mean(reference.squared_errors[name], axis=0))
        assert rows == np.sum(keys == name)
        np.testing.assert_allclose([rmse, pooled_rmse], both, rtol=1e-9)


def test_the_learners_of_keys_are_used() -> None:
    """Otherwise the reference would test nothing."""
    X, y, keys = panel(400, 4)
    learner = keyed()
    mine, theirs = learner.progressive(X, y, keys=keys), pooled().progressive(X, y, keys=keys)
    assert np.std((mine - y)[200:]) < 0.5 * np.std((theirs - y)[200:])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    cuts=st.lists(st.integers(1, 29), max_size=3, unique=True).map(sorted),
    max_learners=st.lists(st.integers(1, 5), min_size=4, max_size=4),
    resume=st.sampled_from(["no", "copy", "pickle", "save"]),
    seed=st.integers(0, 3),
)
def test_same_bits_in_batches_with_any_memory_and_after_a_resume(
    cuts: list[int], max_learners: list[int], resume: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    X, y, keys = panel(30, 4, seed)
    whole = keyed()
    expected = whole.progressive(X, y, keys=keys)
    learner, found = keyed(), np.zeros(0)
    for most, start, stop in zip(max_learners, [0, *cuts], [*cuts, 30], strict=False):
        learner.set_params(max_learners=most)
        part = slice(start, stop)
        found = np.append(found, learner.progressive(X[part], y[part], keys=keys[part]))
        assert learner.n_keys_ - learner.n_keys_on_disk_ <= most
        learner.predict(X[:9], keys=keys[:9])  # brings other learners to memory
        learner = resumed(learner, resume, tmp_path_factory)
    assert found.tolist() == expected.tolist()
    assert state_bits(learner) == state_bits(whole)
    assert learner.predict(X, keys=keys).tolist() == whole.predict(X, keys=keys).tolist()


def resumed(learner: KeyedRegressor, how: str, folders: pytest.TempPathFactory) -> KeyedRegressor:
    """Return a learner that continues."""
    if how == "save":
        path = folders.mktemp("model") / "model"
        learner.save(path)
        loaded = ellipack.load(path)
        assert isinstance(loaded, KeyedRegressor)
        return loaded
    if how == "pickle":
        unpickled: KeyedRegressor = pickle.loads(pickle.dumps(learner))
        return unpickled
    return deepcopy(learner) if how == "copy" else learner


def test_one_by_one() -> None:
    X, y, keys = panel(40, 3)
    whole, single = keyed(), keyed(max_learners=1)
    expected = whole.progressive(X, y, keys=keys)
    found = [single.progressive(X[t : t + 1], y[t : t + 1], keys=keys[t : t + 1])[0] for t in range(40)]
    assert found == expected.tolist()
    assert state_bits(single) == state_bits(whole)


def test_keys_may_be_columns_of_the_table() -> None:
    X, y, keys = panel(60, 3)
    numbers = np.unique(keys, return_inverse=True)[1]
    table = np.column_stack([X, numbers])
    by_column, by_argument = KeyedRegressor(2, learner=key_learner()), KeyedRegressor("any", learner=key_learner())
    assert (by_column.progressive(table, y) == by_argument.progressive(table, y, keys=numbers)).all()
    assert (by_column.predict(table) == by_argument.predict(table, keys=numbers)).all()
    assert by_column.key_errors().names == by_argument.key_errors().names
    assert set(by_column.key_errors().names) == {"0", "1", "2"}


def test_features_are_added_to_all_learners() -> None:
    X, y, keys = panel(60, 3)
    learner, small = keyed().fit(X, y, keys=keys), keyed(max_learners=1).fit(X, y, keys=keys)
    before = learner.predict(X, keys=keys)
    wide = np.column_stack([X, np.zeros(60)])
    for each in (learner, small):
        each.add_features([1.0])
        assert each.predict(wide, keys=keys).tolist() == before.tolist()
        each.add_features([2.0, 0.5])
    wide = np.random.default_rng(0).normal(size=(30, 5))
    more = learner.progressive(wide, y[:30], keys=keys[:30])
    assert small.progressive(wide, y[:30], keys=keys[:30]).tolist() == more.tolist()
    assert state_bits(small) == state_bits(learner)


def test_late_labels() -> None:
    """A label that comes at once is learned as usual."""
    X, y, keys = panel(60, 3)
    learner, late = (
        keyed().fit(X[:40], y[:40], keys=keys[:40]),
        keyed(max_learners=1).fit(X[:40], y[:40], keys=keys[:40]),
    )
    for t in range(40, 60):
        part = slice(t, t + 1)
        published = late.predict_each(X[part], keys=keys[part])
        expected = learner.progressive(X[part], y[part], keys=keys[part])
        assert published.values.tolist() == expected.tolist()
        late.learn_late(X[part], y[part], published, keys=keys[part])
    assert late.predict(X, keys=keys).tolist() == learner.predict(X, keys=keys).tolist()
    assert late.key_errors().rmse.tolist() == learner.key_errors().rmse.tolist()
    first = keyed().predict_each(X[:1], keys=keys[:1])
    assert keyed().learn_late(X[:1], y[:1], first, keys=keys[:1]).n_keys_ == 1


class TestFiles:
    """Learners that are not in memory. They are in a file without a name."""

    def fitted(self, folder: Path, **parameters: Any) -> KeyedRegressor:
        X, y, keys = panel(40, 5)
        return keyed(max_learners=2, folder=str(folder), **parameters).fit(X, y, keys=keys)

    def on_disk(self, learner: KeyedRegressor) -> list[str]:
        """Return the names of the keys whose learners are on disk."""
        store = learner.state_.store
        return [name for name in "abcde" if hash_row([name]) in store._places.keys() - store._recent.keys()]

    @pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="the file has a name until it is created")
    def test_there_is_never_a_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        X, y, keys = panel(40, 5)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        learners = self.fitted(tmp_path), keyed(max_learners=2).fit(X, y, keys=keys)
        assert [each.n_keys_on_disk_ for each in learners] == [3, 3]
        assert not list(tmp_path.iterdir())

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are not known")
    def test_the_file_is_closed_with_its_learner(self, tmp_path: Path) -> None:
        def is_open() -> bool:
            links = [each for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
            return any(str(tmp_path) in str(each.readlink()) for each in links)

        learner = self.fitted(tmp_path)
        assert is_open()
        del learner
        assert not is_open()

    def test_the_least_recently_used_learner_is_moved(self, tmp_path: Path) -> None:
        X, y, _ = panel(4, 2)
        learner = keyed(max_learners=2, folder=str(tmp_path)).fit(X[:2], y[:2], keys=["a", "b"])
        learner.predict(X[:1], keys=["a"])
        learner.partial_fit(X[2:3], y[2:3], keys=["c"])
        assert self.on_disk(learner) == ["b"]

    def test_a_copy_has_its_own(self, tmp_path: Path) -> None:
        X, y, keys = panel(40, 5)
        learner = self.fitted(tmp_path)
        expected = learner.predict(X, keys=keys)
        copy = deepcopy(learner).partial_fit(X, -y, keys=keys)
        assert learner.n_keys_on_disk_ == copy.n_keys_on_disk_ == 3
        assert learner.predict(X, keys=keys).tolist() == expected.tolist()

    def test_a_damaged_one_is_told_and_changes_nothing(self, tmp_path: Path) -> None:
        learner = self.fitted(tmp_path)
        X, y, _ = panel(40, 5)
        names = self.on_disk(learner)
        for place in learner.state_.store._places.values():
            os.pwrite(place.file._descriptor, b"?", place.start + place.size - 1)
        kept = [name for name in "abcde" if name not in names]
        before = learner.predict(X[:2], keys=kept)
        for call in (
            lambda: learner.partial_fit(X[:1], y[:1], keys=names[:1]),
            lambda: learner.predict(X[:1], keys=names[:1]),
            lambda: learner.save(tmp_path / "model"),
        ):
            with pytest.raises(ModelFileError, match="learner"):
                call()
        assert learner.predict(X[:2], keys=kept).tolist() == before.tolist()
        assert learner.key_errors().rows.sum() == 40

    def test_a_truncated_one_is_told(self, tmp_path: Path) -> None:
        learner = self.fitted(tmp_path).set_params(max_learners=5)  # nothing more is written
        for place in learner.state_.store._places.values():
            os.truncate(place.file._descriptor, place.start)
        with pytest.raises(ModelFileError, match="can't be read from disk: the file was truncated; load a saved model"):
            learner.predict([[0.0, 0.0]], keys=self.on_disk(learner)[-1:])

    def test_no_room_on_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        X, y, keys = panel(80, 5)
        learner = self.fitted(tmp_path)
        reference = deepcopy(learner)
        expected = reference.progressive(X[40:], y[40:], keys=keys[40:])
        before = state_bits(learner)

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as broken:
            broken.setattr(NamelessFile, "append", fail)
            with pytest.raises(ModelFileError, match=r"can't hold.*stay in memory: No space left"):
                learner.partial_fit(X[40:], y[40:], keys=keys[40:])
        assert state_bits(learner) == before
        assert learner.progressive(X[40:], y[40:], keys=keys[40:]).tolist() == expected.tolist()

    def test_the_folder_must_exist(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFileError, match=r"missing can't hold the learners of keys.*: No such file"):
            self.fitted(tmp_path / "missing")

    def test_a_temporary_folder_replaces_the_parameter_and_is_not_saved(self, tmp_path: Path) -> None:
        X, y, keys = panel(40, 5)
        missing = str(tmp_path / "missing")
        learner = keyed(max_learners=2, folder=missing).use_temporary_folder(str(tmp_path)).fit(X, y, keys=keys)
        assert learner.n_keys_on_disk_ == 3
        learner.save(tmp_path / "model")
        loaded = ellipack.load(tmp_path / "model")
        for each in (loaded, learner.use_temporary_folder(None)):
            assert each.folder == missing
            with pytest.raises(ModelFileError, match="missing can't hold the learners of keys"):
                each.partial_fit(X, y, keys=keys)

    def test_outdated_learners_take_bounded_space(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(store, "_LEAST_FULL_SIZE", 0)
        X, y, keys = panel(300, 5)
        learner, whole = keyed(max_learners=1, folder=str(tmp_path)), keyed()
        for t in range(300):
            part = slice(t, t + 1)
            learner.partial_fit(X[part], y[part], keys=keys[part])
        kept = learner.state_.store
        assert kept._file is not None
        assert {place.file for place in kept._places.values()} == {kept._file}
        assert kept._file.size < 3 * sum(place.size for place in kept._places.values())
        assert state_bits(learner) == state_bits(whole.fit(X, y, keys=keys))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("full_size", [0, 2**24])
@pytest.mark.parametrize("depth", [1, 2])
def test_parent_and_forked_child_do_not_disturb_each_other(
    full_size: int, depth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child has the learners of the fork, although the parent replaces them, and the other way round."""
    monkeypatch.setattr(store, "_LEAST_FULL_SIZE", full_size)
    X, y, keys = panel(120, 5)
    learner = keyed(max_learners=1, folder=str(tmp_path)).fit(X[:60], y[:60], keys=keys[:60])
    expected, changed = deepcopy(learner), deepcopy(learner)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends it if it hangs
        status = 1
        try:
            os.read(read_end, 1)  # when the parent has replaced its learners
            for _ in range(depth - 1):
                grandchild = os.fork()
                if grandchild:
                    learner.partial_fit(X[60:], -y[60:], keys=keys[60:])
                    os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
            assert state_bits(learner) == state_bits(expected)
            for each in (learner, expected):
                each.partial_fit(X[60:], y[60:], keys=keys[60:])
            assert learner.predict(X, keys=keys).tolist() == expected.predict(X, keys=keys).tolist()
            learner.save(tmp_path / "model")
            status = 0
        finally:
            os._exit(status)
    for _ in range(2):
        for each in (learner, changed):
            each.partial_fit(X[60:], -y[60:], keys=keys[60:])
    os.write(write_end, b"x")
    os.close(read_end)
    os.close(write_end)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert state_bits(learner) == state_bits(changed)
    assert state_bits(expected.partial_fit(X[60:], y[60:], keys=keys[60:])) == state_bits(
        ellipack.load(tmp_path / "model")
    )
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"by": None}, "by must be the name"),
        ({"learner": 3}, "learner must be a MetricRegressor, got 3"),
        ({"pooled": "all"}, "pooled must be a MetricRegressor, got 'all'"),
        ({"pooled": MetricRegressor}, "pooled must be a MetricRegressor, got <class"),
        ({"learner": MetricRegressor()}, "learner must have past=False"),
        ({"max_learners": 0}, "max_learners must be an integer >= 1, got 0"),
        ({"folder": 3}, "folder must be a path, got 3"),
    ],
)
def test_invalid_parameters(parameters: dict[str, Any], message: str) -> None:
    X, y, keys = panel(4, 2)
    with pytest.raises(InputError, match=message):
        keyed().set_params(**parameters).fit(X, y, keys=keys)
    fitted = keyed().fit(X, y, keys=keys)
    if "must have" not in message:  # which only counts when a key comes first
        with pytest.raises(InputError, match=message):
            fitted.set_params(**parameters).partial_fit(X, y, keys=keys)


def test_invalid_keys_change_nothing() -> None:
    X, y, keys = panel(20, 2)
    learner = keyed().fit(X, y, keys=keys)
    before = state_bits(learner)
    with pytest.raises(ShapeError, match="keys must have one entry per row, 20, got shape"):
        learner.partial_fit(X, y, keys=keys[:3])
    with pytest.raises(InputError, match="by must be the number of a column"):
        learner.partial_fit(X, y)
    assert state_bits(learner) == before


def test_coverage_of_each_key() -> None:
    rng = np.random.default_rng(0)
    key = rng.integers(3, size=1500)
    X, y = rng.normal(size=(1500, 1)), np.array([0.1, 1.0, 10.0])[key] * rng.normal(size=1500)
    _, (lower, upper) = keyed().progressive(X, y, keys=key, coverage=0.8)
    for each in range(3):
        mine = key == each
        assert np.mean((lower <= y)[mine] & (y <= upper)[mine]) == pytest.approx(0.8, abs=0.05)


class TestPartitions:
    """Keys that are learned on the workers of an executor."""

    @pytest.mark.parametrize(("workers", "count"), [(1, 1), (3, 2), (2, 8)])
    def test_same_bits_as_in_this_process(self, workers: int, count: int) -> None:
        X, y, keys = panel(90, 5)
        whole, parts = keyed(), keyed(max_learners=2)
        expected = whole.progressive(X[:60], y[:60], keys=keys[:60])
        with ThreadPoolExecutor(workers) as executor:
            first, second = (
                parts.progressive_on(executor, X[part], y[part], keys=keys[part], partitions=count)
                for part in (slice(0, 25), slice(25, 60))
            )
            assert np.append(first, second).tolist() == expected.tolist()
            assert state_bits(parts) == state_bits(whole)
            assert parts.key_errors().names == whole.key_errors().names
            for each in (whole, parts):
                each.add_features([1.0])
            wide = np.column_stack([X[60:], X[60:, 0]])
            more = parts.progressive_on(executor, wide, y[60:], keys=keys[60:], partitions=count)
        assert more.tolist() == whole.progressive(wide, y[60:], keys=keys[60:]).tolist()
        assert state_bits(parts) == state_bits(whole)
        parts.predict(wide[:1], keys=keys[:1])  # makes room
        assert parts.n_keys_ - parts.n_keys_on_disk_ <= 2

    @pytest.mark.parametrize("count", [3, 50, 10**30])
    def test_each_task_has_a_key(self, count: int) -> None:
        X, y, keys = panel(40, 5)
        learner, tasks = keyed(), list[Partition]()

        class RecordingExecutor(ThreadPoolExecutor):
            def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
                tasks.append(args[0])
                return super().submit(fn, *args, **kwargs)

        with RecordingExecutor(1) as executor:
            found = learner.progressive_on(executor, X, y, keys=keys, partitions=count)
        assert found.tolist() == keyed().progressive(X, y, keys=keys).tolist()
        assert all(len(each.names) > 0 for each in tasks)
        assert len(tasks) <= min(count, 5)

    @given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(1, 2**64 - 1))
    def test_partitions_hold_all_rows_of_their_keys_in_order(self, values: list[int], count: int) -> None:
        keys = np.array(values)
        places = partitions.partition_places(keys, count)
        assert sorted(np.concatenate(places).tolist()) == list(range(len(keys)))
        assert all(len(each) > 0 and (np.diff(each) > 0).all() for each in places)
        assert sum(len(np.unique(keys[each])) for each in places) == len(np.unique(keys))
        assert len(places) <= count

    def test_processes(self) -> None:
        X, y, keys = panel(40, 3)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
            found = keyed().progressive_on(executor, X, y, keys=keys, partitions=3)
        assert found.tolist() == keyed().progressive(X, y, keys=keys).tolist()

    def test_a_task_that_fails_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        X, y, keys = panel(60, 3)
        learner = keyed().fit(X[:30], y[:30], keys=keys[:30])
        before = state_bits(learner)

        def fail(*_: object) -> None:
            raise OSError("the worker is lost")

        with ThreadPoolExecutor(2) as executor:
            with monkeypatch.context() as broken:
                broken.setattr(partitions, "learn_partition", fail)
                with pytest.raises(OSError, match="the worker is lost"):
                    learner.progressive_on(executor, X[30:], y[30:], keys=keys[30:])
            assert state_bits(learner) == before
            again = learner.progressive_on(executor, X[30:], y[30:], keys=keys[30:])
            with pytest.raises(InputError, match="partitions must be an integer >= 1, got 0"):
                learner.progressive_on(executor, X, y, keys=keys, partitions=0)
        assert again.tolist() == keyed().progressive(X, y, keys=keys)[30:].tolist()


def test_a_pickle_works_where_its_temporary_folder_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    X, y = np.random.default_rng(0).normal(size=(2, 60, 2)), np.arange(60.0)
    keys = np.arange(60) % 4
    model = KeyedRegressor("k", max_learners=1).use_temporary_folder(str(folder)).fit(X[0], y, keys=keys)
    loaded = pickle.loads(pickle.dumps(model))
    folder.rmdir()
    assert loaded.partial_fit(X[1], y, keys=keys).n_keys_ == 4
