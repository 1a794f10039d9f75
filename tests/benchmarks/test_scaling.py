"""Tiny curves."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.scaling import __main__ as command
from benchmarks.scaling import page
from benchmarks.scaling.curves import (
    CURVES,
    FULL,
    MEASURES,
    METRIC,
    PACKING,
    QUICK,
    SCALING_LEARNERS,
    ScalingSize,
    Setting,
    checkpoints_up_to,
    fit_exponents,
    list_settings,
    measure_points,
    points_along,
)
from benchmarks.scaling.measure import measure

TINY = ScalingSize(
    rounds=300,
    rounds_per_point=80,
    rounds_along_centers=80,
    dimensions=(2, 4, 6),
    ranks=(1, 2, 3),
    centers=(20, 40, 80),
    seeds=1,
)


def in_this_process(setting: Setting) -> list[dict[str, object]]:
    """Do what `measure_points` does, in this process, with a constant for its memory."""
    checkpoints = [dict(vars(each), peak_bytes=2.0**20) for each in measure(setting)]
    keys = {name: value for name, value in vars(setting).items() if name != "checkpoints"}
    return [keys | each for each in (checkpoints if setting.curve == "rounds" else checkpoints[-1:])]


def test_a_tiny_run_is_stored_and_written_to_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.scaling.curves.measure_points", in_this_process)
    monkeypatch.setattr("benchmarks.scaling.measure._warm_up", lambda *_: None)
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.setattr("benchmarks.scaling.curves.checkpoints_up_to", lambda rounds: (75, 150, rounds))
    monkeypatch.setattr(page, "_PLOTS", {"cost": page._PLOTS["cost"]})
    path = tmp_path / "pictures" / "results.json"
    command.main(["--json", str(path)])
    found = results.read_results(path)["scaling"]
    for learner in SCALING_LEARNERS:
        for curve in CURVES:
            assert len(points_along(found["points"], curve, learner)) == 3, (learner, curve)
    assert {each["measure"] for each in found["exponents"]} == {*MEASURES}
    text = (tmp_path / "pictures.md").read_text(encoding="utf-8")
    pictures = [each.name for each in path.parent.glob("*.png")]
    assert len(pictures) == 1
    assert all(f"(pictures/{name})" in text for name in pictures)
    assert text.count("| `MetricRegressor` |") == len(CURVES)


def test_a_point_is_measured_in_its_own_process() -> None:
    setting = Setting("rounds", PACKING, (40, 80, 1200), d=3, rank=1)
    first, second, last = measure_points(setting)
    assert [first["rounds"], second["rounds"], last["rounds"]] == [40, 80, 1200]
    assert 0 < first["n_centers"] <= second["n_centers"] < last["n_centers"]
    assert last["file_bytes"] > first["file_bytes"] > 0
    assert last["peak_bytes"] >= first["peak_bytes"]
    assert min(each["microseconds"] for each in (first, second, last)) > 0
    assert first["effective_rank"] == 1


def test_a_failed_measurement_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no memory left >&2\nexit 1\n")
    broken.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(broken))
    with pytest.raises(RuntimeError, match=r"d=7.*could not be measured: no memory left"):
        measure_points(Setting("rank", METRIC, (10,), d=7))


def test_exponents_are_those_of_the_points() -> None:
    points = [
        {"curve": "dimension", "learner": METRIC, "d": d, **dict.fromkeys(MEASURES, 3.0 * d**2)} for d in (2, 4, 8)
    ]
    assert {(each["curve"], round(each["exponent"], 4)) for each in fit_exponents(points)} == {("dimension", 2.0)}


@pytest.mark.parametrize("size", [QUICK, FULL, replace(QUICK, rounds=10)])
def test_every_curve_has_points_for_every_learner(size: ScalingSize) -> None:
    every = list(list_settings(size))
    assert {(each.curve, each.learner) for each in every} >= {
        (curve, learner) for curve in CURVES for learner in SCALING_LEARNERS if (curve, learner) != ("centers", PACKING)
    }
    assert max(each.checkpoints[-1] for each in every if each.curve == "rounds") == size.rounds
    json.dumps([vars(each) for each in every])


def test_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.size_from(command.parse([])) == QUICK
    assert command.size_from(command.parse(["--full", "--rounds", "7"])) == replace(FULL, rounds=7)
    assert checkpoints_up_to(1_000_000)[-1] == 1_000_000
    with pytest.raises(SystemExit):
        command.parse(["--seeds", "0"])
    assert "--seeds must be >= 1, got 0" in capsys.readouterr().err
