"""A model in which counts or other numbers are zero, with a valid checksum, is refused or can be reported."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ellipack import MetricConfig, MetricRegressor
from ellipack.cli.inspect import read_record
from ellipack.errors import ModelFileError
from ellipack.evaluation.run import Run
from ellipack.report.page import render_page
from ellipack.serialization import read
from ellipack.tabular import TableBatch, TableEncoder
from tests.fuzz.hostile_files import Contents, pack, places, table


def with_zeros(contents: Contents) -> Iterator[tuple[str, Contents]]:
    """Return copies of the contents of a file, each with one array, or one of the numbers of each name, set to zero."""
    for name, array in contents.arrays.items():
        yield name, contents._replace(arrays={**contents.arrays, name: np.zeros_like(array)})
    positions = {
        key: i for i, (inside, key) in enumerate(places(contents.facts)) if isinstance(inside[key], int | float)
    }
    for key, position in positions.items():
        facts = json.loads(json.dumps(contents.facts))
        list(places(facts))[position][0][key] = 0
        yield f"fact {key}", contents._replace(facts=facts)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Contents]:
    """Return the kind and the contents of the file of a run over a table."""
    batch = TableBatch.from_table(table(80))
    config = MetricConfig(validation_points=16, pool=32)
    run = Run(MetricRegressor(24, neighbors=8, config=config), TableEncoder.from_head(batch, "y"), "table")
    run.learn_batch(batch)
    path = tmp_path_factory.mktemp("saved") / "model"
    run.save(path)
    kind, archive = read(path)
    return kind, Contents(archive.facts, archive.arrays_by_full_name())


def test_a_model_with_zeros_is_refused_or_can_be_reported(saved: tuple[str, Contents], tmp_path: Path) -> None:
    kind, contents = saved
    path = tmp_path / "model"
    path.write_bytes(pack(kind, contents))
    original = read_record(str(path))
    refused, reported = [], []
    for name, changed in with_zeros(contents):
        path.write_bytes(pack(kind, changed))
        try:
            record = read_record(str(path))
        except ModelFileError:
            refused.append(name)
        else:
            reported.append(name)
            if record != original:
                assert "</html>" in render_page(record)
    assert min(len(refused), len(reported)) > 10, (refused, reported)
