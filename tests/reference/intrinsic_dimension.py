"""Algorithm 1 with an estimate of the dimension, in plain Python, with brute-force search."""

import math

import numpy as np

from ellipack.validation import Floats
from tests.reference import brute_force_neighbors
from tests.reference.packing import label_sum


class DimensionPacking:
    """The centers with their labels, and the estimate of the dimension."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.clock = 0
        self.dimension = 1
        self.phase_centers = 0
        self.points: list[Floats] = []
        self.labels: list[list[float]] = []
        self.rounds: list[list[int]] = []  # whose labels a center has
        self.radii: list[float] = []  # of all rounds
        self.phase_radii: list[float] = []  # at which the dimension increased

    def radius(self) -> float:
        """Return the radius of the current round."""
        return math.pow(self.clock, -1.0 / (self.offset + self.dimension))

    def nearest(self, point: Floats) -> tuple[int, float]:
        """Return position and distance of the nearest center; an infinite distance without any."""
        if not self.points:
            return -1, math.inf
        positions, squared = brute_force_neighbors.nearest(np.array(self.points), point[None])
        return int(positions[0]), math.sqrt(squared[0])

    def predict(self, point: Floats) -> float:
        """Return the mean label of the nearest center, 1/2 without any."""
        active, _ = self.nearest(point)
        return label_sum(self.labels[active]) / len(self.labels[active]) if self.points else 0.5

    def learn(self, point: Floats, label: float) -> float:
        """Run a round and return the prediction."""
        prediction = self.predict(point)
        self.clock += 1
        active, distance = self.nearest(point)
        too_many = self.phase_centers + 1 > math.pow(3.0 / self.radius(), self.dimension)
        if distance > self.radius() and too_many and self.dimension < len(point):
            self.phase_radii.append(self.radius())
            self.dimension += 1
            self.phase_centers = 0
        if distance > self.radius():
            self.points.append(point)
            self.labels.append([])
            self.rounds.append([])
            self.phase_centers += 1
            active = len(self.points) - 1
        self.labels[active].append(label)
        self.rounds[active].append(self.clock)
        self.radii.append(self.radius())
        return prediction
