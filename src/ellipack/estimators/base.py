"""The verbs that every regressor here has, over a learner's state."""

import os
from abc import ABC, abstractmethod
from copy import deepcopy
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ellipack import serialization
from ellipack.errors import CheckpointError, InputError
from ellipack.estimators.input_checks import check_features, check_targets, record_features
from ellipack.estimators.parameter_archive import object_to_archive
from ellipack.serialization import Archive
from ellipack.validation import Floats, check_all_positive, check_rows

State = TypeVar("State")


class StreamingRegressor(RegressorMixin, BaseEstimator, ABC, Generic[State]):  # type: ignore[misc]  # untyped bases
    """A regressor that learns row by row, always ready to predict.

    A subclass says how its state begins, predicts and learns. Whatever a call refuses, it refuses before the
    state moves: after an error the regressor is what it was.

    No verb takes weights: a row is a round, and to play it thrice is to pass it thrice. What scikit-learn wants of
    weights, that rows may be shuffled first, no learner can give to whom their order matters.
    """

    state_: State

    @property
    def _fitted_state(self) -> State:
        """The state, if there is one yet."""
        if "state_" not in self.__dict__:  # scikit-learn, who says it in its own words, takes a while to look
            check_is_fitted(self, "state_")
        return self.state_

    @abstractmethod
    def _initial_state(self, d: int) -> State:
        """Return the state before the first round, for d features."""

    @abstractmethod
    def _predict(self, state: State, X: ArrayLike) -> Floats:
        """Return predictions; change nothing."""

    @abstractmethod
    def _learn(self, state: State, X: ArrayLike, y: ArrayLike) -> Floats:
        """Move the state on by a round a row; return the predictions made before each label was seen."""

    @abstractmethod
    def _to_archive(self, state: State) -> Archive:
        """Return what is saved of the state."""

    @abstractmethod
    def _from_archive(self, archive: Archive, d: int) -> State:
        """Return the state for d features that was saved as this archive."""

    @abstractmethod
    def _add_features(self, state: State, scales: Floats) -> None:
        """Let the state take more features, which were 0 in every row so far, of these typical sizes."""

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn from rows in their order."""
        self._fit_from_scratch(X, check_targets(y))
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from more rows, in their order."""
        self._fit_more(X, check_targets(y))
        return self

    def progressive(self, X: Any, y: Any) -> Floats:
        """Learn from more rows; return what was predicted for each before its label was seen."""
        return self._fit_more(X, check_targets(y))

    def predict(self, X: Any) -> Floats:
        """Return the prediction for each row as things stand."""
        state = self._fitted_state
        return self._predict(state, check_features(self, X))

    def add_features(self, scales: ArrayLike) -> Self:
        """Take more features from now on, as last columns, which were 0 in every row so far; nothing is forgotten.

        `scales` has a positive number for each, its typical size: a hint for units until there is more to go by.
        Names of columns, if there were any, are forgotten: they would not name all.
        """
        state = self._fitted_state
        hints = check_all_positive(scales, "scales")
        self._add_features(state, hints)
        self.n_features_in_ += len(hints)
        self.__dict__.pop("feature_names_in_", None)
        return self

    def _fit_from_scratch(self, X: Any, y: ArrayLike) -> Floats:
        """Learn from nothing, and only then take the new state for one's own."""
        table = check_rows(X)
        state = self._initial_state(table.shape[1])
        predictions = self._learn(state, table, y)
        record_features(self, X)
        self.state_ = state
        return predictions

    def _fit_more(self, X: Any, y: ArrayLike) -> Floats:
        """Learn from where one is."""
        if "state_" not in self.__dict__:
            return self._fit_from_scratch(X, y)
        return self._learn(self.state_, check_features(self, X), y)

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        super().__setstate__(attributes)
        # joblib may hand over arrays that lie on disk: some can't be written, and others change the file they came in.
        if "state_" in attributes:
            self.state_ = deepcopy(self.state_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to a file, from which `ellipack.load` goes on with the same bits.

        The file is whole or not there at all: whatever fails before it is in its place, one that was there stays there.
        """
        serialization.write(path, type(self).__name__, self.to_archive())

    def to_archive(self) -> Archive:
        """Return what is saved: the parameters, and what was learned, if anything was."""
        names = getattr(self, "feature_names_in_", None)
        learned = hasattr(self, "state_")
        facts = {
            "features": self.n_features_in_ if learned else 0,
            "feature_names": [] if names is None else [str(name) for name in names],
        }
        parts = {"state": self._to_archive(self.state_)} if learned else {}
        return Archive(facts).with_parts(parameters=object_to_archive(self), **parts)

    def restore_state(self, archive: Archive) -> Self:
        """Take for one's own what was learned by the learner that this archive was saved of."""
        d = archive.integer("features", 0)
        if d == 0:
            return self
        names = archive.strings("feature_names")
        if names and len(names) != d:
            raise CheckpointError(f"feature_names must be {d} strings or none, got {len(names)}")
        try:
            state = self._from_archive(archive.part("state"), d)  # first: it knows that d is as large as the file says
            self._initial_state(d)  # which checks the parameters
        except InputError as error:
            raise CheckpointError(f"parameters: {error}") from error
        self.state_ = state
        self.n_features_in_ = d
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self
