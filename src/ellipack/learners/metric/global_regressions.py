"""The global regressions at the end of a phase: fitted again while that is cheap, converted to the new units later."""

import numpy as np
from scipy.linalg import solve_triangular

from ellipack._core import FeatureView, GlobalRegressions, LeastSquares, MetricParts
from ellipack.validation import Floats

_REFIT_CENTERS = 1000  # up to so many centers the ridge regression is fitted again; then it is converted
_REFIT_WORK = 2e8  # the same for the number of centers times the square of the number of features
_REFIT_FORGETTING = 100  # the same for the forgetting regression, in rounds: centers still know what it has forgotten
_CONSTANT_PRIOR = 1e-6  # of the constant; 1 for the other coefficients


def convert_regressions(parts: MetricParts, new: FeatureView) -> GlobalRegressions:
    """Return the regressions in the standard units of the new first view."""
    old, before = parts.views[0], parts.regressions
    count, d = parts.centers.rows.shape
    refitted = _refitted(parts, new) if count <= _REFIT_CENTERS and count * d**2 <= _REFIT_WORK else None
    ridge = _converted(before.ridge, old, new) if refitted is None else refitted
    if parts.clock > _REFIT_FORGETTING or refitted is None:
        return GlobalRegressions(ridge, _converted(before.forgetting, old, new))
    return GlobalRegressions(ridge, refitted)


def _refitted(parts: MetricParts, new: FeatureView) -> LeastSquares:
    """Return the ridge regression of all centers, so that its prior counts in the new standard units."""
    centers = parts.centers
    standard, counts = new.standardize(centers.rows), centers.label_counts
    fit = _fit_few_rows if len(standard) < standard.shape[1] else _fit_many_rows
    return fit(standard, counts.astype(np.float64), centers.label_sums)


def _fit_many_rows(standard: Floats, counts: Floats, label_sums: Floats) -> LeastSquares:
    """Return the ridge regression of mean labels, weighted by the number of labels, from the Gram matrix."""
    features = np.column_stack([standard, np.ones(len(standard))])
    prior = np.append(np.ones(standard.shape[1]), _CONSTANT_PRIOR)
    inverse = np.linalg.inv((features * counts[:, None]).T @ features + np.diag(prior))
    return LeastSquares((inverse + inverse.T) / 2, inverse @ features.T @ label_sums)


def _fit_few_rows(standard: Floats, counts: Floats, label_sums: Floats) -> LeastSquares:
    """Return the same from a system of as many equations as there are rows, by Woodbury's identity.

    The constant, whose prior is weak, is eliminated first: its Schur complement is a sum without cancellation.
    """
    d = standard.shape[1]
    lower = np.linalg.cholesky(np.diag(1 / counts) + standard @ standard.T)
    solved = solve_triangular(
        lower, np.column_stack([standard, np.ones(len(standard)), label_sums / counts]), lower=True
    )
    rows, ones, labels = solved[:, :d], solved[:, d], solved[:, d + 1]
    complement = ones @ ones + _CONSTANT_PRIOR
    link, constant = rows.T @ ones, ones @ labels / complement
    inverse = np.empty((d + 1, d + 1))
    inverse[:d, :d] = np.outer(link / np.sqrt(complement), link / np.sqrt(complement))
    inverse[:d, :d] -= rows.T @ rows
    inverse[np.arange(d), np.arange(d)] += 1
    inverse[:d, d] = inverse[d, :d] = -link / complement
    inverse[d, d] = 1 / complement
    return LeastSquares(inverse, np.append(rows.T @ (labels - constant * ones), constant))


def _converted(regression: LeastSquares, old: FeatureView, new: FeatureView) -> LeastSquares:
    """Return a regression in the new units of the features."""
    shift = (new.shift - old.shift) / old.scale
    return regression.converted(np.append(new.scale / old.scale, 1.0), np.append(shift, 1.0))
