"""The section of the page that shows the race, and what the README quotes of it; from figures and nothing else."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparison import plots
from benchmarks.comparison.models import OURS
from benchmarks.comparison.summary import PEERS, Standings, Tally

_ERRORS, _COSTS = "peers-errors.png", "peers-costs.png"
_KINDS = {"ours": "ellipack", "paper": "the paper", "streaming": "streaming", "batch": "batch", "trivial": "trivial"}


def section(figures: dict[str, Any], folder: Path) -> str:
    """Return the section in Markdown; write its pictures into a folder, which the text takes to be its own name."""
    standings = Standings(figures)
    plots.errors(standings, folder / _ERRORS)
    plots.costs(standings, folder / _COSTS)
    parts = [
        "## Beside its peers",
        _opening(standings),
        "### In short",
        _short(standings),
        "### Where it loses",
        _losses(standings),
        "### Late error",
        _errors(standings),
        "### Error over time",
        f"![Error over time, a panel a stream]({folder.name}/{_ERRORS})",
        "### What it costs",
        f"![Error against cost, a point a learner]({folder.name}/{_COSTS})",
        _costs(standings),
        "### What was run",
        _streams(standings),
        _settings(standings),
        _not_measured(standings),
    ]
    return "\n\n".join(parts) + "\n"


def quoted(figures: dict[str, Any]) -> str:
    """Return what the README says of the race."""
    standings = Standings(figures)
    lines = _table(
        ("`MetricRegressor` against", "streams won", "lost", "its late error over theirs, geometric mean"),
        _against_best(standings),
    )
    said = (
        f"{len(standings.streams)} streams that anyone can get, of at most {figures['rows']:,} rows, "
        f"{len(standings.peers)} peers, all in one run of `{figures['command']}`; each single figure, and every loss, "
        f"stands in [benchmarks](docs/benchmarks.md)."
    )
    return f"{lines}\n\n{said}"


def _opening(standings: Standings) -> str:
    figures = standings.figures
    return (
        f"`make bench-peers` lets `MetricRegressor`, the paper's learners and {len(standings.peers)} peers predict and "
        f"then learn the same rows, one after the other, in one pass and with no look ahead, not even at the scale of "
        f"what has not been seen; only which levels a text column has is told beforehand, to all alike. "
        f"{len(standings.streams)} streams of at most {figures['rows']:,} rows; "
        f"{figures['seeds']} seeds where there is anything to draw. Who takes part, with every setting, stands in "
        f"`benchmarks/comparison/models.py`, and what is raced on in `benchmarks/comparison/datasets.py`.\n\n"
        "*Late error* is the root mean square error over the second half of the rounds, over the standard deviation of "
        "the labels there: 0 is perfect, 1 is what knowing their mean would give. *Ratios* are `MetricRegressor`'s "
        "late error over a peer's: below 1 it wins, above 1 it loses. The trivial peers count among the streaming ones."
    )


def _short(standings: Standings) -> str:
    best: list[tuple[str, ...]] = [(f"**{row[0]}**", *row[1:]) for row in _against_best(standings)]
    single: list[tuple[str, ...]] = [
        (f"{peer} ({_KINDS[standings.kinds[peer]]})", *_tally(standings.against(peer))) for peer in standings.peers
    ]
    return _table(("`MetricRegressor` against", "won", "lost", "ratio, geometric mean"), best + single)


def _against_best(standings: Standings) -> list[tuple[str, ...]]:
    """Return how ours did against the best; once more without the streams that are made for its kind."""
    rows: list[tuple[str, ...]] = [
        (f"the best {group} peer of each stream", *_tally(standings.against_best(group))) for group in PEERS
    ]
    if len(standings.foreign) < len(standings.streams):
        for group in PEERS:
            tally = standings.against_best(group, standings.foreign)
            rows.append((f"the same, {group}, without streams of our own making", *_tally(tally)))
    return rows


def _losses(standings: Standings) -> str:
    losses = standings.losses()
    if not losses:
        return "No peer had a lower late error on any of these streams."
    count = len({each.stream for each in losses})
    said = f"Every peer that had a lower late error, on {count} of {len(standings.streams)} streams; the worst first."
    heads = ("stream", "peer", "its late error", "`MetricRegressor`'s", "ratio")
    rows = [
        (each.stream, each.peer, _number(each.theirs), _number(each.ours), _ratio(each.ours / each.theirs))
        for each in losses
    ]
    return f"{said}\n\n{_table(heads, rows, words=2)}"


def _errors(standings: Standings) -> str:
    rows = []
    for learner in standings.learners:
        name = f"**{learner}**" if standings.kinds[learner] == OURS else learner
        rows.append((name, *(_error(standings, stream, learner) for stream in standings.streams)))
    for group in PEERS:
        ratios = (standings.ratio(stream, standings.best_of(stream, group)) for stream in standings.streams)
        rows.append((f"*ratio to the best {group} peer*", *map(_ratio, ratios)))
    said = (
        "Means over the seeds, with half their range; in bold the least of each stream. "
        "A learner that failed has its reason below the table."
    )
    failed = [
        f"- {learner} on {stream}: {reason}"
        for stream in standings.streams
        for learner in standings.learners
        if (reason := standings.failure(stream, learner))
    ]
    return "\n\n".join(
        [said, _table(("late error", *standings.streams), rows), *(["\n".join(failed)] if failed else [])]
    )


def _error(standings: Standings, stream: str, learner: str) -> str:
    error, spread = standings.mean(stream, learner), standings.spread(stream, learner)
    if math.isnan(error):
        return "failed"
    shown = _number(error) + ("" if math.isnan(spread) else f" ± {_number(spread)}")
    return f"**{shown}**" if standings.best(stream, standings.learners) == learner else shown


def _costs(standings: Standings) -> str:
    said = (
        "Geometric means over the streams. A round is a prediction and a lesson, one row a call, on one thread, in the "
        "processor's time; batch models predict all rows up to the next training in a call, which is shared out among "
        "them, and a training is one round's. Memory is what a fresh process takes at most beyond what it had taken "
        "before the first row. Saved is `save`'s file, or a pickle; a batch model's with the rows that it will be "
        "trained on again."
    )
    heads = ("learner", "late error", "whole error", "us a round, mean", "median", "p99", "peak memory", "saved")
    rows = []
    for learner in standings.learners:
        errors = (_number(standings.typical(learner, field)) for field in ("late", "whole"))
        costs = (_count(standings.typical(learner, field)) for field in ("mean_us", "median_us", "p99_us"))
        sizes = (_size(standings.typical(learner, field)) for field in ("peak_bytes", "saved_bytes"))
        rows.append((learner, *errors, *costs, *sizes))
    return f"{said}\n\n{_table(heads, rows)}"


def _streams(standings: Standings) -> str:
    rows = [
        (each["name"], each["about"], f"{each['rows']:,}", str(each["features"]))
        for each in standings.figures["streams"]
    ]
    return _table(("stream", "what it is", "rows", "features"), rows, words=2)


def _settings(standings: Standings) -> str:
    rows = [(each["name"], _KINDS[each["kind"]], each["settings"]) for each in standings.figures["learners"]]
    return _table(("learner", "kind", "settings"), rows, words=3)


def _not_measured(standings: Standings) -> str:
    lines = [
        "Not measured here: labels that come late or never, rows in batches, more than one thread, graphics cards, and "
        "peers tuned to each stream by a search, which would need to look ahead. Costs are of Python calls a row: some "
        "peers' are mostly that. scikit-learn's checks of its input are switched off for all, River's rows become "
        "dictionaries within the time that is counted, as they would have to."
    ]
    if not any("CapyMOA" in each["settings"] for each in standings.figures["learners"]):
        lines.append("CapyMOA's SOKNL and ARF did not take part in this run; `--capymoa` lets them.")
    return " ".join(lines)


def _tally(tally: Tally) -> tuple[str, str, str]:
    return str(tally.won), str(tally.lost), _ratio(tally.mean) + (f" ({tally.failed} without)" if tally.failed else "")


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


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Lay out a table; its first columns are words, the others figures."""
    lines = [heads, [*("---" for _ in heads[:words]), *("---:" for _ in heads[words:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
