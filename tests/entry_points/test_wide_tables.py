"""Tables with more columns than a learner accepts end with an error, before their rows are learned."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ellipack import MetricRegressor, TableRegressor
from ellipack import river as models
from ellipack.cli.options import Options
from ellipack.cli.resume import open_stream
from ellipack.errors import DomainError
from ellipack.tabular import LevelOptions, TableBatch, TableEncoder
from ellipack.tabular.column_building import ColumnOptions, _select_columns
from tests.cli.runner import CliRunner

MESSAGE = "MetricRegressor learns from at most 5000 features, got {} .* drop columns, or hash them into fewer"


def write_table(folder: Path, width: int) -> Path:
    names, row = [f"column {i}" for i in range(width)], ["0.5"] * width
    path = folder / "wide.csv"
    path.write_text(",".join([*names, "y"]) + "\n" + (",".join([*row, "1"]) + "\n") * 2)
    return path


@pytest.mark.parametrize("width", [5_001, 20_000])
def test_the_command_names_the_limit_and_writes_nothing(width: int, cli: CliRunner, tmp_path: Path) -> None:
    write_table(tmp_path, width)
    (tmp_path / "old.csv").write_text("kept")
    done = cli("run", "wide.csv", "--target", "y", "--save", "model", "--predictions", "old.csv", folder=tmp_path)
    assert done.code == 2
    assert f"at most 5000 features, got {width} " in done.err
    assert "drop columns" in done.err
    assert not (tmp_path / "model").exists()
    assert (tmp_path / "old.csv").read_text() == "kept"


def test_a_table_in_memory_is_refused_before_its_columns_are_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableEncoder, "from_head", None)  # which takes a minute for 100,000 columns
    table = pa.table({f"column {i}": [0.5, 1.5] for i in range(5_002)})
    with pytest.raises(DomainError, match=MESSAGE.format(5_001)):
        TableRegressor("column 7").fit(table)


def test_columns_that_are_not_used_do_not_count(cli: CliRunner, tmp_path: Path) -> None:
    write_table(tmp_path, 12_000)
    done = cli("run", "wide.csv", "--target", "y", "--take", "column 7", folder=tmp_path)
    assert done.code == 0, done.err


@pytest.mark.parametrize(("width", "rows"), [(3, 1024), (1999, 10), (20_000, 1)])
def test_batches_have_fewer_rows_if_there_are_many_columns(width: int, rows: int, tmp_path: Path) -> None:
    with open_stream(Options(table=str(write_table(tmp_path, width)), target="y")) as source:
        assert source.batch_rows == rows


def test_columns_of_a_wide_table_are_selected() -> None:
    names = [f"column {i}" for i in range(100_000)]
    head = TableBatch.from_table(pa.record_batch([pa.nulls(1)] * len(names), names=names))
    options = ColumnOptions(None, names[1:3], {}, LevelOptions())
    assert _select_columns(head, names[0], options) == names[3:]


@pytest.mark.parametrize("width", [5_001, 50_000])
def test_estimators_refuse_wide_rows_and_stay_unfitted(width: int) -> None:
    estimator = MetricRegressor()
    with pytest.raises(DomainError, match=MESSAGE.format(width)):
        estimator.partial_fit(np.zeros((2, width)), [0.0, 1.0])
    assert not hasattr(estimator, "state_")
    model = models.MetricRegressor()
    with pytest.raises(DomainError, match=MESSAGE.format(width)):
        model.learn_one({str(i): 1.0 for i in range(width)}, 1.0)
    model.learn_one({"a": 1.0}, 1.0)
    with pytest.raises(DomainError, match=MESSAGE.format(width + 1)):
        model.learn_one({str(i): 1.0 for i in range(width)}, 1.0)
    assert model.feature_names == ["a"]
