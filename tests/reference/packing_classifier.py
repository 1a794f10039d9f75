"""Mistake-driven classification in whitened coordinates, in plain Python, with brute-force search."""

import math
from typing import Any

import numpy as np

from ellipack.validation import Floats, Ints
from tests.reference import brute_force_neighbors


class MistakePacking:
    """A packing that tells the label 1 from 0 and learns from mistakes only."""

    def __init__(self, rank_starts: Ints, ball_clocks: bool) -> None:
        self.rank_starts = rank_starts.tolist()
        self.ball_clocks = ball_clocks
        self.mistakes = 0
        self.points: list[Floats] = []
        self.labels: list[list[int]] = []
        self.creation_mistakes: list[int] = []
        self.radii: list[list[float]] = []  # of the rounds whose labels a center has

    def predict(self, point: Floats) -> float:
        """Return the mean label of the nearest center, 1/2 without any."""
        if not self.points:
            return 0.5
        labels = self.labels[self._nearest(point)[0]]
        return sum(labels) / len(labels)

    def learn(self, point: Floats, label: int) -> float:
        """Run a round and return the prediction."""
        prediction = self.predict(point)
        if (1 if prediction > 0.5 else 0) == label:
            return prediction
        self.mistakes += 1
        active, distance = self._nearest(point) if self.points else (-1, math.inf)
        clock = len(self.labels[active]) + 1 if self.ball_clocks and self.points else self.mistakes
        rank = 1 + sum(start <= clock for start in self.rank_starts)
        radius = math.pow(clock, -1.0 / (1.0 + rank))
        if distance > radius:
            self.points.append(point)
            self.labels.append([])
            self.radii.append([])
            self.creation_mistakes.append(self.mistakes)
            active = len(self.points) - 1
        self.labels[active].append(label)
        self.radii[active].append(radius)
        return prediction

    def _nearest(self, point: Floats) -> tuple[int, float]:
        positions, squared = brute_force_neighbors.nearest(np.array(self.points), point[None])
        return int(positions[0]), math.sqrt(squared[0])


class Classifier:
    """One packing for two classes, one for each class from three on."""

    def __init__(self, rank_starts: Ints, ball_clocks: bool) -> None:
        self.settings = rank_starts, ball_clocks
        self.classes: list[Any] = []
        # By class; None is the second of two classes.
        self.packings: dict[Any, MistakePacking] = {None: MistakePacking(rank_starts, ball_clocks)}

    def predict(self, point: Floats) -> Any:
        """Return the class with the largest mean, the first of equals."""
        if len(self.classes) <= 2:
            return self.classes[-1] if self.packings[None].predict(point) > 0.5 else self.classes[0]
        means = [self.packings[each].predict(point) for each in self.classes]
        return self.classes[means.index(max(means))]

    def learn(self, point: Floats, label: Any) -> Any:
        """Run a round and return the predicted class; the label itself if no class is known."""
        prediction = self.predict(point) if self.classes else label
        if label not in self.classes:
            self._add_class(label)
        for each, packing in self.packings.items():
            packing.learn(point, int(label == (self.classes[-1] if each is None else each) and len(self.classes) > 1))
        return prediction

    def _add_class(self, label: Any) -> None:
        if len(self.classes) == 2:
            second = self.packings.pop(None)
            first = MistakePacking(*self.settings)
            first.mistakes, first.points = second.mistakes, list(second.points)
            first.creation_mistakes = list(second.creation_mistakes)
            first.labels = [[1 - each for each in labels] for labels in second.labels]
            first.radii = [list(radii) for radii in second.radii]
            self.packings = {self.classes[0]: first, self.classes[1]: second}
        self.classes = sorted([*self.classes, label])
        if len(self.classes) > 2:
            self.packings[label] = MistakePacking(*self.settings)
