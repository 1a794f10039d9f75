"""Summary of a comparison: means over seeds, ratios to the best peers, wins and losses."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.comparison.models import BATCH, OURS, PAPER, STREAMING, SUBJECT, TRIVIAL

PEER_GROUPS = {"streaming": (STREAMING, TRIVIAL), "batch": (BATCH,)}
"""The kinds of models in each group of peers."""

_LEAST = defaultdict(lambda: 1e-12, peak_bytes=4096.0)
"""Lower limit of a figure in a geometric mean; for memory, one page."""


class Loss(NamedTuple):
    """A stream on which a peer has a lower late error than `SUBJECT`."""

    stream: str
    peer: str
    ours: float
    theirs: float


class WinCount(NamedTuple):
    """Wins and losses of `SUBJECT` against one peer, or against the best of a group."""

    won: int
    lost: int
    failed: int  # streams without two errors to compare
    mean: float  # geometric mean of our errors over theirs, NaN if there are none


class Summary:
    """The results of a comparison by stream and model."""

    def __init__(self, results: dict[str, Any]) -> None:
        self.results = results
        self.streams: list[str] = [each["name"] for each in results["streams"]]
        self.public_streams: list[str] = [each["name"] for each in results["streams"] if not each["ours"]]
        self.kinds: dict[str, str] = {each["name"]: each["kind"] for each in results["learners"]}

    @property
    def learners(self) -> list[str]:
        """All models."""
        return list(self.kinds)

    @property
    def peers(self) -> list[str]:
        """All models that are not part of ellipack."""
        return [name for name, kind in self.kinds.items() if kind not in (OURS, PAPER)]

    def values(self, stream: str, learner: str, field: str) -> list[Any]:
        """Return a figure for each seed; an empty list if the model failed with one of them."""
        runs = self.results["results"].get(stream, {}).get(learner, {})
        outcomes = [runs[seed] for seed in sorted(runs, key=int)]
        return [each[field] for each in outcomes] if not self.failure(stream, learner) else []

    def mean(self, stream: str, learner: str, field: str = "late_nrmse") -> float:
        """Return the mean of a figure over the seeds, NaN if there is none."""
        values = self.values(stream, learner, field)
        return float(np.mean(values)) if values else float("nan")

    def half_range(self, stream: str, learner: str, field: str = "late_nrmse") -> float:
        """Return half the range of a figure over the seeds, NaN for a single seed."""
        values = self.values(stream, learner, field)
        return (max(values) - min(values)) / 2 if len(values) > 1 else float("nan")

    def failure(self, stream: str, learner: str) -> str:
        """Return why a model has no error on a stream, an empty string if it has one."""
        runs = self.results["results"].get(stream, {}).get(learner, {})
        reasons = [each["failed"] for each in runs.values() if "failed" in each]
        return reasons[0] if reasons else "" if runs else "not run"

    def best(self, stream: str, learners: Iterable[str]) -> str | None:
        """Return which of these models has the least late error."""
        errors = {name: self.mean(stream, name) for name in learners}
        able = [name for name, error in errors.items() if np.isfinite(error)]
        return min(able, key=lambda name: errors[name], default=None)

    def best_peer(self, stream: str, group: str) -> str | None:
        """Return the best peer of a group of `PEER_GROUPS`."""
        return self.best(stream, [name for name in self.peers if self.kinds[name] in PEER_GROUPS[group]])

    def ratio(self, stream: str, peer: str | None) -> float:
        """Return our late error over that of a peer, NaN if one is missing. Below 1, ours is lower."""
        if peer is None:
            return float("nan")
        ours, theirs = self.mean(stream, SUBJECT), self.mean(stream, peer)
        return ours / theirs if theirs > 0 else float("nan")

    def count_wins(self, peers: Mapping[str, str | None]) -> WinCount:
        """Count wins and losses against a peer for each stream."""
        ratios = np.array([self.ratio(stream, peer) for stream, peer in peers.items()])
        known = ratios[np.isfinite(ratios)]
        mean = float(np.exp(np.log(known).mean())) if len(known) else float("nan")
        # A failure of ours where the peer succeeds is a loss.
        beaten = sum(bool(self.failure(stream, SUBJECT)) and self._able(stream, peer) for stream, peer in peers.items())
        lost = int(np.sum(known > 1)) + beaten
        return WinCount(int(np.sum(known < 1)), lost, len(ratios) - len(known) - beaten, mean)

    def _able(self, stream: str, peer: str | None) -> bool:
        return peer is not None and not self.failure(stream, peer)

    def wins_against(self, peer: str) -> WinCount:
        """Count wins and losses against one peer."""
        return self.count_wins(dict.fromkeys(self.streams, peer))

    def wins_against_best(self, group: str, streams: Iterable[str] | None = None) -> WinCount:
        """Count wins and losses against the best peer of a group on each stream; on all streams by default."""
        chosen = self.streams if streams is None else streams
        return self.count_wins({stream: self.best_peer(stream, group) for stream in chosen})

    def losses(self) -> list[Loss]:
        """Return each stream and peer with a lower late error than ours, the largest ratio first."""
        found = [
            Loss(stream, peer, self.mean(stream, SUBJECT), self.mean(stream, peer))
            for stream in self.streams
            for peer in self.peers
            if self.ratio(stream, peer) > 1
        ]
        return sorted(found, key=lambda each: each.theirs / each.ours)

    def geometric_mean(self, learner: str, field: str) -> float:
        """Return the geometric mean over the streams of the means over the seeds, NaN if a stream is missing."""
        means = np.array([self.mean(stream, learner, field) for stream in self.streams])
        return float(np.exp(np.log(np.maximum(means, _LEAST[field])).mean())) if len(means) else float("nan")
