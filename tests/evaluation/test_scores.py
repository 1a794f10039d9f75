from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.errors import ModelFileError
from ellipack.evaluation.scores import Scores
from ellipack.serialization import Archive
from ellipack.validation import Floats
from tests.strategies import seeds


def random_predictions(seed: int, rows: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    labels = 1e3 + rng.normal(size=rows)
    return labels + 0.1 * rng.normal(size=rows), labels


@given(seeds, st.integers(1, 400))
def test_scores_match_their_definitions(seed: int, rows: int) -> None:
    predictions, labels = random_predictions(seed, rows)
    scores = Scores()
    scores.update(predictions, labels)
    errors = predictions - labels
    means = [labels[:t].mean() if t else 0.0 for t in range(rows)]
    lasts = [labels[t - 1] if t else 0.0 for t in range(rows)]
    left_out = 10 if rows >= 50 else 0
    assert scores.warm_up == left_out
    errors, means, lasts, counted = errors[left_out:], means[left_out:], lasts[left_out:], labels[left_out:]
    assert scores.rmse == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert scores.mae == pytest.approx(np.mean(np.abs(errors)))
    assert scores.mean_rmse == pytest.approx(np.sqrt(np.mean((np.array(means) - counted) ** 2)))
    assert scores.last_rmse == pytest.approx(np.sqrt(np.mean((np.array(lasts) - counted) ** 2)))
    assert scores.label_mean == pytest.approx(labels.mean())
    assert scores.label_variance == pytest.approx(labels.var(), rel=1e-6, abs=1e-9)
    if rows > 1:
        assert scores.r2 == pytest.approx(1 - np.sum(errors**2) / np.sum((counted - counted.mean()) ** 2), rel=1e-6)


@settings(max_examples=30)
@given(seeds, st.integers(1, 12_000), st.lists(st.integers(0, 12_000), max_size=6))
def test_scores_do_not_depend_on_batching(seed: int, rows: int, cuts: list[int]) -> None:
    predictions, labels = random_predictions(seed, rows)
    whole, parts = Scores(), Scores()
    whole.update(predictions, labels)
    edges = sorted({0, rows, *(cut for cut in cuts if cut < rows)})
    for start, stop in pairwise(edges):
        parts.update(predictions[start:stop], labels[start:stop])
        parts = Scores.from_archive(parts.to_archive())
    one, other = whole.to_archive(), parts.to_archive()
    assert one.facts == other.facts
    arrays = other.arrays_by_full_name()
    assert all(arrays[name].tobytes() == array.tobytes() for name, array in one.arrays_by_full_name().items())


def test_bins_and_sample_are_bounded_and_cover_all_rows() -> None:
    predictions, labels = random_predictions(0, 50_000)
    scores = Scores()
    scores.update(predictions, labels)
    assert len(scores.bin_sums) <= 256
    assert len(scores.sample_rows) <= 2048
    ends = scores.bin_ends()
    assert ends[-1] == 50_000
    start = int(ends[9])
    errors = (predictions - labels)[start : int(ends[10])]
    assert scores.bin_errors()[10, 0] == pytest.approx(np.sqrt(np.mean(errors**2)))
    np.testing.assert_array_equal(scores.sample_pairs[:, 1], labels[scores.sample_rows - 1])
    assert scores.sample_rows[-1] > 49_900


def test_r2_of_constant_labels_is_none() -> None:
    scores = Scores()
    assert scores.rmse is None
    scores.update(np.zeros(5), np.zeros(5))
    assert scores.r2 is None
    assert scores.skill is None


def test_negative_sums_of_squares_are_refused() -> None:
    scores = Scores()
    scores.update(*random_predictions(0, 50))
    saved = scores.to_archive()
    arrays = saved.arrays_by_full_name()
    for name, message in (
        ("sums", "sums must be >= 0"),
        ("counted_sums", "must be >= 0"),
        ("bin_sums", "from 0 to inf"),
    ):
        with pytest.raises(ModelFileError, match=message):
            Scores.from_archive(Archive(saved.facts, {**arrays, name: -np.ones_like(arrays[name])}))
