"""The gradient outer product as a scikit-learn transformer."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ellipack.errors import DomainError
from ellipack.estimators.input_checks import check_features, check_targets, record_features, repeat_by_weight
from ellipack.metric import GopEstimator, GradientEstimator, KernelDifferences, project
from ellipack.metric.mahalanobis import eigensystem
from ellipack.validation import Floats, check_integer, check_labels, check_rows


class GradientOuterProduct(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The expected gradient outer product of a regression function, estimated from rows and labels.

    Its leading eigenvectors are the directions along which the target varies; `transform` projects on them.

    Parameters
    ----------
    gradients : `KernelDifferences` (appendix A, its letter if not given) or `LocalSlopes`.
    diagonal : estimate a weight for each feature (Kpotufe et al.'s gradient weights), not the whole matrix.
    anchors : estimate gradients at so many rows, drawn at random; at all of them if not given.
    n_components : how many directions to project on; all if not given.
    random_state : of the draw of anchors.

    Attributes
    ----------
    gop_ : the estimate.
    eigenvalues_, directions_ : its spectrum, in falling order, and a row for each direction.

    Examples
    --------
    >>> from ellipack import LocalSlopes
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> gop = GradientOuterProduct(LocalSlopes(), n_components=1).fit(X, 2 * X[:, 1])
    >>> np.abs(gop.directions_).round(2).tolist()
    [[0.0, 1.0, 0.0]]
    >>> gop.transform([[5.0, 7.0, 9.0]]).round(1).tolist()
    [[7.0]]
    """

    def __init__(
        self,
        gradients: GradientEstimator | None = None,
        *,
        diagonal: bool = False,
        anchors: int | None = None,
        n_components: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.gradients = gradients
        self.diagonal = diagonal
        self.anchors = anchors
        self.n_components = n_components
        self.random_state = random_state

    def estimator(self) -> GopEstimator:
        """Return the parameters, checked, in the form that learners take."""
        gradients = KernelDifferences() if self.gradients is None else self.gradients
        return GopEstimator(gradients, self.diagonal, self.anchors, self.random_state)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate the gradient outer product from rows and their labels.

        A row of weight 3 counts as three rows, one of weight 0 as none: weights are whole numbers, each 1 if not given.
        """
        table = check_rows(X)
        d = table.shape[1]
        kept = d if self.n_components is None else check_integer(self.n_components, "n_components", 1)
        if kept > d:
            raise DomainError(f"n_components must be at most the number of columns, {d}, got {kept}")
        gop = self.estimator().estimate(
            *repeat_by_weight(table, check_labels(check_targets(y), len(table)), sample_weight)
        )
        if kept < d and not gop.any():
            seen = "1 sample" if len(table) == 1 else f"{len(table)} samples"
            raise DomainError(
                f"n_components asks for the leading directions, but the gop estimated from {seen} is 0: either the "
                "labels never vary, or no ball had enough mass (try LocalSlopes(), or larger scales)"
            )
        record_features(self, X)
        eigenvalues, eigenvectors = eigensystem(gop)
        self.gop_ = gop
        self.eigenvalues_ = eigenvalues[:kept]
        self.directions_ = eigenvectors[:, :kept].T.copy()
        return self

    def transform(self, X: Any) -> Floats:
        """Return each row's coordinates along the leading directions."""
        check_is_fitted(self, "gop_")
        return project(check_rows(check_features(self, X)), np.ascontiguousarray(self.directions_.T))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.directions_)
