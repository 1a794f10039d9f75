"""Models of every format that there was: they load, predict what they did, and learn on."""

import json
from pathlib import Path

import numpy as np
import pytest

import ellipack
from ellipack.checkpoint.file import FORMAT
from tests.checkpoint.make_fixtures import FOLDER, LEARNERS

MODELS = sorted(FOLDER.glob("format*/*.ellipack"))


def test_every_format_so_far_has_a_model_of_every_learner() -> None:
    expected = [FOLDER / f"format{n + 1}" / f"{name}.ellipack" for n in range(FORMAT) for name in sorted(LEARNERS)]
    assert expected == MODELS


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_models_of_any_format_load_and_go_on(path: Path) -> None:
    learner = ellipack.load(path)
    told = json.loads(path.with_suffix(".json").read_text())
    X = np.array(told["X"])
    np.testing.assert_allclose(learner.predict(X), told["predictions"], rtol=1e-9)
    learner.partial_fit(X, told["predictions"])
    assert np.isfinite(learner.predict(X)).all()
