"""Literal, slow reference of `TableEncoder`: encodes row by row and cell by cell, with dictionaries."""

import math
from datetime import UTC, date, datetime, time, timedelta

from ellipack.tabular import MISSING_VALUES

Row = dict[str, str | None]
YES, NO = {"true", "yes", "t", "y", "1"}, {"false", "no", "f", "n", "0"}


def is_missing(cell: str | None) -> bool:
    return cell is None or cell.strip() in MISSING_VALUES


def parse_time(cell: str) -> datetime | time:
    """Parse a date or a time of day. The default time zone is UTC."""
    text = cell.strip()
    if "-" not in text[:5]:
        return time.fromisoformat(text.zfill(5))
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


class ReferenceEncoder:
    """Encodes rows as features by name, in the order in which the names first occur."""

    def __init__(self, kinds: dict[str, str], rows: list[Row], min_frequency: int, max_categories: int) -> None:
        self.kinds, self.min_frequency, self.max_categories = kinds, min_frequency, max_categories
        self.names: list[str] = []
        self.sums = dict.fromkeys(kinds, 0.0)
        self.counts = dict.fromkeys(kinds, 0)
        self.seen: dict[str, dict[str | None, int]] = {name: {} for name in kinds}
        self.categories: dict[str, list[str | None]] = {name: [] for name in kinds}
        self.first: dict[str, datetime] = {}
        self.trend = dict.fromkeys(kinds, 0.0)
        self.forms = {name: self.form([row[name] for row in rows]) for name in kinds if kinds[name] == "time"}
        for name, kind in kinds.items():
            self.names += self.first_names(name, kind)

    def form(self, cells: list[str | None]) -> str:
        found = [parse_time(cell) for cell in cells if cell is not None and not is_missing(cell)]
        if any(isinstance(each, time) for each in found):
            return "time of day"
        return "datetime" if any(each.time() != time() for each in found if isinstance(each, datetime)) else "date"

    def first_names(self, name: str, kind: str) -> list[str]:
        if kind == "category":
            return [f"{name}=other"]
        if kind != "time":
            return [name]
        hour = [f"{name} hour sin", f"{name} hour cos"]
        day = [f"{name} {part}" for part in ("weekday sin", "weekday cos", "day of year sin", "day of year cos")]
        day += [f"{name} days since start"]
        return {"time of day": hour, "date": day, "datetime": hour + day}[self.forms[name]]

    def encode(self, row: Row) -> list[float]:
        features: dict[str, float] = {}
        for name, kind in self.kinds.items():
            encode = {"number": self.number, "boolean": self.number, "time": self.time, "category": self.category}[kind]
            features |= encode(name, row[name])
        self.names += [name for name in features if name not in self.names]
        return [features.get(name, 0.0) for name in self.names]

    def number(self, name: str, cell: str | None) -> dict[str, float]:
        if cell is None or is_missing(cell):
            mean = self.sums[name] / self.counts[name] if self.counts[name] else 0.0
            return {name: mean, f"{name} is missing": 1.0}
        text = cell.strip().lower()
        value = float(text) if self.kinds[name] == "number" else float(text in YES)
        self.sums[name] += value
        self.counts[name] += 1
        return {name: value}

    def time(self, name: str, cell: str | None) -> dict[str, float]:
        form = self.forms[name]
        if cell is None or is_missing(cell):
            features = {f"{name} is missing": 1.0}
            return features if form == "time of day" else features | {f"{name} days since start": self.trend[name]}
        found = parse_time(cell)
        clock = found if isinstance(found, time) else found.time()
        features = self.sin_cos(f"{name} hour", clock.hour * 3600 + clock.minute * 60 + clock.second, 86_400)
        if isinstance(found, time):
            return features
        first = self.first.setdefault(name, found)
        self.trend[name] = float((found - first) // timedelta(microseconds=1)) / (86_400 * 10**6)
        features = features if form == "datetime" else {}
        features |= self.sin_cos(f"{name} weekday", found.weekday(), 7)
        features |= self.sin_cos(f"{name} day of year", (found.date() - date(found.year, 1, 1)).days, 366)
        return features | {f"{name} days since start": self.trend[name]}

    def sin_cos(self, name: str, step: int, steps: int) -> dict[str, float]:
        turn = 2 * math.pi * step / steps
        return {f"{name} sin": math.sin(turn), f"{name} cos": math.cos(turn)}

    def category(self, name: str, cell: str | None) -> dict[str, float]:
        category = None if cell is None or is_missing(cell) else cell.strip()
        categories, seen = self.categories[name], self.seen[name]
        if category not in categories and len(categories) + 1 < self.max_categories:
            seen[category] = seen.get(category, 0) + 1
            if seen[category] == self.min_frequency:
                categories.append(category)
        if category not in categories:
            return {f"{name}=other": 1.0}
        if category is None:
            return {f"{name} is missing": 1.0}
        return {f"{name}='other'" if category == "other" else f"{name}={category}": 1.0}
