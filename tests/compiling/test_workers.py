import pytest

from ellipack.compiling import workers
from ellipack.errors import EllipackError


def test_what_a_task_fails_of_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "TASKS", ("index", "no_such_task"))
    with pytest.raises(EllipackError, match="no_such_task can't be compiled: KeyError: 'no_such_task'"):
        list(workers.compile_kernels(1))
