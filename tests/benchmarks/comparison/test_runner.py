"""A tiny comparison, with a process for each run."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks import results
from benchmarks.comparison.__main__ import main, parse, select
from benchmarks.comparison.datasets import DATASETS
from benchmarks.comparison.models import CAPYMOA_MODELS, MODELS
from benchmarks.comparison.runner import (
    CURVE_POINTS,
    Job,
    Outcomes,
    complete_streams,
    error_curve,
    list_jobs,
    measure_model,
    run_job,
)


def test_error_curve_by_hand() -> None:
    y = np.tile([1.0, -1.0], CURVE_POINTS)  # standard deviation 1
    predictions = y.copy()
    predictions[2:4] += 3.0
    assert error_curve(predictions, y) == [0.0, 3.0, *[0.0] * (CURVE_POINTS - 2)]


def test_runs_that_do_not_depend_on_the_seed_are_not_repeated() -> None:
    datasets = {name: DATASETS[name] for name in ("nox", "friedman")}
    learners = {name: MODELS[name] for name in ("KNN", "AMF")}
    count = {(each.stream, each.learner): 0 for each in list_jobs(datasets, learners, 3)}
    for each in list_jobs(datasets, learners, 3):
        count[each.stream, each.learner] += 1
    assert count == {("nox", "KNN"): 1, ("nox", "AMF"): 3, ("friedman", "KNN"): 3, ("friedman", "AMF"): 3}


def test_interrupted_streams_are_dropped() -> None:
    jobs = [Job("one", "KNN", 0), Job("one", "KNN", 1), Job("two", "KNN", 0)]
    results: Outcomes = {"one": {"KNN": {"0": {}}}, "two": {"KNN": {"0": {}}}}
    assert list(complete_streams(results, jobs)) == ["two"]
    results["one"]["KNN"]["1"] = {}
    assert list(complete_streams(results, jobs)) == ["one", "two"]


def test_a_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found" / "results.json"
    learners = ["Linear", "Last label"]
    arguments = ["--streams", "low_rank_5", "--rows", "60", "--seeds", "1", "--json", str(path), "--jobs", "2"]
    main([*arguments, "--learners", *learners])
    figures = results.read_results(path)["peers"]
    assert [each["name"] for each in figures["learners"]] == learners
    assert figures["streams"][0]["rows"] == 60
    found = {name: runs["0"] for name, runs in figures["results"]["low_rank_5"].items()}
    y = DATASETS["low_rank_5"].draw(0, 60).y
    last = np.sqrt(np.mean((y[30:] - y[29:-1]) ** 2)) / np.std(y[30:])
    assert found["Last label"]["late_nrmse"] == pytest.approx(last, rel=1e-3)
    for each in found.values():
        assert each["mean_us"] > 0
        assert len(each["error_curve"]) == CURVE_POINTS
        assert each["saved_bytes"] > 0
    printed = capsys.readouterr()
    assert f"{found['Linear']['late_nrmse']:.3f}" in printed.out
    assert "2 of 2" in printed.err
    # A failed run has a reason.
    np.savez(tmp_path / "stream.npz", X=np.full((4, 2), np.nan), y=np.ones(4))
    assert "NonFiniteError: " in run_job(Job("low_rank_5", "Packing", 0), tmp_path / "stream.npz", 60.0)["failed"]


@pytest.mark.skipif(find_spec("capymoa") is not None, reason="CapyMOA is installed")
def test_a_missing_capymoa_is_an_error_with_instructions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--capymoa"])
    assert "Java on the path" in capsys.readouterr().err
    for learner in CAPYMOA_MODELS.values():
        with pytest.raises(ModuleNotFoundError, match="pip install torch capymoa"):
            learner.make(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "0"], "--rows must be >= 1, got 0"),
        (["--jobs", "-1"], "--jobs must be >= 1, got -1"),
        (["--streams", "unknown"], "--streams must be among flights, .*, got unknown"),
        (["--learners", "KNN", "me"], "--learners must be among MetricRegressor, .*, got me"),
        (["--data", "nowhere"], "--data must be a folder, got nowhere"),
        (["--data", ".", "--publish"], "--publish is for public streams"),
    ],
)
def test_invalid_options_are_usage_errors(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(options)
    assert re.search(message, " ".join(capsys.readouterr().err.split()))


def test_constant_labels_are_a_failure_of_the_run() -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.r_[np.arange(30.0), np.zeros(30)]
    assert measure_model("Last label", 0, X, y) == {"failed": "an error is not finite"}


def test_options() -> None:
    options = parse(["--full", "--rows", "7"])
    assert (options.full, options.rows, options.publish) == (True, 7, False)
    assert list(select({"a": 1, "b": 2}, ["b"], "--x")) == ["b"]
    assert list(select({"a": 1, "b": 2}, None, "--x")) == ["a", "b"]
    with pytest.raises(ValueError, match="--x must be among a, b, got c"):
        select({"a": 1, "b": 2}, ["c"], "--x")
