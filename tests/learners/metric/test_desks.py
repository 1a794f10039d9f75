import copy
import pickle
import threading

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.learners.metric import engine, saved, state
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.desks import MetricDesk, put_back, take
from ellipack.learners.metric.state import MetricState, Size
from ellipack.validation import Floats
from tests.strategies import seeds

ROWS = 40


def fresh() -> MetricState:
    return state.init(2, Size(1, 4, 24), 0, MetricConfig(judged=8, pool=16))


def bits(learner: MetricState) -> list[tuple[str, bytes]]:
    """Return all numbers that are saved of a learner, to the bit."""
    return [(name, array.tobytes()) for name, array in sorted(saved.contents(learner).arrays.items())]


def worked_out(learner: MetricState, rows: Floats) -> list[float]:
    """Return predictions from desks at which nothing was predicted before."""
    made = np.empty(len(rows))
    for t in range(len(rows)):
        MetricDesk(learner).predict(rows[t : t + 1], made[t : t + 1])
    return made.tolist()


def moved(learner: MetricState, fate: str) -> MetricState:
    """Return a learner as it is, or as it comes back from elsewhere."""
    if fate == "pickled":
        unpickled: MetricState = pickle.loads(pickle.dumps(learner))
        return unpickled
    if fate == "saved" and learner.clock > 0:
        return saved.restore(saved.contents(learner), 2)
    return copy.deepcopy(learner) if fate == "copied" else learner


# What comes before a round: rows that are asked for (none: the one to come), and what becomes of the learner then.
questions = st.tuples(
    st.lists(st.integers(0, ROWS - 1), max_size=3), st.sampled_from(["stays"] * 5 + ["copied", "pickled", "saved"])
)


@settings(max_examples=25)
@given(seeds, st.lists(st.lists(questions, max_size=2), min_size=1, max_size=ROWS))
def test_whatever_is_asked_between_rounds_changes_no_bit(seed: int, asked: list[list[tuple[list[int], str]]]) -> None:
    rng = np.random.default_rng(seed)
    # Few values, so that rows come again, and both zeros.
    X, y = rng.choice([-1.0, -0.0, 0.0, 0.3], size=(ROWS, 2)), rng.normal(size=ROWS)
    silent, busy = fresh(), fresh()
    for t, before in enumerate(asked):
        row, label = X[t : t + 1], y[t : t + 1]
        for which, fate in before:
            some = X[which] if which else row
            assert engine.predict(busy, some).tolist() == worked_out(silent, some)
            busy = moved(busy, fate)
        assert engine.learn(busy, row, label).tolist() == worked_out(silent, row)
        engine.learn(silent, row, label)
    assert bits(busy) == bits(silent)


def test_a_zero_is_not_taken_for_the_other() -> None:
    learners = [fresh(), fresh()]
    for learner in learners:
        engine.learn(learner, [[1.0, 2.0], [2.0, 1.0]], [1.0, 2.0])
    engine.predict(learners[0], [[0.0, 1.0]])
    for learner in learners:
        engine.learn(learner, [[-0.0, 1.0]], [3.0])
        assert np.signbit(learner.machine.memory.rows[2, 0])
    assert bits(learners[0]) == bits(learners[1])


def test_desks_are_used_again_until_the_machine_is_another() -> None:
    learner = fresh()
    first = take(learner)
    second = take(learner)
    assert first is not second
    put_back(learner, first)
    put_back(learner, second)
    assert take(learner) is second
    put_back(learner, second)
    learner.machine = learner.machine._replace(reach=np.ones(1))
    assert take(learner).machine is learner.machine
    assert learner.desks.free == []  # what is of no use any more holds on to nothing


def test_threads_that_predict_while_one_learns_have_desks_of_their_own() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    alone, shared = fresh(), fresh()
    going = threading.Event()
    going.set()

    def ask(part: Floats) -> None:
        while going.is_set():
            engine.predict(shared, part)

    threads = [threading.Thread(target=ask, args=(X[k : k + 3],)) for k in range(3)]
    for thread in threads:
        thread.start()
    for t in range(len(X)):
        engine.predict(shared, X[t : t + 1])
        assert engine.learn(shared, X[t : t + 1], y[t : t + 1]) == engine.learn(alone, X[t : t + 1], y[t : t + 1])
    going.clear()
    for thread in threads:
        thread.join()
    assert bits(shared) == bits(alone)
