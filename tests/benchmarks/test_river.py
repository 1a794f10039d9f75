import numpy as np

from benchmarks import river
from benchmarks.streams import corner_stream
from ellipack.river import PackingRegressor


def test_costs_are_per_row() -> None:
    comparison = river.compare_costs("packing", PackingRegressor(), 200, 200)
    assert comparison.centers > 10
    for cost in (comparison.ours, *comparison.theirs.values()):
        assert 0 < cost.mean < 1e5
        assert 0 < cost.median < 1e5
    all_rows, turns, *_ = river.targets(comparison, 1e9)
    assert not all_rows.reached
    assert all_rows.value == f"{comparison.theirs['graph'].mean / comparison.ours.mean:.3g}x"
    assert turns.value == f"{comparison.theirs['graph'].median / comparison.ours.median:.3g}x"


def test_the_first_rows_span_the_box() -> None:
    X = corner_stream(10, 50).X
    assert X.shape == (50, 10)
    assert (X.min(), X.max()) == (X[0].max(), X[1].min()) == (-1.0, 1.0)


def test_named_rows_are_those_of_the_stream() -> None:
    stream = corner_stream(3, 20)
    rows = river.named_rows(stream)
    np.testing.assert_array_equal([[x[f"feature {k}"] for k in range(3)] for x, _ in rows], stream.X)
    np.testing.assert_array_equal([label for _, label in rows], stream.y)
