"""How anything that learns takes part: rows come in, and predictions made before their labels were seen come out."""

import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.race.units import Running
from ellipack.estimators.stream_regressor import StreamRegressor
from ellipack.validation import Floats

FIRST, GROWTH = 50, 1.15
"""A batch model is trained when there are so many rows, and again whenever there are so many times as many."""


class Player(Protocol):
    """A learner that takes part."""

    def room(self) -> int:
        """Return how many rows may be played in one call: more than one only where that changes no prediction."""

    def play(self, X: Floats, y: Floats) -> Floats:
        """Predict rows, each before its label is seen, and learn them."""

    def saved(self) -> int:
        """Return the bytes that it takes on disk by now."""


class Singly:
    """One row a call."""

    def room(self) -> int:
        """Return one."""
        return 1


class Ours(Singly):
    """A learner of this package."""

    def __init__(self, learner: StreamRegressor[Any]) -> None:
        self.learner = learner

    def play(self, X: Floats, y: Floats) -> Floats:
        """Predict and learn in one call."""
        return self.learner.progressive(X, y)

    def saved(self) -> int:
        """Return the size of the file that `save` writes."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            self.learner.save(path)
            return path.stat().st_size


class River(Singly):
    """A model of River's."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def play(self, X: Floats, y: Floats) -> Floats:
        """Predict a row, then learn it."""
        row = dict(enumerate(X[0].tolist()))
        prediction = self.model.predict_one(row)
        self.model.learn_one(row, float(y[0]))
        return np.array([prediction or 0.0])

    def saved(self) -> int:
        """Return the size of its pickle."""
        return len(pickle.dumps(self.model))


class Incremental(Singly):
    """A model of scikit-learn's that has `partial_fit`, on rows and labels in units of what was seen so far."""

    def __init__(self, model: Any) -> None:
        self.model, self.rows, self.labels, self.begun = model, Running(), Running(), False

    def play(self, X: Floats, y: Floats) -> Floats:
        """Predict a row, then learn it."""
        self.rows.add(X[0])
        row = self.rows.scaled(X)
        prediction = self.labels.original(self.model.predict(row)) if self.begun else np.zeros(1)
        self.labels.add(y)
        self.model.partial_fit(row, self.labels.scaled(y))
        self.begun = True
        return np.asarray(prediction)

    def saved(self) -> int:
        """Return the size of its pickle, scales included."""
        return len(pickle.dumps(self))


class Retrained:
    """A batch model that is trained again on everything seen whenever there is enough more of it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._model: Any = None
        self._X: list[Floats] = []
        self._y: list[Floats] = []
        self._rows, self._due, self._mean = 0, FIRST, MeanLabel()

    def room(self) -> int:
        """Return the rows until it is trained again; one alone when it is, so that the training is that round's."""
        return max(1, self._due - self._rows)

    def play(self, X: Floats, y: Floats) -> Floats:
        """Train if it is time to, then predict; before the first time, the mean label."""
        if self._rows >= self._due:
            self._model = self._make().fit(np.concatenate(self._X), np.concatenate(self._y))
            self._due = int(np.ceil(GROWTH * self._rows))
        predictions = self._mean.play(X, y) if self._model is None else np.asarray(self._model.predict(X))
        self._X.append(X)
        self._y.append(y)
        self._rows += len(y)
        return predictions

    def saved(self) -> int:
        """Return the size of the model's pickle and of the rows that it will be trained on again."""
        return len(pickle.dumps((self._model, self._X, self._y)))


class MeanLabel(Singly):
    """The mean of the labels so far."""

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def play(self, X: Floats, y: Floats) -> Floats:
        """Predict the mean, 0 before the first label, then take the label in; rows may be any number."""
        predictions = np.empty(len(y))
        for t, label in enumerate(y.tolist()):
            predictions[t] = self._sum / max(1, self._count)
            self._sum, self._count = self._sum + label, self._count + 1
        return predictions

    def saved(self) -> int:
        """Return the size of its pickle."""
        return len(pickle.dumps(self))


class LastLabel(Singly):
    """The label before."""

    def __init__(self) -> None:
        self._last = 0.0

    def play(self, X: Floats, y: Floats) -> Floats:
        """Predict the label before, then take this one for it."""
        prediction, self._last = self._last, float(y[0])
        return np.array([prediction])

    def saved(self) -> int:
        """Return the size of its pickle."""
        return len(pickle.dumps(self))
