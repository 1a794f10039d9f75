"""The guard, over a repository of two files; and the measures it asks for, on next to nothing."""

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.guard import measures
from benchmarks.guard.__main__ import guard, parse, sentence, table_of
from benchmarks.guard.comparison import FEWEST, MARGIN, TOLERANCE, Figures, Plan, interval, judge
from benchmarks.guard.trees import GuardError, checked_out, default_base, git

LIBRARY = "TIME = {time}\nERROR = {error}\n"
SCRIPT = """
import json, sys
import ellipack
for line in sys.stdin:
    name = json.loads(line)["name"]
    if name == "fall over":
        sys.exit("it fell over")
    print(json.dumps({"value": getattr(ellipack, name)} if hasattr(ellipack, name) else {"lacks": name}), flush=True)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository with one commit, and after it another library on disk."""
    library = tmp_path / "tree" / "src" / "ellipack" / "__init__.py"
    library.parent.mkdir(parents=True)
    library.write_text(LIBRARY.format(time=1.0, error=0.5) + "OLD = 1.0\n")
    root = tmp_path / "tree"
    git(root, "init", "--quiet", "--initial-branch", "trunk")
    commit(root, "the base")
    library.write_text(LIBRARY.format(time=1.2, error=0.5) + "NEW = 1.0\n")
    return root


def commit(root: Path, message: str) -> None:
    git(root, "add", ".")
    git(root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", message)


def plan(tmp_path: Path, **kinds: str) -> Plan:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return Plan(kinds, restarts=2, repeats=FEWEST // 2, script=script)  # type: ignore[arg-type]


def test_what_got_worse_is_said_and_nothing_is_left_behind(root: Path, tmp_path: Path) -> None:
    asked = plan(tmp_path, TIME="speed", ERROR="accuracy", NEW="speed", OLD="accuracy")
    called, found = guard(root, "HEAD", asked)
    judgements = [judge(each) for each in found]
    assert [each.word for each in judgements] == ["worse", "same", "new", "gone"]
    assert [len(each.pairs) for each in found] == [FEWEST, 1, 0, 0]
    assert judgements[0].ratio == pytest.approx(1.2)
    assert sentence(judgements) == "Got worse: TIME (x1.200); OLD (OLD)."
    assert called.endswith("the base")
    assert table_of(judgements, called).row_count == 4
    assert git(root, "worktree", "list").count("\n") == 0


def test_a_base_that_falls_over_is_an_error_and_nothing_is_left_behind(root: Path, tmp_path: Path) -> None:
    with pytest.raises(GuardError, match="it fell over"):
        guard(root, "HEAD", plan(tmp_path, **{"fall over": "speed"}))
    assert git(root, "worktree", "list").count("\n") == 0
    with pytest.raises(GuardError, match="nowhere"), checked_out(root, "nowhere"):
        pass


def test_an_interrupt_leaves_nothing_behind(root: Path) -> None:
    seen: list[Path] = []

    def interrupted() -> None:
        with checked_out(root, "HEAD") as base:
            seen.append(next(base.glob("src/*/__init__.py")))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not seen[0].exists()
    assert git(root, "worktree", "list").count("\n") == 0


def test_the_base_is_what_the_work_began_from(root: Path) -> None:
    assert default_base(root) == "HEAD"
    first = git(root, "rev-parse", "HEAD")
    commit(root, "changed")
    assert default_base(root) == "HEAD~1"
    git(root, "branch", "main", first)
    assert default_base(root) == first
    commit_less = git(root, "rev-parse", "HEAD")
    git(root, "branch", "--force", "main", commit_less)
    assert default_base(root) == "HEAD~1"


@given(st.lists(st.floats(0.5, 2.0), min_size=FEWEST, max_size=30), st.floats(0.1, 10.0))
def test_only_what_is_sure_is_called_worse_or_better(ratios: list[float], base: float) -> None:
    low, high = interval(ratios)
    assert min(ratios) <= low <= np.median(ratios) <= high <= max(ratios)
    word = judge(Figures("a", "speed", [(ratio * base, base) for ratio in ratios])).word
    reverse = judge(Figures("a", "speed", [(base, ratio * base) for ratio in ratios])).word
    if all(ratio > 1.06 for ratio in ratios):
        assert (word, reverse) == ("worse", "better")
    if np.median(ratios) <= 1 + MARGIN:
        assert word != "worse"


def test_few_pairs_say_nothing_and_errors_are_compared_as_they_are() -> None:
    few = judge(Figures("a", "speed", [(2.0, 1.0)] * (FEWEST - 1)))
    assert (few.word, few.bad) == ("same", False)
    assert sentence([few]).endswith("Perhaps slower, more --repeats would tell: a (x2.000).")
    assert sentence([judge(Figures("a", "speed", [(1.0, 1.0)] * FEWEST))]) == "Nothing surely got worse, of 1 measures."
    worse, same = 1 + 1.1 * TOLERANCE, 1 + 0.9 * TOLERANCE
    assert [judge(Figures("a", "accuracy", [(each, 1.0)])).word for each in (worse, same, 1 / worse)] == [
        "worse",
        "same",
        "better",
    ]
    assert judge(Figures("a", "accuracy", [(math.nan, 1.0)])).word == "worse"
    assert judge(Figures("a", "accuracy", [(0.0, 0.0)])).word == "same"
    assert judge(Figures("a", "accuracy", [(1.0, 0.0)])).word == "worse"


@pytest.mark.parametrize("name", [*measures.SPEED, *measures.ACCURACY])
def test_every_measure_is_a_number_above_0(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command))
    answer = measures.answer(name, 0.02)
    assert "value" in answer, answer
    assert answer["value"] > 0 or name == "import"
    assert bool(ran) == (name == "import")


def test_errors_come_out_the_same_every_time() -> None:
    first, second = (measures.answer("late NRMSE, MetricRegressor, steps", 0.02) for _ in range(2))
    assert first == second
    assert "lacks" in measures.answer("no such measure", 1.0)


@pytest.mark.parametrize("wrong", [["--repeats", "0"], ["--size", "2"], ["--only", "no such measure"]])
def test_what_makes_no_sense_is_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(wrong)
    assert wrong[0] in capsys.readouterr().err
