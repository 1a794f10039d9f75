"""Locally adaptive regression with a tree of packings, in plain Python, with brute-force search."""

import math

from ellipack.validation import Floats, Ints


class Node:
    """A center with its labels and its weight."""

    def __init__(self, point: list[float], level: int) -> None:
        self.point = point
        self.level = level
        self.children: list[Node] = []
        self.labels: list[float] = []
        self.log_weight = 0.0
        self.rounds: list[int] = []  # in which the node was awake
        self.losses: list[float] = []  # of its own predictions


class Tree:
    """The root, and the nodes in the order of their creation."""

    def __init__(self, lipschitz: Floats, dimensions: Ints, rank_starts: Ints) -> None:
        self.lipschitz, self.dimensions = lipschitz.tolist(), dimensions.tolist()
        self.rank_starts = rank_starts.tolist()
        self.nodes: list[Node] = []
        self.parents: list[int] = []
        self.clock = 0

    def radius(self, level: int, t: int) -> float:
        """Return the radius of a level below the root in round t."""
        rank = self.dimensions[level - 1] or 1 + sum(start <= t for start in self.rank_starts)
        return math.pow(self.lipschitz[level - 1] * t, -1.0 / (1.0 + rank))

    def path(self, point: list[float]) -> list[Node]:
        """Return the nodes on the path of a point, as far as they exist."""
        found = self.nodes[:1]
        while found and len(found) <= len(self.lipschitz) and found[-1].children:
            nearest = min(found[-1].children, key=lambda child: squared_distance(child.point, point))
            if math.sqrt(squared_distance(nearest.point, point)) > self.radius(len(found), self.clock + 1):
                break
            found.append(nearest)
        return found

    def awake(self, point: list[float]) -> list[tuple[float, float]]:
        """Return the prediction and the logarithm of the weight of each level, new nodes included."""
        pairs = [(mean(node.labels), node.log_weight) for node in self.path(point)]
        while len(pairs) <= len(self.lipschitz):
            pairs.append((pairs[-1][0] if pairs else 0.5, 0.0))
        return pairs

    def predict(self, point: list[float]) -> float:
        """Return the weighted mean of the predictions on the path."""
        pairs = self.awake(point)
        largest = max(log_weight for _, log_weight in pairs)
        total = weighted = 0.0
        for prediction, log_weight in pairs:
            total += math.exp(log_weight - largest)
            weighted += math.exp(log_weight - largest) * prediction
        return min(max(weighted / total, 0.0), 1.0)

    def learn(self, point: list[float], label: float) -> float:
        """Run a round and return the prediction."""
        prediction, pairs = self.predict(point), self.awake(point)
        path = self.path(point)
        while len(path) <= len(self.lipschitz):
            node = Node(point, len(path))
            self.nodes.append(node)
            self.parents.append(self.nodes.index(path[-1]) if path else -1)
            if path:
                path[-1].children.append(node)
            path.append(node)
        self.clock += 1
        largest = max(log_weight for _, log_weight in pairs)
        total = mixed = 0.0
        for each, log_weight in pairs:
            total += math.exp(log_weight - largest)
            mixed += math.exp(log_weight - largest) * math.exp(-0.5 * ((each - label) * (each - label)))
        gain = math.log(total / mixed)
        for node, (each, _) in zip(path, pairs, strict=True):
            loss = (each - label) * (each - label)
            node.log_weight += gain - 0.5 * loss
            node.labels.append(label)
            node.rounds.append(self.clock)
            node.losses.append(loss)
        return prediction


def mean(labels: list[float]) -> float:
    """Return the mean of labels, summed from the first to the last."""
    total = 0.0
    for label in labels:
        total += label
    return total / len(labels)


def squared_distance(point: list[float], other: list[float]) -> float:
    """Return the sum of squared differences, from the first coordinate to the last."""
    total = 0.0
    for a, b in zip(point, other, strict=True):
        total += (b - a) * (b - a)
    return total


def best_pruning(node: Node, cost_per_leaf: float) -> tuple[float, list[Node]]:
    """Return the pruning below a node with the smallest sum of losses and of costs, and that sum."""
    own = sum(node.losses) + cost_per_leaf
    if not node.children:
        return own, [node]
    below = [best_pruning(child, cost_per_leaf) for child in node.children]
    total = sum(cost for cost, _ in below)
    return (own, [node]) if own <= total else (total, [leaf for _, leaves in below for leaf in leaves])
