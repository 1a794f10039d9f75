"""Mistake-driven classification over packings, with scikit-learn's methods."""

from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from ellipack.errors import DomainError, InputError
from ellipack.estimators.base import StreamingEstimator
from ellipack.estimators.input_checks import check_class_labels, feature_names
from ellipack.estimators.packing import as_metric, check_metric
from ellipack.learners import packing_classifier
from ellipack.learners.packing_classifier import PackingClassifierState
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.schedules import radius
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, Ints, check_rows

_CLOCKS: Final = ("packing", "ball")


class PackingClassifier(ClassifierMixin, StreamingEstimator[PackingClassifierState]):  # type: ignore[misc]  # untyped base
    """Online classification over a packing of ellipsoids whose radius shrinks with mistakes.

    The conclusions of the paper [1]_ ask for this variant of Algorithm 1. The prediction for a row is the class of most
    labels of its nearest center. A round with a right prediction changes nothing. A wrong one counts as a mistake and
    is learned as in Algorithm 1, with the number of mistakes in place of the time. If some smooth function fits the
    classes, the number of mistakes is bounded however long the stream is; see
    `ellipack.theory.mistake_bound`. The radius then stops shrinking and the effective rank stops growing.

    With three and more classes, each has a packing that tells it from the rest. New classes may appear at any time.

    As in the paper, instances must lie in the unit ball. Other data raise a `DomainError`; they are never rescaled.
    `ellipack.river.PackingClassifier` accepts any features.

    Parameters
    ----------
    metric : Metric or array-like of shape (n_features, n_features) or (n_features,), optional
        A metric, a positive definite matrix, or the diagonal of one. The default is the Euclidean metric.
    clock : {"packing", "ball"}, default "packing"
        Mistakes that set the radius of a ball: those of its whole packing, or only those in the ball itself.
        A change after `fit` has no effect before the next `fit`.

    Attributes
    ----------
    state_ : PackingClassifierState
        Fitted state.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Names of the features, if the columns had names.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
       section 5.

    Examples
    --------
    >>> X, y = [[-0.9, 0.0], [0.9, 0.0], [-0.8, 0.1], [0.8, 0.1]], ["low", "high", "low", "high"]
    >>> model = PackingClassifier()
    >>> model.progressive(X, y).tolist()
    ['low', 'low', 'high', 'low']
    >>> model.predict([[0.7, 0.0], [-0.7, 0.0]]).tolist()
    ['high', 'low']
    """

    def __init__(self, metric: Metric | ArrayLike | None = None, *, clock: str = "packing") -> None:
        self.metric = metric
        self.clock = clock

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows in their order, after a reset.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Classes.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        labels = check_class_labels(y)
        with self._turn:
            self._fitted, _ = self._learn_from_scratch(X, labels, None)
        return self

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Self:
        """Learn from more rows in their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Classes.
        classes : array-like of shape (n_classes,), optional
            Classes to know before these rows. Others become known when they first appear.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._fit_more(X, y, classes)
        return self

    def progressive(self, X: Any, y: Any) -> NDArray[Any]:
        """Predict each row, then learn from its label.

        The state afterwards is the same as after `partial_fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Classes.

        Returns
        -------
        predictions : array of shape (n_samples,)
            The class predicted for each row before its label was seen. If no class was known, the first one is the
            label itself.
        """
        return self._fit_more(X, y, None)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the classes of rows with the current state.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        predictions : array of shape (n_samples,)
            The most probable classes; of equally probable ones the first.
        """
        classes, probabilities = self._predict(X)
        return np.asarray(classes[probabilities.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Return the share of each class among the labels of the nearest center.

        With three and more classes these are the shares in the packings of the classes, divided by their sum. Centers
        have labels of mistakes only, so that the shares are not calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            One column for each of `classes_`.
        """
        return self._predict(X)[1]

    def _predict(self, X: Any) -> tuple[NDArray[Any], Floats]:
        """Return classes and probabilities of the same state."""
        fitted = self._fitted_state
        snapshot = PackingClassifierState(*fitted.parts)
        return snapshot.classes, packing_classifier.predict(snapshot, self._checked_features(X))

    def _learn_from_scratch(
        self, X: Any, y: NDArray[Any], classes: ArrayLike | None
    ) -> tuple[tuple[PackingClassifierState, NDArray[np.object_] | None], NDArray[Any]]:
        """Learn from an initial state. Return the state with the names of its features, and the predictions."""
        table, names = check_rows(X), feature_names(X)
        state = self._initial_state(table.shape[1])
        if classes is not None:
            known = check_class_labels(classes, "classes")
            state = packing_classifier.init(state.metric, known, ball_clocks=has_ball_clocks(self.clock))
        predictions = packing_classifier.learn(state, table, y)
        return (state, names), predictions

    def _fit_more(self, X: Any, y: Any, classes: ArrayLike | None) -> NDArray[Any]:
        """Learn from the current state, or from an initial one if there is none."""
        labels = check_class_labels(y)
        with self._turn:
            if "_fitted" not in self.__dict__:
                self._fitted, predictions = self._learn_from_scratch(X, labels, classes)
                return predictions
            known = self.state_.classes
            more = known[:0] if classes is None else check_class_labels(classes, "classes")
            for name, values in (("y", labels), ("classes", more)):
                if len(values) and (values.dtype.kind in "UO") != (known.dtype.kind in "UO"):
                    raise InputError(f"{name} must hold classes of the same type as {known[0]!r}, got {values[0]!r}")
            return packing_classifier.learn(self.state_, self._checked_features(X), labels, more)

    def _check_parameters(self) -> None:
        has_ball_clocks(self.clock)
        check_metric(self.metric)

    def _initial_state(self, d: int) -> PackingClassifierState:
        return packing_classifier.init(as_metric(self.metric, d), ball_clocks=has_ball_clocks(self.clock))

    def _dimension(self, state: PackingClassifierState) -> int:
        return state.metric.dimension

    def _to_archive(self, state: PackingClassifierState) -> Archive:
        return packing_classifier.to_archive(state)

    def _from_archive(self, archive: Archive, d: int) -> PackingClassifierState:
        return packing_classifier.from_archive(archive, d)

    def _add_features(self, state: PackingClassifierState, scales: Floats) -> None:
        packing_classifier.add_features(state, len(scales))

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes in ascending order."""
        return self._fitted_state.classes

    @property
    def metric_(self) -> Metric:
        """Metric, divided by its spectral norm."""
        return self._fitted_state.metric

    @property
    def mistakes_(self) -> Ints:
        """Number of mistakes of each packing: one for two classes, otherwise one per class."""
        return self._fitted_state.core.mistakes

    @property
    def n_centers_(self) -> int:
        """Number of centers of all packings."""
        return int(self._fitted_state.centers.sizes.sum())

    @property
    def radius_(self) -> Floats:
        """Radius of each packing at its last mistake; 1 before the first. Balls with clocks of their own are larger."""
        return radius(self.metric_.eigenvalues, np.maximum(self.mistakes_, 1))

    @property
    def effective_rank_(self) -> Ints:
        """Effective rank of the metric for each packing at its last mistake."""
        return effective_rank(self.metric_.eigenvalues, np.maximum(self.mistakes_, 1))


def has_ball_clocks(clock: object) -> bool:
    """Return whether the parameter `clock` gives each ball a clock of its own."""
    if not isinstance(clock, str) or clock not in _CLOCKS:
        raise DomainError(f"clock must be one of {', '.join(_CLOCKS)}, got {clock!r}")
    return clock == "ball"
