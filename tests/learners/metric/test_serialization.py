import copy
from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.errors import ModelFileError
from ellipack.learners.metric import learner
from ellipack.learners.metric.predictions import NextRowPredictor, predict
from ellipack.learners.metric.serialization import from_archive, to_archive
from ellipack.serialization import Archive
from tests.learners.metric.learners import NO_PAST, PASTS, Past, bits, keys_of, new_state, smooth_stream, trained
from tests.strategies import seeds

D = 3

VIEWS_AND_PASTS = [(1, NO_PAST), (2, Past(2, 2))]
"""Numbers of views, and pasts, of the archives with the fewest and with the most arrays."""


@cache
def archive(views: int = 1, rounds: int = 30, past: Past = NO_PAST) -> Archive:
    return to_archive(trained(*smooth_stream(rounds), views=views, max_centers=40, past=past))


def with_array(contents: Archive, name: str, array: Any) -> Archive:
    return Archive.from_full_names(contents.facts, {**contents.arrays_by_full_name(), name: array})


@settings(max_examples=20)
@given(st.integers(1, 2), st.sampled_from([24, 1000]), st.integers(1, 99), st.sampled_from(PASTS), seeds)
def test_restored_learner_continues_with_the_same_bits(
    views: int, max_centers: int, at: int, past: Past, seed: int
) -> None:
    X, y = smooth_stream(100, seed=seed)
    state = new_state(D, views, 8, max_centers, past=past)
    keys = keys_of(100, past)
    learner.learn(state, X[:at], y[:at], keys=keys[:at])
    other = from_archive(to_archive(state), D)
    assert bits(other) == bits(state)
    assert predict(other, X).tobytes() == predict(state, X).tobytes()
    followed = NextRowPredictor(state).predict(X[at:], keys[at:])
    assert NextRowPredictor(other).predict(X[at:], keys[at:]).tobytes() == followed.tobytes()
    learned = learner.learn(state, X[at:], y[at:], keys=keys[at:])
    assert learner.learn(other, X[at:], y[at:], keys=keys[at:]).tobytes() == learned.tobytes()
    assert bits(other) == bits(state)


@pytest.mark.parametrize("size", [1e-30, 1e50])
def test_extreme_labels_and_features_can_be_saved(size: float) -> None:
    X, y = smooth_stream(200)
    X[::50] *= 1e60
    y[::40] *= 1e9
    state = new_state(D, 2, 8)
    learner.learn(state, X * min(size, 1e30), y * size)
    assert bits(from_archive(to_archive(state), D)) == bits(state)


def test_archive_has_copies_of_arrays() -> None:
    X, y = smooth_stream(40)
    state = trained(X[:30], y[:30])
    saved = to_archive(state)
    before = {name: array.tobytes() for name, array in saved.arrays_by_full_name().items()}
    learner.learn(state, X[30:], y[30:])
    other = from_archive(saved, D)
    learner.learn(other, X[30:], y[30:])
    assert {name: array.tobytes() for name, array in saved.arrays_by_full_name().items()} == before
    assert bits(other) == bits(state)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("plain/centers/round_sums", -1.0, "round_sums must be sums of label_counts rounds, each at most 30"),
        ("plain/centers/round_sums", 1e9, "round_sums must be sums of label_counts rounds, each at most 30"),
        ("plain/centers/round_sums", None, "plain/centers/round_sums must be float64"),
        ("plain/centers/label_counts", 0, "plain/centers/label_counts must be >= 1, got 0"),
        ("plain/centers/label_sums", 1e80, "plain/centers/label_sums must be sums of labels of absolute value <= 2e"),
        ("plain/centers/rows", 1e200, "plain/centers/rows must be from"),
        ("plain/packing/creation_rounds", 1, "plain/packing/creation_rounds must be strictly increasing"),
        ("plain/packing/coordinates", np.nan, "plain/packing/coordinates must be finite"),
        ("plain/experts/log_priors", -1e3, "plain/experts/log_priors must be from -50 to 1, got -1000 to -1000"),
        ("plain/experts/squares", -1.0, "plain/experts/squares must be from 0"),
        ("plain/forgetting/inverse", None, "plain/forgetting/inverse must be float64"),
        ("plain/label_statistics", np.nan, "plain/label_statistics must be finite"),
        ("plain/label_statistics", -1.0, "plain/label_statistics must be those of labels"),
        ("plain/label_statistics", 1e9, "plain/label_statistics must be those of at most 30 rounds"),
        ("plain/feature_statistics", -1.0, "plain/feature_statistics must have absolute values <= 2e"),
        ("plain/view0/scale", 0.0, "plain/view0/scale must be from"),
        ("plain/view0/directions", 1e-6, "plain/view0/directions must have lengths of at least 1e-05, got 1.7"),
        ("plain/view0/directions", 1.0, "plain/view0/directions must be orthogonal"),
        ("plain/view0/coordinates", 1e9, "plain/view0/coordinates must be from"),
        ("plain/view1/knots", None, "plain/view1/knots must be an array of 2 dimensions, got nothing"),
    ],
)
def test_inconsistent_arrays_are_rejected(name: str, value: float | None, message: str) -> None:
    contents = archive(views=2)
    arrays = contents.arrays_by_full_name()
    if value is None:
        del arrays[name]
    else:
        arrays[name] = np.full_like(arrays[name], value)
    with pytest.raises(ModelFileError, match=message):
        from_archive(Archive.from_full_names(contents.facts, arrays), D)


def test_knots_must_ascend_and_be_empty_in_the_first_view() -> None:
    contents = archive(views=2)
    knots = contents.arrays_by_full_name()["plain/view1/knots"]
    with pytest.raises(ModelFileError, match="plain/view1/knots must be empty or at least two rows in ascending order"):
        from_archive(with_array(contents, "plain/view1/knots", knots[::-1].copy()), D)
    with pytest.raises(ModelFileError, match="plain/view0/knots must be empty"):
        from_archive(with_array(contents, "plain/view0/knots", knots), D)


@pytest.mark.parametrize(("views", "past"), VIEWS_AND_PASTS)
def test_arrays_of_wrong_shape_or_type_are_rejected(views: int, past: Past) -> None:
    contents = archive(views, past=past)
    ways: list[Callable[[Any], Any]] = [
        lambda array: array[:-1],
        lambda array: np.concatenate([array, array[-1:]]),
        lambda array: array[..., None],
        lambda array: array.astype(np.float32),
    ]
    for name, array in contents.arrays_by_full_name().items():
        # There may be any number of knots, and there is nothing to remove from an empty array.
        some = ways[2:] if name.endswith("knots") or not array.size else ways
        for way in some:
            with pytest.raises(ModelFileError, match="must"):
                from_archive(with_array(contents, name, np.ascontiguousarray(way(array))), D)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("views", "past"), VIEWS_AND_PASTS)
def test_non_finite_numbers_are_rejected_or_harmless(views: int, value: float, past: Past) -> None:
    X, y = smooth_stream(32)  # two phases end
    contents = archive(views, past=past)
    may_overflow = {"gop", "inverse", "coefficients"}
    for name, array in contents.arrays_by_full_name().items():
        if array.dtype.kind != "f" or not array.size:
            continue
        spoiled = array.copy()
        spoiled.flat[-1] = value
        if name.rsplit("/", 1)[-1] not in may_overflow:
            with pytest.raises(ModelFileError, match="must be"):
                from_archive(with_array(contents, name, spoiled), D)
        else:
            state = from_archive(with_array(contents, name, spoiled), D)
            assert np.isfinite(learner.learn(state, X, y, keys=keys_of(32, past))).all()


@pytest.mark.parametrize(
    ("fact", "value", "message"),
    [
        ("clock", 0, "clock must be"),
        ("clock", 2**60, "clock must be"),
        ("views", 3, "views must be"),
        ("neighbors", 1, "neighbors must be"),
        ("neighbors", 10**6, "neighbors must be"),
        ("max_centers", 10, "max_centers must be"),
        ("max_centers", 2**31, "max_centers must be"),
        ("phase_end", 30, "phase_end must be"),
        ("phase_end", 10**6, "phase_end must be"),
        ("random_state", -1, "random_state must be"),
        ("phases/choices", [["identity"]], "phases/choices must have an entry for each of 5 phases"),
        ("phases/choices", [[], [], [], [], []], "phases/choices/0 must be a list of 1 strings"),
        ("phases/past_choices", [["a"], ["a"], [1], ["a"], ["a"]], "phases/past_choices/2 must be a list of strings"),
        ("phases/past_choices", ["a"] * 5, "phases/past_choices/0 must be a list"),
        ("past_labels", -1, "past_labels must be"),
        ("past_labels", 9, "past must be"),
        ("max_keys", -1, "max_keys must be"),
        ("plain/scores", [], "plain/scores must have an entry for each of 1 views, got 0"),
        ("plain/scores", [{"identity": [1.0, -1.0]}], "plain/scores must have values of absolute value <="),
        ("plain/scores", [{"identity": ["one", 1.0]}], "plain/scores must have a pair"),
        ("plain/scores", [{"identity": [1.0]}], "plain/scores must have a pair"),
        ("past/active_from", -1, "past/active_from must be"),
        ("past/learner/scores", [], "past/learner/scores must have an entry"),
    ],
)
def test_invalid_facts_are_rejected(fact: str, value: object, message: str) -> None:
    contents = archive(past=Past(2, 2))
    facts = copy.deepcopy(contents.facts)
    *path, name = fact.split("/")
    reduce(dict.__getitem__, path, facts)[name] = value
    with pytest.raises(ModelFileError, match=message):
        from_archive(Archive(facts, contents.arrays), D)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("keys", np.array([1, 1]), "keys must be different"),
        ("keys", np.arange(3), "keys must have at most max_keys = 2 entries, got 3"),
        ("histories", np.zeros((2, 11)), "histories must begin with numbers of labels from 1 to 30"),
        ("histories", np.full((2, 11), 1.5), "histories must begin with numbers of labels"),
        ("histories", np.full((2, 11), 1e90), "histories must be from"),
        ("stream", np.full(11, 31.0), "stream with one from 0"),
    ],
)
def test_impossible_histories_are_rejected(name: str, value: Any, message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        from_archive(with_array(archive(past=Past(2, 2)), f"past/features/{name}", value), D)


@pytest.mark.parametrize(
    ("name", "places", "value", "message"),
    [
        ("importance/errors", 4, 2.0, "importance/the factor of recent weights must be from 0 to 1"),
        ("importance/errors", 0, -1.0, "importance/errors must be from 0"),
        ("importance/sums", (..., 0), -1.0, "importance/sums of a group must be finite"),
        ("importance/sums", (..., 2), 1e200, "importance/sums of a group must be finite"),  # squares would overflow
        ("importance/rows", (0, 0), 1e150, "importance/rows must be from"),
        ("phases/end", 2, 0, "phases/end must be >= 1"),
        ("phases/eigenvalues", (1, 0), 0.5, "phases/eigenvalues of a phase must be in descending order and start"),
        ("phases/eigenvalues", (1, slice(1, None)), [0.1, 0.2], "phases/eigenvalues of a phase must be in descending"),
        ("phases/feature_weights", 3, 0.0, "phases/feature_weights of a phase must not all be 0"),
        ("phases/expert_weights", (4, 0), -5.0, "phases/expert_weights must be from 0 to 1"),
        ("phases/expert_weights", (4, ...), 0.5, "phases/expert_weights of a phase must add up to 1, got"),
    ],
)
def test_impossible_importances_and_weights_are_rejected(name: str, places: Any, value: Any, message: str) -> None:
    contents = archive()
    array = contents.arrays_by_full_name()[name].copy()
    array[places] = value
    with pytest.raises(ModelFileError, match=message):
        from_archive(with_array(contents, name, array), D)


def test_too_many_phases_are_rejected() -> None:
    with pytest.raises(ModelFileError, match="phases/number must have at most 10,000 entries, got 10,001"):
        from_archive(with_array(archive(), "phases/number", np.ones(10_001, dtype=np.int64)), D)


def test_archive_with_another_number_of_features_is_rejected() -> None:
    with pytest.raises(ModelFileError, match="plain/view0/directions must have 4 rows, one for each feature"):
        from_archive(archive(), 4)


def test_too_many_centers_are_rejected() -> None:
    contents = archive()
    with pytest.raises(ModelFileError, match=r"plain/centers/rows must have from 1 to max_centers - 1 = 15 rows, got"):
        from_archive(Archive({**contents.facts, "max_centers": 16}, contents.arrays), D)


def test_centers_of_repeated_rows_are_saved() -> None:
    X, y = np.repeat(np.random.default_rng(0).normal(size=(5, D)), 8, axis=0), np.arange(40.0)
    state = trained(X, y)
    saved = to_archive(state)
    assert len(saved.arrays_by_full_name()["plain/centers/rows"]) == state.n_centers < 40
    assert bits(from_archive(saved, D)) == bits(state)
