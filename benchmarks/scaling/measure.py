"""Measure one setting in a process of its own: ``python -m benchmarks.scaling.measure``.

Reads the setting as JSON from standard input and prints what was measured. Memory is the peak resident size beyond the
resident size after imports, a warm-up and a first chunk of rows. Rows are generated in chunks, so they take no memory.
Cost is processor time of learning alone.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from benchmarks.measurement import memory_bytes, reset_peak_memory
from benchmarks.scaling.curves import Setting
from ellipack.validation import Floats

_CHUNK = 1_000
_WARM_UP_ROUNDS, _WARM_UP_CENTERS = 300, 100  # so few centers that some are evicted


@dataclass(frozen=True)
class ScalingMeasurement:
    """What was measured at a checkpoint."""

    rounds: int
    microseconds: float  # per round, since the checkpoint before
    peak_bytes: float  # beyond the memory before the first round
    file_bytes: int  # of the saved learner
    n_centers: int
    effective_rank: int


def measure(setting: Setting) -> Iterator[ScalingMeasurement]:
    """Run a learner, and yield what is measured at each checkpoint."""
    chunks = setting.stream().chunks(_CHUNK)
    _warm_up(setting, *next(chunks))
    learner, done, peak = setting.make_learner(), 0, 0.0
    before = memory_bytes("VmRSS")
    reset_peak_memory()
    for checkpoint in setting.checkpoints:
        seconds, first = 0.0, done
        while done < checkpoint:
            X, y = next(chunks)
            part = slice(min(_CHUNK, checkpoint - done))
            start = time.process_time()
            learner.progressive(X[part], y[part])
            seconds += time.process_time() - start
            done += len(y[part])
        peak = max(peak, float(memory_bytes("VmHWM") - before))
        cost = 1e6 * seconds / (checkpoint - first)
        saved = _saved_bytes(learner)
        yield ScalingMeasurement(checkpoint, cost, peak, saved, learner.n_centers_, learner.effective_rank_)
        reset_peak_memory()  # saving takes memory, too


def main() -> None:
    """Read a setting, measure it, print JSON."""
    with threadpool_limits(1):
        read = json.loads(sys.stdin.read())
        setting = Setting(**{**read, "checkpoints": tuple(read["checkpoints"])})
        print(json.dumps([asdict(each) for each in measure(setting)]))


def _warm_up(setting: Setting, X: Floats, y: Floats) -> None:
    small = Setting("", setting.learner, (), d=setting.d, rank=setting.rank, max_centers=_WARM_UP_CENTERS)
    learner = small.make_learner()
    learner.progressive(X[:_WARM_UP_ROUNDS], y[:_WARM_UP_ROUNDS])
    _saved_bytes(learner)


def _saved_bytes(learner: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner"
        learner.save(path)
        return path.stat().st_size


if __name__ == "__main__":
    main()
