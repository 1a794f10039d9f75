"""The paper's claims, over a few rounds."""

from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.claims import __main__ as command
from benchmarks.claims import gop_error, regret
from ellipack.synthetic import LowRankStream
from ellipack.theory.schedules import phase_end

TINY = command.Extent(phases=5, rows=(16, 32, 64), seeds=2)


def test_a_tiny_run_is_stored_and_becomes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "QUICK", TINY)
    path = tmp_path / "pictures" / "results.json"
    command.main(["--json", str(path)])
    found = results.read(path)["claims"]
    kinds = len(command.STREAMS)
    assert len(found["regret"]) == kinds * TINY.seeds * len(regret.LEARNERS)
    assert len(found["slopes"]) == kinds * len(regret.LEARNERS)
    assert len(found["gop"]) == kinds * TINY.seeds * len(gop_error.ESTIMATORS) * len(TINY.rows)
    text = (tmp_path / "pictures.md").read_text(encoding="utf-8")
    pictures = [each.name for each in path.parent.glob("*.png")]
    assert len(pictures) == 3
    assert all(f"(pictures/{name})" in text for name in pictures)
    assert text.count("| MetricRegressor |") == kinds


@pytest.mark.parametrize("name", regret.LEARNERS)
def test_regret_is_the_loss_beyond_the_true_functions(name: str) -> None:
    stream = LowRankStream(d=3, rank=1, random_state=1)
    played = regret.play(stream, name, 5)
    assert played.marks == [phase_end(i) for i in range(1, 6)]
    X, y = stream.draw(played.marks[-1])
    losses = (regret.LEARNERS[name](stream).progressive(X, y) - y) ** 2
    best = (stream.function(X) - y) ** 2
    for mark, found in zip(played.marks, played.regret, strict=True):
        assert found == pytest.approx(losses[:mark].sum() - best[:mark].sum(), abs=1e-9)
    assert all(1 <= rank <= 3 for rank in played.effective_rank)


def test_ranks_are_those_of_the_metrics() -> None:
    stream = LowRankStream(d=4, rank=2)
    ranks = {name: regret.play(stream, name, 6).effective_rank for name in regret.LEARNERS}
    assert ranks[regret.EUCLIDEAN] == [4] * 6
    assert ranks[regret.TRUE][-1] == 2
    assert ranks[regret.APPENDIX] == [4] * 6  # nothing is found in so few rows


def test_slopes_stand_beside_the_theorems() -> None:
    marks = [10, 625, 1_250, 2_500, 5_000, 10_000]  # the first of which is not late enough to count
    both = {"d": 3, "rank": 1, "marks": marks, "effective_rank": [1, 2, 2, 2, 3, 3]}
    played = [
        {**both, "learner": name, "regret": [100.0, *(mark**power for mark in marks[1:])]}
        for name, power in ((regret.TRUE, 0.4), (regret.TRUE, 0.6), (regret.PRACTICAL, 0.4))
    ]
    ours, practical = regret.slopes(played)
    assert (ours["slope"], ours["spread"]) == (pytest.approx(0.5), pytest.approx(0.1))
    assert (ours["theory"], practical["theory"]) == (0.75, None)


def test_an_estimate_of_0_has_an_error_of_1_and_slopes_do_better() -> None:
    stream = LowRankStream(d=4, rank=1)
    letter, slopes = (gop_error.errors(stream, name, (64, 512)) for name in (gop_error.LETTER, gop_error.SLOPES))
    assert [each["error"] for each in letter] == pytest.approx([1.0, 1.0])
    assert slopes[1]["error"] < slopes[0]["error"] < 1


def test_what_is_asked_for_is_played(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.extent_of(command.parse([])) == command.QUICK
    assert command.extent_of(command.parse(["--full", "--phases", "3"])).phases == 3
    with pytest.raises(SystemExit):
        command.parse(["--phases", "0"])
    assert "--phases must be >= 1, got 0" in capsys.readouterr().err
