"""A race of next to nothing, each run in a process of its own."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks import results
from benchmarks.comparison.__main__ import chosen, main, parse
from benchmarks.comparison.datasets import SOURCES
from benchmarks.comparison.models import CAPYMOA, LEARNERS
from benchmarks.comparison.runner import POINTS, Job, Results, curve, jobs, outcome, run, whole


def test_curve_by_hand() -> None:
    y = np.tile([1.0, -1.0], POINTS)  # of deviation 1
    predictions = y.copy()
    predictions[2:4] += 3.0
    assert curve(predictions, y) == [0.0, 3.0, *[0.0] * (POINTS - 2)]


def test_what_the_seed_does_not_change_is_run_once() -> None:
    sources = {name: SOURCES[name] for name in ("nox", "friedman")}
    learners = {name: LEARNERS[name] for name in ("KNN", "AMF")}
    count = {(each.stream, each.learner): 0 for each in jobs(sources, learners, 3)}
    for each in jobs(sources, learners, 3):
        count[each.stream, each.learner] += 1
    assert count == {("nox", "KNN"): 1, ("nox", "AMF"): 3, ("friedman", "KNN"): 3, ("friedman", "AMF"): 3}


def test_a_stream_that_was_interrupted_does_not_count() -> None:
    todo = [Job("one", "KNN", 0), Job("one", "KNN", 1), Job("two", "KNN", 0)]
    results: Results = {"one": {"KNN": {"0": {}}}, "two": {"KNN": {"0": {}}}}
    assert list(whole(results, todo)) == ["two"]
    results["one"]["KNN"]["1"] = {}
    assert list(whole(results, todo)) == ["one", "two"]


def test_a_race(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found" / "results.json"
    learners = ["Packing", "Linear", "Last label"]
    arguments = ["--streams", "low_rank_5", "--rows", "60", "--seeds", "1", "--json", str(path), "--jobs", "2"]
    main([*arguments, "--learners", *learners])
    figures = results.read(path)["peers"]
    assert [each["name"] for each in figures["learners"]] == learners
    assert figures["streams"][0]["rows"] == 60
    found = {name: runs["0"] for name, runs in figures["results"]["low_rank_5"].items()}
    y = SOURCES["low_rank_5"].draw(0, 60).y
    last = np.sqrt(np.mean((y[30:] - y[29:-1]) ** 2)) / np.std(y[30:])
    assert found["Last label"]["late"] == pytest.approx(last, rel=1e-3)
    for each in found.values():
        assert each["mean_us"] > 0
        assert len(each["curve"]) == POINTS
        assert each["saved_bytes"] > 0
    printed = capsys.readouterr()
    assert f"{found['Linear']['late']:.3f}" in printed.out
    assert "3 of 3" in printed.err
    # One that fails is said to fail, and why; the others are not touched.
    np.savez(tmp_path / "stream.npz", X=np.full((4, 2), np.nan), y=np.ones(4))
    assert "NonFiniteError: " in run(Job("low_rank_5", "Packing", 0), tmp_path / "stream.npz", 60.0)["failed"]


@pytest.mark.skipif(find_spec("capymoa") is not None, reason="CapyMOA is installed")
def test_says_what_capymoa_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--capymoa"])
    assert "Java on the path" in capsys.readouterr().err
    for learner in CAPYMOA.values():
        with pytest.raises(ModuleNotFoundError, match="pip install torch capymoa"):
            learner.make(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "0"], "--rows must be >= 1, got 0"),
        (["--jobs", "-1"], "--jobs must be >= 1, got -1"),
        (["--streams", "nobody's"], "--streams must be among flights, .*, got nobody's"),
        (["--learners", "KNN", "me"], "--learners must be among MetricRegressor, .*, got me"),
        (["--data", "nowhere"], "--data must be a folder, got nowhere"),
        (["--data", ".", "--publish"], "--publish is for streams that anyone can get"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(options)
    assert re.search(message, " ".join(capsys.readouterr().err.split()))


def test_labels_that_do_not_vary_are_a_failure_and_not_the_end() -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.r_[np.arange(30.0), np.zeros(30)]
    assert outcome("Last label", 0, X, y) == {"failed": "an error that is no number"}


def test_options() -> None:
    options = parse(["--full", "--rows", "7"])
    assert (options.full, options.rows, options.publish) == (True, 7, False)
    assert list(chosen({"a": 1, "b": 2}, ["b"], "--x")) == ["b"]
    assert list(chosen({"a": 1, "b": 2}, None, "--x")) == ["a", "b"]
    with pytest.raises(ValueError, match="--x must be among a, b, got c"):
        chosen({"a": 1, "b": 2}, ["c"], "--x")
