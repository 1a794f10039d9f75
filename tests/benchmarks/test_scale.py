import pytest

from benchmarks import scale
from benchmarks.streams import low_rank_stream
from benchmarks.worker_speed import measure_speeds, speed_table
from ellipack import MetricRegressor, Sharding
from ellipack.learners.metric.row_checks import Rows

COSTS = scale.Costs(
    centers=100_000,
    round=6e-5,
    transfer=0.1,
    start=0.3,
    merge=0.2,
    phase_end=0.2,
    state_bytes=40_000_000,
    learned_bytes=600_000,
)


def test_model_of_one_worker_has_rounds_and_ends_of_phases_only() -> None:
    one = scale.model_time(COSTS, 1, rows=1_000_000)
    assert one.rounds == pytest.approx(60.0)
    assert one.starts == one.transport == 0
    assert one.total == pytest.approx(one.rounds + one.merges)


def test_model_says_where_more_workers_do_not_help() -> None:
    times = [scale.model_time(COSTS, workers).total for workers in (1, 2, 8, 64)]
    assert times[0] / 2 < times[1] < times[0]
    assert times[2] < times[1]
    free = COSTS._replace(transfer=0.0, start=0.0, merge=0.0, phase_end=0.0, state_bytes=0, learned_bytes=0)
    assert scale.model_time(free, 64).total < times[3]


def test_costs_are_measured() -> None:
    costs = scale.measure_costs(low_rank_stream(3, 1, 900), 700)
    assert costs.centers == 700
    assert min(costs.round, costs.transfer, costs.merge, costs.phase_end) > 0
    assert costs.state_bytes > costs.learned_bytes > 0


def test_two_processes_are_compared_with_one_and_with_their_limit() -> None:
    stream = low_rank_stream(3, 1, 700)
    state = MetricRegressor(n_jobs=1, past=False).fit(stream.X[:600], stream.y[:600]).state_
    rows, sharding = Rows(stream.X[600:680], stream.y[600:680]), Sharding(2, min_rows=16)
    speeds = measure_speeds(state, rows, sharding, repeats=1)
    assert min(speed.seconds for speed in speeds) > 0
    assert state.clock == 600
    names, _, relative, *_ = (list(column.cells) for column in speed_table(speeds, 80, sharding).columns)
    assert names == ["1", "2, one learner", "2, two learners"]
    assert relative[0] == "1.00"
