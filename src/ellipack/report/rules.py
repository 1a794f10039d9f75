"""Rules that lists of plain numbers keep."""

import math
from collections.abc import Sequence
from itertools import pairwise

from ellipack.errors import DomainError, ShapeError

_SLACK = 1e-6  # how far shares may be from adding up to 1


def as_many(values: Sequence[object], name: str, others: Sequence[object], what: str) -> None:
    """Refuse values that are not one for each of `others`."""
    if len(values) != len(others):
        raise ShapeError(f"{name} must have an entry for each of {len(others)} {what}, got {len(values)}")


def shares(values: Sequence[float], name: str, others: Sequence[object], what: str) -> None:
    """Refuse what is not an entry for each of `others`, 0 or more, adding up to 1."""
    as_many(values, name, others, what)
    for i, value in enumerate(values):
        at_least_0(value, f"{name}[{i}]")
    total = math.fsum(values)
    if values and abs(total - 1) > _SLACK:
        raise DomainError(f"{name} must add up to 1, got {total:.6g}")


def at_least_0(value: float, name: str) -> None:
    """Refuse what is below 0."""
    if value < 0:
        raise DomainError(f"{name} must be >= 0, got {value}")


def rising(numbers: Sequence[int], name: str) -> None:
    """Refuse what are not row numbers, counted from 1, in rising order."""
    for before, after in pairwise([0, *numbers]):
        if after <= before:
            raise DomainError(f"{name} must be row numbers that rise, got {after} after {before}")


def falling(values: Sequence[float], name: str) -> None:
    """Refuse what is not in falling order, or ends below 0."""
    for before, after in pairwise(values):
        if after > before:
            raise DomainError(f"{name} must be in falling order, got {after:.6g} after {before:.6g}")
    if values:
        at_least_0(values[-1], name)
