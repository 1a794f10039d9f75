"""How many rows a call of the compiled core may have.

A call does not handle signals, and other threads wait for a call that learns. Calls have so few rows that they take
about 0.1 s, or one row if it takes longer.
"""

from ellipack._core import MetricCore

_MAX_ROUNDS = 64
_MAX_PREDICTIONS = 256
_MAX_WORK = 1.6e7  # number of rows times their cost; about 0.1 s
_WORK_PER_FEATURE = 30  # of a prediction


def rounds_per_call(core: MetricCore) -> int:
    """Return the largest number of rounds in a call, whose cost is quadratic in the number of features."""
    return max(1, min(_MAX_ROUNDS, int(_MAX_WORK / (core.dimension**2 + _kriging_work(core)))))


def predictions_per_call(core: MetricCore) -> int:
    """Return the largest number of predictions in a call with one thread."""
    return max(1, min(_MAX_PREDICTIONS, int(_MAX_WORK / (_WORK_PER_FEATURE * core.dimension + _kriging_work(core)))))


def _kriging_work(core: MetricCore) -> float:
    return core.settings.neighbors**3 / 4
