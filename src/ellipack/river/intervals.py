"""Prediction intervals in River's form."""

from river.conf import Interval

from ellipack.errors import ShapeError
from ellipack.learners.intervals import Bounds, check_coverage, select_intervals
from ellipack.validation import Floats


def check_single_coverage(coverage: float) -> Floats:
    """Return a coverage as an array; raise `InputError` unless it is one number from 0.5 to 0.99."""
    wanted = check_coverage(coverage)
    if wanted.ndim:
        raise ShapeError(f"coverage must be a number, got {wanted.tolist()}")
    return wanted


def to_interval(bounds: Bounds, coverage: Floats) -> Interval:
    """Return the interval of a coverage from those of all coverages of one prediction."""
    lower, upper = select_intervals(bounds, coverage)
    return Interval(float(lower[0]), float(upper[0]))
