import runpy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.axes import Axes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import ellipack.report
from ellipack import (
    GradientOuterProduct,
    LocalSlopes,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
    TableRegressor,
)
from ellipack.errors import DomainError, InputError, ShapeError
from ellipack.report import plots
from ellipack.report.plots import plot_importances, plot_progress, plot_spectrum
from ellipack.report.record import Progress
from ellipack.theory import effective_rank
from tests.report import records


@pytest.fixture(autouse=True)
def agg() -> Iterator[None]:
    with mpl.rc_context({"backend": "Agg"}):
        yield
    pyplot.close("all")


@pytest.fixture
def axes() -> Axes:
    return plots.create_panels(1)[1][0]


def fit(learner: Any) -> Any:
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(300, 3))
    return learner.fit(X, 0.5 + 0.5 * X[:, 1])


LEARNERS = (
    MetricRegressor(),
    PackingRegressor([0.5, 1.0, 0.25]),
    PhasedRegressor(gop=GradientOuterProduct(LocalSlopes())),
)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_spectrum_of_any_learner(learner: Any, axes: Axes) -> None:
    fitted = fit(learner)
    assert plot_spectrum(fitted, axes) is axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), fitted.metric_.eigenvalues)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [1, 2, 3])
    assert axes.get_yscale() == "log"
    assert axes.get_title(loc="left") == f"Spectrum of the metric (effective rank {fitted.effective_rank_})"


def test_importances_are_drawn_with_standard_errors() -> None:
    X = np.random.default_rng(0).normal(size=(400, 3))
    fitted = MetricRegressor().fit(X, X[:, 0] + 2 * X[:, 1])
    drawn = plot_importances(fitted)
    widths = [bar.get_width() for bar in drawn.patches]  # type: ignore[attr-defined]  # patches of bars are rectangles
    np.testing.assert_allclose(widths, sorted(fitted.feature_importances_, reverse=True))
    assert len(drawn.collections) == 1  # the error bars
    assert drawn.get_yticklabels()[0].get_text() == "feature 1"
    drawn.figure.draw_without_rendering()  # type: ignore[union-attr]  # these axes have a figure


def test_importances_of_a_table_are_those_of_its_columns() -> None:
    sizes, noise = np.random.default_rng(0).normal(size=(2, 400))
    table = {"noise": noise, "size": sizes, "color": ["red", "blue"] * 200, "y": 3 * sizes + noise}
    model = ellipack.run(table, "y").model
    assert model.importances_ is not None
    drawn = plot_importances(model)
    assert [label.get_text() for label in drawn.get_yticklabels()] == ["size", "noise", "color"]
    widths = [bar.get_width() for bar in drawn.patches]  # type: ignore[attr-defined]  # patches of bars are rectangles
    np.testing.assert_allclose(widths, [each.share for each in model.importances_.columns])
    early = plot_importances(TableRegressor("y").fit({"a": [1.0, 2.0], "y": [1.0, 2.0]}))
    assert [bar.get_width() for bar in early.patches] == [0.0]  # type: ignore[attr-defined]
    pyplot.close("all")
    other = TableRegressor("y", learner=RescaledRegressor(PackingRegressor())).fit(table)
    accepted = "a MetricRegressor, or a TableRegressor that learns with one, such as result.model"
    with pytest.raises(InputError, match=f"learner must measure .*: {accepted}, got a TableRegressor"):
        plot_importances(other)
    with pytest.raises(InputError, match=f"learner must measure .*: {accepted}, got a RunResult"):
        plot_importances(ellipack.run(table, "y"))
    with pytest.raises(NotFittedError):
        plot_importances(TableRegressor("y"))
    assert pyplot.get_fignums() == []


def test_feature_names_are_not_parsed_as_formulas() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    names = ["$\\frac{1}", "a name that is longer than any label can be, by far", "c"]
    learner = MetricRegressor().fit(pd.DataFrame(X, columns=names), X[:, 0] + X[:, 1])
    drawn = plot_importances(learner, top=2)
    drawn.figure.draw_without_rendering()  # type: ignore[union-attr]  # a formula would fail here
    labels = [label.get_text() for label in drawn.get_yticklabels()]
    assert "$\\frac{1}" in labels
    assert len(labels) == 2
    assert max(map(len, labels)) <= 32
    assert drawn.get_title(loc="left") == "Most important features (1 more)"


def test_progress_of_a_record_is_drawn_by_bin(axes: Axes) -> None:
    record = records.full()
    assert plot_progress(record, axes) is axes
    lines = {line.get_label(): line for line in axes.lines}
    np.testing.assert_array_equal(lines["predictions"].get_ydata(), np.array(record.progress.rmse))
    np.testing.assert_array_equal(lines["last value"].get_xdata(), record.progress.end)
    assert {text.get_text() for text in axes.texts} == {"predictions", "running mean", "last value"}
    assert axes.get_ylim()[0] == 0


def test_progress_of_errors_is_the_rolling_rmse(axes: Axes) -> None:
    errors = np.random.default_rng(0).normal(size=200)
    plot_progress(errors, axes)
    expected = plots.rolling_rmse(errors, 10)
    drawn = np.asarray(axes.lines[0].get_ydata())
    np.testing.assert_array_equal(drawn, expected[-len(drawn) :])
    named = plot_progress({"one": errors, "other": errors[:50]}, window=7)
    assert [line.get_label() for line in named.lines] == ["one", "other"]
    assert "last 7 rounds" in named.get_ylabel()


def test_new_figures_are_known_to_pyplot() -> None:
    drawn = plot_progress(records.full())
    assert pyplot.gcf() is drawn.figure


def test_invalid_input_raises_before_a_figure_is_created() -> None:
    record = records.full()
    with pytest.raises(InputError, match="learner must have a metric_, got a LinearRegression without one"):
        plot_spectrum(LinearRegression())
    with pytest.raises(
        InputError, match=r"learner must measure the importance of features: .*, got a LinearRegression"
    ):
        plot_importances(LinearRegression())
    with pytest.raises(NotFittedError):
        plot_spectrum(MetricRegressor())
    with pytest.raises(NotFittedError):
        plot_importances(MetricRegressor())
    with pytest.raises(InputError, match="top must be an integer >= 1, got 0"):
        plot_importances(fit(PackingRegressor()), top=0)
    with pytest.raises(InputError, match="window must be None with a record"):
        plot_progress(record, window=3)
    with pytest.raises(ShapeError, match="at least one bin"):
        plot_progress(replace(record, progress=Progress([], [], [], [])))
    assert pyplot.get_fignums() == []


def test_plots_are_exported_and_imported_on_first_use() -> None:
    assert ellipack.report.plot_spectrum is plot_spectrum
    assert set(ellipack.report.__all__) <= {name for name in dir(plots) if name.startswith("plot_")} | {"Record"}
    with pytest.raises(AttributeError, match=r"module 'ellipack\.report' has no attribute 'unheard_of'"):
        _ = ellipack.report.unheard_of
    script = "import sys, ellipack, ellipack.report; print({'jinja2', 'matplotlib', 'plotly'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


@pytest.mark.parametrize("module", ["matplotlib.axes", "matplotlib.ticker"])
def test_missing_matplotlib_error_tells_what_to_install(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=r"plots need matplotlib .*: pip install 'ellipack\[plot\]'"):
        runpy.run_path(plots.__file__)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.integers(1, 50))
def test_rolling_rmse_is_the_root_mean_square_of_the_window(errors: list[float], window: int) -> None:
    expected = [np.sqrt(np.mean(np.square(errors[max(0, t - window) : t]))) for t in range(1, len(errors) + 1)]
    np.testing.assert_allclose(plots.rolling_rmse(errors, window), expected, atol=1e-7)


def test_rolling_rmse_plot_has_a_line_for_each_learner(axes: Axes) -> None:
    errors = {"one": np.full(100, 0.5), "other": np.full(100, -0.1)}
    assert plots.plot_rolling_rmse(axes, errors, window=10, scale=0.2) is axes
    curves = {line.get_label(): line for line in axes.lines}
    np.testing.assert_allclose(np.asarray(curves["one"].get_ydata()), 2.5)
    np.testing.assert_allclose(np.asarray(curves["other"].get_ydata()), 0.5)
    assert np.asarray(curves["one"].get_xdata())[-1] == 100
    assert {text.get_text() for text in axes.texts} == {"one", "other"}
    assert axes.get_xlabel() == "round"
    assert "last 10 rounds" in axes.get_ylabel()
    assert axes.get_title(loc="left") == "Error over time"


def test_only_a_scaled_error_has_a_line_at_1(axes: Axes) -> None:
    plots.plot_rolling_rmse(axes, {"one": np.ones(20)}, window=5)
    assert len(axes.lines) == 1
    assert "dev" not in axes.get_ylabel()
    scaled = plots.plot_rolling_rmse(plots.create_panels(1)[1][0], {"one": np.ones(20)}, window=5, scale=2.0)
    assert len(scaled.lines) == 2
    assert "dev" in scaled.get_ylabel()


def test_effective_rank_plot_matches_the_theory(axes: Axes) -> None:
    spectra = {"flat": np.ones(5), "steep": 4.0 ** -np.arange(5)}
    assert plots.plot_effective_rank(axes, spectra, horizon=10_000) is axes
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
    plots.plot_rolling_rmse(axes, errors, window=5)
    heights = sorted(text.xy[1] for text in axes.texts)  # type: ignore[attr-defined]  # these texts are annotations
    assert np.diff(heights).min() > 0.05
    colors = [line.get_color() for line in axes.lines]
    assert [text.get_color() for text in axes.texts] == colors
    assert len(set(colors)) == 5


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.2))
def test_spread_keeps_order_and_distance(positions: list[float], gap: float) -> None:
    spread = plots._spread(positions, gap)
    assert np.argsort(spread, kind="stable").tolist() == np.argsort(positions, kind="stable").tolist()
    assert np.diff(np.sort(spread)).min(initial=gap) >= gap - 1e-9
    if np.diff(np.sort(positions)).min(initial=1) >= gap:
        np.testing.assert_allclose(spread, positions)


def test_panels_are_side_by_side() -> None:
    figure, axes = plots.create_panels(3)
    assert len(axes) == 3
    figure.draw_without_rendering()
    left = [each.get_position().x0 for each in axes]
    assert left == sorted(set(left))


def test_set_title_replaces_the_title(axes: Axes) -> None:
    plots.plot_effective_rank(axes, {"flat": [1.0, 1.0]}, horizon=10)
    assert plots.set_title(axes, "mine") is axes
    assert axes.get_title(loc="left") == "mine"


def test_invalid_input_raises(axes: Axes) -> None:
    with pytest.raises(ShapeError, match="errors must be one-dimensional"):
        plots.rolling_rmse([], 3)
    with pytest.raises(DomainError, match="window must be an integer >= 1, got 0"):
        plots.rolling_rmse([1.0], 0)
    with pytest.raises(InputError, match="at least one learner"):
        plots.plot_rolling_rmse(axes, {}, window=3)
    with pytest.raises(InputError, match="at least one spectrum"):
        plots.plot_effective_rank(axes, {}, horizon=10)
