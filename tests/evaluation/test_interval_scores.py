"""Scores of prediction intervals, and intervals of a run."""

from pathlib import Path

import numpy as np
import pytest

from ellipack import MetricRegressor, PackingRegressor, RescaledRegressor
from ellipack.errors import InputError, ModelFileError
from ellipack.estimators.base import StreamingRegressor
from ellipack.evaluation.interval_scores import IntervalScores
from ellipack.evaluation.prediction_options import PredictionOptions
from ellipack.evaluation.run import Run, load_run
from ellipack.tabular import TableBatch, TableEncoder
from ellipack.tabular.arrow import pa

COVERAGES = (0.8, 0.95)


def test_scores_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    labels, centers, widths = rng.normal(size=(3, 9000))
    ends = np.column_stack([centers - abs(widths), centers + abs(widths), centers - 3, centers + 3])
    ends[:2] = [-np.inf, np.inf, -np.inf, np.inf]
    whole, parts = IntervalScores(COVERAGES), IntervalScores(COVERAGES)
    whole.update(ends, labels)
    for part in np.array_split(np.arange(9000), 37):
        parts.update(ends[part], labels[part])
    one, other = (each.to_archive().arrays_by_full_name() for each in (parts, whole))
    assert one["bin_sums"].tobytes() == other["bin_sums"].tobytes()
    low, high, y = ends[2:, 0::2], ends[2:, 1::2], labels[2:, None]
    inside = (low <= y) & (y <= high)
    np.testing.assert_allclose(whole.covered(), inside.mean(axis=0))
    np.testing.assert_allclose(whole.mean_widths(), (high - low).mean(axis=0))
    outside = np.where(inside, 0.0, np.minimum(abs(y - low), abs(y - high)))
    winkler = (high - low) + outside * 2 / (1 - np.array(COVERAGES))
    np.testing.assert_allclose(whole.interval_scores(), winkler.mean(axis=0))
    assert len(whole.bin_means()) <= 256
    assert whole.bin_ends()[-1] == 9000
    assert whole.recent[:, 0].tolist() == labels[-200:].tolist()
    restored = IntervalScores.from_archive(whole.to_archive(), COVERAGES)
    assert restored.to_archive().arrays_by_full_name()["recent"].tobytes() == whole.recent.tobytes()
    with pytest.raises(ModelFileError, match="bin_sums"):
        IntervalScores.from_archive(whole.to_archive(), (0.8,))


def table(rows: int = 240) -> pa.Table:
    """A table in which some labels are missing and come later."""
    rng = np.random.default_rng(1)
    x, ids = rng.normal(size=rows), [f"r{i}" for i in range(rows)]
    y: list[float | None] = (2 * x + 0.3 * rng.normal(size=rows)).tolist()
    for t in range(20, rows - 10, 10):
        ids[t + 7], y[t] = ids[t], None
    return pa.table({"id": ids, "x": x, "y": y})


@pytest.mark.parametrize("learner", [MetricRegressor(n_jobs=1), RescaledRegressor(PackingRegressor())])
def test_intervals_of_a_run_survive_batches_and_saving(learner: StreamingRegressor[object], tmp_path: Path) -> None:
    rows = table()
    options = PredictionOptions(id_column="id", coverages=COVERAGES, minimum=-9.0)
    ends = []
    for step in (240, 13):
        encoder = TableEncoder.from_head(TableBatch.from_table(rows), "y", drop={"id"})
        run = Run(type(learner)(**learner.get_params(deep=False)), encoder, "-", options=options)
        parts = []
        for start in range(0, len(rows), step):
            parts.append(run.learn_batch(TableBatch.from_table(rows.slice(start, step))))
            run.save(tmp_path / "model")
            run = load_run(tmp_path / "model")
        ends.append(np.vstack([each.interval_ends for each in parts]))
        labels = np.concatenate([each.labels for each in parts])
    assert ends[0].tobytes() == ends[1].tobytes()
    assert run.options.interval_columns == ("lower_80", "upper_80", "lower_95", "upper_95")
    assert (ends[0][:, 0] >= -9).all()
    # A late label is compared with the interval of its row.
    late = [t + 7 for t in range(20, 230, 10)]
    assert ends[0][late].tolist() == ends[0][[t - 7 for t in late]].tolist()
    known = ~np.isnan(labels)
    assert run.interval_scores.n_rows == known.sum() == run.scores.n_rows


@pytest.mark.parametrize("coverages", [(0.3,), (95.0,), (0.9, 0.9)])
def test_invalid_coverages_raise(coverages: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="coverage"):
        PredictionOptions(coverages=coverages)


def test_kept_columns_do_not_hide_intervals() -> None:
    with pytest.raises(InputError, match="lower_90"):
        PredictionOptions(keep=("lower_90",), coverages=(0.9,))
