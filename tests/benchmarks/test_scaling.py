"""The curves, on next to nothing."""

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
    LEARNERS,
    MEASURES,
    METRIC,
    PACKING,
    QUICK,
    Extent,
    Setting,
    along,
    exponents,
    marks_up_to,
    points,
    settings,
)
from benchmarks.scaling.measure import measure

TINY = Extent(rounds=300, fixed=80, crowded=80, dimensions=(2, 4, 6), ranks=(1, 2, 3), centers=(20, 40, 80), seeds=1)


def in_this_process(setting: Setting) -> list[dict[str, object]]:
    """Return what `points` does, but for the process: its memory would be that of all the tests."""
    marks = [dict(vars(mark), peak=2.0**20) for mark in measure(setting)]
    what = {name: value for name, value in vars(setting).items() if name != "marks"}
    return [what | mark for mark in (marks if setting.curve == "rounds" else marks[-1:])]


def test_a_tiny_run_is_stored_and_becomes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.scaling.curves.points", in_this_process)
    monkeypatch.setattr("benchmarks.scaling.measure._warm_up", lambda *_: None)
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.setattr("benchmarks.scaling.curves.marks_up_to", lambda rounds: (75, 150, rounds))
    monkeypatch.setattr(page, "_PICTURES", {"cost": page._PICTURES["cost"]})
    path = tmp_path / "pictures" / "results.json"
    command.main(["--json", str(path)])
    found = results.read(path)["scaling"]
    for learner in LEARNERS:
        for curve in CURVES:
            assert len(along(found["points"], curve, learner)) == 3, (learner, curve)
    assert {each["measure"] for each in found["exponents"]} == {*MEASURES}
    text = (tmp_path / "pictures.md").read_text(encoding="utf-8")
    pictures = [each.name for each in path.parent.glob("*.png")]
    assert len(pictures) == 1
    assert all(f"(pictures/{name})" in text for name in pictures)
    assert text.count("| `MetricRegressor` |") == len(CURVES)


def test_a_point_is_measured_in_a_process_of_its_own() -> None:
    setting = Setting("rounds", PACKING, (40, 80, 1200), d=3, rank=1)
    first, second, last = points(setting)
    assert [first["rounds"], second["rounds"], last["rounds"]] == [40, 80, 1200]
    assert 0 < first["n_centers"] <= second["n_centers"] < last["n_centers"]
    assert last["saved"] > first["saved"] > 0
    assert last["peak"] >= first["peak"]
    assert min(each["microseconds"] for each in (first, second, last)) > 0
    assert first["effective_rank"] == 1


def test_what_cannot_be_measured_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no memory left >&2\nexit 1\n")
    broken.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(broken))
    with pytest.raises(RuntimeError, match=r"d=7.*could not be measured: no memory left"):
        points(Setting("rank", METRIC, (10,), d=7))


def test_exponents_are_those_of_the_points() -> None:
    made = [{"curve": "dimension", "learner": METRIC, "d": d, **dict.fromkeys(MEASURES, 3.0 * d**2)} for d in (2, 4, 8)]
    assert {(each["curve"], round(each["exponent"], 4)) for each in exponents(made)} == {("dimension", 2.0)}


@pytest.mark.parametrize("extent", [QUICK, FULL, replace(QUICK, rounds=10)])
def test_every_curve_has_points_for_every_learner(extent: Extent) -> None:
    every = list(settings(extent))
    assert {(each.curve, each.learner) for each in every} >= {
        (curve, learner) for curve in CURVES for learner in LEARNERS if (curve, learner) != ("centers", PACKING)
    }
    assert max(each.marks[-1] for each in every if each.curve == "rounds") == extent.rounds
    json.dumps([vars(each) for each in every])


def test_what_is_asked_for_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.extent_of(command.parse([])) == QUICK
    assert command.extent_of(command.parse(["--full", "--rounds", "7"])) == replace(FULL, rounds=7)
    assert marks_up_to(1_000_000)[-1] == 1_000_000
    with pytest.raises(SystemExit):
        command.parse(["--seeds", "0"])
    assert "--seeds must be >= 1, got 0" in capsys.readouterr().err
