"""The verbs that every regressor here has, over a learner's state."""

from abc import ABC, abstractmethod
from typing import Any, Generic, Self, TypeVar

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ellipack.errors import ShapeError
from ellipack.validation import Floats, rows

State = TypeVar("State")


class StreamRegressor(RegressorMixin, BaseEstimator, ABC, Generic[State]):  # type: ignore[misc]  # untyped bases
    """A regressor that learns row by row, always ready to predict.

    A subclass says how its state begins, predicts and learns. Whatever a call refuses, it refuses before the
    state moves: after an error the regressor is what it was.
    """

    state_: State

    @property
    def _learned(self) -> State:
        """The state, if there is one yet."""
        check_is_fitted(self, "state_")
        return self.state_

    @abstractmethod
    def _init(self, d: int) -> State:
        """Return the state before the first round, for d features."""

    @abstractmethod
    def _predict(self, state: State, X: ArrayLike) -> Floats:
        """Return predictions; change nothing."""

    @abstractmethod
    def _learn(self, state: State, X: ArrayLike, y: ArrayLike) -> Floats:
        """Move the state on by a round a row; return the predictions made before each label was seen."""

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn from rows in their order."""
        self._begin(X, y)
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from more rows, in their order."""
        self.progressive(X, y)
        return self

    def progressive(self, X: Any, y: Any) -> Floats:
        """Learn from more rows; return what was predicted for each before its label was seen."""
        if not hasattr(self, "state_"):
            return self._begin(X, y)
        return self._learn(self.state_, self._checked(X), y)

    def predict(self, X: Any) -> Floats:
        """Return the prediction for each row as things stand."""
        return self._predict(self._learned, self._checked(X))

    def _checked(self, X: Any) -> Floats:
        """Return rows whose width, and names if they have any, are those learned from."""
        table = rows(X)
        try:
            validate_data(self, X, reset=False, skip_check_array=True)
        except ValueError as error:
            raise ShapeError(str(error)) from error
        return table

    def _begin(self, X: Any, y: Any) -> Floats:
        """Learn from nothing, and only then take the new state for one's own."""
        table = rows(X)
        state = self._init(table.shape[1])
        predictions = self._learn(state, table, y)
        validate_data(self, X, reset=True, skip_check_array=True)
        self.state_ = state
        return predictions
