"""Tables for the tests: the duration of rides by distance and traffic, with some uninformative columns."""

import csv
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

COLUMNS = ("when", "km", "traffic", "wind", "zone", "card", "duration")
TARGET = "duration"


def rides(rows: int, seed: int = 0) -> list[list[str]]:
    """Return rows with a time, numbers (some missing), a category and a boolean."""
    rng = np.random.default_rng(seed)
    km, traffic, wind = rng.uniform(1, 20, rows), rng.uniform(0, 1, rows), rng.normal(size=rows)
    zone, card = rng.choice(["north", "south", "port"], rows), rng.choice(["yes", "no"], rows)
    duration = 3 + km * (2 + 3 * traffic**2)
    lines = []
    for t in range(rows):
        moment = (datetime(2026, 3, 1) + timedelta(minutes=10 * t)).isoformat()
        wind_text = "" if t % 7 == 3 else f"{wind[t]:.3f}"
        lines.append([moment, f"{km[t]:.3f}", f"{traffic[t]:.3f}", wind_text, zone[t], card[t], f"{duration[t]:.3f}"])
    return lines


def rides_with_late_labels(rows: int) -> list[list[str]]:
    """Return rides that begin with an id. Of each ten, two have no label, and that of one comes five rides later."""
    lines, complete = [], rides(rows)
    for t, row in enumerate(complete):
        lines.append([f"r {t}", *row[:-1], "" if t % 10 in (3, 4) else row[-1]])
        if t % 10 == 8:
            lines.append([f"r {t - 5}", *[""] * 6, complete[t - 5][-1]])
    return lines


def write(path: Path, rows: Sequence[Sequence[str]], columns: Sequence[str] = COLUMNS) -> Path:
    """Write a table as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])
    return path
