"""Models of every format that there was: they load, predict what they did, and learn on."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ellipack
import ellipack.river
from ellipack.checkpoint.file import FORMAT
from ellipack.stream.run import load_run
from ellipack.stream.sources import Batch
from tests.checkpoint.make_fixtures import FOLDER, LEARNERS, MODELS, RIVER, ROWS

FILES = [FOLDER / f"format{n + 1}" / f"{name}.ellipack" for n in range(FORMAT) for name in sorted(MODELS)]


def of(names: Any) -> pytest.MarkDecorator:
    """Run a test on the models of these names, of every format."""
    files = [path for path in FILES if path.stem in names]
    return pytest.mark.parametrize("path", files, ids=lambda path: f"{path.parent.name} {path.stem}")


def told(path: Path) -> tuple[Any, list[float]]:
    """Return rows, and what the model predicted for them when it was made."""
    known = json.loads(path.with_suffix(".json").read_text())
    return known.get("X", known.get("rows")), known["predictions"]


def test_every_format_so_far_has_a_model_of_everything_that_is_saved() -> None:
    assert sorted(FOLDER.glob("format*/*.ellipack")) == FILES


@of(LEARNERS)
def test_learners_of_any_format_load_and_go_on(path: Path) -> None:
    learner = ellipack.load(path)
    X, predictions = told(path)
    np.testing.assert_allclose(learner.predict(X), predictions, rtol=1e-9)
    learner.partial_fit(X, predictions)
    assert np.isfinite(learner.predict(X)).all()


@of(RIVER)
def test_learners_for_river_of_any_format_load_and_go_on(path: Path) -> None:
    learner = ellipack.river.load(path)
    X, predictions = told(path)
    for pairs, prediction in zip(X, predictions, strict=True):
        assert learner.predict_one(dict(pairs)) == pytest.approx(prediction, rel=1e-9)
    for pairs, prediction in zip(X, predictions, strict=True):
        learner.learn_one({**dict(pairs), "new": 1.0}, prediction)
        assert np.isfinite(learner.predict_one(dict(pairs)))


@of(["run"])
def test_runs_of_any_format_load_and_go_on(path: Path, tmp_path: Path) -> None:
    run = load_run(path)
    assert run.position == ROWS
    rows, predictions = told(path)
    made = run.play(Batch.of(pa.Table.from_pylist(rows))).predictions
    # Memory is full at the fourth of five rows, and which centres go then has changed since these files were made.
    np.testing.assert_allclose(made[:4], predictions[:4], rtol=1e-9)
    assert np.isfinite(made).all()
    assert run.scores.rows == ROWS + len(rows)
    run.save(tmp_path / "model")
    assert load_run(tmp_path / "model").scores.rows == ROWS + len(rows)
