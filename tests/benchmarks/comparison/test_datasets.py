from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.comparison.datasets import DATASETS, datasets_in_folder, encode_table

ROWS = 60


@pytest.mark.parametrize("name", [name for name, each in DATASETS.items() if each.seeded] + ["computers", "flights"])
def test_streams_are_drawn(name: str) -> None:
    source = DATASETS[name]
    stream, again, other = (source.draw(seed, ROWS) for seed in (0, 0, 1))
    assert stream.name == name
    assert len(stream.X) == len(stream.y) == ROWS
    assert np.isfinite(stream.X).all()
    assert np.std(stream.y) > 0
    np.testing.assert_array_equal(stream.X, again.X)
    assert source.seeded != np.array_equal(stream.y, other.y)


def test_no_feature_is_the_label() -> None:
    for name in ("computers", "flights", "mv"):
        stream = DATASETS[name].draw(0, ROWS)
        assert not any(np.array_equal(column, stream.y) for column in stream.X.T), name


def test_text_is_one_hot_encoded() -> None:
    table = pd.DataFrame({"a": [1, 2, 3], "b": ["no", "yes", "no"], "c": ["z", "x", "y"], "d": [True, False, True]})
    np.testing.assert_array_equal(encode_table(table), [[1, 0, 0, 0, 1, 1], [2, 1, 1, 0, 0, 0], [3, 0, 0, 1, 0, 1]])


def test_streams_from_a_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text(f"a,y\n{len(name)},2\n4,5\n")
    (tmp_path / "two.csv").write_text("a,y\n7,8\n9,1\n")
    sources = datasets_in_folder(tmp_path)
    assert list(sources) == ["one", "two"]
    assert sources["one"].draw(3, 1).y.tolist() == [2.0]
    assert sources["two"].draw(0, 9).X.tolist() == [[7.0], [9.0]]
