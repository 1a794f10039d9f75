"""The state before a step for many tasks of a pool of processes: written once, and read once by each process."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from ellipack.errors import WorkerError
from ellipack.learners.metric.state import MetricState


class StateReference(NamedTuple):
    """Reference to a state in a file. Where a pickle of it is read, it is the state."""

    path: str

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return read_state, (self.path,)


@contextmanager
def share_state(state: MetricState) -> Iterator[StateReference]:
    """Write a state to a temporary file, which is removed after the block; raise `WorkerError` if the disk is full."""
    with NamedTemporaryFile(prefix="ellipack-", suffix=".state") as file:
        try:
            pickle.dump(state, file, pickle.HIGHEST_PROTOCOL)
            file.flush()
        except OSError as error:
            raise WorkerError(f"the state can't be written to {file.name} for other processes: {error}") from error
        yield StateReference(file.name)


_read: dict[str, MetricState] = {}  # the last state that this process has read, by the path of its file


def read_state(path: str) -> MetricState:
    """Return the state in a file. A process reads it once."""
    if path not in _read:
        state: MetricState = pickle.loads(Path(path).read_bytes())
        _read.clear()
        _read[path] = state
    return _read[path]
