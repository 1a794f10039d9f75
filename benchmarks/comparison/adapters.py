"""One interface for all models of the comparison: each row is predicted before its label is seen, then learned."""

import pickle
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ellipack.estimators.base import StreamingRegressor
from ellipack.validation import Floats

FIRST_TRAINING, TRAINING_GROWTH = 50, 1.15
"""A batch model is trained at so many rows, and again whenever their number has grown by this factor."""

INSTALL_CAPYMOA = (
    "CapyMOA cannot be imported: it needs Java on the path and, in a separate environment because it needs an older "
    "pandas, pip install torch capymoa"
)


class PrequentialModel(Protocol):
    """A model that is tested on each row and then trained on it."""

    def rows_per_call(self) -> int:
        """Return how many rows the next call may get: more than one only if that changes no prediction."""

    def predict_then_learn(self, X: Floats, y: Floats) -> Floats:
        """Predict rows, each before its label is seen, and learn them."""

    def saved_bytes(self) -> int:
        """Return the size of the model on disk."""


class RowByRow:
    """One row per call."""

    def rows_per_call(self) -> int:
        """Return 1."""
        return 1


class EllipackAdapter(RowByRow):
    """A learner of ellipack."""

    def __init__(self, learner: StreamingRegressor[Any]) -> None:
        self.learner = learner

    def predict_then_learn(self, X: Floats, y: Floats) -> Floats:
        """Predict and learn in one call."""
        return self.learner.progressive(X, y)

    def saved_bytes(self) -> int:
        """Return the size of the file that `save` writes."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            self.learner.save(path)
            return path.stat().st_size


class RiverAdapter(RowByRow):
    """A model of River."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict_then_learn(self, X: Floats, y: Floats) -> Floats:
        """Predict a row, then learn it."""
        row = dict(enumerate(X[0].tolist()))
        prediction = self.model.predict_one(row)
        self.model.learn_one(row, float(y[0]))
        return np.array([prediction or 0.0])

    def saved_bytes(self) -> int:
        """Return the size of the pickled model."""
        return len(pickle.dumps(self.model))


class RunningScaler:
    """Standardization by the mean and deviation of the rows so far (Welford's algorithm)."""

    def __init__(self) -> None:
        self._count = 0
        self._mean: Any = 0.0
        self._squares: Any = 0.0

    def update(self, row: Floats) -> None:
        """Add a row to the statistics."""
        self._count += 1
        before = row - self._mean
        self._mean = self._mean + before / self._count
        self._squares = self._squares + before * (row - self._mean)

    def transform(self, values: Floats) -> Floats:
        """Return standardized values; a column that never varied is only centered."""
        return np.asarray((values - self._mean) / self._deviation())

    def inverse_transform(self, values: Floats) -> Floats:
        """Return standardized values in their original units."""
        return np.asarray(values * self._deviation() + self._mean)

    def _deviation(self) -> Any:
        deviation = np.sqrt(self._squares / max(1, self._count))
        return np.where(deviation > 0.0, deviation, 1.0)


class PartialFitAdapter(RowByRow):
    """A model of scikit-learn with `partial_fit`, on rows and labels standardized by what was seen so far."""

    def __init__(self, model: Any) -> None:
        self.model, self.rows, self.labels, self.fitted = model, RunningScaler(), RunningScaler(), False

    def predict_then_learn(self, X: Floats, y: Floats) -> Floats:
        """Predict a row, then learn it."""
        self.rows.update(X[0])
        row = self.rows.transform(X)
        prediction = self.labels.inverse_transform(self.model.predict(row)) if self.fitted else np.zeros(1)
        self.labels.update(y)
        self.model.partial_fit(row, self.labels.transform(y))
        self.fitted = True
        return np.asarray(prediction)

    def saved_bytes(self) -> int:
        """Return the size of the pickled model with its scalers."""
        return len(pickle.dumps(self))


class RetrainedAdapter:
    """A batch model that is retrained on all rows so far whenever their number has grown enough."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._model: Any = None
        self._X: list[Floats] = []
        self._y: list[Floats] = []
        self._rows, self._next_training, self._mean = 0, FIRST_TRAINING, MeanLabel()

    def rows_per_call(self) -> int:
        """Return the rows until the next training; 1 when it is due, so that its time counts for that row."""
        return max(1, self._next_training - self._rows)

    def predict_then_learn(self, X: Floats, y: Floats) -> Floats:
        """Train if it is due, then predict; before the first training, predict the mean label."""
        if self._rows >= self._next_training:
            self._model = self._make().fit(np.concatenate(self._X), np.concatenate(self._y))
            self._next_training = int(np.ceil(TRAINING_GROWTH * self._rows))
        predictions = self._mean.predict_then_learn(X, y) if self._model is None else np.asarray(self._model.predict(X))
        self._X.append(X)
        self._y.append(y)
        self._rows += len(y)
        return predictions

    def saved_bytes(self) -> int:
        """Return the size of the pickled model and of the rows for its next training."""
        return len(pickle.dumps((self._model, self._X, self._y)))


class MeanLabel(RowByRow):
    """The mean of the labels so far."""

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def predict_then_learn(self, X: Floats, y: Floats) -> Floats:
        """Predict the mean of the labels before each row, 0 for the first; takes any number of rows."""
        predictions = np.empty(len(y))
        for t, label in enumerate(y.tolist()):
            predictions[t] = self._sum / max(1, self._count)
            self._sum, self._count = self._sum + label, self._count + 1
        return predictions

    def saved_bytes(self) -> int:
        """Return the size of its pickle."""
        return len(pickle.dumps(self))


class LastLabel(RowByRow):
    """The label of the row before."""

    def __init__(self) -> None:
        self._last = 0.0

    def predict_then_learn(self, X: Floats, y: Floats) -> Floats:
        """Predict the label of the row before, 0 for the first."""
        prediction, self._last = self._last, float(y[0])
        return np.array([prediction])

    def saved_bytes(self) -> int:
        """Return the size of its pickle."""
        return len(pickle.dumps(self))


class CapyMoaAdapter(RowByRow):
    """A regressor of CapyMOA, by name; rows are not scaled, as in its documentation.

    Raises
    ------
    ModuleNotFoundError
        If CapyMOA, torch or Java is missing.
    """

    def __init__(self, name: str, **settings: Any) -> None:
        try:
            from capymoa import regressor  # noqa: PLC0415
        except Exception as error:  # without Java it may be any exception
            raise ModuleNotFoundError(INSTALL_CAPYMOA) from error
        self._class, self._settings = getattr(regressor, name), settings
        self._model: Any = None

    def predict_then_learn(self, X: Floats, y: Floats) -> Floats:
        """Predict a row, then learn it."""
        from capymoa.core import RegressionInstance  # noqa: PLC0415
        from capymoa.stream import Schema  # noqa: PLC0415

        if self._model is None:
            names = [f"x{k}" for k in range(X.shape[1])]
            self._schema = Schema.from_custom([*names, "y"], target="y", name="comparison")
            self._model = self._class(self._schema, **self._settings)
        row = RegressionInstance.from_array(self._schema, X[0], float(y[0]))
        prediction = self._model.predict(row)
        self._model.train(row)
        return np.array([0.0 if prediction is None else float(prediction)])

    def saved_bytes(self) -> int:
        """Return the size of the model as CapyMOA writes it."""
        from jpype.pickle import JPickler  # noqa: PLC0415

        file = BytesIO()
        JPickler(file).dump(self._model.moa_learner)
        return len(file.getvalue())
