"""The paper's claims over a few rounds."""

from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.claims import __main__ as command
from benchmarks.claims import gop_error, regret
from ellipack.synthetic import LowRankStream
from ellipack.theory.schedules import phase_end

TINY = command.ClaimsSize(phases=5, rows=(16, 32, 64), seeds=2)


def test_a_tiny_run_is_stored_and_written_to_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "QUICK", TINY)
    path = tmp_path / "pictures" / "results.json"
    command.main(["--json", str(path)])
    found = results.read_results(path)["claims"]
    kinds = len(command.STREAMS)
    assert len(found["regret"]) == kinds * TINY.seeds * len(regret.REGRET_LEARNERS)
    assert len(found["slopes"]) == kinds * len(regret.REGRET_LEARNERS)
    assert len(found["gop"]) == kinds * TINY.seeds * len(gop_error.ESTIMATORS) * len(TINY.rows)
    text = (tmp_path / "pictures.md").read_text(encoding="utf-8")
    pictures = [each.name for each in path.parent.glob("*.png")]
    assert len(pictures) == 3
    assert all(f"(pictures/{name})" in text for name in pictures)
    assert text.count("| MetricRegressor |") == kinds


@pytest.mark.parametrize("name", regret.REGRET_LEARNERS)
def test_regret_is_the_excess_loss_over_the_true_function(name: str) -> None:
    stream = LowRankStream(d=3, rank=1, random_state=1)
    curve = regret.measure_regret(stream, name, 5)
    assert curve.rounds == [phase_end(i) for i in range(1, 6)]
    X, y = stream.draw(curve.rounds[-1])
    losses = (regret.REGRET_LEARNERS[name](stream).progressive(X, y) - y) ** 2
    best = (stream.function(X) - y) ** 2
    for end, found in zip(curve.rounds, curve.regret, strict=True):
        assert found == pytest.approx(losses[:end].sum() - best[:end].sum(), abs=1e-9)
    assert all(1 <= rank <= 3 for rank in curve.effective_rank)


def test_ranks_are_those_of_the_metrics() -> None:
    stream = LowRankStream(d=4, rank=2)
    ranks = {name: regret.measure_regret(stream, name, 6).effective_rank for name in regret.REGRET_LEARNERS}
    assert ranks[regret.EUCLIDEAN] == [4] * 6
    assert ranks[regret.TRUE_METRIC][-1] == 2
    assert ranks[regret.PHASED_APPENDIX_A] == [4] * 6  # too few rows for an estimate


def test_slopes_by_hand() -> None:
    rounds = [10, 625, 1_250, 2_500, 5_000, 10_000]  # slopes are fitted to the last five
    both = {"d": 3, "rank": 1, "rounds": rounds, "effective_rank": [1, 2, 2, 2, 3, 3]}
    curve = [
        {**both, "learner": name, "regret": [100.0, *(end**power for end in rounds[1:])]}
        for name, power in ((regret.TRUE_METRIC, 0.4), (regret.TRUE_METRIC, 0.6), (regret.PRACTICAL, 0.4))
    ]
    ours, practical = regret.fit_slopes(curve)
    assert (ours["slope"], ours["spread"]) == (pytest.approx(0.5), pytest.approx(0.1))
    assert (ours["theory"], practical["theory"]) == (0.75, None)


def test_an_estimate_of_0_has_error_1_and_local_slopes_are_better() -> None:
    stream = LowRankStream(d=4, rank=1)
    letter, slopes = (
        gop_error.measure_errors(stream, name, (64, 512)) for name in (gop_error.APPENDIX_A, gop_error.LOCAL_SLOPES)
    )
    assert [each["error"] for each in letter] == pytest.approx([1.0, 1.0])
    assert slopes[1]["error"] < slopes[0]["error"] < 1


def test_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.size_from(command.parse([])) == command.QUICK
    assert command.size_from(command.parse(["--full", "--phases", "3"])).phases == 3
    with pytest.raises(SystemExit):
        command.parse(["--phases", "0"])
    assert "--phases must be >= 1, got 0" in capsys.readouterr().err
