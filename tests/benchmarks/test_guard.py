"""The guard on a repository of two files, and its measures on tiny streams."""

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.guard import measures
from benchmarks.guard.__main__ import changes_table, guard, parse, summarize
from benchmarks.guard.tree_comparison import MARGIN, MIN_PAIRS, TOLERANCE, Measurements, Plan, classify, median_interval
from benchmarks.guard.trees import GuardError, checked_out, default_base, git

LIBRARY = "TIME = {time}\nERROR = {error}\n"
SCRIPT = """
import json, sys
import ellipack
for line in sys.stdin:
    name = json.loads(line)["name"]
    if name == "crash":
        sys.exit("it crashed")
    print(json.dumps({"value": getattr(ellipack, name)} if hasattr(ellipack, name) else {"missing": name}), flush=True)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository with one commit, and another version in the working copy."""
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
    return Plan(kinds, restarts=2, repeats=MIN_PAIRS // 2, script=script)  # type: ignore[arg-type]


def test_changes_are_reported_and_the_checkout_is_removed(root: Path, tmp_path: Path) -> None:
    request = plan(tmp_path, TIME="speed", ERROR="accuracy", NEW="speed", OLD="accuracy")
    title, measured = guard(root, "HEAD", request)
    changes = [classify(each) for each in measured]
    assert [each.status for each in changes] == ["worse", "same", "new", "gone"]
    assert [len(each.pairs) for each in measured] == [MIN_PAIRS, 1, 0, 0]
    assert changes[0].ratio == pytest.approx(1.2)
    assert summarize(changes) == "Got worse: TIME (x1.200); OLD (OLD)."
    assert title.endswith("the base")
    assert changes_table(changes, title).row_count == 4
    assert git(root, "worktree", "list").count("\n") == 0


def test_a_crash_of_the_base_is_an_error_and_the_checkout_is_removed(root: Path, tmp_path: Path) -> None:
    with pytest.raises(GuardError, match="it crashed"):
        guard(root, "HEAD", plan(tmp_path, crash="speed"))
    assert git(root, "worktree", "list").count("\n") == 0
    with pytest.raises(GuardError, match="nowhere"), checked_out(root, "nowhere"):
        pass


def test_an_interrupt_removes_the_checkout(root: Path) -> None:
    seen: list[Path] = []

    def interrupted() -> None:
        with checked_out(root, "HEAD") as base:
            seen.append(next(base.glob("src/*/__init__.py")))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not seen[0].exists()
    assert git(root, "worktree", "list").count("\n") == 0


def test_default_base(root: Path) -> None:
    assert default_base(root) == "HEAD"
    first = git(root, "rev-parse", "HEAD")
    commit(root, "changed")
    assert default_base(root) == "HEAD~1"
    git(root, "branch", "main", first)
    assert default_base(root) == first
    second = git(root, "rev-parse", "HEAD")
    git(root, "branch", "--force", "main", second)
    assert default_base(root) == "HEAD~1"


@given(st.lists(st.floats(0.5, 2.0), min_size=MIN_PAIRS, max_size=30), st.floats(0.1, 10.0))
def test_a_change_needs_a_confidence_interval(ratios: list[float], base: float) -> None:
    low, high = median_interval(ratios)
    assert min(ratios) <= low <= np.median(ratios) <= high <= max(ratios)
    status = classify(Measurements("a", "speed", [(ratio * base, base) for ratio in ratios])).status
    reverse = classify(Measurements("a", "speed", [(base, ratio * base) for ratio in ratios])).status
    if all(ratio > 1.06 for ratio in ratios):
        assert (status, reverse) == ("worse", "better")
    if np.median(ratios) <= 1 + MARGIN:
        assert status != "worse"


def test_few_pairs_prove_nothing_and_errors_are_compared_exactly() -> None:
    few = classify(Measurements("a", "speed", [(2.0, 1.0)] * (MIN_PAIRS - 1)))
    assert (few.status, few.is_worse) == ("same", False)
    assert summarize([few]).endswith("Possibly slower, run with more --repeats: a (x2.000).")
    assert (
        summarize([classify(Measurements("a", "speed", [(1.0, 1.0)] * MIN_PAIRS))]) == "None of 1 measures got worse."
    )
    worse, same = 1 + 1.1 * TOLERANCE, 1 + 0.9 * TOLERANCE
    assert [classify(Measurements("a", "accuracy", [(each, 1.0)])).status for each in (worse, same, 1 / worse)] == [
        "worse",
        "same",
        "better",
    ]
    assert classify(Measurements("a", "accuracy", [(math.nan, 1.0)])).status == "worse"
    assert classify(Measurements("a", "accuracy", [(0.0, 0.0)])).status == "same"
    assert classify(Measurements("a", "accuracy", [(1.0, 0.0)])).status == "worse"


@pytest.mark.parametrize("name", [*measures.SPEED, *measures.ACCURACY])
def test_every_measure_is_positive(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command))
    answer = measures.measure(name, 0.02)
    assert "value" in answer, answer
    assert answer["value"] > 0 or name == "import"
    assert bool(ran) == (name == "import")


def test_errors_are_deterministic() -> None:
    first, second = (measures.measure("late NRMSE, MetricRegressor, steps", 0.02) for _ in range(2))
    assert first == second
    assert "missing" in measures.measure("no such measure", 1.0)


@pytest.mark.parametrize("wrong", [["--repeats", "0"], ["--size", "2"], ["--only", "no such measure"]])
def test_invalid_options_are_usage_errors(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(wrong)
    assert wrong[0] in capsys.readouterr().err
