import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from ellipack import PhasedRegressor, demo, report
from ellipack.metric import Metric
from ellipack.synthetic import LowRankStream
from ellipack.theory import phase_end

NAMES = (demo.NEIGHBORS, demo.EUCLIDEAN, demo.APPENDIX_A, demo.LOCAL_SLOPES, demo.TRUE_METRIC, demo.METRIC)


def _result(late_error: float, angle: float | None, rank: int, estimates: list[float]) -> demo.Result:
    eigenvalues = np.array([1.0, 0.5, 0.04])
    gops = [np.diag([value, 0.0]) for value in estimates]
    return demo.Result(np.zeros(2), late_error, 3, rank, eigenvalues, angle, gops)


def test_demo_prints_a_table_and_writes_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "new" / "figure.png"
    demo.main(["--rounds", "400", "--seed", "3", "--output", str(output)])
    printed = capsys.readouterr()
    rows = {name: next(line for line in printed.out.splitlines() if name in line) for name in NAMES}
    assert all("-" in rows[name].split() for name in (demo.NEIGHBORS, demo.EUCLIDEAN, demo.APPENDIX_A))
    assert all("deg" in rows[name] for name in (demo.LOCAL_SLOPES, demo.TRUE_METRIC, demo.METRIC))
    assert "no ball with enough mass in any of 7 phases" in " ".join(printed.out.split())
    assert str(output) in printed.out
    assert printed.err == ""  # no progress bars, since it is not a terminal
    assert output.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert output.stat().st_size > 20_000


def test_same_seed_same_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: None)  # the test above writes it
    runs = []
    for seed in (1, 1, 2):
        demo.main(["--rounds", "64", "--seed", str(seed), "--output", str(tmp_path / "figure.png")])
        runs.append(capsys.readouterr().out)
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_result_at_the_end_of_a_phase_shows_that_phase() -> None:
    stream = LowRankStream()
    X, y = stream.draw(phase_end(5))
    learner = PhasedRegressor().fit(X, y)
    assert learner.n_centers_ == 0
    shown = demo.evaluate(learner, np.ones(len(y)), y, stream.subspace)
    assert shown.n_centers == learner.phases_[-1].n_centers > 0
    assert shown.effective_rank == learner.phases_[-1].effective_rank
    assert shown.late_error == pytest.approx(1 / y[len(y) // 2 :].std())


def test_sentences_follow_from_the_results() -> None:
    results = {
        demo.EUCLIDEAN: _result(0.8, None, 20, []),
        demo.APPENDIX_A: _result(1.0, None, 20, [0.0, 0.0]),
        demo.LOCAL_SLOPES: _result(0.4, 3.25, 5, [1.0, 1.0]),
        demo.TRUE_METRIC: _result(0.2, 0.0, 2, []),
        demo.NEIGHBORS: _result(0.5, None, 20, []),
        demo.METRIC: _result(0.1, 1.25, 2, []),
    }
    text = " ".join(demo.describe_results(results))
    assert "no ball with enough mass in any of 2 phases" in text
    assert "25% above that of the Euclidean learner" in text
    assert "finds the 2 true directions to within 3.2 degrees" in text
    assert "0.50 times that of the Euclidean learner and 2.0 times that of the true metric" in text
    assert "Its effective rank is 5; that of the true metric is 2." in text
    assert "(to within 1.2 degrees): its late error is 0.20 times that of Euclidean nearest neighbors" in text
    assert "and 0.50 times that of Algorithm 1 in the true metric" in text
    results |= {demo.APPENDIX_A: _result(0.4, 12.0, 20, [0.0, 1.0]), demo.LOCAL_SLOPES: _result(0.9, None, 5, [0.0])}
    text = " ".join(demo.describe_results(results))
    assert "enough mass in 1 of 2 phases" in text
    assert "50% below that of the Euclidean learner" in text
    assert "finds no direction" in text


def test_baseline_is_the_mean_of_the_nearest_rows() -> None:
    X, y = LowRankStream(d=3, rank=1).draw(60)
    baseline = demo.NearestNeighbors(3)
    made = np.concatenate([baseline.progressive(X[:20], y[:20]), baseline.progressive(X[20:], y[20:])])
    assert made[0] == 0.5
    for t in (1, 10, 19, 20, 45):
        nearest = np.argsort(((X[:t] - X[t]) ** 2).sum(axis=1))[:16]
        assert made[t] == pytest.approx(y[nearest].mean())
    assert baseline.n_centers_ == 60


def test_largest_angle_is_none_without_leading_directions() -> None:
    truth = np.eye(3)[:, :2]
    assert demo._largest_angle(Metric.identity(3), truth) is None
    assert demo._largest_angle(Metric.from_diagonal([1.0, 0.5, 0.5]), truth) is None
    aligned, across = Metric.from_diagonal([1.0, 0.9, 0.1]), Metric.from_diagonal([1.0, 0.1, 0.9])
    assert demo._largest_angle(aligned, truth) == pytest.approx(0)
    assert demo._largest_angle(across, truth) == pytest.approx(90)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rounds", "3"], "--rounds must be >= 16, got 3"),
        (["--seed", "-1"], "--seed must be >= 0, got -1"),
        (["--output", "."], "--output must be a file, got the directory ."),
        (["--output", f"{__file__}/figure.png"], "--output must be in a directory that can be created"),
    ],
)
def test_invalid_options_raise(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        demo.main(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("package", "module"), [("rich", "rich.console"), ("matplotlib", "matplotlib.axes")])
def test_missing_package_is_reported_in_one_line(package: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    # As in a new interpreter, the module that imports the package is not imported yet.
    monkeypatch.delitem(sys.modules, "ellipack.report.plots")
    monkeypatch.delattr(report, "plots")
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(demo.__file__, run_name="__main__")
    expected = f"The demo needs rich and matplotlib, and {package} is missing: pip install 'ellipack[demo]'"
    assert stopped.value.code == expected


def test_library_needs_neither_package() -> None:
    code = "import sys; sys.modules |= dict.fromkeys(('rich', 'matplotlib')); import ellipack, ellipack.synthetic"
    subprocess.run([sys.executable, "-c", code], check=True)
