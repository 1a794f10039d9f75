"""`PackingClassifier` against the literal algorithm, and its mistakes against their bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.learners import packing_classifier
from ellipack.metric import Metric
from ellipack.theory import effective_rank, lipschitz_constant, mistake_bound, mistake_certificate, rank_starts
from ellipack.validation import Floats
from tests.reference.packing_classifier import Classifier, MistakePacking
from tests.strategies import ball, cuts, metrics, seeds, streams

clocks = pytest.mark.parametrize("ball_clocks", [False, True])


@clocks
@given(st.data())
def test_learner_equals_the_literal_classifier(ball_clocks: bool, data: st.DataObject) -> None:
    metric = data.draw(metrics())
    X, noise = data.draw(streams(metric.dimension))
    n_classes = data.draw(st.integers(1, 4))
    y = np.array(["b", "d", "a", "c"])[(noise * n_classes).astype(int)]
    state = packing_classifier.init(metric, ball_clocks=ball_clocks)
    literal = Classifier(rank_starts(metric.eigenvalues), ball_clocks)
    for part in data.draw(cuts(len(X))):
        expected = [
            literal.learn(metric.whiten(x[None])[0], str(label)) for x, label in zip(X[part], y[part], strict=True)
        ]
        assert packing_classifier.learn(state, X[part], y[part]).tolist() == expected
    assert state.classes.tolist() == literal.classes
    ordered = [None] if len(literal.classes) <= 2 else literal.classes
    assert state.core.mistakes.tolist() == [literal.packings[each].mistakes for each in ordered]
    labels = [labels for each in ordered for labels in literal.packings[each].labels]
    assert state.centers.label_sums.tolist() == [sum(each) for each in labels]
    assert state.centers.label_counts.tolist() == [len(each) for each in labels]


@clocks
@given(st.data())
def test_mistakes_satisfy_the_certificate(ball_clocks: bool, data: st.DataObject) -> None:
    metric = data.draw(metrics())
    X, noise = data.draw(streams(metric.dimension, max_rows=200))
    frequency = np.random.default_rng(data.draw(seeds)).normal(size=metric.dimension) * 4
    f = 0.5 + 0.5 * np.sin(X @ frequency)
    lipschitz = lipschitz_constant(metric.eigenvalues, 0.5 * np.abs(metric.eigenvectors.T @ frequency))
    y = (f > data.draw(st.sampled_from([noise, np.full(len(X), 0.5)]))).astype(int)
    packing, on_mistakes = MistakePacking(rank_starts(metric.eigenvalues), ball_clocks), 0.0
    for x, value, label in zip(metric.whiten(X), f, y.tolist(), strict=True):
        before = packing.mistakes
        packing.learn(x, label)
        on_mistakes += (packing.mistakes - before) * (value - label) ** 2
        radii = sum(sum(each) for each in packing.radii)
        counts = [len(each) for each in packing.labels]
        assert packing.mistakes <= mistake_certificate(counts, on_mistakes, lipschitz * radii) * (1 + 1e-12)
    if not ball_clocks:
        assert packing.mistakes <= mistake_bound(metric.eigenvalues, lipschitz, on_mistakes)


def adversarial_mistakes(points: Floats, rounds: int) -> MistakePacking:
    """Return a packing after a stream whose labels are always wrong, over points in turn."""
    packing = MistakePacking(rank_starts(np.ones(points.shape[1])), ball_clocks=False)
    for t in range(rounds):
        point = points[t % len(points)]
        packing.learn(point, 0 if packing.predict(point) > 0.5 else 1)
    assert packing.mistakes == rounds
    return packing


def test_each_term_of_the_certificate_is_needed() -> None:
    # The loss of f = 1/2: coins in one ball.
    coins = adversarial_mistakes(np.zeros((1, 1)), 400)
    assert 400 <= mistake_certificate([400], 100.0, 0.0) < 1.1 * 400
    assert len(coins.points) == 1
    # The means: each row has its own ball, on which a function that fits is constant.
    corners = adversarial_mistakes(np.concatenate([np.eye(8), -np.eye(8)]), 16)
    assert len(corners.points) == 16
    assert 16 <= mistake_certificate(np.ones(16), 0.0, 0.0) == 4 * 16
    # The radii: two classes 0.1 apart share a ball until its radius is smaller.
    packing = MistakePacking(rank_starts(np.ones(1)), ball_clocks=False)
    for t in range(2000):
        packing.learn(np.array([0.1 * (t % 2)]), t % 2)
    counts, radii = [len(each) for each in packing.labels], sum(sum(each) for each in packing.radii)
    assert mistake_certificate(counts, 0.0, 0.0) < packing.mistakes <= mistake_certificate(counts, 0.0, 10 * radii)


def test_a_constant_class_costs_at_most_what_its_mean_does() -> None:
    packing = MistakePacking(rank_starts(np.ones(1)), ball_clocks=False)
    for _ in range(9):
        packing.learn(np.zeros(1), 1)
    assert packing.mistakes == 1 <= mistake_bound([1.0], lipschitz=0.0)


def separated_stream(n: int, gap: float, spectrum: Floats, seed: int = 0) -> tuple[Floats, Floats]:
    """Return rows and two classes whose first coordinates are at least `gap` apart."""
    rng = np.random.default_rng(seed)
    X = ball(rng, 4 * n, len(spectrum))
    X = X[(np.abs(X[:, 0]) >= gap / 2)][:n]
    return X, (X[:, 0] > 0).astype(np.int64)


def test_mistakes_stay_below_a_bound_that_does_not_depend_on_the_length_of_the_stream() -> None:
    X, y = separated_stream(20_000, 0.5, np.ones(1))
    bound = mistake_bound([1.0], lipschitz=2.0)
    assert bound < len(X) / 4  # the bound says something
    state = packing_classifier.init(Metric.identity(1), [0, 1])
    packing_classifier.learn(state, X[:10_000], y[:10_000])
    half = state.core.mistakes.tolist()
    packing_classifier.learn(state, X[10_000:], y[10_000:])
    assert state.core.mistakes.tolist() == half  # the radius is frozen
    assert 0 < half[0] <= bound


def test_a_learner_with_a_constant_radius_violates_the_bound() -> None:
    # This shows that the test above can fail: without shrinking balls, one ball has both classes.
    _, y = separated_stream(30_000, 0.5, np.ones(1))
    ones = mistakes = 0
    for label in y.tolist():
        if (2 * ones > mistakes) != (label == 1):
            ones, mistakes = ones + label, mistakes + 1
    assert mistakes > mistake_bound([1.0], lipschitz=2.0)


def test_the_effective_rank_stays_below_the_dimension() -> None:
    spectrum = np.array([1.0, 1e-3])
    X, y = separated_stream(20_000, 0.5, spectrum)
    state = packing_classifier.init(Metric.from_diagonal(spectrum), [0, 1])
    packing_classifier.learn(state, X, y)
    assert effective_rank(spectrum, len(X)) == 2  # of Algorithm 1 on the same stream
    assert effective_rank(spectrum, state.core.mistakes[0]) == 1


@given(st.data())
def test_multiclass_mistakes_are_mistakes_of_a_packing(data: st.DataObject) -> None:
    metric = data.draw(metrics(3))
    X, noise = data.draw(streams(metric.dimension))
    y = (noise * 3).astype(np.int64)
    state = packing_classifier.init(metric, [0, 1, 2])
    wrong = packing_classifier.learn(state, X, y) != y
    assert wrong.sum() <= state.core.mistakes.sum()


def test_probabilities_are_uniform_if_all_packings_vote_against() -> None:
    state = packing_classifier.init(Metric.identity(1), [0, 1, 2])
    assert packing_classifier.predict(state, [[0.0]]).tolist() == [[1 / 3] * 3]
    one = packing_classifier.init(Metric.identity(1), ["only"])
    assert packing_classifier.predict(one, [[0.0]]).tolist() == [[1.0]]
