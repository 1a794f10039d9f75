"""Sample records for the tests."""

from dataclasses import replace

import numpy as np

from ellipack.learners.metric.experts import expert_names
from ellipack.report.record import (
    ColumnRecord,
    ColumnShare,
    Direction,
    EffectRecord,
    Experts,
    ImportanceRecord,
    KeysRecord,
    PastRecord,
    PhaseRecord,
    Progress,
    Record,
    SampledRows,
    Summary,
    TimeShare,
)

ROWS = 17_379
FEATURES = (
    "hour",
    "temperature",
    "working day",
    "humidity",
    "feels-like temperature measured at the roof of the north station",
    "wind speed",
    "month",
    "weather = clear",
    "weather = mist",
    "weather = light rain, light snow or thunderstorm with scattered clouds",
    "season",
    "holiday",
    "year",
    "station id",
)
HOSTILE = (
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=2>",
    "</script><script>window.hacked=3</script><!--",
    "<b>bold</b>",
    '<a href="javascript:window.hacked=4">link</a>',
    "a<br>b &lt;i&gt; &amp;amp; %{x} $x^2$ \u2028\u202e\x00'\"",
)


def full() -> Record:
    """Return a record with all parts, as of a MetricRegressor on hourly bike rentals."""
    rng = np.random.default_rng(0)
    importances = 0.5 ** np.arange(len(FEATURES)) + 0.004
    phases = [_phase(int(end), rng) for end in 24 * 1.5 ** np.arange(1, 17) if end < ROWS]
    return Record(
        source="data/bike-sharing/hourly.csv",
        target="rentals",
        learner="MetricRegressor",
        parameters={"max_centers": 100_000, "neighbors": 32, "views": 1, "random_state": 0, "config": None},
        version="0.1.0",
        summary=Summary(ROWS, 12, 58.27, 37.4, 0.897, 0.681, 182.9, 109.6, 189.46, 181.38),
        progress=_progress(60, rng),
        features=list(FEATURES),
        importance=_importance(list(FEATURES), (importances / importances.sum()).tolist()),
        eigenvalues=phases[-1].eigenvalues,
        effective_rank=4,
        n_centers=16_804,
        directions=_directions(importances, phases[-1].eigenvalues, rng),
        phases=phases,
        experts=Experts(expert_names(1), _weights(ROWS, rng)),
        past=PastRecord(64.1, 58.27, ["rentals, 1 row ago", *FEATURES[:2]], [0.5, 0.25, 0.25]),
        keys=KeysRecord("station", 300, 200, 58.27, 61.5, ["north", "south"], [60, 40], [55.0, 60.0], [62.0, 61.0]),
        residuals=_residuals(1500, rng),
        columns=_columns(),
        speed=[(row, float(9000 * (row + 400) ** -0.18 * rng.uniform(0.93, 1))) for row in range(400, ROWS, 400)],
    )


def _importance(columns: list[str], shares: list[float]) -> ImportanceRecord:
    """Return importances with a standard error of a point, one column that was not measured, and one of time.

    The last two columns that were measured are correlated.
    """
    known = [
        ColumnShare([name], 40, 900 * share, 0.3, 7.7 * share, share, 0.01, share, 0.02, share >= 0.05)
        for name, share in zip(columns, shares, strict=True)
    ]
    known.sort(key=lambda each: -(each.share or 0.0))
    unknown = ColumnShare([columns[-1]], 2, None, None, None, None, None, None, None)
    share = known[-2].share
    pair = ColumnShare([*known[-3].columns, *known[-2].columns], 30, 9.0, 0.2, 0.1, share, 0.01, share, 0.02)
    return ImportanceRecord(
        [*known[:-1], unknown],
        [*known[:-3], pair, unknown],
        columns[-1:],
        TimeShare(0.62, 0.31, 0.07, 0.02),
        58.27,
        _effects(columns[:2]),
    )


def _effects(columns: list[str]) -> list[EffectRecord]:
    """Return the effect of a number, and of the hour of a time."""
    hours = [f"{hour:02}:00" for hour in range(24)]
    mean = [120 - 80 * np.cos((hour - 4) / 24 * 2 * np.pi) for hour in range(24)]
    low, high = [value - 30 for value in mean], [value + 30 for value in mean]
    return [
        EffectRecord(
            columns[1], "", [1.5, 2.0, 7.0], [], [80.0, 120.0, 160.0], [60.0, 90.0, 90.0], [90.0, 140.0, 230.0]
        ),
        EffectRecord(columns[0], "hour of the day", list(map(float, range(24))), hours, mean, low, high),
    ]


def _phase(end: int, rng: np.random.Generator) -> PhaseRecord:
    steepness = min(1.0, np.log(end / 20) / 6)
    eigenvalues = np.sort(np.exp(-steepness * np.arange(len(FEATURES)) * rng.uniform(0.7, 0.8, len(FEATURES))))[::-1]
    rank = max(3, round(12 * (1 - steepness)))
    return PhaseRecord(
        end=end,
        n_centers=round(0.967 * end),
        effective_rank=rank,
        eigenvalues=(eigenvalues / eigenvalues[0]).tolist(),
        expert_weights=_weights(end, rng),
        choice="power 0.35, ridge 0.01" if end > 100 else "current",
    )


def _weights(end: int, rng: np.random.Generator) -> list[float]:
    growth = [-1.0, -0.6, -0.5, -0.7, -0.2, 0.28, 0.0, 0.25, 0.1, 0.35, 0.2, 0.3, 0.15, -0.1, -0.3]
    late = np.log(end) * np.array(growth)
    weights = np.exp(late + rng.normal(scale=0.25, size=len(late)))
    return [float(weight) for weight in weights / weights.sum()]


def _progress(bins: int, rng: np.random.Generator) -> Progress:
    end = np.linspace(0, ROWS, bins + 1).round().astype(int)[1:]
    season = 1 + 0.3 * np.sin(np.linspace(0, 9, bins))
    noise = rng.uniform(0.9, 1.1, size=(3, bins))
    return Progress(
        end=end.tolist(),
        rmse=(season * noise[0] * (40 + 90 * np.exp(-np.linspace(0, 6, bins)))).tolist(),
        mean_rmse=(season * noise[1] * np.linspace(120, 210, bins)).tolist(),
        last_rmse=[None, *(season * noise[2] * np.linspace(70, 125, bins)).tolist()[1:]],
    )


def _directions(importances: np.ndarray, eigenvalues: list[float], rng: np.random.Generator) -> list[Direction]:
    size = np.sqrt(importances)
    vectors, _ = np.linalg.qr(size[:, None] * rng.normal(size=(len(size), 4)))
    return [Direction(value, vector.tolist()) for value, vector in zip(eigenvalues, vectors.T, strict=False)]


def _residuals(count: int, rng: np.random.Generator) -> SampledRows:
    labels = rng.gamma(1.1, 172, size=count).round()
    noise = rng.standard_t(3, size=count) * (8 + 0.13 * labels)
    return SampledRows(
        rows=np.sort(rng.choice(np.arange(1, ROWS + 1), count, replace=False)).tolist(),
        predictions=np.maximum(0.96 * labels + 6 + noise, -5).tolist(),
        labels=labels.tolist(),
    )


def _columns() -> list[ColumnRecord]:
    numbers = [ColumnRecord(name, "number", "", i % 3 and 41 * i) for i, name in enumerate(FEATURES[:7])]
    return [
        *numbers,
        ColumnRecord("weather", "category", "3 levels, each a feature of its own", 0),
        ColumnRecord("timestamp", "left out", "a different text in every row", 0),
        ColumnRecord("rentals", "target", "", 12),
    ]


def hostile() -> Record:
    """Return a record whose names all try to inject markup or scripts."""
    record = full()
    count = len(HOSTILE)
    names = [*HOSTILE, *record.features[count:]]
    experts = [*HOSTILE, *record.experts.names[count:]]
    return replace(
        record,
        source=HOSTILE[0],
        target=HOSTILE[1],
        learner=HOSTILE[2],
        version=HOSTILE[3],
        parameters={name: {name: [name]} for name in HOSTILE},
        features=names,
        importance=_importance(names, [1 / len(names)] * len(names)),
        experts=Experts(experts, record.experts.weights),
        past=PastRecord(2.0, 1.0, list(HOSTILE), [1 / count] * count),
        keys=KeysRecord(HOSTILE[0], count, 0, 1.0, 1.0, list(HOSTILE), [1] * count, [0.0] * count, [0.0] * count),
        phases=[replace(phase, choice=HOSTILE[i % count]) for i, phase in enumerate(record.phases)],
        columns=[ColumnRecord(name, name, name, 1) for name in HOSTILE],
    )


def empty() -> Record:
    """Return the record of a run without rows."""
    none = Summary(0, 0, None, None, None, None, None, None, None, None)
    return Record(
        "-", "y", "PackingRegressor", {}, "0.1.0", none, Progress([], [], [], []), [], None, [], 0, 0, [], [],
        Experts([], []), None, SampledRows([], [], []), [], [],
    )  # fmt: skip


def one_row() -> Record:
    """Return the record of a single row: no phase has ended, and no variance is defined."""
    return replace(
        empty(),
        summary=Summary(1, 0, 0.5, 0.5, None, None, None, None, 0.5, 0.0),
        progress=Progress([1], [0.5], [None], [None]),
        features=["x"],
        eigenvalues=[1.0],
        effective_rank=1,
        n_centers=1,
        directions=[Direction(1.0, [1.0])],
        residuals=SampledRows([1], [0.5], [0.5]),
        columns=[ColumnRecord("x", "number", "", 0)],
    )


def wide(d: int = 3000) -> Record:
    """Return a record with thousands of features."""
    rng = np.random.default_rng(1)
    importances = rng.dirichlet(np.full(d, 0.05))
    loadings = rng.normal(size=d) / np.sqrt(d)
    eigenvalues = np.sort(rng.uniform(1e-12, 1, d))[::-1].tolist()
    return replace(
        full(),
        features=[f"column {i} of a table that is wide" for i in range(d)],
        importance=_importance([f"column {i}" for i in range(d)], importances.tolist()),
        eigenvalues=eigenvalues,
        directions=[Direction(1.0, loadings.tolist())],
        phases=[replace(phase, eigenvalues=eigenvalues) for phase in full().phases],
    )
