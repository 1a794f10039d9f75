"""Algorithm 1 on whitened coordinates in the unit ball, as an expert of `MetricRegressor`."""

import numpy as np

from tests.reference.feature_views import Floats
from tests.reference.local_experts import nearest_neighbors


def effective_rank(eigenvalues: Floats, t: int) -> int:
    """Return the smallest r for which at most r eigenvalues are at least ``t**(-2 / (1 + r))``."""
    d = len(eigenvalues)
    return next(r for r in range(1, d + 1) if (eigenvalues >= float(t) ** (-2 / (1 + r))).sum() <= r)


class Algorithm1:
    """A packing whose radius is ``t**(-1 / (1 + rank))`` in round t; a new center counts its own label."""

    def __init__(self, eigenvalues: Floats, max_centers: int) -> None:
        self.eigenvalues = eigenvalues
        self.max_centers = max_centers
        self.rounds = 0
        self.points: list[Floats] = []
        self.labels: list[list[float]] = []

    def predict(self, point: Floats, otherwise: float) -> float:
        """Return the mean label of the nearest center, or `otherwise` without centers."""
        if not self.points:
            return otherwise
        active, _ = nearest_neighbors(np.array(self.points), point, 1)
        return float(np.mean(self.labels[active[0]]))

    def learn(self, point: Floats, label: float) -> None:
        self.rounds += 1
        radius = float(self.rounds) ** (-1 / (1 + effective_rank(self.eigenvalues, self.rounds)))
        if self.points:
            active, squared = nearest_neighbors(np.array(self.points), point, 1)
            if np.sqrt(squared[0]) <= radius or len(self.points) == self.max_centers:
                self.labels[active[0]].append(label)
                return
        self.points.append(point)
        self.labels.append([label])
