"""Names beside points, out of each other's way."""

from typing import Any

_SIZE = 8
_AWAY = 7  # points between a name and its point
_PLACES = (
    (_AWAY, 3, "left", "bottom"),
    (_AWAY, -3, "left", "top"),
    (-_AWAY, 3, "right", "bottom"),
    (-_AWAY, -3, "right", "top"),
    (0, _AWAY, "center", "bottom"),
    (0, -_AWAY, "center", "top"),
    (_AWAY, 14, "left", "bottom"),
    (_AWAY, -14, "left", "top"),
    (-_AWAY, 14, "right", "bottom"),
    (-_AWAY, -14, "right", "top"),
)


def name_points(axes: Any, points: dict[str, tuple[float, float]], bold: str) -> None:
    """Write each point's name beside it, at the place where it covers the least of other names and points.

    Whatever is to be drawn on the axes must have been: their limits are taken as they are.
    """
    axes.figure.draw_without_rendering()
    inside = axes.get_window_extent()
    at = {name: axes.transData.transform(point) for name, point in points.items()}
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in at.values()]
    legend = axes.get_legend()
    taken += [legend.get_window_extent().extents] if legend else []
    for name in sorted(points, key=lambda each: (each != bold, each)):
        best, least, box = None, float("inf"), (0.0, 0.0, 0.0, 0.0)
        for place in _PLACES:
            text = _write(axes, name, points[name], place, "bold" if name == bold else "normal")
            extent = text.get_window_extent().extents
            outside = inside.width * inside.height * (extent[0] < inside.x0 or extent[2] > inside.x1)
            covered = outside + sum(_overlap(extent, other) for other in taken)
            if covered < least:
                best, least, box = place, covered, extent
            text.remove()
        _write(axes, name, points[name], best or _PLACES[0], "bold" if name == bold else "normal")
        taken.append(box)


def _write(axes: Any, name: str, point: tuple[float, float], place: tuple[int, int, str, str], weight: str) -> Any:
    x, y, across, up = place
    options = {"textcoords": "offset points", "fontsize": _SIZE, "weight": weight, "color": "#333333"}
    return axes.annotate(name, point, (x, y), ha=across, va=up, **options)


def _overlap(one: Any, other: Any) -> float:
    """Return the area that two boxes share."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    up = min(one[3], other[3]) - max(one[1], other[1])
    return float(max(0.0, across) * max(0.0, up))
