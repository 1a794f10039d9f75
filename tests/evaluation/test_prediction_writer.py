from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from ellipack.errors import InputError, StreamError
from ellipack.evaluation.append_only_file import OutputPosition
from ellipack.evaluation.prediction_writer import (
    LABELED_COLUMNS,
    UNLABELED_COLUMNS,
    holds_predictions,
    open_prediction_writer,
)
from ellipack.validation import Floats, Ints
from tests.strategies import seeds


def random_rows(rows: int, seed: int = 0) -> tuple[Ints, Floats, Floats]:
    rng = np.random.default_rng(seed)
    return np.arange(1, rows + 1), rng.normal(size=rows), 1e300 * rng.normal(size=rows)


def write_uninterrupted(path: Path, rows: int, seed: int = 0) -> bytes:
    """Write all rows without interruption; return the contents of the file."""
    output = open_prediction_writer(str(path), LABELED_COLUMNS)
    output.write(*random_rows(rows, seed))
    output.finish()
    output.close()
    return path.read_bytes()


@given(seeds, st.sampled_from(["p.csv", "p.parquet"]), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3))))
def test_interruptions_do_not_change_the_file(
    tmp_path_factory: pytest.TempPathFactory, seed: int, name: str, interruptions: list[tuple[int, int]]
) -> None:
    """Each interrupted run syncs some rows, then either finishes the file or writes rows that are lost."""
    folder = tmp_path_factory.mktemp("interruptions")
    path, position, done, rows = folder / name, OutputPosition(), 0, 40
    numbers, predictions, labels = random_rows(rows, seed)

    def part(start: int, stop: int) -> tuple[Ints, Floats, Floats]:
        return numbers[start:stop], predictions[start:stop], labels[start:stop]

    for i, (synced, lost) in enumerate(interruptions):
        output = open_prediction_writer(str(path), LABELED_COLUMNS, position)
        stop = min(rows, done + synced)
        output.write(*part(done, stop))
        position, done = output.sync(), stop
        if i % 3 == 2:
            output.finish()
        else:
            output.write(*part(done, min(rows, done + lost)))
        output.close()
    output = open_prediction_writer(str(path), LABELED_COLUMNS, position)
    output.write(*part(done, rows))
    output.finish()
    output.close()
    assert path.read_bytes() == write_uninterrupted(folder / f"whole.{name}", rows, seed)
    assert not list(folder.glob(".*"))


def test_floats_are_written_exactly(tmp_path: Path) -> None:
    write_uninterrupted(tmp_path / "p.csv", 20)
    read = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(read, np.column_stack(random_rows(20)))
    write_uninterrupted(tmp_path / "p.parquet", 20)
    table = parquet.read_table(tmp_path / "p.parquet")
    np.testing.assert_array_equal(np.column_stack([table[name].to_numpy() for name in table.column_names]), read)


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_no_rows_give_an_empty_table(name: str, tmp_path: Path) -> None:
    output = open_prediction_writer(str(tmp_path / name), UNLABELED_COLUMNS)
    output.finish()
    output.close()
    if name == "p.csv":
        assert (tmp_path / name).read_text() == "row,prediction\n"
    else:
        assert parquet.read_table(tmp_path / name).to_pydict() == {"row": [], "prediction": []}


def test_parquet_file_is_replaced_atomically(tmp_path: Path) -> None:
    before = write_uninterrupted(tmp_path / "p.parquet", 5)
    output = open_prediction_writer(str(tmp_path / "p.parquet"), LABELED_COLUMNS)
    output.write(*random_rows(30))
    assert (tmp_path / "p.parquet").read_bytes() == before
    output.close()  # without sync
    assert (tmp_path / "p.parquet").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["p.parquet"]


@pytest.mark.parametrize("position", [OutputPosition(10, 0), OutputPosition(10**6, 5)])
@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_unexpected_contents_raise_and_are_left_unchanged(name: str, position: OutputPosition, tmp_path: Path) -> None:
    before = write_uninterrupted(tmp_path / name, 50)
    with pytest.raises(StreamError, match=f"must begin with the {position.size:,} bytes of predictions"):
        open_prediction_writer(str(tmp_path / name), LABELED_COLUMNS, position)
    assert (tmp_path / name).read_bytes() == before


def test_invalid_paths_raise(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"uncompressed .csv or .parquet file, got 'p\.csv\.gz'"):
        open_prediction_writer("p.csv.gz", LABELED_COLUMNS)
    with pytest.raises(StreamError, match="No such file or directory"):
        open_prediction_writer(str(tmp_path / "no" / "p.csv"), LABELED_COLUMNS)


def test_no_path_discards_predictions() -> None:
    output = open_prediction_writer(None, LABELED_COLUMNS)
    output.write(*random_rows(3))
    assert output.sync() == OutputPosition()
    output.finish()
    output.close()


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowMemoryError("malloc of size 64 failed"),
        OSError("Couldn't deserialize thrift: std::bad_alloc\n"),
        ValueError("I/O operation on closed file"),
    ],
)
def test_parquet_predictions_without_memory_are_not_taken_for_other_files(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    path = tmp_path / "p.parquet"
    content = write_uninterrupted(path, 5)
    monkeypatch.setattr(parquet, "read_metadata", fail)
    monkeypatch.setattr(parquet, "ParquetFile", fail)
    with pytest.raises(MemoryError):
        holds_predictions(str(path), OutputPosition(10, 0))
    with pytest.raises(MemoryError):
        open_prediction_writer(str(path), LABELED_COLUMNS, OutputPosition(10, 0))
    assert path.read_bytes() == content
