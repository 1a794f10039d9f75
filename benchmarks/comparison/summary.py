"""What a race came to: means over seeds, ratios to the best peers, wins and losses."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.comparison.models import BATCH, OURS, PAPER, STREAMING, SUBJECT, TRIVIAL

PEERS = {"streaming": (STREAMING, TRIVIAL), "batch": (BATCH,)}
"""Which kinds are meant by the best of."""


_LEAST = defaultdict(lambda: 1e-12, peak_bytes=4096.0)
"""What a figure is at least in a geometric mean: a page of memory, for one."""


class Loss(NamedTuple):
    """A stream on which a peer's late error was below ours."""

    stream: str
    peer: str
    ours: float
    theirs: float


class Tally(NamedTuple):
    """How the subject did against one peer, or the best of some."""

    won: int
    lost: int
    failed: int  # streams on which the peer, or ours, has no error to compare
    mean: float  # the geometric mean of the ratios of ours to theirs, NaN if there is none


class Standings:
    """The figures of a race, by stream and learner."""

    def __init__(self, figures: dict[str, Any]) -> None:
        self.figures = figures
        self.streams: list[str] = [each["name"] for each in figures["streams"]]
        self.foreign: list[str] = [each["name"] for each in figures["streams"] if not each["ours"]]
        self.kinds: dict[str, str] = {each["name"]: each["kind"] for each in figures["learners"]}

    @property
    def learners(self) -> list[str]:
        """All that took part."""
        return list(self.kinds)

    @property
    def peers(self) -> list[str]:
        """All that took part and are not of this package."""
        return [name for name, kind in self.kinds.items() if kind not in (OURS, PAPER)]

    def all_of(self, stream: str, learner: str, field: str) -> list[Any]:
        """Return a figure for each seed; none, if the learner failed with one of them."""
        runs = self.figures["results"].get(stream, {}).get(learner, {})
        outcomes = [runs[seed] for seed in sorted(runs, key=int)]
        return [each[field] for each in outcomes] if not self.failure(stream, learner) else []

    def mean(self, stream: str, learner: str, field: str = "late") -> float:
        """Return a figure's mean over the seeds, NaN if there is none."""
        values = self.all_of(stream, learner, field)
        return float(np.mean(values)) if values else float("nan")

    def spread(self, stream: str, learner: str, field: str = "late") -> float:
        """Return half the range of a figure over the seeds, NaN if there was only one."""
        values = self.all_of(stream, learner, field)
        return (max(values) - min(values)) / 2 if len(values) > 1 else float("nan")

    def failure(self, stream: str, learner: str) -> str:
        """Return why a learner has no error on a stream, nothing if it has."""
        runs = self.figures["results"].get(stream, {}).get(learner, {})
        said = [each["failed"] for each in runs.values() if "failed" in each]
        return said[0] if said else "" if runs else "not run"

    def best(self, stream: str, learners: Iterable[str]) -> str | None:
        """Return who of these had the least late error."""
        errors = {name: self.mean(stream, name) for name in learners}
        able = [name for name, error in errors.items() if np.isfinite(error)]
        return min(able, key=lambda name: errors[name], default=None)

    def best_of(self, stream: str, group: str) -> str | None:
        """Return the best peer of a group of `PEERS`."""
        return self.best(stream, [name for name in self.peers if self.kinds[name] in PEERS[group]])

    def ratio(self, stream: str, peer: str | None) -> float:
        """Return the late error of ours over that of a peer: below 1, ours is less. NaN if there is none."""
        if peer is None:
            return float("nan")
        ours, theirs = self.mean(stream, SUBJECT), self.mean(stream, peer)
        return ours / theirs if theirs > 0 else float("nan")

    def tally(self, peers: Mapping[str, str | None]) -> Tally:
        """Return how ours did, against a peer for each stream."""
        ratios = np.array([self.ratio(stream, peer) for stream, peer in peers.items()])
        known = ratios[np.isfinite(ratios)]
        mean = float(np.exp(np.log(known).mean())) if len(known) else float("nan")
        # Where ours failed and the peer did not, it has lost.
        beaten = sum(bool(self.failure(stream, SUBJECT)) and self._able(stream, peer) for stream, peer in peers.items())
        return Tally(int(np.sum(known < 1)), int(np.sum(known > 1)) + beaten, len(ratios) - len(known) - beaten, mean)

    def _able(self, stream: str, peer: str | None) -> bool:
        return peer is not None and not self.failure(stream, peer)

    def against(self, peer: str) -> Tally:
        """Return how ours did against one peer."""
        return self.tally(dict.fromkeys(self.streams, peer))

    def against_best(self, group: str, streams: Iterable[str] | None = None) -> Tally:
        """Return how ours did against the best of a group, stream by stream; over all streams unless told."""
        some = self.streams if streams is None else streams
        return self.tally({stream: self.best_of(stream, group) for stream in some})

    def losses(self) -> list[Loss]:
        """Return every stream and peer whose late error was below ours, the worst first."""
        found = [
            Loss(stream, peer, self.mean(stream, SUBJECT), self.mean(stream, peer))
            for stream in self.streams
            for peer in self.peers
            if self.ratio(stream, peer) > 1
        ]
        return sorted(found, key=lambda each: each.theirs / each.ours)

    def typical(self, learner: str, field: str) -> float:
        """Return the geometric mean over the streams of a figure's means over the seeds, NaN if it failed on one."""
        means = np.array([self.mean(stream, learner, field) for stream in self.streams])
        return float(np.exp(np.log(np.maximum(means, _LEAST[field])).mean())) if len(means) else float("nan")
