"""The benchmark of MetricRegressor on tiny streams."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks.command_line import at_least, at_most, targets_table
from benchmarks.metric import accuracy, cost, many_features, memory
from benchmarks.metric.__main__ import Score, error_targets, errors_table, parse, score
from benchmarks.metric.accuracy import BATCH_PEERS, STREAMING_PEERS, best_error, read_peers
from benchmarks.streams import Stream, late_nrmse, low_rank_stream, noise_stream, read_folder, read_stream
from ellipack import MetricRegressor

TABLE = """Some text.

| stream | KNN | AMF | CatBoost | ignored |
|---|---|---|---:|---|
| one | 0.5 | 0.4 | 0.3 | 0.001 |
| two | 0.8 | none | - | 0.001 |

| stream | KNN |
|---|---|
| three | 0.1 |
"""
TEXT = "a,b,y\n1,2,3\n4,5,6.5\n"


def shown(thing: object) -> str:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(thing)
    return captured.get()


def tiny(rows: int = 120) -> Stream:
    return low_rank_stream(8, 3, rows)


def test_reads_plain_and_compressed_files(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text(TEXT)
    with gzip.open(tmp_path / "one.csv.gz", "wt") as file:
        file.write(TEXT)
    (tmp_path / "text.md").write_text("no stream")
    streams = read_folder(tmp_path)
    assert [stream.name for stream in streams] == ["one", "two"]
    for stream in streams:
        np.testing.assert_array_equal(stream.X, [[1.0, 2.0], [4.0, 5.0]])
        np.testing.assert_array_equal(stream.y, [3.0, 6.5])
        assert len(stream.head(1).y) == 1
        assert len(stream.head(None).y) == 2


def test_files_that_are_not_streams_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must contain files"):
        read_folder(tmp_path)
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="must be y, got a,b"):
        read_stream(path)


def test_late_nrmse_by_hand() -> None:
    y = np.array([100.0, 7.0, 1.0, 3.0])
    # Errors 1 and 1 over a deviation of 1; the first half does not count.
    assert late_nrmse(np.array([0.0, 0.0, 2.0, 2.0]), y) == pytest.approx(1.0)
    assert late_nrmse(np.array([0.0, 0.0, 1.0, 3.0]), y) == 0.0


@pytest.mark.parametrize("ending", ["md", "csv"])
def test_reads_peers(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"peers.{ending}"
    rows = [line.strip("|").replace("|", ",") for line in TABLE.splitlines() if line.startswith("| ")]
    path.write_text(TABLE if ending == "md" else "\n".join(rows[:3]), encoding="utf-8")
    peers = read_peers(path)
    assert set(peers) == {"one", "two"}
    assert best_error(peers["one"], STREAMING_PEERS) == 0.4
    assert best_error(peers["one"], BATCH_PEERS) == 0.3
    assert best_error(peers["two"], STREAMING_PEERS) == 0.8
    assert np.isnan(best_error(peers["two"], BATCH_PEERS))


def test_files_without_a_table_of_peers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.md"
    path.write_text("none\n")
    with pytest.raises(ValueError, match="must contain a table"):
        read_peers(path)


def test_errors_table_and_targets() -> None:
    scored = score(tiny(), 1, {"KNN": 1e9})
    text = shown(errors_table([scored], 1))
    assert "120" in text
    assert f"{scored.error:.4f}" in text
    targets = list(error_targets([scored]))
    assert all(target.reached for target in targets)
    assert len(targets) == 2  # no batch model among the peers
    assert not list(error_targets([score(tiny(), 1, {})]))


def test_geometric_means_by_hand() -> None:
    scores = [Score(tiny(), 1.0, 1.0, over, over) for over in (0.1, 1.6)]
    assert [target.value for target in error_targets(scores)] == ["0.4", "1.6", "0.4"]
    assert [target.reached for target in error_targets(scores)] == [True, False, True]


def test_targets_table() -> None:
    text = shown(targets_table([at_most("one", 1.0, 2.0, " s"), at_least("other", 1.0, 2.0)], "Targets"))
    assert "reached" in text
    assert "missed" in text
    assert "at most 2 s" in text


def test_growth_of_cost() -> None:
    growth = cost.measure_growth(early=150, late=400, single=30)
    assert growth.n_centers == 400
    assert 0 <= growth.degrees <= 90
    targets = cost.targets(growth)
    assert len(targets) == 7
    early = growth.costs[0]
    assert targets[2].value == f"{early.row_by_row / early.within_phase:.3g}"
    text = "".join(map(shown, cost.cost_tables(growth)))
    assert "one row per call" in text
    assert "median" in text
    assert "nan" not in text


def test_noise_against_the_running_mean() -> None:
    first = next(iter(accuracy.noise_targets(rows=200)))
    assert "d = 2" in first.name
    stream = noise_stream(2, 200)
    means = [0.0, *(np.cumsum(stream.y) / np.arange(1, 201))[:-1]]
    error = late_nrmse(MetricRegressor().progressive(stream.X, stream.y), stream.y)
    assert first.value == f"{100 * (error / late_nrmse(np.array(means), stream.y) - 1):.3g} %"


def test_latest_keeps_the_latest_rows() -> None:
    stream = tiny(100)
    learner = MetricRegressor(1000).fit(stream.X, stream.y)
    memory.keep_latest(learner.state_, 40)
    assert learner.n_centers_ == 40
    np.testing.assert_array_equal(learner.state_.core.parts().plain.centers.rows, stream.X[60:])
    learner.partial_fit(stream.X + 1, stream.y)
    assert learner.n_centers_ == 140
    assert memory.error_of_latest(stream, 200, 1) == memory.error_with_eviction(
        stream, 200, 1
    )  # below the limit both are the same learner


def test_errors_with_a_limit_on_centers() -> None:
    errors = {"tiny": memory.compare(tiny(200))}
    assert [divisor for divisor, _, _ in errors["tiny"]] == [1, *memory.DIVISORS]
    assert all(np.isfinite(error) for error in itertools.chain.from_iterable(errors["tiny"]))
    assert "1/8" in shown(memory.errors_table(errors))
    assert len(memory.targets(errors)) == 1


def test_options() -> None:
    options = parse(["--data", "folder", "--rows", "5"])
    assert (options.data, options.rows, options.views, options.amf) == (Path("folder"), 5, 1, 5000)


def test_cost_with_many_features() -> None:
    result = many_features.measure_many_features((2, 50), 60, (45,), 10)
    assert min(result.costs) > 0
    assert len(result.slowest) == 3
    assert all(1 <= row.number <= 10 for row in result.slowest)
    assert [target.value for target in many_features.targets(result)] == [
        f"{result.costs[1] / result.costs[0]:.3g}",
        f"{max(row.seconds for row in result.slowest):.3g} s",
    ]
    assert all(text in shown(many_features.cost_table(result)) for text in ("us per round", "50", "45"))


def test_slowest_rows_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    many_features.main(["--features", "3", "45", "--rows", "9"])
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("slowest row", "45", "ratio to the limit"))
