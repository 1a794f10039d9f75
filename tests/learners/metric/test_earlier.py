import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.checkpoint import Contents
from ellipack.errors import CheckpointError
from ellipack.learners.aggregation._kernels import ABSENT, weigh
from ellipack.learners.experts.names import GLOBAL, LOCAL, expert_names
from ellipack.learners.metric import engine, saved, state
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.state import MetricState, Size
from ellipack.validation import Floats
from tests.strategies import seeds

D = 3


def learned(views: int, n: int, seed: int = 0, most: int = 40) -> MetricState:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    learner = state.init(D, Size(views, 8, most), 0, MetricConfig(judged=16, pool=64))
    engine.learn(learner, X, np.sin(X[:, 0]) + X[:, 1])
    return learner


def known(views: int) -> list[bool]:
    """Return which experts the first format had."""
    return [name in GLOBAL[:3] or name.split(" (view")[0] in LOCAL[:8] for name in expert_names(views)]


def as_it_was(learner: MetricState) -> Contents:
    """Return what the first format would have saved of a learner."""
    contents, had = saved.contents(learner), known(len(learner.machine.views))
    arrays = {name: a for name, a in contents.arrays.items() if "fading" not in name and "round_sums" not in name}
    for name, array in arrays.items():
        if name.startswith(("mixture/", "stack/", "phase")) and array.shape[0] == len(had):
            arrays[name] = array[np.ix_(had, had)] if array.ndim == 2 else array[had]
    facts = {name: fact for name, fact in contents.facts.items() if name != "fading"}
    return Contents(facts, arrays)


def weights_of(learner: MetricState) -> Floats:
    weights = np.empty(len(learner.machine.mixture.gains))
    weigh(learner.machine.mixture, weights)
    return weights


@settings(max_examples=15)
@given(st.sampled_from([1, 2]), st.integers(5, 90), seeds)
def test_what_was_learned_is_there_and_what_is_new_is_nothing(views: int, n: int, seed: int) -> None:
    learner = learned(views, n, seed)
    had, loaded = np.array(known(views)), saved.restore(as_it_was(learner), D)
    before, after = learner.machine, loaded.machine
    for name in ("priors", "gains", "squares"):
        np.testing.assert_array_equal(getattr(after.mixture, name)[had], getattr(before.mixture, name)[had])
    np.testing.assert_array_equal(after.stack.inverse[np.ix_(had, had)], before.stack.inverse[np.ix_(had, had)])
    np.testing.assert_array_equal(after.stack.coefficients[had], before.stack.coefficients[had])
    assert (loaded.machine.mixture.priors[~had] == ABSENT).all()
    assert not loaded.machine.stack.inverse[~had].any()
    assert not weights_of(loaded)[~had].any()
    assert all(not phase.expert_weights[~had].any() for phase in loaded.phases)
    rounds = loaded.machine.memory.round_sums / loaded.machine.memory.label_counts
    assert (np.diff(rounds) > 0).all()
    assert 0 < rounds[0] <= rounds[-1] <= loaded.clock
    np.testing.assert_array_equal(loaded.machine.fading.coefficients, loaded.machine.ridge.coefficients)


@pytest.mark.parametrize("views", [1, 2])
def test_what_is_new_begins_when_the_phase_ends(views: int) -> None:
    rng = np.random.default_rng(1)
    loaded, had = saved.restore(as_it_was(learned(views, 70)), D), np.array(known(views))
    while loaded.clock < loaded.phase_end - 1:
        X = rng.normal(size=(1, D))
        engine.learn(loaded, X, X[:, 0])
        assert not weights_of(loaded)[~had].any()
        assert not loaded.machine.stack.coefficients[~had].any()
    X = rng.normal(size=(60, D))
    engine.learn(loaded, X[:1], X[:1, 0])
    assert (weights_of(loaded) >= 0.999 * 0.02 / len(had)).all()
    assert (loaded.machine.stack.inverse.diagonal() > 0).all()
    engine.learn(loaded, X[1:], X[1:, 0])
    assert loaded.machine.stack.coefficients[~had].any()


@pytest.mark.parametrize("views", [1, 2])
def test_saved_again_before_the_phase_ends_it_goes_on_with_the_same_bits(views: int) -> None:
    X = np.random.default_rng(2).normal(size=(80, D))
    straight = saved.restore(as_it_was(learned(views, 70)), D)
    engine.learn(straight, X[:5], X[:5, 0])
    again = saved.restore(saved.contents(straight), D)
    assert engine.learn(again, X[5:], X[5:, 0]).tobytes() == engine.learn(straight, X[5:], X[5:, 0]).tobytes()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("memory/round_sums", -1.0, "round_sums must be those of label_counts rounds of at most 30"),
        ("memory/round_sums", 1e9, "round_sums must be those of label_counts rounds of at most 30"),
        ("mixture/priors", ABSENT, "mixture/priors must be above -1000 for 2 experts or more"),
        ("fading/inverse", None, "fading/inverse must be float64"),
        ("view0/directions", 1e-6, "view0/directions must be at least 1e-05 long, got 1.7"),
        ("view0/directions", 1.0, "view0/directions must be at right angles to each other"),
        ("memory/round_sums", None, "memory/round_sums must be there, as there is a regression that fades"),
    ],
)
def test_what_does_not_fit_together_is_refused(name: str, value: float | None, message: str) -> None:
    contents = saved.contents(learned(1, 30))
    arrays = dict(contents.arrays)
    if value is None:
        del arrays[name]
    else:
        arrays[name] = np.full_like(arrays[name], value)
    with pytest.raises(CheckpointError, match=message):
        saved.restore(Contents(contents.facts, arrays), D)
