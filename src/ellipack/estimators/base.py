"""Base classes of the estimators with scikit-learn's methods."""

import os
from abc import ABC, abstractmethod
from copy import deepcopy
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ellipack import serialization
from ellipack.errors import InputError, ModelFileError
from ellipack.estimators.input_checks import check_features, check_targets, record_features
from ellipack.estimators.parameter_archive import object_to_archive
from ellipack.serialization import Archive
from ellipack.validation import Floats, check_all_positive, check_rows

State = TypeVar("State")


class StreamingEstimator(BaseEstimator, ABC, Generic[State]):  # type: ignore[misc]  # untyped base
    """Base class of estimators that learn row by row: their state, its features, and archives of it.

    A call that rejects its input leaves the state unchanged.
    """

    state_: State

    @property
    def _fitted_state(self) -> State:
        """The state; raises `NotFittedError` before the first row."""
        if "state_" not in self.__dict__:  # faster than check_is_fitted, which composes the message
            check_is_fitted(self, "state_")
        return self.state_

    @abstractmethod
    def _initial_state(self, d: int) -> State:
        """Return the state before the first round, for d features."""

    @abstractmethod
    def _to_archive(self, state: State) -> Archive:
        """Return the archive of a state."""

    @abstractmethod
    def _from_archive(self, archive: Archive, d: int) -> State:
        """Return the state for d features from its archive."""

    @abstractmethod
    def _add_features(self, state: State, scales: Floats) -> None:
        """Add features of given typical sizes, which are 0 in all earlier rows."""

    def add_features(self, scales: ArrayLike) -> Self:
        """Add features as last columns and keep the fitted state.

        The new features count as 0 in all earlier rows. ``feature_names_in_`` is removed, because it would not name
        all columns.

        Parameters
        ----------
        scales : array-like of shape (n_new_features,)
            Typical size of each new feature, above 0. It sets the unit of the feature until rows give a better one.

        Returns
        -------
        self : object
            Fitted estimator.

        Examples
        --------
        >>> from ellipack import PackingRegressor
        >>> model = PackingRegressor().fit([[0.1], [0.9]], [0.0, 1.0])
        >>> model.add_features([0.5]).predict([[0.1, 0.0]]).tolist()
        [0.0]
        """
        state = self._fitted_state
        sizes = check_all_positive(scales, "scales")
        self._add_features(state, sizes)
        self.n_features_in_ += len(sizes)
        self.__dict__.pop("feature_names_in_", None)
        return self

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        super().__setstate__(attributes)
        # joblib may map arrays from disk. Some are read-only, and writing to others would change the file.
        if "state_" in attributes:
            self.state_ = deepcopy(self.state_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the parameters and the fitted state to a file.

        `ellipack.load` reads the file. The loaded model continues with the same results, bit for bit. Writing is
        atomic: after a failure an existing file is unchanged.

        Parameters
        ----------
        path : str or path-like
            Path of the file. An existing file is replaced.

        Raises
        ------
        ModelFileError
            If the file cannot be written.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import ellipack
        >>> model = ellipack.PackingRegressor().fit([[0.1], [0.9]], [0.0, 1.0])
        >>> with TemporaryDirectory() as folder:
        ...     model.save(Path(folder) / "model")
        ...     loaded = ellipack.load(Path(folder) / "model")
        >>> loaded.predict([[0.8]]).tolist()
        [1.0]
        """
        serialization.write(path, type(self).__name__, self.to_archive())

    def to_archive(self) -> Archive:
        """Return an archive of the parameters and, if fitted, of the state.

        Returns
        -------
        archive : Archive
        """
        names = getattr(self, "feature_names_in_", None)
        is_fitted = hasattr(self, "state_")
        facts = {
            "features": self.n_features_in_ if is_fitted else 0,
            "feature_names": [] if names is None else [str(name) for name in names],
        }
        parts = {"state": self._to_archive(self.state_)} if is_fitted else {}
        return Archive(facts).with_parts(parameters=object_to_archive(self), **parts)

    def restore_state(self, archive: Archive) -> Self:
        """Restore the fitted state from an archive.

        Parameters
        ----------
        archive : Archive
            Result of `to_archive` of an estimator with the same parameters.

        Returns
        -------
        self : object
            This estimator, fitted if the archived one was.

        Raises
        ------
        ModelFileError
            If the archive is incomplete or inconsistent.
        """
        d = archive.integer("features", 0)
        if d == 0:
            return self
        names = archive.strings("feature_names")
        if names and len(names) != d:
            raise ModelFileError(f"feature_names must be {d} strings or none, got {len(names)}")
        try:
            # The state comes first: it checks that the arrays are as large as d, before anything of size d is made.
            state = self._from_archive(archive.part("state"), d)
            self._initial_state(d)  # checks the parameters
        except InputError as error:
            raise ModelFileError(f"parameters: {error}") from error
        self.state_ = state
        self.n_features_in_ = d
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self


class StreamingRegressor(RegressorMixin, StreamingEstimator[State]):  # type: ignore[misc]  # untyped base
    """Base class of regressors that learn row by row and can predict at any time.

    A subclass defines its initial state, how the state predicts and how it learns. A call that rejects its input
    leaves the state unchanged.

    Methods take no sample weights. Each row is one round of online learning, and the order of the rows matters. To
    give a row the weight 3, pass it three times.
    """

    @abstractmethod
    def _predict(self, state: State, X: ArrayLike) -> Floats:
        """Return predictions without a change of the state."""

    @abstractmethod
    def _learn(self, state: State, X: ArrayLike, y: ArrayLike) -> Floats:
        """Update the state by one round per row; return the predictions made before each label."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows in their order, after a reset.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._fit_from_scratch(X, check_targets(y))
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from more rows in their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._fit_more(X, check_targets(y))
        return self

    def progressive(self, X: Any, y: Any) -> Floats:
        """Predict each row, then learn from its label.

        The state afterwards is the same as after `partial_fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        predictions : array of shape (n_samples,)
            The prediction for each row, made before its label was seen.
        """
        return self._fit_more(X, check_targets(y))

    def predict(self, X: Any) -> Floats:
        """Predict rows with the current state.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        predictions : array of shape (n_samples,)
        """
        state = self._fitted_state
        return self._predict(state, check_features(self, X))

    def _fit_from_scratch(self, X: Any, y: ArrayLike) -> Floats:
        """Learn from an initial state, and replace the old state only after success."""
        table = check_rows(X)
        state = self._initial_state(table.shape[1])
        predictions = self._learn(state, table, y)
        record_features(self, X)
        self.state_ = state
        return predictions

    def _fit_more(self, X: Any, y: ArrayLike) -> Floats:
        """Learn from the current state, or from an initial one if there is none."""
        if "state_" not in self.__dict__:
            return self._fit_from_scratch(X, y)
        return self._learn(self.state_, check_features(self, X), y)
