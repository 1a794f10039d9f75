from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack import MetricRegressor, serialization
from ellipack.errors import ModelFileError, StreamError
from ellipack.estimators.loading import RUN_KIND
from ellipack.evaluation.append_only_file import OutputPosition
from ellipack.evaluation.run import Run, load_run
from ellipack.tabular import BadRow, TableBatch, TableEncoder
from ellipack.tabular.arrow import pa
from ellipack.validation import Floats
from tests.fuzz.strategies import n_examples

ROWS = 90


def table() -> pa.Table:
    """Return a table in which features are added for frequent categories and missing values."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=ROWS)
    return pa.table(
        {
            "x": [None if t in (40, 77) else value for t, value in enumerate(x.tolist())],
            "sky": rng.choice(["clear", "rain", "snow"], ROWS).tolist(),
            "y": (2 * np.nan_to_num(x) + 1).tolist(),
        }
    )


def new_run(target: str = "y") -> Run:
    return Run(MetricRegressor(n_jobs=1), TableEncoder.from_head(TableBatch.from_table(table()), target), "sky.csv")


def learn_batches(run: Run, cuts: list[int], path: Path | None = None) -> tuple[Run, Floats]:
    """Run over the table in batches; if a path is given, save and load the run before each batch."""
    predictions = []
    edges = sorted({0, ROWS, *cuts})
    for start, stop in pairwise(edges):
        if path is not None:
            run.save(path)
            run = load_run(path)
        batch = TableBatch.from_table(table().slice(start, stop - start), "sky.csv", start + 1)
        predictions.append(run.learn_batch(batch).predictions)
    return run, np.concatenate(predictions)


@settings(max_examples=n_examples(10))
@given(st.lists(st.integers(1, ROWS - 1), max_size=5), st.booleans())
def test_results_do_not_depend_on_batching_or_saving(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], is_saved: bool
) -> None:
    folder = tmp_path_factory.mktemp("run")
    whole, expected = learn_batches(new_run(), [])
    parts, got = learn_batches(new_run(), cuts, folder / "between" if is_saved else None)
    np.testing.assert_array_equal(got, expected)
    whole.save(folder / "whole")
    parts.save(folder / "parts")
    assert (folder / "whole").read_bytes() == (folder / "parts").read_bytes()


def test_state_is_saved(tmp_path: Path) -> None:
    run, _ = learn_batches(new_run(), [])
    run.skipped, run.output_position = 3, OutputPosition(1234, 2**32 - 1)
    run.save(tmp_path / "model")
    again = load_run(tmp_path / "model")
    assert (again.source, again.position, again.skipped) == ("sky.csv", ROWS, 3)
    assert again.output_position == run.output_position
    assert again.encoder.feature_names == run.encoder.feature_names
    assert again.row_offset == 0


def test_row_offset_shifts_row_numbers() -> None:
    run = new_run()
    run.row_offset = 1000
    result = run.learn_batch(TableBatch.from_table(table().slice(0, 10)))
    assert result.row_numbers.tolist() == list(range(1001, 1011))
    assert run.position == 1010


def test_bad_row_raises_without_effect_or_is_skipped(tmp_path: Path) -> None:
    run, _ = learn_batches(new_run(), [])
    run.save(tmp_path / "before")
    bad = pa.table({"x": ["1", "far", "2"], "sky": ["rain"] * 3, "y": ["1", "2", "bad"]})
    with pytest.raises(StreamError, match="row 92, column 'x': 'far' is not a number"):
        run.learn_batch(TableBatch.from_table(bad, "sky.csv", ROWS + 1))
    run.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    batch = TableBatch.from_table(bad, "sky.csv", ROWS + 1)
    unreadable = TableBatch(batch.table, batch.row_numbers, batch.source, (BadRow(ROWS + 4, "cut short"),))
    result = run.learn_batch(unreadable, "skip")
    assert result.row_numbers.tolist() == [ROWS + 1]
    assert [row.row_number for row in result.bad_rows] == [ROWS + 2, ROWS + 3, ROWS + 4]
    assert (run.position, run.skipped, run.scores.n_rows) == (ROWS + 4, 3, ROWS + 1)


def test_invalid_run_files_raise(tmp_path: Path) -> None:
    run, _ = learn_batches(new_run(), [])
    run.learner.save(tmp_path / "learner")
    with pytest.raises(ModelFileError, match="learner holds a MetricRegressor and not a run"):
        load_run(tmp_path / "learner")
    run.save(tmp_path / "model")
    _, archive = serialization.read(tmp_path / "model")
    for change, message in (
        ({"position": -1}, "position must be from 0"),
        ({"output_position": {"size": 0}}, "output_position/checksum must be an integer, got nothing"),
        ({"source": 3}, "source must be a string, got 3"),
        ({"encoder": new_run().encoder.to_dict()}, "the number of features must match that of the encoder"),
    ):
        changed = serialization.Archive({**archive.facts, **change}, archive.arrays)
        serialization.write(tmp_path / "changed", RUN_KIND, changed)
        with pytest.raises(ModelFileError, match=f"changed: {message}"):
            load_run(tmp_path / "changed")
