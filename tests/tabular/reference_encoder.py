"""Literal, slow reference of `TableEncoder`: encodes row by row and cell by cell, with dictionaries."""

import math
from datetime import UTC, date, datetime, time, timedelta

from ellipack.tabular import MIN_VALUES, MISSING_VALUES, LevelOptions

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


class ReferenceStatistics:
    """Labels of each level in lists, from which all statistics are computed again at each row."""

    def __init__(self, remembered: int) -> None:
        self.remembered = remembered
        self.labels: list[float] = []  # without outliers
        self.low, self.high, self.n_outliers = math.inf, -math.inf, 0
        self.by_level: dict[str | None, list[float]] = {}
        self.recent: list[str | None] = []  # levels, the most recently used last
        self.known: list[tuple[float, float]] = []  # squared distances from the mean of the level and of all labels
        self.n_unknown = 0

    def encode(self, level: str | None) -> list[float]:
        if level not in self.by_level:
            return [0.0, 0.0, 0.0]
        labels, mean = self.by_level[level], self.mean(self.labels)
        count = float(len(labels))
        shrunken = (self.total(labels) - count * mean) / (count + self.shrinkage())
        return [shrunken, labels[-1] - mean, math.log1p(count)]

    def shrinkage(self) -> float:
        within, around = self.total([a for a, _ in self.known]), self.total([b for _, b in self.known])
        between = max(around - within, within / 100)
        return max(within / between, 0.1) if between > 0 else 100.0

    def learn(self, level: str | None, label: float) -> None:
        mean, label = self.mean(self.labels), self.without_outlier(label)
        self.labels.append(label)
        if len(self.labels) in (2**i for i in range(20)):
            self.n_outliers //= 2
        if level in self.by_level:
            before = self.by_level[level]
            a, b = label - self.mean(before), label - mean
            self.known.append((a * a * (len(before) / (len(before) + 1)), b * b))
            self.recent.remove(level)
        else:
            self.n_unknown += 1
        self.by_level.setdefault(level, []).append(label)
        self.recent.append(level)
        if len(self.recent) > self.remembered:
            del self.by_level[self.recent.pop(0)]

    def without_outlier(self, label: float) -> float:
        width = self.high - self.low
        if len(self.labels) >= 5 and width > 0:
            margin = 3 * 10.0**self.n_outliers * width
            if label < self.low - margin or label > self.high + margin:
                self.n_outliers += 1
                return self.mean(self.labels)
        self.low, self.high = min(self.low, label), max(self.high, label)
        return label

    def mean(self, labels: list[float]) -> float:
        return self.total(labels) / len(labels) if labels else 0.0

    def total(self, values: list[float]) -> float:
        """Add from left to right, which `sum` does not in all versions of Python."""
        total = 0.0
        for value in values:
            total += value
        return total


class ReferenceEncoder:
    """Encodes rows as features by name, in the order in which the names first occur."""

    def __init__(self, kinds: dict[str, str], rows: list[Row], options: LevelOptions) -> None:
        self.kinds, self.options = kinds, options
        self.names: list[str] = []
        self.sums = dict.fromkeys(kinds, 0.0)
        self.counts = dict.fromkeys(kinds, 0)
        self.one_hot: dict[str, list[str | None]] = {name: [] for name in kinds}
        self.statistics = {name: ReferenceStatistics(options.remembered) for name in kinds}
        cells = {name: [row[name] for row in rows] for name in kinds}
        n_levels = {
            name: len({each.strip() for each in some if each is not None and not is_missing(each)})
            for name, some in cells.items()
        }
        self.starts_with_statistics = {name: n_levels[name] > options.one_hot for name in kinds}
        self.has_statistics = dict(self.starts_with_statistics)
        for name, some in cells.items():
            levels = {None if each is None or is_missing(each) else each.strip() for each in some}
            is_constant = len(some) >= MIN_VALUES and len(levels) == 1 and None not in levels
            if is_constant and not self.starts_with_statistics[name]:
                self.one_hot[name] = [*levels]
        self.first: dict[str, datetime] = {}
        self.trend = dict.fromkeys(kinds, 0.0)
        times = {name: self.times([row[name] for row in rows]) for name in kinds if kinds[name] == "time"}
        self.forms = {
            name: "time of day" if any(isinstance(each, time) for each in found) else "date"
            for name, found in times.items()
        }
        self.late: set[str] = set()
        for name, kind in kinds.items():
            self.names += self.first_names(name, kind)

    def times(self, cells: list[str | None]) -> list[datetime | time]:
        return [parse_time(cell) for cell in cells if cell is not None and not is_missing(cell)]

    def steps(self, found: datetime | time) -> dict[str, int]:
        steps = {"hour": found.hour * 3600 + found.minute * 60 + found.second}
        if isinstance(found, time):
            return steps
        return steps | {"weekday": found.weekday(), "day of year": (found.date() - date(found.year, 1, 1)).days}

    def first_names(self, name: str, kind: str) -> list[str]:
        if kind == "category":
            if self.has_statistics[name]:
                return self.statistic_names(name)
            return [f"{name}=other", *(self.one_hot_name(name, level) for level in self.one_hot[name])]
        if kind != "time":
            return [name]
        if self.forms[name] == "time of day":
            return [f"{name} hour sin", f"{name} hour cos"]
        return [f"{name} days since start"]

    def statistic_names(self, name: str) -> list[str]:
        return [f"mean of y by {name}", f"last y by {name}", f"log count of {name}"]

    def encode(self, row: Row, label: float) -> list[float]:
        features: dict[str, float] = {}
        for name, kind in self.kinds.items():
            if kind == "category":
                features |= self.category(name, row[name], label)
            else:
                features |= self.time(name, row[name]) if kind == "time" else self.number(name, row[name])
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
        if isinstance(found, time):
            return self.sin_cos(f"{name} hour", self.steps(found)["hour"], 86_400)
        first = self.first.setdefault(name, found)
        features = {}
        for part, size in (("hour", 86_400), ("weekday", 7), ("day of year", 366)):
            key, step, first_step = f"{name} {part}", self.steps(found)[part], self.steps(first)[part]
            if step != first_step and (part != "weekday" or found.day != first.day):
                self.late.add(key)
            if key in self.late:
                now, before = self.sin_cos(key, step, size), self.sin_cos(key, first_step, size)
                features |= {each: now[each] - before[each] for each in now}
        self.trend[name] = float((found - first) // timedelta(microseconds=1)) / (86_400 * 10**6)
        return features | {f"{name} days since start": self.trend[name]}

    def sin_cos(self, name: str, step: int, steps: int) -> dict[str, float]:
        turn = 2 * math.pi * step / steps
        return {f"{name} sin": math.sin(turn), f"{name} cos": math.cos(turn)}

    def category(self, name: str, cell: str | None, label: float) -> dict[str, float]:
        level = None if cell is None or is_missing(cell) else cell.strip()
        statistics = self.statistics[name]
        values = statistics.encode(level)
        count = len(statistics.by_level.get(level, [])) + 1
        statistics.learn(level, label)
        if statistics.n_unknown > self.options.one_hot:
            self.has_statistics[name] = True
        elif not self.has_statistics[name] and count == self.options.min_frequency and level not in self.one_hot[name]:
            self.one_hot[name].append(level)
        features = {} if self.starts_with_statistics[name] else {self.one_hot_name(name, level): 1.0}
        if self.has_statistics[name]:
            features |= dict(zip(self.statistic_names(name), values, strict=True))
        return features

    def one_hot_name(self, name: str, level: str | None) -> str:
        if level not in self.one_hot[name]:
            return f"{name}=other"
        if level is None:
            return f"{name} is missing"
        return f"{name}='other'" if level == "other" else f"{name}={level}"
