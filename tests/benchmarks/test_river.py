import numpy as np

from benchmarks import river
from benchmarks.streams import corners
from ellipack.river import PackingRegressor


def test_both_play_the_same_rows_and_figures_are_of_a_row() -> None:
    raced = river.race("packing", PackingRegressor(), 200, 200)
    assert raced.centers > 10
    for cost in (raced.ours, *raced.theirs.values()):
        assert 0 < cost.mean < 1e5
        assert 0 < cost.median < 1e5
    all_rows, a_turn, *_ = river.verdicts(raced, 1e9)
    assert not all_rows.reached
    assert all_rows.figure == f"{raced.theirs['graph'].mean / raced.ours.mean:.3g}x"
    assert a_turn.figure == f"{raced.theirs['graph'].median / raced.ours.median:.3g}x"


def test_rows_fill_the_box_from_the_start() -> None:
    X = corners(10, 50).X
    assert X.shape == (50, 10)
    assert (X.min(), X.max()) == (X[0].max(), X[1].min()) == (-1.0, 1.0)


def test_named_rows_are_those_of_the_stream() -> None:
    stream = corners(3, 20)
    rows = river.named(stream)
    np.testing.assert_array_equal([[x[f"feature {k}"] for k in range(3)] for x, _ in rows], stream.X)
    np.testing.assert_array_equal([label for _, label in rows], stream.y)
