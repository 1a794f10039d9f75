"""The section of the benchmark page about the comparison, and the table that the README quotes."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks.comparison import plots
from benchmarks.comparison.models import OURS
from benchmarks.comparison.summary import PEER_GROUPS, Summary, WinCount

_ERRORS_PLOT, _COSTS_PLOT = "peers-errors.png", "peers-costs.png"
_KIND_NAMES = {"ours": "ellipack", "paper": "paper", "streaming": "streaming", "batch": "batch", "trivial": "trivial"}


def section(results: dict[str, Any], folder: Path) -> str:
    """Return the section in Markdown; write its plots into a folder next to the page."""
    summary = Summary(results)
    plots.plot_errors(summary, folder / _ERRORS_PLOT)
    plots.plot_costs(summary, folder / _COSTS_PLOT)
    parts = [
        "## Comparison with peers",
        _introduction(summary),
        "### Summary",
        _overview(summary),
        "### Losses",
        _losses(summary),
        "### Late error",
        _errors(summary),
        "### Error over time",
        f"![Error over time, a panel for each stream]({folder.name}/{_ERRORS_PLOT})",
        "### Cost",
        f"![Error against cost, a point for each model]({folder.name}/{_COSTS_PLOT})",
        _costs(summary),
        "### Setup",
        _streams(summary),
        _settings(summary),
        _limitations(summary),
    ]
    return "\n\n".join(parts) + "\n"


def quoted(results: dict[str, Any]) -> str:
    """Return what the README quotes."""
    summary = Summary(results)
    lines = _table(
        ("`MetricRegressor` against", "streams won", "lost", "its late error over theirs, geometric mean"),
        _against_best(summary),
    )
    text = (
        f"{len(summary.streams)} streams of at most {results['rows']:,} rows ({_origins(results)}) and "
        f"{len(summary.peers)} peers, in one run of `{results['command']}`. All figures, and every loss, are in "
        f"[benchmarks](docs/benchmarks.md)."
    )
    return f"{lines}\n\n{fill(text, 120, break_long_words=False, break_on_hyphens=False)}"


def _origins(results: dict[str, Any]) -> str:
    """Return how many streams are public tables, of River's generators and of ellipack's own."""
    own = sum(each["ours"] for each in results["streams"])
    river = sum(each["description"].startswith("River ") for each in results["streams"])
    tables = len(results["streams"]) - own - river
    counts = (tables, "public tables"), (river, "of River's generators"), (own, "of our own")
    *first, last = [f"{count} {origin}" for count, origin in counts if count]
    return f"{', '.join(first)} and {last}" if first else last


def _introduction(summary: Summary) -> str:
    results = summary.results
    return (
        f"`make bench-peers` runs `MetricRegressor`, the paper's learners and {len(summary.peers)} peers on the same "
        f"rows. Each model predicts a row, then learns it, in one pass. No model sees future rows or their scale; only "
        f"the levels of text columns are known in advance, to all models alike. There are {len(summary.streams)} "
        f"streams of at most {results['rows']:,} rows, with {results['seeds']} seeds wherever a seed matters. "
        f"`benchmarks/comparison/models.py` lists the models with all settings, `benchmarks/comparison/datasets.py` "
        f"the streams.\n\n"
        "*Late error* is the root mean squared error over the second half of the rounds, divided by the standard "
        "deviation of the labels there: 0 is perfect, 1 is the error of their mean. *Ratios* are the late error of "
        "`MetricRegressor` over that of a peer: below 1 it wins, above 1 it loses. Trivial peers count as streaming."
    )


def _overview(summary: Summary) -> str:
    best: list[tuple[str, ...]] = [(f"**{row[0]}**", *row[1:]) for row in _against_best(summary)]
    single: list[tuple[str, ...]] = [
        (f"{peer} ({_KIND_NAMES[summary.kinds[peer]]})", *_win_cells(summary.wins_against(peer)))
        for peer in summary.peers
    ]
    return _table(("`MetricRegressor` against", "won", "lost", "ratio, geometric mean"), best + single)


def _against_best(summary: Summary) -> list[tuple[str, ...]]:
    """Return rows with wins against the best peers: on all streams, and on those that ellipack does not generate."""
    rows: list[tuple[str, ...]] = [
        (f"the best {group} peer of each stream", *_win_cells(summary.wins_against_best(group)))
        for group in PEER_GROUPS
    ]
    if len(summary.public_streams) < len(summary.streams):
        for group in PEER_GROUPS:
            count = summary.wins_against_best(group, summary.public_streams)
            rows.append((f"the best {group} peer, without ellipack's own synthetic streams", *_win_cells(count)))
    return rows


def _losses(summary: Summary) -> str:
    losses = summary.losses()
    if not losses:
        return "No peer has a lower late error on any of these streams."
    count = len({each.stream for each in losses})
    text = f"All peers with a lower late error, on {count} of {len(summary.streams)} streams, the largest ratio first."
    headings = ("stream", "peer", "its late error", "late error of `MetricRegressor`", "ratio")
    rows = [
        (each.stream, each.peer, _number(each.theirs), _number(each.ours), _ratio(each.ours / each.theirs))
        for each in losses
    ]
    return f"{text}\n\n{_table(headings, rows, text_columns=2)}"


def _errors(summary: Summary) -> str:
    rows = []
    for learner in summary.learners:
        name = f"**{learner}**" if summary.kinds[learner] == OURS else learner
        rows.append((name, *(_error(summary, stream, learner) for stream in summary.streams)))
    for group in PEER_GROUPS:
        ratios = (summary.ratio(stream, summary.best_peer(stream, group)) for stream in summary.streams)
        rows.append((f"*ratio to the best {group} peer*", *map(_ratio, ratios)))
    text = (
        "Means over the seeds, with half their range. The least error of each stream is in bold. "
        "The reasons of failures are below the table."
    )
    failures = [
        f"- {learner} on {stream}: {reason}"
        for stream in summary.streams
        for learner in summary.learners
        if (reason := summary.failure(stream, learner))
    ]
    parts = [text, _table(("late error", *summary.streams), rows), *(["\n".join(failures)] if failures else [])]
    return "\n\n".join(parts)


def _error(summary: Summary, stream: str, learner: str) -> str:
    error, half_range = summary.mean(stream, learner), summary.half_range(stream, learner)
    if math.isnan(error):
        return "failed"
    cell = _number(error) + ("" if math.isnan(half_range) else f" ± {_number(half_range)}")
    return f"**{cell}**" if summary.best(stream, summary.learners) == learner else cell


def _costs(summary: Summary) -> str:
    text = (
        "Geometric means over the streams. A round predicts and learns one row in one call, on one thread; its cost is "
        "processor time. Batch models predict all rows up to their next training in one call, whose time is divided "
        "among these rows; the time of a training counts for one round. Memory is the peak of a fresh process beyond "
        "its memory before the first row. The saved size is that of the file written by `save`, or of a pickle; for "
        "batch models it includes the rows for the next training."
    )
    headings = ("learner", "late error", "error", "us per round, mean", "median", "p99", "peak memory", "saved")
    rows = []
    for learner in summary.learners:
        errors = (_number(summary.geometric_mean(learner, field)) for field in ("late_nrmse", "nrmse"))
        costs = (_count(summary.geometric_mean(learner, field)) for field in ("mean_us", "median_us", "p99_us"))
        sizes = (_size(summary.geometric_mean(learner, field)) for field in ("peak_bytes", "saved_bytes"))
        rows.append((learner, *errors, *costs, *sizes))
    return f"{text}\n\n{_table(headings, rows)}"


def _streams(summary: Summary) -> str:
    rows = [
        (each["name"], each["description"], f"{each['rows']:,}", str(each["features"]))
        for each in summary.results["streams"]
    ]
    return _table(("stream", "description", "rows", "features"), rows, text_columns=2)


def _settings(summary: Summary) -> str:
    rows = [(each["name"], _KIND_NAMES[each["kind"]], each["settings"]) for each in summary.results["learners"]]
    return _table(("learner", "kind", "settings"), rows, text_columns=3)


def _limitations(summary: Summary) -> str:
    sentences = [
        "Not measured here: late or missing labels, rows in batches, more than one thread, graphics cards, and peers "
        "tuned to each stream by a search, which would have to see future rows. Costs include the overhead of one "
        "Python call per row, which dominates for some peers. scikit-learn's input checks are switched off for all "
        "models; the time of River's models includes the conversion of rows to dictionaries."
    ]
    if not any("CapyMOA" in each["settings"] for each in summary.results["learners"]):
        sentences.append("CapyMOA's SOKNL and ARF are not part of this run; `--capymoa` adds them.")
    return " ".join(sentences)


def _win_cells(count: WinCount) -> tuple[str, str, str]:
    failed = f" ({count.failed} without)" if count.failed else ""
    return str(count.won), str(count.lost), _ratio(count.mean) + failed


def _ratio(ratio: float) -> str:
    return "-" if math.isnan(ratio) else f"{ratio:.2f}" if ratio < 100 else f"{ratio:.2g}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}" if value < 100 else f"{value:.2g}"


def _count(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.1f}" if value < 10 else f"{value:,.0f}"


def _size(value: float) -> str:
    for unit, scale in (("MB", 2**20), ("kB", 2**10)):
        if value >= scale:
            return f"{value / scale:,.1f} {unit}"
    return "-" if math.isnan(value) else f"{value:.0f} B"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 1) -> str:
    """Return a Markdown table; columns after the first `text_columns` are right-aligned."""
    alignment = [*("---" for _ in headings[:text_columns]), *("---:" for _ in headings[text_columns:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in [headings, alignment, *rows])
