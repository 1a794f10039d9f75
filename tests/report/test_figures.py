import runpy
import sys
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes

from ellipack.errors import DomainError, InputError, ShapeError
from ellipack.report import figures
from ellipack.theory import effective_rank


@pytest.fixture(autouse=True)
def agg() -> Iterator[None]:
    with mpl.rc_context({"backend": "Agg"}):
        yield


@pytest.fixture
def axes() -> Axes:
    return figures.panels(1)[1][0]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.integers(1, 50))
def test_running_error_is_the_root_mean_square_of_the_last(errors: list[float], window: int) -> None:
    expected = [np.sqrt(np.mean(np.square(errors[max(0, t - window) : t]))) for t in range(1, len(errors) + 1)]
    np.testing.assert_allclose(figures.running_error(errors, window), expected, atol=1e-7)


def test_error_over_time_draws_a_line_for_each_learner(axes: Axes) -> None:
    errors = {"one": np.full(100, 0.5), "other": np.full(100, -0.1)}
    assert figures.error_over_time(axes, errors, window=10, scale=0.2) is axes
    curves = {line.get_label(): line for line in axes.lines}
    np.testing.assert_allclose(np.asarray(curves["one"].get_ydata()), 2.5)
    np.testing.assert_allclose(np.asarray(curves["other"].get_ydata()), 0.5)
    assert np.asarray(curves["one"].get_xdata())[-1] == 100
    assert {text.get_text() for text in axes.texts} == {"one", "other"}
    assert axes.get_xlabel() == "round"
    assert "last 10 rounds" in axes.get_ylabel()
    assert axes.get_title(loc="left") == "Error over time"


def test_only_an_error_in_units_of_deviation_has_a_line_at_1(axes: Axes) -> None:
    figures.error_over_time(axes, {"one": np.ones(20)}, window=5)
    assert len(axes.lines) == 1
    assert "dev" not in axes.get_ylabel()
    scaled = figures.error_over_time(figures.panels(1)[1][0], {"one": np.ones(20)}, window=5, scale=2.0)
    assert len(scaled.lines) == 2
    assert "dev" in scaled.get_ylabel()


def test_effective_rank_over_time_draws_the_papers_staircase(axes: Axes) -> None:
    spectra = {"flat": np.ones(5), "steep": 4.0 ** -np.arange(5)}
    assert figures.effective_rank_over_time(axes, spectra, horizon=10_000) is axes
    assert [line.get_label() for line in axes.lines] == ["flat", "steep"]
    for line, eigenvalues in zip(axes.lines, spectra.values(), strict=True):
        t, rank = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        assert (t[0], t[-1]) == (1, 10_000)
        np.testing.assert_array_equal(rank, effective_rank(eigenvalues, t))
    assert axes.get_xscale() == "log"
    assert "round" in axes.get_xlabel()
    assert axes.get_ylabel() == "effective rank"


def test_labels_at_the_ends_of_lines_do_not_overlap(axes: Axes) -> None:
    errors = {f"learner {i}": np.full(50, 1 + i / 1000) for i in range(5)}
    figures.error_over_time(axes, errors, window=5)
    heights = sorted(text.xy[1] for text in axes.texts)  # type: ignore[attr-defined]  # these texts are annotations
    assert np.diff(heights).min() > 0.05
    colours = [line.get_color() for line in axes.lines]
    assert [text.get_color() for text in axes.texts] == colours
    assert len(set(colours)) == 5


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.2))
def test_spread_keeps_order_and_distance(places: list[float], gap: float) -> None:
    spread = figures._spread(places, gap)
    assert np.argsort(spread, kind="stable").tolist() == np.argsort(places, kind="stable").tolist()
    assert np.diff(np.sort(spread)).min(initial=gap) >= gap - 1e-9
    if np.diff(np.sort(places)).min(initial=1) >= gap:
        np.testing.assert_allclose(spread, places)


def test_panels_stand_side_by_side() -> None:
    figure, axes = figures.panels(3)
    assert len(axes) == 3
    figure.draw_without_rendering()
    left = [each.get_position().x0 for each in axes]
    assert left == sorted(set(left))


def test_title_replaces_the_one_there_was(axes: Axes) -> None:
    figures.effective_rank_over_time(axes, {"flat": [1.0, 1.0]}, horizon=10)
    assert figures.title(axes, "mine") is axes
    assert axes.get_title(loc="left") == "mine"


def test_bad_input_is_refused(axes: Axes) -> None:
    with pytest.raises(ShapeError, match="errors must be one-dimensional"):
        figures.running_error([], 3)
    with pytest.raises(DomainError, match="window must be a whole number >= 1, got 0"):
        figures.running_error([1.0], 0)
    with pytest.raises(InputError, match="at least one learner"):
        figures.error_over_time(axes, {}, window=3)
    with pytest.raises(InputError, match="at least one spectrum"):
        figures.effective_rank_over_time(axes, {}, horizon=10)


def test_without_matplotlib_figures_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(ModuleNotFoundError, match=r"figures need matplotlib .*: pip install 'ellipack\[plot\]'"):
        runpy.run_path(figures.__file__)
