import shutil
import sys

import pytest

from ellipack.compiling import workers
from ellipack.errors import EllipackError


def test_what_a_task_fails_of_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "TASKS", ("index", "no_such_task"))
    with pytest.raises(EllipackError, match="no_such_task can't be compiled: KeyError: 'no_such_task'"):
        list(workers.compile_kernels(1))


def test_a_process_that_dies_without_a_word_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    with pytest.raises(EllipackError, match="can't be compiled: its process has died"):
        list(workers.compile_kernels(2))
