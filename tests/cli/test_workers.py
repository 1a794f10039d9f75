from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from distributed import LocalCluster

from ellipack.evaluation.worker_batches import worker_batches
from ellipack.tabular import open_table
from tests.cli.runner import CliRunner

ROWS = 4_200  # the first step with two shards begins after 2,296
RUN = "run", "t.csv", "--target", "y", "--no-past", "--predictions", "p.csv", "--shard-rows", "64"
SAVED = "--save", "m", "--resume", "m", "--save-every", "1000"


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Start two workers in threads of this process, and return the address of their scheduler."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


def write_table(folder: Path, rows: int = ROWS) -> None:
    X = np.random.default_rng(0).normal(size=(rows, 2))
    table = np.column_stack([X, np.sin(X[:, 0])])
    np.savetxt(folder / "t.csv", table, "%.4g", ",", header="a,b,y", comments="")


@pytest.fixture(scope="module")
def whole(scheduler: str, cli: CliRunner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table that two workers learned in one run."""
    folder = tmp_path_factory.mktemp("whole")
    write_table(folder)
    result = cli(*RUN, *SAVED, "--scheduler", scheduler, folder=folder)
    assert result.code == 0
    assert result.err.startswith("ellipack: 2 workers; 8 shards of rows are learned at the same time\n")
    return folder


def test_result_does_not_depend_on_the_workers_but_on_the_shards(
    whole: Path, scheduler: str, cli: CliRunner, tmp_path: Path
) -> None:
    write_table(tmp_path)
    assert cli(*RUN, *SAVED, "--workers", "1", folder=tmp_path).code == 0
    assert (tmp_path / "p.csv").read_bytes() == (whole / "p.csv").read_bytes()
    assert (tmp_path / "m").read_bytes() == (whole / "m").read_bytes()
    assert cli(*RUN, "--scheduler", scheduler, "--shards", "1", folder=tmp_path).code == 0
    alone, together = (np.loadtxt(each / "p.csv", delimiter=",", skiprows=1) for each in (tmp_path, whole))
    assert np.array_equal(alone[:2296], together[:2296])
    assert not np.array_equal(alone, together)
    assert np.allclose(alone[:, 1], together[:, 1], atol=0.05)


def test_killed_run_ends_with_the_same_bytes_when_the_command_is_repeated(
    whole: Path, scheduler: str, cli: CliRunner, tmp_path: Path
) -> None:
    write_table(tmp_path)
    command = *RUN, *SAVED, "--scheduler", scheduler

    def wait(is_running: Callable[[], bool]) -> None:
        while is_running() and not ((tmp_path / "m").exists() and (tmp_path / "p.csv").stat().st_size > 60_000):
            sleep(0.01)

    assert cli.run_and_kill(*command, folder=tmp_path, wait=wait) == -9
    assert cli(*command, folder=tmp_path).code == 0
    assert (tmp_path / "p.csv").read_bytes() == (whole / "p.csv").read_bytes()
    assert (tmp_path / "m").read_bytes() == (whole / "m").read_bytes()


def test_batches_follow_from_the_rows_before_them(tmp_path: Path) -> None:
    write_table(tmp_path, 12_000)
    path = str(tmp_path / "t.csv")
    batches = [(batch.last_row - len(batch), len(batch)) for batch in worker_batches(open_table(path), shards=2)]
    assert [size for _, size in batches[:5]] == [1024] * 5
    assert max(size for _, size in batches) == 2000
    for start, size in batches[1::2]:
        later = next(worker_batches(open_table(path, skip_rows=start), shards=2))
        assert (later.last_row - len(later), len(later)) == (start, size)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", "2", "--scheduler", "tcp://127.0.0.1:1"), "can't both be given"),
        (("--workers", "2", "--learner", "packing"), "need --learner metric, got packing"),
        (("--workers", "0"), "0 is not in the range 1<=x<=512"),
        (("--workers", "513"), "513 is not in the range 1<=x<=512"),
        (("--workers", str(10**30)), "is not in the range 1<=x<=512"),
        (("--scheduler", "nowhere"), "no scheduler answers at nowhere"),
    ],
)
def test_options_that_are_not_valid(options: tuple[str, ...], message: str, cli: CliRunner, tmp_path: Path) -> None:
    write_table(tmp_path)
    result = cli(*RUN, *options, folder=tmp_path)
    assert result.code in (1, 2)
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "p.csv").exists()


def test_standard_input_has_no_workers(cli: CliRunner, tmp_path: Path) -> None:
    result = cli("run", "-", "--target", "y", "--workers", "2", folder=tmp_path, stdin="a,y\n1,2\n")
    assert (result.code, result.out) == (2, "")
    assert "need files" in result.err
