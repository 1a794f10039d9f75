"""The learners as River knows them: dictionaries in, a row at a time, features that come and go.

A feature that is absent counts as 0, as in River; one that comes late widens the learner, and nothing is forgotten.
"""

try:
    import river as _river  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "ellipack.river needs River, which is not installed: pip install 'ellipack[river]'", name="river"
    ) from error

from ellipack.river.regressors import MetricRegressor, PackingRegressor, PhasedRegressor, load

__all__ = ["MetricRegressor", "PackingRegressor", "PhasedRegressor", "load"]
