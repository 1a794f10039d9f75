from pathlib import Path

import numpy as np
import pytest

from benchmarks import saving
from ellipack import MetricRegressor


def test_both_writers_write_all_bytes_of_an_enlarged_learner(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    learner = MetricRegressor().fit(X, X[:, 0])
    archive = saving.enlarged(learner, 1000)
    assert {len(array) for array in archive.arrays_by_full_name().values() if array.ndim} >= {1000}
    ours, theirs, size = saving.measure(archive, tmp_path, 2)
    assert (len(ours), len(theirs)) == (2, 2)
    assert size > 1000 * 3 * 8
    assert (tmp_path / "model").read_bytes() == (tmp_path / "bare").read_bytes()


def test_output(capsys: pytest.CaptureFixture[str]) -> None:
    saving.main(["--rows", "500", "--learned", "50", "--repeats", "1"])
    out = capsys.readouterr().out
    assert "writing as many bytes" in out
    assert "saving over writing the bytes" in out
