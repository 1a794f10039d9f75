"""One setting in a process of its own: ``python -m benchmarks.scaling.measure`` reads it as JSON, and prints marks.

Memory is the most that the process took (its peak resident size) beyond what it took once everything was imported and
compiled and a first chunk of rows was drawn. Rows come a chunk at a time, so that they take none of it. Costs are
processor time, of learning alone.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from benchmarks.scaling.curves import Setting
from ellipack.validation import Floats

_CHUNK = 1_000
_WARM = 300  # rounds after which everything is compiled, re-packing included, with this many centres at most:
_FEW = 100
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Mark:
    """What was found after so many rounds."""

    rounds: int
    microseconds: float  # a round, since the mark before
    peak: float  # bytes beyond what was taken before
    saved: int  # bytes of the learner's file
    n_centers: int
    effective_rank: int


def measure(setting: Setting) -> Iterator[Mark]:
    """Let a learner learn, and yield what is found at each mark."""
    chunks = setting.stream().chunks(_CHUNK)
    _warm_up(setting, *next(chunks))
    learner, done, peak = setting.make(), 0, 0.0
    before = _taken("VmRSS")
    _forget_peak()
    for mark in setting.marks:
        seconds, begun = 0.0, done
        while done < mark:
            X, y = next(chunks)
            some = slice(min(_CHUNK, mark - done))
            start = time.process_time()
            learner.progressive(X[some], y[some])
            seconds += time.process_time() - start
            done += len(y[some])
        peak = max(peak, _taken("VmHWM") - before)
        yield Mark(
            mark, 1e6 * seconds / (mark - begun), peak, _saved(learner), learner.n_centers_, learner.effective_rank_
        )
        _forget_peak()  # saving took memory too


def main() -> None:
    """Read a setting, print its marks."""
    with threadpool_limits(1):
        read = json.loads(sys.stdin.read())
        setting = Setting(**{**read, "marks": tuple(read["marks"])})
        print(json.dumps([asdict(mark) for mark in measure(setting)]))


def _warm_up(setting: Setting, X: Floats, y: Floats) -> None:
    learner = Setting("", setting.learner, (), d=setting.d, rank=setting.rank, max_centers=_FEW).make()
    learner.progressive(X[:_WARM], y[:_WARM])
    _saved(learner)


def _saved(learner: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner"
        learner.save(path)
        return path.stat().st_size


def _taken(what: str) -> float:
    """Return the resident size now (VmRSS) or at most (VmHWM), in bytes; where the system has no such file, at most.

    What `getrusage` says is not used where there is another way: it counts the process that started this one in.
    """
    if not _STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{what}:"))
    return 1024.0 * int(line.split()[1])


def _forget_peak() -> None:
    """Let the most that was taken be what is taken now, where the system can."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


if __name__ == "__main__":
    main()
