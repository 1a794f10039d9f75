"""The rates of the theorems over a few rounds."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from benchmarks import results
from benchmarks.page import render_page
from benchmarks.rates import __main__ as command
from benchmarks.rates import approximation, estimation, metrics, page, theorem_2
from benchmarks.rates.growth import late_slope, measure_growth, record_rounds, split_at
from benchmarks.rates.streams import CHUNK, Chunk, CoinStream, CosineStream, NoisyStream, Stream, ZigzagStream
from ellipack import PackingRegressor
from ellipack.theory import outer_product_error, phase_end, regret, regularization

STREAMS: list[Stream] = [
    CoinStream(3, 0),
    ZigzagStream(2, 0, 10**5),
    NoisyStream(4, 1, 0),
    CosineStream((0.2, 0.1), 0.1, 0),
]


def first_chunk(stream: Stream) -> Chunk:
    return next(iter(stream.chunks()))


def test_a_tiny_run_is_stored_and_written_to_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "QUICK", command.RatesSize(rounds=300, seeds=2))
    path = tmp_path / "pictures" / "results.json"
    with monkeypatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda figure, path, **options: None)  # each part draws all parts so far
        command.main(["--json", str(path)])
    found = results.read_results(path)
    assert render_page(found, path.parent) == (tmp_path / "pictures.md").read_text(encoding="utf-8")
    assert sorted(found) == sorted(f"rates-{part}" for part in command.PARTS)
    assert len(found["rates-estimation"]["runs"]) == 2 * len(estimation.CASES)
    assert found["rates-theorem-2"]["runs"][0]["rounds"] == [phase_end(i) for i in range(1, 8)]
    text = (tmp_path / "pictures.md").read_text(encoding="utf-8")
    pictures = sorted(each.name for each in path.parent.glob("*.svg"))
    assert pictures == sorted(f"rates-{part}.svg" for part in command.PARTS)
    assert all(f"(pictures/{name})" in text for name in pictures)


@pytest.mark.parametrize("stream", STREAMS, ids=lambda each: type(each).__name__)
def test_streams_are_in_the_domain_of_the_paper(stream: Stream) -> None:
    one, two = islice(stream.chunks(), 2)
    for X, y, f in (one, two):
        assert len(X) == len(y) == len(f) == CHUNK
        assert np.linalg.norm(X, axis=1).max() <= 1
        assert 0 <= min(y.min(), f.min()) <= max(y.max(), f.max()) <= 1
    assert not np.array_equal(one.X, two.X)
    assert np.array_equal(first_chunk(stream).X, one.X)


@pytest.mark.parametrize("stream", [STREAMS[0], STREAMS[2], STREAMS[3]], ids=lambda each: type(each).__name__)
def test_labels_have_the_function_as_mean(stream: Stream) -> None:
    _, y, f = first_chunk(stream)
    assert np.mean(y - f) == pytest.approx(0, abs=5 * 0.5 / np.sqrt(CHUNK))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_zigzag_is_one_lipschitz_and_balanced_in_every_pair(d: int) -> None:
    stream = ZigzagStream(d, 0, 10**4)
    X, y, f = (each[:2000] for each in first_chunk(stream))
    eps = stream.last_radius
    assert np.linalg.norm(X[::2] - X[1::2], axis=1) == pytest.approx(np.full(1000, eps / 4))
    assert (y[::2].tolist(), y[1::2].tolist()) == ([1.0] * 1000, [0.0] * 1000)
    assert np.abs(f[::2] - f[1::2]) == pytest.approx(np.full(1000, eps / 4))
    # Pairs are farther apart than their own members, and than the function varies.
    at = np.unique(X[::2].round(12), axis=0)
    apart = np.linalg.norm(at[:, None] - at[None], axis=2)[~np.eye(len(at), dtype=bool)]
    assert apart.min() >= 6 * eps * (1 - 1e-9)


def test_gradients_and_their_outer_product_are_those_of_the_function() -> None:
    stream = CosineStream((0.2, 0.1, 0.05), 0.1, 0)
    X = first_chunk(stream).X
    slopes = stream.gradients(X)
    h = 1e-6
    for i, step in enumerate(h * np.eye(3)):
        difference = (stream.function(X[:50] + step) - stream.function(X[:50] - step)) / (2 * h)
        assert difference == pytest.approx(slopes[:50, i], abs=1e-8)
    assert outer_product_error(slopes.T @ slopes / len(slopes), stream.gop()) < 5e-3
    assert np.linalg.eigvalsh(stream.gop())[0] > 0


def test_growth_is_the_regret_at_the_recorded_rounds() -> None:
    growth = measure_growth(PackingRegressor(), CoinStream(2, 1), 1000)
    assert growth.rounds == record_rounds(1000) == [1, 3, 7, 15, 31, 62, 125, 250, 500, 1000]
    X, y, f = (each[:1000] for each in first_chunk(CoinStream(2, 1)))
    learner = PackingRegressor()
    expected = regret(learner.progressive(X, y), f, y)
    assert growth.regret == pytest.approx([expected[t - 1] for t in growth.rounds])
    assert growth.centers == learner.history(growth.rounds).n_centers.tolist()


def test_streams_are_cut_where_asked_across_chunks() -> None:
    ends = [5, CHUNK, CHUNK + 7, 2 * CHUNK + 1]
    parts = list(split_at(CoinStream(1, 0), ends))
    assert [end for end, _ in parts] == [5, CHUNK, CHUNK + 7, 2 * CHUNK, 2 * CHUNK + 1]
    joined = np.concatenate([part.X for _, part in parts])
    whole = np.concatenate([chunk.X for chunk in islice(CoinStream(1, 0).chunks(), 3)])
    assert np.array_equal(joined, whole[: ends[-1]])


def test_the_terms_of_the_regret_add_up() -> None:
    stream = ZigzagStream(1, 0, 4000)
    terms = approximation.measure_terms(stream)
    X, y, f = (each[:4000] for each in first_chunk(stream))
    assert sum(terms) == pytest.approx(regret(PackingRegressor().progressive(X, y), f, y)[-1])
    # About an eighth of a radius in each round.
    assert terms[0] == pytest.approx(4000 * stream.last_radius / 8, rel=0.1)


def test_exponents_are_visible_at_small_sizes() -> None:
    slopes = estimation.measure(2**14, 1)["slopes"]
    for each in slopes[:3]:
        assert each["slope"] == pytest.approx(each["theory"], abs=0.08)
        assert 0.15 < each["share_low"] <= each["share_high"] < 0.25
    assert approximation.measure(2**14, 1)["slopes"][1]["slope"] == pytest.approx(2 / 3, abs=0.02)


def test_slopes_by_hand() -> None:
    rounds = [1, 625, 1_250, 2_500, 5_000, 10_000]
    assert late_slope(rounds, [100.0, *(t**0.7 for t in rounds[1:])]) == pytest.approx(0.7)
    run = {"rounds": rounds, "regret": [t**0.75 * np.log(np.e * t) for t in rounds], "centers": [1] * 5 + [100]}
    assert late_slope(rounds, estimation.without_logarithm(run)) == pytest.approx(0.75)
    assert estimation.regret_per_center(run) == pytest.approx(run["regret"][-1] / (100 * (1 + np.log(100))))


def test_the_slopes_of_more_rows_use_more_neighbors() -> None:
    # With noise alone, the squared slopes fall with the number of rows.
    rng = np.random.default_rng(0)
    X, y, anchors = rng.uniform(-1, 1, size=(4000, 1)), rng.normal(size=4000), np.linspace(-0.5, 0.5, 50)[:, None]
    few, many = (float(np.mean(metrics.GrowingSlopes(0.9).gradients(X[:n], y[:n], anchors) ** 2)) for n in (250, 4000))
    assert many < few / 4


def test_where_the_assumption_of_theorem_2_fails_is_said() -> None:
    run: dict[str, Any] = {"rounds": [2, 6], "regularization": [0.5, 0.4], "error": [0.5, 0.1]}
    assert page.assumption_text([run]) == "It is, at the end of every phase of every run."
    worse = {**run, "error": [0.6, 0.1]}
    assert page.assumption_text([run, worse]).endswith("except in some runs at round 2.")


def test_theorem_2_is_compared_with_the_measured_error() -> None:
    run = theorem_2.measure_run(CosineStream(theorem_2.AMPLITUDES, theorem_2.NOISE, 0), 7)
    assert run["regularization"] == [regularization(end, theorem_2.ALPHA) for end in run["rounds"]]
    assert run["error"][-1] < run["error"][0]
    assert all(
        found <= bound <= end for found, bound, end in zip(run["regret"], run["sharp"], run["rounds"], strict=True)
    )


def test_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.parse(["metrics", "--seeds", "2"]).parts == ["metrics"]
    for words, message in (
        (["speed"], "PART must be one of estimation"),
        (["--rounds", "0"], "--rounds must be >= 1"),
        (["--jobs", "0"], "--jobs must be >= 1"),
    ):
        with pytest.raises(SystemExit):
            command.parse(words)
        assert message in capsys.readouterr().err
