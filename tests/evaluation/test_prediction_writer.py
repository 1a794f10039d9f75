import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from ellipack.errors import InputError, StreamError
from ellipack.evaluation import prediction_writer
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


SPECIAL = ["", " ", '"', '""', ",", "\n", "\r\n", 'a\n"b', "\ufeff", "\x00", "\x85\u2028", "NA", "null", "1", "é€😀"]
texts = st.none() | st.sampled_from(SPECIAL) | st.text(max_size=5)
whole_numbers = st.integers(-(2**63), 2**63 - 1)
kept_rows = st.lists(st.tuples(whole_numbers, texts, texts, st.floats(), st.floats()), max_size=30)


@given(kept_rows, st.integers(1, 10), st.sampled_from(["id", 'a "name",\nin quotes']))
def test_parquet_has_the_rows_that_were_written(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, str | None, str | None, float, float]],
    group_rows: int,
    name: str,
) -> None:
    path = tmp_path_factory.mktemp("rows") / "p.parquet"
    numbers, ids, notes = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    predictions, labels = [row[3] for row in rows], [row[4] for row in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prediction_writer, "_GROUP_ROWS", group_rows)
        output = open_prediction_writer(str(path), LABELED_COLUMNS, keep=(name, "note"))
        output.write(np.array(numbers, np.int64), np.array(predictions), np.array(labels), kept=[ids, notes])
        position = output.sync()
        output.finish()
        output.close()
        content = path.read_bytes()
        resumed = open_prediction_writer(str(path), LABELED_COLUMNS, position, keep=(name, "note"))
        assert resumed.sync() == position  # the rows were read back to the same bytes
        resumed.finish()
        resumed.close()
    assert path.read_bytes() == content
    table = parquet.read_table(path)
    assert table.schema.names == ["row", name, "note", *LABELED_COLUMNS]
    assert table.schema.types == [pa.int64(), pa.string(), pa.string(), pa.float64(), pa.float64()]
    assert [table[i].to_pylist() for i in range(3)] == [numbers, ids, notes]
    for column, values in [("prediction", predictions), ("label", labels)]:
        # repr tells -0.0 from 0.0
        expected = [None if np.isnan(value) else repr(value) for value in values]
        assert [None if value is None else repr(value) for value in table[column].to_pylist()] == expected


@pytest.mark.skipif(sys.platform != "linux", reason="lists threads in /proc")
def test_conversion_to_parquet_starts_no_threads(tmp_path: Path) -> None:
    """Calls of Arrow that wait for a thread may wait for ever if memory runs out."""
    script = """if True:
        import os, sys
        import numpy as np, pyarrow as pa
        from ellipack.evaluation.prediction_writer import open_prediction_writer
        pa.array(["imports pandas"])
        before = os.listdir("/proc/self/task")
        position = None
        for _ in range(2):  # the second time, rows are read back from Parquet
            output = open_prediction_writer(sys.argv[1], ("prediction",), position, keep=("id",))
            output.write(np.arange(2), np.array([0.5, np.nan]), kept=[["a", 'b"']])
            position = output.sync()
            output.finish()
            output.close()
        assert os.listdir("/proc/self/task") == before
    """
    subprocess.run([sys.executable, "-c", script, tmp_path / "p.parquet"], check=True)


def test_parquet_has_no_dictionaries(tmp_path: Path) -> None:
    """Arrow may write a wrong value without an error if a dictionary gets no memory."""
    output = open_prediction_writer(str(tmp_path / "p.parquet"), UNLABELED_COLUMNS, keep=("id",))
    output.write(np.arange(3), np.ones(3), kept=[["a", "a", "a"]])
    output.finish()
    output.close()
    group = parquet.read_metadata(tmp_path / "p.parquet").row_group(0)
    assert not any(group.column(i).has_dictionary_page for i in range(group.num_columns))


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
    for name in ("p.csv.gz", "p.xlsx", "p.ndjson", "p.txt"):
        with pytest.raises(InputError, match=f"uncompressed .csv or .parquet file, .*, got '{name}'"):
            open_prediction_writer(name, LABELED_COLUMNS)
    with pytest.raises(StreamError, match="No such file or directory"):
        open_prediction_writer(str(tmp_path / "no" / "p.csv"), LABELED_COLUMNS)


@pytest.mark.parametrize("name", ["p", "p.CSV", "p.PARQUET", "p.pq", "over.time/p", "pipe.ndjson"])
def test_paths_with_and_without_extensions(name: str, tmp_path: Path) -> None:
    (tmp_path / "over.time").mkdir()
    (tmp_path / "pipe.ndjson").symlink_to(os.devnull)  # no file
    output = open_prediction_writer(str(tmp_path / name), UNLABELED_COLUMNS)
    output.finish()
    output.close()
    if name in ("p.PARQUET", "p.pq"):
        assert parquet.read_table(tmp_path / name).column_names == ["row", "prediction"]
    elif name != "pipe.ndjson":
        assert (tmp_path / name).read_text() == "row,prediction\n"


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


def test_conversion_without_memory_is_a_memory_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("I/O operation on closed file")  # of Arrow about an open file

    output = open_prediction_writer(str(tmp_path / "p.parquet"), LABELED_COLUMNS)
    output.write(*random_rows(3))
    with monkeypatch.context() as patch:
        patch.setattr(parquet, "ParquetWriter", fail)
        with pytest.raises(MemoryError):
            output.finish()
    output.finish()
    output.close()
    assert len(parquet.read_table(tmp_path / "p.parquet")) == 3
