"""`LocallyAdaptiveRegressor`: its regret against prunings and functions, and their bounds."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.errors import DomainError, ShapeError
from ellipack.estimators.locally_adaptive import make_levels
from ellipack.learners import locally_adaptive
from ellipack.metric import Metric
from ellipack.theory import effective_rank, lipschitz_constant, pruning_certificate, pruning_regret_bound, rank_starts
from ellipack.validation import Floats
from tests.reference.packing_tree import Node, Tree, best_pruning
from tests.strategies import metrics, seeds, streams

variants = pytest.mark.parametrize("adapt", ["lipschitz", "dimension"])


def run(metric: Metric, adapt: str, n_levels: int, X: Floats, y: Floats) -> tuple[Tree, Floats]:
    """Run the learner; return the literal tree, which has the same predictions, and the losses."""
    levels = make_levels(adapt, n_levels, 1.0, metric.dimension)
    tree = Tree(*levels, rank_starts(metric.eigenvalues))
    for x, label in zip(metric.whiten(X).tolist(), y.tolist(), strict=True):
        tree.learn(x, label)
    state = locally_adaptive.init(metric, levels)
    predictions = locally_adaptive.learn(state, X, y)
    assert state.nodes.log_weights.tolist() == [node.log_weight for node in tree.nodes]
    assert state.nodes.depths().tolist() == [node.level for node in tree.nodes]
    return tree, (predictions - y) ** 2


def random_pruning(node: Node, rng: np.random.Generator) -> list[Node]:
    if not node.children or rng.random() < 0.3:
        return [node]
    return [leaf for child in node.children for leaf in random_pruning(child, rng)]


@variants
@settings(max_examples=40)
@given(st.data())
def test_regret_against_every_pruning_is_bounded(adapt: str, data: st.DataObject) -> None:
    metric = data.draw(metrics(4))
    X, y = data.draw(streams(metric.dimension, max_rows=120))
    tree, losses = run(metric, adapt, data.draw(st.integers(1, 4)), X, np.round(y))
    rng, nodes = np.random.default_rng(data.draw(seeds)), len(tree.nodes)
    prunings = [random_pruning(tree.nodes[0], rng) for _ in range(5)]
    prunings += [best_pruning(tree.nodes[0], cost)[1] for cost in (0.0, 0.5, 2 * math.log(nodes))]
    for leaves in prunings:
        assert sorted(t for leaf in leaves for t in leaf.rounds) == list(range(1, len(X) + 1))
        regret = losses.sum() - sum(sum(leaf.losses) for leaf in leaves)
        counts = [len(leaf.labels) for leaf in leaves]
        means = sum(math.log(math.e * count) for count in counts)  # what the means of the leaves may cost
        assert regret <= pruning_certificate(nodes, counts, variation=0.0) - means + 1e-9
        for leaf in leaves:
            labels = np.array(leaf.labels)
            assert sum(leaf.losses) - np.sum((labels - labels.mean()) ** 2) <= math.log(math.e * len(labels)) + 1e-9


@variants
@settings(max_examples=40)
@given(st.data())
def test_regret_against_functions_is_bounded(adapt: str, data: st.DataObject) -> None:
    metric = data.draw(metrics(4))
    X, noise = data.draw(streams(metric.dimension, max_rows=120))
    frequency = np.random.default_rng(data.draw(seeds)).normal(size=metric.dimension) * 2
    f = 0.5 + 0.5 * np.sin(X @ frequency)
    y = np.clip(f + data.draw(st.sampled_from([0.0, 0.5, 2.0])) * (noise - 0.5), 0, 1)
    tree, losses = run(metric, adapt, data.draw(st.integers(1, 4)), X, y)
    lipschitz = max(1.0, lipschitz_constant(metric.eigenvalues, 0.5 * np.abs(metric.eigenvectors.T @ frequency)))
    leaves = [leaf for leaf in best_pruning(tree.nodes[0], 2.0)[1] for leaf in (leaf.children or [leaf])]
    variation = sum(lipschitz * tree.radius(leaf.level, t) for leaf in leaves for t in leaf.rounds)
    regret = losses.sum() - np.sum((f - y) ** 2)
    counts = [len(leaf.labels) for leaf in leaves]
    assert regret <= pruning_certificate(len(tree.nodes), counts, variation) + 1e-9


def test_bound_of_the_theorem_holds_where_it_is_below_the_number_of_rounds() -> None:
    # Constant on the left, and noisy. On the right, steep and without noise: each half needs balls of another size.
    rng, n = np.random.default_rng(0), 3000
    X = rng.uniform(-1, 1, size=(n, 1))
    steep = X[:, 0] > 0
    f = np.where(steep, 0.5 + 0.5 * np.sin(16 * np.maximum(X[:, 0], 0)), 0.5)
    y = np.where(steep, f, (rng.random(n) < 0.5).astype(float))
    metric = Metric.identity(1)
    tree, losses = run(metric, "lipschitz", 4, X, y)  # constants of 1, 2, 4 and 8
    leaves: list[Node] = []
    waiting = [tree.nodes[0]]
    while waiting:  # level 1 on the left; level 4, whose constant of 8 is that of f, where a ball reaches the right
        node = waiting.pop()
        stays_left = all(X[t - 1, 0] <= 0 for t in node.rounds)
        if node.level == 4 or (node.level > 0 and stays_left and node.point[0] <= 0):
            leaves.append(node)
        else:
            waiting += node.children
    regret = losses.sum() - np.sum((f - y) ** 2)
    rounds = np.bincount([leaf.level for leaf in leaves], [len(leaf.labels) for leaf in leaves], minlength=5)
    bound = pruning_regret_bound(
        len(tree.nodes),
        [len(leaf.labels) for leaf in leaves],
        rounds=rounds,
        lipschitz=[0.0, 1.0, 2.0, 4.0, 8.0],
        ranks=np.ones(5, dtype=int),
    )
    assert 0 < regret <= bound < n


def test_predicting_with_a_single_node_violates_the_bound_against_prunings() -> None:
    # This shows that the tests above can fail: the root alone is much worse than the leaves.
    X = np.linspace(-1, 1, 2000)[np.random.default_rng(0).permutation(2000)][:, None]
    tree, _ = run(Metric.identity(1), "lipschitz", 3, X, (X[:, 0] > 0).astype(float))
    nodes, leaves = len(tree.nodes), best_pruning(tree.nodes[0], 1.0)[1]
    excess = sum(tree.nodes[0].losses) - sum(sum(leaf.losses) for leaf in leaves)
    assert excess > 2 * len(leaves) * math.log(nodes / len(leaves))


def test_radii_add_up_to_at_most_the_term_of_the_bound() -> None:
    spectrum = np.array([1.0, 0.3, 0.01])
    tree = Tree(*make_levels("lipschitz", 5, 1.0, 3), rank_starts(spectrum))
    rng = np.random.default_rng(0)
    for level, constant in enumerate(tree.lipschitz, start=1):
        rounds = np.sort(rng.permutation(3000)[:700]) + 1
        rank = int(effective_rank(spectrum, rounds[-1]))
        total = 2 * constant * sum(tree.radius(level, int(t)) for t in rounds)
        assert total <= 4 * (constant * len(rounds)) ** (rank / (1 + rank))


def test_invalid_prunings_are_refused() -> None:
    def bound(**changed: object) -> float:
        arguments = {"rounds": [0, 5], "lipschitz": [0.0, 1.0], "ranks": [1, 1]} | changed
        return pruning_regret_bound(4, [2, 3], **arguments)  # type: ignore[arg-type]

    weights_and_means = 4 * math.log(4 / 2) + math.log(2 * math.e) + math.log(3 * math.e)
    approximation = 4 * ((2 * 2) ** (1 / 2) + (3 * 3) ** (2 / 3))
    by_hand = pytest.approx(weights_and_means + approximation)
    assert bound(rounds=[2, 3], lipschitz=[2.0, 3.0], ranks=[1, 2]) == by_hand
    for rounds in ([1.0, 5.0], [-1.0, 6.0]):
        rule = re.escape(f"rounds must be >= 0 and add up to 5, the sum of leaf_counts, got {rounds}")
        with pytest.raises(DomainError, match=rule):
            bound(rounds=rounds)
    with pytest.raises(DomainError, match=r"lipschitz must be 0 or >= 1, got 0\.5"):
        bound(lipschitz=[0.5, 1.0])
    with pytest.raises(DomainError, match="ranks must be >= 1, got 0"):
        bound(ranks=[0, 1])
    with pytest.raises(ShapeError, match="must have one entry per level"):
        bound(ranks=[1])
    with pytest.raises(ShapeError, match="leaf_counts must have 1 to 2 entries"):
        pruning_certificate(2, [1, 1, 1], 0.0)
    with pytest.raises(DomainError, match="leaf_counts must be >= 1, got 0"):
        pruning_certificate(2, [1, 0], 0.0)
