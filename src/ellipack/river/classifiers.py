"""The classifier with River's methods."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from river import base

from ellipack.errors import InputError
from ellipack.estimators.input_checks import check_class_labels
from ellipack.estimators.packing_classifier import has_ball_clocks
from ellipack.learners.rescaled_classifier import ClassifierRowLearner
from ellipack.river.base import DictionaryLearner
from ellipack.validation import Ints


class PackingClassifier(DictionaryLearner[ClassifierRowLearner], base.Classifier):
    """Online classification over a packing of balls whose radius shrinks with mistakes.

    This is `ellipack.PackingClassifier` with River's methods, in the Euclidean metric. It accepts any features: it
    scales them by ranges, which grow when a value falls outside. Classes may appear at any time.

    Parameters
    ----------
    clock : {"packing", "ball"}, default "packing"
        Mistakes that set the radius of a ball: those of its whole packing, or only those in the ball itself.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
       section 5.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> score = evaluate.progressive_val_score(datasets.Phishing(), PackingClassifier(), metrics.Accuracy())
    >>> score.get() > 0.8
    True
    """

    def __init__(self, clock: str = "packing") -> None:
        super().__init__()
        self.clock = clock

    @property
    def _multiclass(self) -> bool:
        return True

    def _check_parameters(self) -> None:
        has_ball_clocks(self.clock)

    def _new_learner(self, d: int) -> ClassifierRowLearner:
        return ClassifierRowLearner(d, has_ball_clocks(self.clock))

    def learn_one(self, x: Mapping[Any, Any], y: base.typing.ClfTarget) -> None:
        """Learn from one row and its class. A right prediction changes nothing but the ranges of the features.

        Parameters
        ----------
        x : dict
            Features by name. Values are finite numbers.
        y : bool, int or str
            Class.
        """
        label = check_class_labels([y])
        known = self.classes
        if known and isinstance(known[0], str) != isinstance(label[0], str):
            raise InputError(f"y must be a class of the same type as {known[0]!r}, got {y!r}")
        self._learn_row(x, lambda learner, row: learner.learn(row, label))

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[base.typing.ClfTarget, float]:
        """Return the share of each class among the labels of the nearest center.

        Parameters
        ----------
        x : dict
            Features by name. Values are finite numbers.

        Returns
        -------
        probabilities : dict
            By class; empty before the first row was learned.
        """
        learner, row = self._learner_and_row(x)
        return {} if learner is None else learner.predict(row)

    @property
    def classes(self) -> list[base.typing.ClfTarget]:
        """Classes in ascending order."""
        return [] if self._learner is None else self._learner.state.inner.classes.tolist()

    @property
    def mistakes(self) -> Ints:
        """Number of mistakes of each packing: one for two classes, otherwise one per class."""
        return np.zeros(1, dtype=np.int64) if self._learner is None else self._learner.state.inner.core.mistakes

    @property
    def n_centers(self) -> int:
        """Number of centers of all packings."""
        return 0 if self._learner is None else int(self._learner.state.inner.centers.sizes.sum())
