"""Error of MetricRegressor next to published errors of peers, cost next to River's AMF, and error on pure noise."""

import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.command_line import TargetResult, at_most
from benchmarks.comparison.adapters import MeanLabel
from benchmarks.comparison.models import river_amf
from benchmarks.metric.cost import progressive_row_by_row
from benchmarks.streams import Stream, late_nrmse, noise_stream
from ellipack import MetricRegressor

STREAMING_PEERS = ("KNN", "AMF", "ARF", "SOKNL")
BATCH_PEERS = ("LightGBM", "XGBoost", "ExtraTrees", "CatBoost", "xRFM")
INSTALL_RIVER = "River is not installed, so its AMF was not timed: pip install 'river>=0.22'"

Errors = dict[str, float]
"""The errors on one stream, by peer."""


def read_peers(path: Path) -> dict[str, Errors]:
    """Read the errors of peers from a Markdown or CSV table: one row per stream, one column per peer.

    Of a Markdown file, only the first table is read. Cells that are not numbers are ignored.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.suffix == ".csv":
        table = [line.split(",") for line in lines if line.strip()]
    else:
        table = [line.strip().strip("|").split("|") for line in _first_table(lines)]
    cells = [[cell.strip() for cell in row] for row in table]
    if not cells or not {*STREAMING_PEERS, *BATCH_PEERS} & {*cells[0]}:
        raise ValueError(f"{path} must contain a table with columns among {', '.join(STREAMING_PEERS + BATCH_PEERS)}")
    heads = cells[0][1:]
    return {
        row[0]: {head: float(cell) for head, cell in zip(heads, row[1:], strict=True) if _is_number(cell)}
        for row in cells[1:]
        if not set(row[0]) <= set("-: ")
    }


def best_error(errors: Errors, names: tuple[str, ...]) -> float:
    """Return the least error of these peers, NaN if there is none."""
    return min((errors[name] for name in names if name in errors), default=np.nan)


def amf_cost(stream: Stream) -> float:
    """Return the microseconds per round (predict, then learn) of River's AMF over a stream.

    Raises
    ------
    ImportError
        If River is not installed.
    """
    model = river_amf(seed=1)
    rows = [dict(enumerate(row)) for row in stream.X.tolist()]
    start = time.perf_counter()
    for row, label in zip(rows, stream.y.tolist(), strict=True):
        model.predict_one(row)
        model.learn_one(row, label)
    return 1e6 * (time.perf_counter() - start) / len(rows)


def our_costs(stream: Stream, views: int) -> tuple[float, float]:
    """Return the microseconds per round of MetricRegressor: all rows in one call, and one row per call."""
    start = time.perf_counter()
    MetricRegressor(views=views).progressive(stream.X, stream.y)
    together = time.perf_counter() - start
    learner = MetricRegressor(views=views)
    start = time.perf_counter()
    progressive_row_by_row(learner, stream.X, stream.y)
    return 1e6 * together / len(stream.y), 1e6 * (time.perf_counter() - start) / len(stream.y)


def _first_table(lines: list[str]) -> list[str]:
    """Return the lines of the first Markdown table."""
    bars = [line.lstrip().startswith("|") for line in lines]
    start = bars.index(True) if True in bars else len(lines)
    end = bars.index(False, start) if False in bars[start:] else len(lines)
    return lines[start:end]


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


NOISE_ROWS = 10_000
NOISE_DIMENSIONS = (2, 8, 20)
_NOISE_PERCENT = 2.0


def noise_targets(views: int = 1, rows: int = NOISE_ROWS) -> Iterator[TargetResult]:
    """Yield the error over that of the running mean, in the second half of streams without any signal."""
    for d in NOISE_DIMENSIONS:
        stream = noise_stream(d, rows)
        predictions = MetricRegressor(views=views).progressive(stream.X, stream.y)
        means = MeanLabel().predict_then_learn(stream.X, stream.y)
        worse = 100 * (late_nrmse(predictions, stream.y) / late_nrmse(means, stream.y) - 1)
        yield at_most(
            f"pure noise, d = {d}, {rows:,} rows: error above that of the running mean", worse, _NOISE_PERCENT, " %"
        )
