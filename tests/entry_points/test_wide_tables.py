"""Tables with more columns than a learner accepts end with an error, before their rows are learned."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ellipack import (
    GradientOuterProduct,
    IntrinsicDimensionRegressor,
    LocallyAdaptiveRegressor,
    LocalSlopes,
    Metric,
    MetricRegressor,
    PackingClassifier,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
    TableRegressor,
)
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


@contextmanager
def little_memory(most: int = 2**24) -> Iterator[None]:
    """Check that a block allocates at most 16 MB at a time; a matrix of 5,001 features has 200 MB."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


PAPER: list[Callable[[], Any]] = [
    PackingRegressor,
    PhasedRegressor,
    LocallyAdaptiveRegressor,
    IntrinsicDimensionRegressor,
    PackingClassifier,
    lambda: RescaledRegressor(PackingRegressor()),
    lambda: GradientOuterProduct(LocalSlopes()),
    lambda: GradientOuterProduct(diagonal=True),
]


@pytest.mark.parametrize("make", PAPER)
def test_learners_of_the_paper_refuse_wide_rows_before_they_allocate_a_matrix(make: Callable[[], Any]) -> None:
    learner, X = make(), np.zeros((2, 5_001))
    with little_memory(), pytest.raises(DomainError, match=r"learns from at most \d+ features, got 5001 .*: drop col"):
        learner.fit(X, [0, 1])
    assert not hasattr(learner, "state_")


@pytest.mark.parametrize("make", PAPER[:6])
def test_learners_of_the_paper_refuse_too_many_added_features(make: Callable[[], Any]) -> None:
    learner = make().fit(np.zeros((2, 2)), [0, 1])
    with little_memory(), pytest.raises(DomainError, match=r"learns from at most \d+ features, got 5001 "):
        learner.add_features(np.ones(4_999))
    assert learner.n_features_in_ == 2


@pytest.mark.parametrize(
    "make",
    [
        models.PackingRegressor,
        models.PhasedRegressor,
        models.LocallyAdaptiveRegressor,
        models.IntrinsicDimensionRegressor,
        models.PackingClassifier,
    ],
)
def test_models_of_river_refuse_wide_rows(make: Callable[[], Any]) -> None:
    wide = {str(i): 1.0 for i in range(5_001)}
    for known in ({}, {"a": 1.0}):
        model = make()
        for _ in known:
            model.learn_one(known, 1)
        with little_memory(), pytest.raises(DomainError, match=r"learns from at most \d+ features, got 500[12] "):
            model.learn_one(wide, 1)
        assert model._fitted[0].width == 1


@pytest.mark.parametrize(
    "make",
    [lambda: Metric.identity(50_000), lambda: Metric.from_diagonal(np.ones(5_001)), lambda: Metric.identity(10**9)],
)
def test_a_metric_of_too_many_features_is_refused(make: Callable[[], Metric]) -> None:
    with little_memory(), pytest.raises(DomainError, match="a learner with a metric learns from at most 5000 features"):
        make()


def test_tables_are_refused_for_wrapped_learners_before_their_columns_are_inferred(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TableEncoder, "from_head", None)
    table = pa.table({f"column {i}": [0.5, 1.5] for i in range(1_002)})
    with pytest.raises(DomainError, match="PhasedRegressor learns from at most 1000 features, got 1001 "):
        TableRegressor("column 7", learner=RescaledRegressor(PhasedRegressor())).fit(table)


@pytest.mark.parametrize(
    ("learner", "message"),
    [("packing", "PackingRegressor learns from at most 5000"), ("phased", "PhasedRegressor learns from at most 1000")],
)
def test_the_command_refuses_wide_tables_for_other_learners(
    learner: str, message: str, cli: CliRunner, tmp_path: Path
) -> None:
    write_table(tmp_path, 20_000)
    done = cli("run", "wide.csv", "--target", "y", "--learner", learner, "--save", "model", folder=tmp_path)
    assert done.code == 2
    assert f"{message} features, got 20000 " in done.err
    assert not (tmp_path / "model").exists()


def test_columns_that_are_no_features_do_not_count(cli: CliRunner, tmp_path: Path) -> None:
    names = [f"x{k}" for k in range(1_000)]
    cells = ["0.5"] * 1_000
    lines = [",".join([*names, "id", "y"]), *(",".join([*cells, str(row), "1"]) for row in range(3))]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = cli("run", "table.csv", "--target", "y", "--id", "id", "--learner", "phased", "--json", folder=tmp_path)
    assert done.code == 0, done.err
