"""Standardization of rows in plain Python, with the operations of the compiled core in the same order."""

FARTHEST = 1e6
OUTLIER_WIDTHS = 3.0


def rank_of(value: float, knots: list[float]) -> float:
    """Return the rank of a value among sorted knots, from 0 to 1, interpolated; among equal knots, their middle."""
    last = len(knots) - 1
    if value <= knots[0]:
        return 0.0
    if value >= knots[last]:
        return 1.0
    equal = [at for at, knot in enumerate(knots) if knot == value]
    if equal:
        return 0.5 * (equal[0] + equal[-1]) / last
    low = max(at for at, knot in enumerate(knots) if knot < value)
    return (low + (value - knots[low]) / (knots[low + 1] - knots[low])) / last


def standardize(row: list[float], knots: list[list[float]], shift: list[float], scale: list[float]) -> list[float]:
    """Return a row in standard units; `knots` has the knots of each feature, or is empty."""
    values = [rank_of(value, own) for value, own in zip(row, knots, strict=True)] if knots else row
    units = [(value - s) / c for value, s, c in zip(values, shift, scale, strict=True)]
    return [min(max(unit, -FARTHEST), FARTHEST) for unit in units]


def is_outlier(value: float, low: float, high: float, outliers: float) -> bool:
    width: float = OUTLIER_WIDTHS * (high - low) * 10.0**outliers
    return width > 0 and not low - width <= value <= high + width


def clip_outlier(value: float, low: float, high: float, outliers: float) -> float:
    """Return the value, clipped to one width of the range outside of it if it is an outlier."""
    if not is_outlier(value, low, high, outliers):
        return value
    return min(max(value, low - (high - low)), high + (high - low))
