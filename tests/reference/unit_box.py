"""Changes of units in plain Python."""

import math


def scale_to_range(value: float, low: float, high: float) -> float:
    """Return a value scaled to [-1, 1] by its range, 0 if the range has no width."""
    half_width = 0.5 * high - 0.5 * low
    if not half_width > 0.0:
        return 0.0
    return min(max(2.0 * ((0.5 * value - 0.5 * low) / half_width) - 1.0, -1.0), 1.0)


def row_to_units(row: list[float], low: list[float], high: list[float]) -> list[float]:
    """Return a row in the unit ball."""
    return [scale_to_range(*each) / math.sqrt(len(row)) for each in zip(row, low, high, strict=True)]


def label_to_units(label: float, low: float, high: float) -> float:
    """Return a label in [0, 1]."""
    return 0.5 + 0.5 * scale_to_range(label, low, high)


def label_from_units(label: float, low: float, high: float) -> float:
    """Return a label in [0, 1] converted to the original units, 0 without labels so far."""
    return 0.0 if low > high else min(max((1.0 - label) * low + label * high, low), high)
