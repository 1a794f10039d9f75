from multiprocessing import get_context

import numpy as np
import pytest

from benchmarks import keyed
from benchmarks.past import KeyedStream


def test_own_learners_help_where_keys_differ() -> None:
    X, y, keys = keyed.own_functions()
    mine = np.asarray(keys) < 4
    result = keyed.measure(KeyedStream(X[mine][:800], y[mine][:800], np.asarray(keys)[mine][:800]))
    assert (result.rows, result.keys) == (800, 4)
    assert result.ratio < 0.8
    assert result.from_nothing < result.no_keys


def test_the_command_prints_two_tables(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "get_context", lambda _: get_context("fork"))  # a new process imports everything again
    keyed.main(["--rows", "100", "--keys", "8", "--panels", "gasoline"])
    printed = capsys.readouterr().out
    assert "gasoline" in printed
    assert "geometric mean of the ratios" in printed
    assert "8 keys" in printed
