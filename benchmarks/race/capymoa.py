"""Learners of CapyMOA's, which are MOA's: they need Java and torch besides."""

from io import BytesIO
from typing import Any

import numpy as np

from benchmarks.race.players import Singly
from ellipack.validation import Floats

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
