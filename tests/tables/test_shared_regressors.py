"""A `TableRegressor` that threads share, or that a child inherits."""

import copy
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ellipack import TableRegressor
from ellipack.errors import ReentrantCallError
from ellipack.evaluation.scores import Scores
from tests.cli.tables import COLUMNS, TARGET, rides

FRAME = pd.DataFrame(rides(90), columns=list(COLUMNS))
HEAD, REST = FRAME[:60], FRAME[60:]


def fitted() -> TableRegressor:
    return TableRegressor(TARGET).fit(HEAD)


def saved(model: TableRegressor, folder: Path) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def run_out_of_memory(*_: object) -> None:
    raise MemoryError


class Pause:
    """Stops a thread in the middle of a batch until `go_on` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        update = Scores.update

        def paused_update(scores: Scores, *arguments: Any) -> None:
            self.reached.set()
            self.go_on.wait(60)
            update(scores, *arguments)

        monkeypatch.setattr(Scores, "update", paused_update)

    def start(self, learn: Callable[[], object]) -> threading.Thread:
        """Learn in a thread; return when it is in the middle of the batch."""
        thread = threading.Thread(target=learn)
        thread.start()
        assert self.reached.wait(60)
        return thread


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_are_taken_between_two_batches(
    copied: Callable[[TableRegressor], TableRegressor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = saved(fitted().partial_fit(REST), tmp_path)
    model, copies = fitted(), list[TableRegressor]()
    pause = Pause(monkeypatch)
    learner = pause.start(lambda: model.partial_fit(REST))
    copier = threading.Thread(target=lambda: copies.append(copied(model)))
    copier.start()
    copier.join(0.1)
    assert not copies
    pause.go_on.set()
    learner.join()
    copier.join()
    assert saved(copies[0], tmp_path) == saved(model, tmp_path) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_in_the_middle_of_a_batch_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = saved(fitted().partial_fit(REST), tmp_path)
    model, pause = fitted(), Pause(monkeypatch)
    learner = pause.start(lambda: model.partial_fit(REST))
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends it if it hangs
        pause.go_on.set()
        os._exit(0 if saved(model, tmp_path) == expected and len(model.predict(REST)) == 30 else 1)
    pause.go_on.set()
    learner.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert saved(model, tmp_path) == expected


def test_a_failed_fit_leaves_the_model_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted()
    before = saved(model, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Scores, "update", run_out_of_memory)
        with pytest.raises(MemoryError):
            model.fit(REST)
    assert saved(model, tmp_path) == before


def test_a_callback_can_not_change_a_model_that_learns() -> None:
    model = fitted()

    def tables() -> Iterator[pd.DataFrame]:
        with pytest.raises(ReentrantCallError, match="while it learns"):
            model.partial_fit(REST)
        yield REST

    assert model.partial_fit(tables()).scores_.n_rows == 90
