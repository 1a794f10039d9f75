import runpy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import ellipack.report
from ellipack import GradientOuterProduct, LocalSlopes, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack.errors import InputError, ShapeError
from ellipack.report import figures, plots
from ellipack.report.plots import plot_importances, plot_progress, plot_spectrum
from ellipack.report.record import Progress
from tests.report import records


@pytest.fixture(autouse=True)
def agg() -> Iterator[None]:
    with mpl.rc_context({"backend": "Agg"}):
        yield
    pyplot.close("all")


@pytest.fixture
def axes() -> Axes:
    return figures.panels(1)[1][0]


def learned(learner: Any) -> Any:
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(300, 3))
    return learner.fit(X, 0.5 + 0.5 * X[:, 1])


LEARNERS = (
    MetricRegressor(),
    PackingRegressor([0.5, 1.0, 0.25]),
    PhasedRegressor(gop=GradientOuterProduct(LocalSlopes())),
)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_spectrum_and_importances_of_any_learner(learner: Any, axes: Axes) -> None:
    fitted = learned(learner)
    assert plot_spectrum(fitted, axes) is axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), fitted.metric_.eigenvalues)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [1, 2, 3])
    assert axes.get_yscale() == "log"
    assert axes.get_title(loc="left") == f"Spectrum of the metric (effective rank {fitted.effective_rank_})"
    drawn = plot_importances(fitted)
    widths = [bar.get_width() for bar in drawn.patches]  # type: ignore[attr-defined]  # patches of bars are rectangles
    diagonal = np.diag(fitted.metric_.matrix)
    np.testing.assert_allclose(widths, sorted(diagonal / diagonal.sum(), reverse=True))
    assert drawn.get_yticklabels()[0].get_text() == "feature 1"
    drawn.figure.draw_without_rendering()  # type: ignore[union-attr]  # these axes have a figure


def test_names_of_features_are_shown_as_they_are() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    learner = MetricRegressor().fit(X, X[:, 0] + X[:, 1])
    learner.feature_names_in_ = np.array(["$\\frac{1}", "a name that goes on and on, longer than any label could", "c"])
    drawn = plot_importances(learner, top=2)
    drawn.figure.draw_without_rendering()  # type: ignore[union-attr]  # where a formula would fail to be read
    labels = [label.get_text() for label in drawn.get_yticklabels()]
    assert "$\\frac{1}" in labels
    assert len(labels) == 2
    assert max(map(len, labels)) <= 32
    assert drawn.get_title(loc="left") == "Features that matter (1 more)"


def test_progress_of_a_record_is_drawn_bin_by_bin(axes: Axes) -> None:
    record = records.full()
    assert plot_progress(record, axes) is axes
    lines = {line.get_label(): line for line in axes.lines}
    np.testing.assert_array_equal(lines["predictions"].get_ydata(), np.array(record.progress.rmse))
    np.testing.assert_array_equal(lines["last value"].get_xdata(), record.progress.end)
    assert {text.get_text() for text in axes.texts} == {"predictions", "running mean", "last value"}
    assert axes.get_ylim()[0] == 0


def test_progress_of_errors_is_a_running_error(axes: Axes) -> None:
    errors = np.random.default_rng(0).normal(size=200)
    plot_progress(errors, axes)
    expected = figures.running_error(errors, 10)
    drawn = np.asarray(axes.lines[0].get_ydata())
    np.testing.assert_array_equal(drawn, expected[-len(drawn) :])
    named = plot_progress({"one": errors, "other": errors[:50]}, window=7)
    assert [line.get_label() for line in named.lines] == ["one", "other"]
    assert "last 7 rounds" in named.get_ylabel()


def test_a_figure_of_its_own_is_one_that_pyplot_shows() -> None:
    drawn = plot_progress(records.full())
    assert pyplot.gcf() is drawn.figure


def test_what_can_not_be_drawn_is_refused_before_a_figure_is_made() -> None:
    record = records.full()
    with pytest.raises(InputError, match="learner must have a metric_, got a LinearRegression, which has none"):
        plot_spectrum(LinearRegression())
    with pytest.raises(InputError, match="learner must have a metric_"):
        plot_importances(LinearRegression())
    with pytest.raises(NotFittedError):
        plot_spectrum(MetricRegressor())
    with pytest.raises(NotFittedError):
        plot_importances(MetricRegressor())
    with pytest.raises(InputError, match="top must be a whole number >= 1, got 0"):
        plot_importances(learned(PackingRegressor()), top=0)
    with pytest.raises(InputError, match="window must not be given with a record"):
        plot_progress(record, window=3)
    with pytest.raises(ShapeError, match="at least one bin"):
        plot_progress(replace(record, progress=Progress([], [], [], [])))
    assert pyplot.get_fignums() == []


def test_plots_are_exported_and_nothing_is_imported_before_it_is_asked_for() -> None:
    assert ellipack.report.plot_spectrum is plot_spectrum
    assert set(ellipack.report.__all__) <= {name for name in dir(plots) if name.startswith("plot_")} | {"Record"}
    with pytest.raises(AttributeError, match=r"module 'ellipack\.report' has no attribute 'unheard_of'"):
        _ = ellipack.report.unheard_of
    script = "import sys, ellipack, ellipack.report; print({'matplotlib', 'plotly'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_without_matplotlib_plots_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.ticker", None)
    with pytest.raises(ModuleNotFoundError, match=r"need matplotlib .*: pip install 'ellipack\[plot\]'"):
        runpy.run_path(plots.__file__)
