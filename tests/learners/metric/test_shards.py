"""One learner on many workers: shards, merges and executors."""

import pickle
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack import MetricConfig, MetricRegressor
from ellipack._core import CoreParts, LeastSquares
from ellipack.errors import DomainError, InputError, NonFiniteError, WorkerError
from ellipack.learners.intervals import empty_predictions
from ellipack.learners.metric import learner, serialization
from ellipack.learners.metric.merging.experts import StateChange, merge_least_squares
from ellipack.learners.metric.merging.learned import Learned, apply_learned, merge_learned
from ellipack.learners.metric.row_checks import NO_KEYS, Rows
from ellipack.learners.metric.sharded_learning import Workers, cut_step, learn_in_shards
from ellipack.learners.metric.sharding import Sharding, split
from ellipack.learners.metric.shards import learn_shard, merge
from ellipack.learners.metric.shared_state import share_state
from ellipack.learners.metric.state import MetricState
from tests.learners.metric.learners import PASTS, Past, bits, keys_of, new_state, smooth_stream
from tests.strategies import seeds

QUICK_SHARDING = Sharding(shards=3, exchange=0.25, min_rows=20)


class InlineExecutor(Executor):
    """Runs tasks at once, or in any order."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_result(pickle.loads(pickle.dumps(fn(*args, **kwargs))))
        return future


def stream(n: int, past: Past, seed: int = 0) -> Rows:
    return Rows(*smooth_stream(n, seed=seed), keys_of(n, past))


@cache
def _trained(past: Past, views: int, max_centers: int) -> bytes:
    rows, state = stream(600, past), new_state(3, views, max_centers=max_centers, past=past)
    learner.learn(state, rows.X, rows.y, keys=rows.keys)
    return pickle.dumps(state)


def after_600_rows(past: Past, views: int = 1, max_centers: int = 1000) -> MetricState:
    """Return a state after the first 600 rows of `stream`."""
    state: MetricState = pickle.loads(_trained(past, views, max_centers))
    return state


def learned_from(state: MetricState, rows: Rows, sizes: list[int]) -> list[Learned]:
    return [learn_shard(state, shard).learned for shard in cut_step(state, rows, sizes)]


@pytest.mark.parametrize("past", PASTS)
@pytest.mark.parametrize(("views", "max_centers"), [(1, 1000), (2, 700)])
@pytest.mark.parametrize("stop", [640, 681])  # within a phase, and at its end
def test_one_shard_is_ordinary_learning_bit_for_bit(past: Past, views: int, max_centers: int, stop: int) -> None:
    rows = stream(stop, past)
    state = after_600_rows(past, views, max_centers)
    before = bits(state)
    [shard] = cut_step(state, rows.part(slice(600, stop)), [stop - 600])
    learned = learn_shard(state, shard, with_intervals=True)
    merged = merge(state, [learned.learned])
    assert bits(state) == before
    expected = empty_predictions(stop - 600, with_intervals=True)
    learner.learn_into(state, *rows.part(slice(600, stop))[:2], expected, keys=rows.keys[600:stop])
    assert bits(merged) == bits(state)
    assert learned.predictions.values.tobytes() == expected.values.tobytes()
    assert learned.predictions.bounds.tobytes() == expected.bounds.tobytes()


@pytest.mark.parametrize("past", PASTS)
def test_shards_are_the_same_bits_in_any_order_and_again(past: Past) -> None:
    rows = stream(680, past)
    state = after_600_rows(past)
    shards = list(cut_step(state, rows.part(slice(600, 680)), [30, 30, 20]))
    copy: MetricState = pickle.loads(pickle.dumps(state))
    first = [learn_shard(state, shard) for shard in shards]
    again = [learn_shard(copy, shard) for shard in reversed(shards)][::-1]
    assert bits(merge(state, [each.learned for each in first])) == bits(merge(copy, [each.learned for each in again]))
    for one, other in zip(first, again, strict=True):
        assert one.predictions.values.tobytes() == other.predictions.values.tobytes()


@pytest.mark.parametrize("past", PASTS)
@pytest.mark.parametrize("sizes", [[20, 20], [30, 30, 20], [41, 40]])  # the past is tried from round 652 to 681
def test_merged_state_can_be_saved_and_loaded(past: Past, sizes: list[int]) -> None:
    rows = stream(600 + sum(sizes), past)
    state = after_600_rows(past)
    merged = merge(state, learned_from(state, rows.part(slice(600, None)), sizes))
    assert bits(serialization.from_archive(serialization.to_archive(merged), 3)) == bits(merged)


def arrays_of(parts: CoreParts) -> dict[str, np.ndarray[Any, Any]]:
    """Return numbers of all parts, by name."""
    found: dict[str, Any] = {}
    assert parts.past is not None
    assert parts.importance is not None
    for name, rounds in (("plain", parts.plain), ("past", parts.past.rounds)):
        own = rounds.centers
        found |= {
            f"{name} rows": own.rows,
            f"{name} label sums": own.label_sums,
            f"{name} counts": own.label_counts,
            f"{name} rounds": own.round_sums,
            f"{name} errors": own.error_sums,
            f"{name} gop": rounds.views[0].gop,
            f"{name} labels": rounds.label_statistics,
            f"{name} features": rounds.feature_statistics,
            f"{name} ridge": rounds.regressions.ridge.coefficients,
            f"{name} forgetting": rounds.regressions.forgetting.coefficients,
            f"{name} gains": rounds.aggregation.experts.gains,
            f"{name} stack": rounds.aggregation.stack.coefficients,
            f"{name} top": rounds.aggregation.top.squares,
            f"{name} packing": rounds.packing.label_sums,
            f"{name} widths": rounds.intervals.widths,
        }
    measured = parts.importance
    found |= {
        "sums": np.array([group.sums for group in measured.groups]),
        "counts": np.array([group.count for group in measured.groups]),
        "sample": measured.sample[0],
        "squared errors": measured.errors,
        "moves": np.array(measured.moves),
        "stream": parts.past.features.stream,
        "histories": parts.past.features.histories,
        "past errors": np.array([parts.past.active_errors, parts.past.total_errors]),
        "combination": parts.past.combination.experts.gains,
    }
    return {name: np.asarray(values, dtype=np.float64) for name, values in found.items()}


@settings(max_examples=4)
@given(st.lists(st.integers(1, 25), min_size=3, max_size=6), st.data(), st.sampled_from([150, 1000]), seeds)
def test_merging_is_associative_in_the_order_of_rows(
    sizes: list[int], data: st.DataObject, max_centers: int, seed: int
) -> None:
    past, n = Past(2, 2), sum(sizes)
    rows = stream(600 + n, past, seed)
    state = after_600_rows(past, max_centers=max_centers)
    learned, base = learned_from(state, rows.part(slice(600, None)), sizes), state.core.parts()
    cuts = sorted(data.draw(st.sets(st.integers(1, len(sizes) - 1), min_size=1)))
    grouped = [merge_learned(base, learned[a:b]) for a, b in pairwise([0, *cuts, len(sizes)])]
    whole, parts = merge_learned(base, learned), merge_learned(base, grouped)
    assert (whole.rows, whole.shards) == (parts.rows, parts.shards) == (n, len(sizes))
    expected, found = (arrays_of(apply_learned(base, each, state.core.settings)) for each in (whole, parts))
    for name, values in expected.items():
        size = max(1e-300, np.abs(values).max(initial=0.0))
        np.testing.assert_allclose(found[name], values, rtol=1e-6, atol=1e-9 * size, err_msg=name)


def test_merged_sums_are_those_of_one_machine() -> None:
    """What does not depend on predictions is exact: statistics, the ridge regression, centers, keys, the past."""
    past = Past(2, 2)
    rows = stream(680, past)
    state = after_600_rows(past)
    learned = learned_from(state, rows.part(slice(600, 675)), [30, 25, 20])
    found = merge(state, learned).core.parts()
    learner.learn(state, rows.X[600:675], rows.y[600:675], keys=rows.keys[600:675])
    expected = state.core.parts()
    assert found.past is not None
    assert expected.past is not None
    assert found.plain.clock == expected.plain.clock == 675
    np.testing.assert_allclose(found.plain.label_statistics, expected.plain.label_statistics, rtol=1e-12)
    np.testing.assert_allclose(found.plain.feature_statistics, expected.plain.feature_statistics, rtol=1e-12)
    for name in ("rows", "label_sums", "label_counts", "round_sums"):
        one, other = getattr(found.plain.centers, name), getattr(expected.plain.centers, name)
        np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=name)
    for name in ("coefficients", "inverse"):
        one, other = (getattr(each.plain.regressions.ridge, name) for each in (found, expected))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max(), err_msg=name)
    assert found.past.features.keys.tolist() == expected.past.features.keys.tolist()
    labels = np.r_[0, 3:11]  # without the means and errors, which depend on predictions
    np.testing.assert_array_equal(found.past.features.histories[:, labels], expected.past.features.histories[:, labels])
    np.testing.assert_array_equal(found.past.features.stream[labels], expected.past.features.stream[labels])
    assert found.importance is not None
    assert expected.importance is not None
    assert found.importance.seen == expected.importance.seen
    assert found.importance.sample[0].tobytes() == expected.importance.sample[0].tobytes()
    np.testing.assert_allclose(found.importance.moves, expected.importance.moves, atol=2)


@settings(max_examples=20)
@given(st.integers(1, 4), st.lists(st.integers(1, 20), min_size=2, max_size=4), seeds)
def test_regressions_with_forgetting_are_merged_exactly(d: int, sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30 + sum(sizes), d)), rng.normal(size=30 + sum(sizes))

    def learn(regression: LeastSquares, rows: slice) -> LeastSquares:
        after = LeastSquares(regression.inverse, regression.coefficients)
        after.discount(8.0)
        for row, label in zip(X[rows], y[rows], strict=True):
            after.update(row, label)
        return after

    base = learn(LeastSquares(0.5 * np.eye(d), np.zeros(d)), slice(30))
    parts = [slice(30 + first, 30 + last) for first, last in pairwise([0, *np.cumsum(sizes).tolist()])]
    expected = base
    for part in parts:
        expected = learn(expected, part)
    found = merge_least_squares(base, [StateChange(base, learn(base, part)) for part in parts], [7 / 8] * len(parts))
    np.testing.assert_allclose(found.inverse, expected.inverse, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, rtol=1e-8, atol=1e-12)


def test_slopes_of_shards_are_put_together() -> None:
    rng = np.random.default_rng(0)
    rows, state = Rows(rng.normal(size=(56, 100)), rng.normal(size=56), NO_KEYS), new_state(100)
    learner.learn(state, rows.X[:45], rows.y[:45])
    [before] = (view.gop for view in state.core.parts().plain.views)
    learned = learned_from(state, rows.part(slice(45, None)), [4, 7])
    slopes = merge(state, learned).core.parts().plain.views[0].gop
    assert (before.shape, slopes.shape) == ((5, 100), (16, 100))
    assert slopes.tolist() == [*learned[0].plain.gops[0].tolist(), *learned[1].plain.gops[0][5:].tolist()]


def test_regressions_that_cannot_be_merged_are_those_of_the_last_shard() -> None:
    unknown, last = LeastSquares(np.zeros((2, 2)), np.zeros(2)), LeastSquares(np.eye(2), np.ones(2))
    overflown = LeastSquares(np.full((2, 2), np.inf), np.zeros(2))
    for base in (unknown, overflown):
        assert merge_least_squares(base, [StateChange(base, base), StateChange(base, last)]).coefficients.tolist() == [
            1.0,
            1.0,
        ]


def test_equal_rows_of_different_shards_are_one_center() -> None:
    past = PASTS[0]
    rows = stream(660, past)
    rows.X[640:660] = rows.X[620:640]  # new rows, which come again in the next shard
    state = after_600_rows(past)
    found = merge(state, learned_from(state, rows.part(slice(600, 660)), [40, 20])).core.parts().plain
    learner.learn(state, rows.X[600:660], rows.y[600:660])
    expected = state.core.parts().plain
    assert found.centers.label_counts.tolist() == expected.centers.label_counts.tolist()
    np.testing.assert_allclose(found.centers.label_sums, expected.centers.label_sums)


def test_rows_that_are_known_at_the_start_count_once() -> None:
    """The last rows before a shard repeat earlier ones, so that they change centers of the state."""
    past = PASTS[0]
    rows = stream(680, past)
    rows.X[610:680] = rows.X[540:610]
    state = after_600_rows(past)
    found = merge(state, learned_from(state, rows.part(slice(600, 680)), [20, 40, 20])).core.parts().plain.centers
    learner.learn(state, rows.X[600:680], rows.y[600:680])
    expected = state.core.parts().plain.centers
    assert found.label_counts.tolist() == expected.label_counts.tolist()
    np.testing.assert_allclose(found.label_sums, expected.label_sums, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.rows, expected.rows, rtol=1e-9, atol=1e-9)


def test_memory_stays_bounded_and_the_newest_rows_are_kept() -> None:
    rows = stream(900, PASTS[1])
    state = after_600_rows(PASTS[1], max_centers=120)
    merged = merge(state, learned_from(state, rows.part(slice(600, 680)), [20, 20, 20, 20]))
    parts = merged.core.parts()
    assert parts.past is not None
    for centers in (parts.plain.centers, parts.past.rounds.centers):
        assert 60 <= len(centers) < 120
        assert centers.rows[-1].tolist()[-3:] == rows.X[679].tolist()


@pytest.mark.parametrize("max_centers", [556, 557])  # a step of shards ends after 555 rows
def test_all_rows_are_learned_if_memory_is_nearly_full_after_a_step(max_centers: int) -> None:
    X = np.random.default_rng(0).normal(size=(700, 2))
    workers = Workers(InlineExecutor(), Sharding(shards=2, exchange=0.1, min_rows=16))
    regressor = MetricRegressor(max_centers, n_jobs=1)
    predictions = regressor.progressive(X, X[:, 0] - X[:, 1], workers=workers)
    assert regressor.n_rounds == 700
    assert np.abs(predictions[200:] - (X[200:, 0] - X[200:, 1])).max() < 1


def test_widths_of_intervals_are_geometric_means() -> None:
    rows = stream(660, PASTS[0])
    state = after_600_rows(PASTS[0])
    learned = learned_from(state, rows.part(slice(600, 660)), [20, 20, 20])
    found = merge(state, learned).core.parts().plain.intervals
    expected = np.exp(np.mean([np.log(each.plain.intervals.widths) for each in learned], axis=0))
    np.testing.assert_allclose(found.widths, expected, rtol=1e-12)
    assert found.rounds == state.core.parts().plain.intervals.rounds + 60


@pytest.mark.parametrize("past", PASTS)
def test_executors_and_numbers_of_tasks_give_the_same_bits(past: Past) -> None:
    rows = stream(800, past)
    found = []
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2) as processes:
        for workers in (
            Workers(InlineExecutor(), QUICK_SHARDING),
            Workers(threads, QUICK_SHARDING),
            Workers(threads, QUICK_SHARDING, tasks=1),
            Workers(processes, QUICK_SHARDING, tasks=2),
        ):
            state = new_state(3, past=past)
            predictions = empty_predictions(len(rows.y), with_intervals=True)
            learn_in_shards(state, rows.X, rows.y, predictions, workers, keys=rows.keys)
            found.append((bits(state), predictions.values.tobytes(), predictions.bounds.tobytes()))
    assert all(each == found[0] for each in found)
    alone = new_state(3, past=past)
    learner.learn(alone, rows.X, rows.y, keys=rows.keys)
    assert bits(alone) != found[0][0]


def test_shards_predict_nearly_as_well_as_one_machine_and_keep_the_coverage() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 3))
    level = np.sin(np.arange(2500) / 200)  # drifts
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + level + 0.1 * rng.normal(size=2500)
    config = MetricConfig(powers=(0.35, 0.7), ridges=(0.01,), validation_points=100)
    alone, sharded = (MetricRegressor(n_jobs=1, config=config) for _ in range(2))
    workers = Workers(InlineExecutor(), Sharding(shards=8, min_rows=8))
    shared, (lower, upper) = sharded.progressive(X, y, coverage=0.9, workers=workers)
    errors = [np.sqrt(np.mean((each - y)[1250:] ** 2)) for each in (alone.progressive(X, y), shared)]
    assert errors[1] < 1.05 * errors[0]
    assert 0.88 < np.mean((lower <= y) & (y <= upper)) < 0.92


def test_steps_cover_all_rows_and_end_with_phases() -> None:
    sharding, clock, end, sizes = Sharding(shards=4, exchange=0.1, min_rows=10), 0, 4, []
    while clock < 50_000:
        step = sharding.next_step(clock, end, 50_000 - clock)
        assert len(step) == 1 or (min(step) >= 10 and clock + sum(step) <= end and sum(step) <= 0.1 * clock + 1)
        assert max(step) - min(step) <= 1
        sizes.append(len(step))
        clock += sum(step)
        while end <= clock:
            end += max(4, end // 2)
    assert clock == 50_000
    assert set(sizes) == {1, 4}


def test_shards_do_not_grow_without_a_bound() -> None:
    sharding = Sharding(shards=3, min_rows=10)
    for clock in (10**4, 10**6, 10**9):
        sizes = sharding.next_step(clock, 2 * clock, 10**12)
        assert len(sizes) == 3
        assert 70 <= max(sizes) <= 80


@given(st.integers(1, 1000), st.integers(1, 50))
def test_split_cuts_rows_evenly(rows: int, shards: int) -> None:
    parts = split(rows, shards)
    assert np.concatenate([np.arange(rows)[part] for part in parts]).tolist() == list(range(rows))
    assert len(parts) == shards
    assert {part.stop - part.start for part in parts} <= {rows // shards, -(-rows // shards)}


def test_a_pool_of_processes_gets_a_reference_and_reads_the_state_once() -> None:
    state = after_600_rows(PASTS[1])
    with share_state(state) as reference:
        first, again = (pickle.loads(pickle.dumps(reference)) for _ in range(2))
        assert first is again
        assert bits(first) == bits(state)
    assert not Path(reference.path).exists()
    with share_state(first) as other:
        assert pickle.loads(pickle.dumps(other)) is not first


def test_a_state_that_cannot_be_written_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ellipack.learners.metric.shared_state.pickle.dump", fail)
    with (
        pytest.raises(WorkerError, match=r"the state can't be written to .* No space left"),
        share_state(after_600_rows(PASTS[0])),
    ):
        pass


class FailingExecutor(InlineExecutor):
    """Fails in the second step."""

    def __init__(self) -> None:
        self.tasks = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self.tasks += 1
        if self.tasks > 3:
            return Future()  # is never done
        return super().submit(fn, *args, **kwargs)


def test_worker_that_hangs_is_reported_and_completed_steps_are_kept() -> None:
    X, y = smooth_stream(1200)
    model = MetricRegressor(n_jobs=1).fit(X[:10], y[:10])
    with pytest.raises(WorkerError, match=r"a worker must learn its rows, which follow row \d+, within timeout = 0.01"):
        model.partial_fit(X[10:], y[10:], workers=Workers(FailingExecutor(), QUICK_SHARDING, timeout=0.01))
    assert 512 < model.state_.clock < 1200


def test_timeout_is_that_of_a_step_not_of_each_of_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    class LateFuture(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            waits.append(timeout)
            now[0] += 4.0
            return super().result(0)

    class LateExecutor(InlineExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
            future = LateFuture()
            future.set_result(fn(*args, **kwargs))
            return future

    now, waits = [100.0], list[float | None]()
    monkeypatch.setattr("ellipack.learners.metric.sharded_learning.monotonic", lambda: now[0])
    state, rows = after_600_rows(PASTS[0]), stream(660, PASTS[0])
    step = rows.part(slice(600, None))
    for timeout, expected in ((10.0, [10.0, 6.0, 2.0]), (5.0, [5.0, 1.0, 0.0]), (None, [None] * 3)):
        waits.clear()
        Workers(LateExecutor(), timeout=timeout).learn_shards(
            state, list(cut_step(state, step, [20, 20, 20])), with_intervals=False
        )
        assert waits == expected


def _end_process(*_: Any, **__: Any) -> None:
    import os  # noqa: PLC0415

    os._exit(1)


def test_process_that_ends_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = smooth_stream(1200)
    monkeypatch.setattr("ellipack.learners.metric.sharded_learning._learn_group", _end_process)
    with ProcessPoolExecutor(1) as executor, pytest.raises(WorkerError, match="has learned 512 rows"):
        MetricRegressor(n_jobs=1).progressive(X, y, workers=Workers(executor, QUICK_SHARDING))


class SlowSharding(Sharding):
    """Starts another thread, and gives it time to learn, before the last step of a phase with several shards."""

    other: Thread

    def next_step(self, clock: int, phase_end: int, rows: int) -> list[int]:
        sizes = super().next_step(clock, phase_end, rows)
        if len(sizes) > 1 and clock + sum(sizes) == phase_end and self.other.ident is None:
            self.other.start()
            self.other.join(0.2)
        return sizes


def test_steps_end_with_the_phase_though_another_thread_learns() -> None:
    X, y = smooth_stream(1220)
    model, sharding = MetricRegressor(n_jobs=1).fit(X[:600], y[:600]), SlowSharding(3, 0.25, 20)
    other = Thread(target=lambda: model.partial_fit(X[1200:], y[1200:]))
    object.__setattr__(sharding, "other", other)
    model.partial_fit(X[600:1200], y[600:1200], workers=Workers(InlineExecutor(), sharding))
    other.join()
    assert model.state_.clock == 1220 < model.state_.phase.end
    assert bits(serialization.from_archive(serialization.to_archive(model.state_), 3)) == bits(model.state_)


def test_rows_beyond_the_end_of_the_phase_are_not_merged() -> None:
    state, rows = after_600_rows(PASTS[0]), stream(800, PASTS[0])
    end = state.phase.end
    assert end < 750
    learned = learned_from(state, rows.part(slice(600, end + 1)), [end + 1 - 600])
    with pytest.raises(RuntimeError, match=f"the phase must end with round {end}, got round {end + 1}"):
        merge(state, learned)


def test_bad_rows_change_nothing() -> None:
    X, y = smooth_stream(1200)
    model = MetricRegressor(n_jobs=1).fit(X[:600], y[:600])
    before = bits(model.state_)
    X[1100, 1] = np.nan
    with pytest.raises(NonFiniteError, match="row 500"):
        model.partial_fit(X[600:], y[600:], workers=Workers(InlineExecutor(), QUICK_SHARDING))
    assert bits(model.state_) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sharding(shards=0), "shards must be"),
        (lambda: Sharding(exchange=0.0), "exchange must be"),
        (lambda: Sharding(min_rows=0), "min_rows must be"),
        (lambda: Workers(InlineExecutor(), tasks=0), "tasks must be"),
        (lambda: Workers(InlineExecutor(), timeout=-1.0), "timeout must be"),
    ],
)
def test_numbers_out_of_range_are_rejected(make: Any, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        make()


def test_objects_of_other_types_are_rejected() -> None:
    with pytest.raises(InputError, match="executor must have a method submit"):
        Workers("two")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="sharding must be a Sharding"):
        Workers(InlineExecutor(), 8)  # type: ignore[arg-type]
