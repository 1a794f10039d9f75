"""The gradient outer product as a transformer of scikit-learn."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ellipack.errors import DomainError
from ellipack.estimators.input_checks import check_features, check_targets, feature_names, repeat_by_weight
from ellipack.metric import GopEstimator, GradientEstimator, KernelDifferences, project
from ellipack.metric.mahalanobis import eigensystem
from ellipack.validation import Floats, check_integer, check_labels, check_rows


class GradientOuterProduct(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Estimator of the expected gradient outer product of a regression function.

    Its leading eigenvectors are the directions along which the target varies. `transform` projects rows on them.

    Parameters
    ----------
    gradients : KernelDifferences or LocalSlopes, optional
        Estimator of gradients. The default is ``KernelDifferences()``, which is appendix A of the paper.
    diagonal : bool, default False
        Estimate one weight for each feature [2]_ instead of the full matrix.
    anchors : int, optional
        Number of rows, drawn at random, at which gradients are estimated. The default is all rows.
    n_components : int, optional
        Number of directions to project on. The default is all.
    random_state : int, default 0
        Random seed of the draw of anchors.

    Attributes
    ----------
    gop_ : array of shape (n_features, n_features)
        The estimate.
    eigenvalues_ : array of shape (n_components,)
        Largest eigenvalues of the estimate, in descending order.
    directions_ : array of shape (n_components, n_features)
        Eigenvectors of the estimate, one per row.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Names of the features, if the columns had names.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
       section 4 and appendix A.
    .. [2] S. Kpotufe, A. Boularias, T. Schultz and K. Kim. Gradients Weights Improve Regression and Classification.
       JMLR 17, 2016.

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
        """Return the checked parameters in the form that learners use.

        Returns
        -------
        estimator : GopEstimator
        """
        gradients = KernelDifferences() if self.gradients is None else self.gradients
        return GopEstimator(gradients, self.diagonal, self.anchors, self.random_state)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate the gradient outer product.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of int, shape (n_samples,), optional
            Number of times that each row counts. The default is once.

        Returns
        -------
        self : object
            Fitted transformer.

        Raises
        ------
        DomainError
            If the estimate is 0 and `n_components` is less than the number of features.
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
            samples = "1 sample" if len(table) == 1 else f"{len(table)} samples"
            raise DomainError(
                f"n_components needs leading directions, but the gop estimated from {samples} is 0: either the labels "
                "are constant, or no ball had enough mass (try LocalSlopes(), or larger scales)"
            )
        names = feature_names(X)
        eigenvalues, eigenvectors = eigensystem(gop)
        fitted: dict[str, Any] = {
            "gop_": gop,
            "eigenvalues_": eigenvalues[:kept],
            "directions_": eigenvectors[:, :kept].T.copy(),
            "n_features_in_": d,
        }
        if names is not None:
            fitted["feature_names_in_"] = names
        others = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = others | fitted  # one assignment, so that an interrupt leaves the old estimate or the new one
        return self

    def transform(self, X: Any) -> Floats:
        """Project rows on the leading directions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        coordinates : array of shape (n_samples, n_components)
        """
        check_is_fitted(self, "gop_")
        return project(check_rows(check_features(self, X)), np.ascontiguousarray(self.directions_.T))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.directions_)
