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
from ellipack.serialization import Archive, read
from ellipack.tabular import TableBatch, TableEncoder
from tests.fuzz.hostile_files import pack, places, table


def with_zeros(archive: Archive) -> Iterator[tuple[str, Archive]]:
    """Return copies of an archive, each with one array, or one of the numbers of each name, set to zero."""
    for name, array in archive.arrays.items():
        yield name, Archive(archive.facts, {**archive.arrays, name: np.zeros_like(array)})
    positions = {
        key: i for i, (inside, key) in enumerate(places(archive.facts)) if isinstance(inside[key], int | float)
    }
    for key, position in positions.items():
        facts = json.loads(json.dumps(archive.facts))
        list(places(facts))[position][0][key] = 0
        yield f"fact {key}", Archive(facts, archive.arrays)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Archive]:
    """Return the kind and the archive of a run over a table."""
    batch = TableBatch.from_table(table(80))
    config = MetricConfig(validation_points=16, pool=32)
    run = Run(MetricRegressor(24, neighbors=8, config=config), TableEncoder.from_head(batch, "y"), "table")
    run.learn_batch(batch)
    path = tmp_path_factory.mktemp("saved") / "model"
    run.save(path)
    return read(path)


def test_a_model_with_zeros_is_refused_or_can_be_reported(saved: tuple[str, Archive], tmp_path: Path) -> None:
    kind, archive = saved
    path = tmp_path / "model"
    path.write_bytes(pack(kind, archive))
    original = read_record(str(path))
    refused, reported = [], []
    for name, changed in with_zeros(archive):
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
