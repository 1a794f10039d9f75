import numpy as np
import pytest

from ellipack import MetricRegressor
from ellipack.evaluation.run import Run
from ellipack.tabular import LevelOptions, TableBatch, TableEncoder
from ellipack.tabular.arrow import pa
from ellipack.validation import Floats, Ints

STORES, ROWS = 1000, 8000


def stores_table(in_turn: bool) -> tuple[Ints, Floats, TableBatch]:
    rng = np.random.default_rng(7)
    stores = np.arange(ROWS) % STORES if in_turn else rng.integers(0, STORES, ROWS)
    labels = 100 + rng.normal(0, 3, STORES)[stores] + rng.normal(size=ROWS)
    table = pa.table({"store": [f"store {i}" for i in stores], "x": rng.normal(size=ROWS), "y": labels})
    return stores, labels, TableBatch.from_table(table)


def running_means(stores: Ints, labels: Floats) -> list[float]:
    """Return the mean of the earlier labels of the same store, or of all earlier labels if there are none."""
    seen: dict[int, list[float]] = {}
    means = []
    for t, (store, label) in enumerate(zip(stores.tolist(), labels.tolist(), strict=True)):
        means.append(float(np.mean(seen[store] if store in seen else labels[: max(t, 1)])))
        seen.setdefault(store, []).append(label)
    return means


def late_error(labels: Floats, predictions: Floats | list[float]) -> float:
    return float(np.sqrt(np.mean((labels - predictions)[ROWS // 2 :] ** 2)))


@pytest.mark.parametrize("in_turn", [False, True])
def test_many_stores_are_predicted_almost_as_well_as_by_their_running_means(in_turn: bool) -> None:
    stores, labels, batch = stores_table(in_turn)
    run = Run(MetricRegressor(), TableEncoder.from_head(batch, "y"), "-")
    error = late_error(labels, run.learn_batch(batch).predictions)
    assert error <= 1.1 * late_error(labels, running_means(stores, labels))


def test_statistics_survive_an_outlier() -> None:
    _, labels, batch = stores_table(in_turn=False)
    spoiled = labels.copy()
    spoiled[[50, 3000, 3001]] = 1e60, -1e60, 1e9
    features = []
    for each in (labels, spoiled):
        encoder = TableEncoder.from_head(batch, "y", levels=LevelOptions())
        table = batch.table.set_column(2, "y", pa.array(each))
        (block,) = encoder.partial_fit_transform(encoder.parse(TableBatch.from_table(table)))
        features.append(block.X)
    assert np.abs(features[0] - features[1]).max() < 12  # the label of the row itself, as last label of its store
    assert np.sqrt(np.mean((features[0] - features[1]) ** 2)) < 0.1
