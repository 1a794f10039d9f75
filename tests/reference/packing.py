"""Algorithm 1 in whitened coordinates, in plain Python, with brute-force search."""

import math

import numpy as np

from ellipack.validation import Floats, Ints
from tests.reference import brute_force_neighbors


class Packing:
    """The centers, and the labels of each in order of arrival."""

    def __init__(self, rank_starts: Ints, keep_founding_label: bool) -> None:
        self.rank_starts = rank_starts.tolist()
        self.keep_founding_label = keep_founding_label
        self.clock = 0
        self.points: list[Floats] = []
        self.labels: list[list[float]] = []
        self.creation_rounds: list[int] = []

    def nearest(self, point: Floats) -> tuple[int, float]:
        """Return position and distance of the nearest center."""
        positions, squared = brute_force_neighbors.nearest(np.array(self.points), point[None])
        return int(positions[0]), math.sqrt(squared[0])

    def predict(self, point: Floats) -> float:
        """Return the mean label of the nearest center, 1/2 without any."""
        labels = self.labels[self.nearest(point)[0]] if self.points else []
        return label_sum(labels) / len(labels) if labels else 0.5

    def learn(self, point: Floats, label: float) -> float:
        """Run a round and return the prediction."""
        prediction = self.predict(point)
        self.clock += 1
        if not self.points:
            self._add_center(point)
        active, distance = self.nearest(point)
        rank = 1 + sum(start <= self.clock for start in self.rank_starts)
        if distance <= math.pow(self.clock, -1.0 / (1.0 + rank)):
            self.labels[active].append(label)
        else:
            self._add_center(point)
            if self.keep_founding_label:
                self.labels[-1].append(label)
        return prediction

    def _add_center(self, point: Floats) -> None:
        self.points.append(point)
        self.labels.append([])
        self.creation_rounds.append(self.clock)


def label_sum(labels: list[float]) -> float:
    """Sum from the first to the last; the built-in sum of newer Pythons compensates for rounding."""
    total = 0.0
    for label in labels:
        total += label
    return total
