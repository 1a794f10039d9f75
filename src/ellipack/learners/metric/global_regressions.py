"""The global regressions at the end of a phase, when the features get new shifts and scales.

With few centers the ridge regression is fitted again, so that its prior applies in the new units. Otherwise it is
converted to the new units.
"""

import numpy as np
from scipy.linalg import solve_triangular

from ellipack._core import FeatureView, GlobalRegressions, LeastSquares, MetricCore, MetricParts
from ellipack.validation import Floats

_MAX_REFIT_CENTERS = 1000  # with more centers the ridge regression is converted
_MAX_REFIT_WORK = 2e8  # the same for the number of centers times the square of the number of features
_MAX_REFIT_ROUNDS = 100  # the same for the regression with forgetting, because centers do not forget
_INTERCEPT_PRIOR = 1e-6  # 1 for the other coefficients


def convert_regressions(parts: MetricParts, new: FeatureView) -> GlobalRegressions:
    """Return the global regressions in the units of the new first view.

    Parameters
    ----------
    parts : MetricParts
        Parts of the core after the last round of the phase. Their regressions are converted in place: with many
        features, most of the time would go to new memory.
    new : FeatureView
        First view of the next phase.

    Returns
    -------
    regressions : GlobalRegressions
    """
    old, (ridge, forgetting) = parts.views[0], (parts.regressions.ridge, parts.regressions.forgetting)
    if not _refits_ridge(len(parts.centers), parts.centers.dimension):
        _convert(ridge, old, new)
        _convert(forgetting, old, new)
        return parts.regressions
    refitted = _refit(parts, new)
    if _refits_forgetting(parts.clock):
        return GlobalRegressions(refitted, refitted)
    _convert(forgetting, old, new)
    return GlobalRegressions(refitted, forgetting)


def refits_after(core: MetricCore) -> bool:
    """Return whether all regressions are fitted again if a phase ends after the next round, whatever its row is."""
    most_centers = rounds = core.clock + 1
    d = max(core.dimension, len(core.past_feature_scales()) if core.has_past else 0)
    return _refits_ridge(most_centers, d) and _refits_forgetting(rounds)


def _refits_ridge(centers: int, d: int) -> bool:
    """Return whether the ridge regression is fitted again."""
    return centers <= _MAX_REFIT_CENTERS and centers * d**2 <= _MAX_REFIT_WORK


def _refits_forgetting(rounds: int) -> bool:
    """Return whether the regression with forgetting is fitted again, if the ridge regression is."""
    return rounds <= _MAX_REFIT_ROUNDS


def _refit(parts: MetricParts, new: FeatureView) -> LeastSquares:
    """Return the ridge regression of the mean labels of all centers, weighted by the number of labels."""
    centers = parts.centers
    standard, counts = new.standardize(centers.rows), centers.label_counts
    fit = _fit_few_rows if len(standard) < standard.shape[1] else _fit_many_rows
    return fit(standard, counts.astype(np.float64), centers.label_sums)


def _fit_many_rows(standard: Floats, counts: Floats, label_sums: Floats) -> LeastSquares:
    """Return the ridge regression from the normal equations."""
    features = np.column_stack([standard, np.ones(len(standard))])
    prior = np.append(np.ones(standard.shape[1]), _INTERCEPT_PRIOR)
    inverse = np.linalg.inv((features * counts[:, None]).T @ features + np.diag(prior))
    return LeastSquares((inverse + inverse.T) / 2, inverse @ features.T @ label_sums)


def _fit_few_rows(standard: Floats, counts: Floats, label_sums: Floats) -> LeastSquares:
    """Return the ridge regression from one equation per row, by Woodbury's identity.

    The intercept, whose prior is weak, is eliminated first. Its Schur complement is a sum without cancellation.
    """
    d = standard.shape[1]
    lower = np.linalg.cholesky(np.diag(1 / counts) + standard @ standard.T)
    solved = solve_triangular(
        lower, np.column_stack([standard, np.ones(len(standard)), label_sums / counts]), lower=True
    )
    rows, ones, labels = solved[:, :d], solved[:, d].copy(), solved[:, d + 1]
    complement = ones @ ones + _INTERCEPT_PRIOR
    intercept = ones @ labels / complement
    link = np.append(rows.T @ ones, -1.0) / np.sqrt(complement)
    solved[:, d] = 0.0
    return LeastSquares.from_low_rank(
        np.append(np.ones(d), 0.0),
        link,
        np.ascontiguousarray(solved[:, : d + 1]),
        np.append(rows.T @ (labels - intercept * ones), intercept),
    )


def _convert(regression: LeastSquares, old: FeatureView, new: FeatureView) -> None:
    """Convert a regression to the new units, in place."""
    shift = (new.shift - old.shift) / old.scale
    regression.convert(np.append(new.scale / old.scale, 1.0), np.append(shift, 1.0))
