"""How anything that learns takes part: rows come in, and predictions made before their labels were seen come out."""

import pickle
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ellipack.estimators.base import StreamingRegressor
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

    def __init__(self, learner: StreamingRegressor[Any]) -> None:
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


class Running:
    """The mean and deviation of each column of the rows so far, by Welford's recurrence."""

    def __init__(self) -> None:
        self._count = 0
        self._mean: Any = 0.0
        self._squares: Any = 0.0

    def add(self, row: Floats) -> None:
        """Take a row in."""
        self._count += 1
        before = row - self._mean
        self._mean = self._mean + before / self._count
        self._squares = self._squares + before * (row - self._mean)

    def scaled(self, values: Floats) -> Floats:
        """Return values in standard units; a column that never varied is in units of 1."""
        return np.asarray((values - self._mean) / self._deviation())

    def original(self, values: Floats) -> Floats:
        """Return values in standard units as they were."""
        return np.asarray(values * self._deviation() + self._mean)

    def _deviation(self) -> Any:
        deviation = np.sqrt(self._squares / max(1, self._count))
        return np.where(deviation > 0.0, deviation, 1.0)


INSTALL = (
    "CapyMOA can't be imported: it needs Java on the path and, in an environment of its own, since it wants an older "
    "pandas, pip install torch capymoa"
)


class CapyMoa(Singly):
    """A regressor of CapyMOA's by its name, with its settings; rows as they are, as its documentation has it."""

    def __init__(self, name: str, **settings: Any) -> None:
        try:
            from capymoa import regressor  # noqa: PLC0415
        except Exception as error:  # without Java it is any error at all
            raise ModuleNotFoundError(INSTALL) from error
        self._class, self._settings = getattr(regressor, name), settings
        self._model: Any = None

    def play(self, X: Floats, y: Floats) -> Floats:
        """Predict a row, then learn it."""
        from capymoa.core import RegressionInstance  # noqa: PLC0415
        from capymoa.stream import Schema  # noqa: PLC0415

        if self._model is None:
            names = [f"x{k}" for k in range(X.shape[1])]
            self._schema = Schema.from_custom([*names, "y"], target="y", name="race")
            self._model = self._class(self._schema, **self._settings)
        row = RegressionInstance.from_array(self._schema, X[0], float(y[0]))
        prediction = self._model.predict(row)
        self._model.train(row)
        return np.array([0.0 if prediction is None else float(prediction)])

    def saved(self) -> int:
        """Return the size of the model as CapyMOA writes it."""
        from jpype.pickle import JPickler  # noqa: PLC0415

        file = BytesIO()
        JPickler(file).dump(self._model.moa_learner)
        return len(file.getvalue())
