"""Checks of scikit-learn, and its tools: pipelines, searches, metadata routing, joblib."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.utils import Tags, estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from ellipack import (
    GradientOuterProduct,
    IntrinsicDimensionRegressor,
    KeyedRegressor,
    LocallyAdaptiveRegressor,
    LocalSlopes,
    MetricConfig,
    MetricRegressor,
    PackingClassifier,
    PackingRegressor,
    PhasedRegressor,
)
from ellipack.errors import DomainError, InputError
from ellipack.estimators.input_checks import check_features, feature_names
from ellipack.learners.intervals import NO_INTERVALS, WantedIntervals
from ellipack.validation import Floats, check_labels, check_rows

CUBE = "its rows come from the unit cube, which sticks out of the unit ball"
LARGE = "its rows come from a cube of side 3, outside the unit ball"
NORMAL = "its rows are standard normal, mostly outside the unit ball"
BLOBS = "its rows are blobs outside the unit ball"
FAR = "its rows lie around (100, 100), outside the unit ball"

OUTSIDE_THE_PAPERS_DOMAIN = {
    "check_fit_score_takes_y": CUBE,
    "check_dtype_object": CUBE,
    "check_estimators_nan_inf": CUBE,
    "check_supervised_y_2d": CUBE,
    "check_dont_overwrite_parameters": LARGE,
    "check_estimators_dtypes": LARGE,
    "check_f_contiguous_array_estimator": LARGE,
    "check_methods_sample_order_invariance": LARGE,
    "check_methods_subset_invariance": LARGE,
    "check_fit2d_1sample": LARGE,
    "check_fit2d_1feature": LARGE,
    "check_fit2d_predict1d": LARGE,
    "check_dict_unchanged": LARGE,
    "check_n_features_in_after_fitting": NORMAL,
    "check_regressors_no_decision_function": NORMAL,
    "check_regressors_train": NORMAL,
    "check_regressors_int": NORMAL,
    "check_regressor_data_not_an_array": NORMAL,
    "check_array_api_input": NORMAL,
    "check_estimators_overwrite_params": BLOBS,
    "check_estimators_fit_returns_self": BLOBS,
    "check_readonly_memmap_input": BLOBS,
    "check_pipeline_consistency": BLOBS,
    "check_estimators_pickle": BLOBS,
    "check_estimators_partial_fit_n_features": BLOBS,
    "check_positive_only_tag_during_fit": "its rows are irises, in centimetres, outside the unit ball",
    "check_fit_idempotent": FAR,
    "check_fit_check_is_fitted": FAR,
    "check_n_features_in": FAR,
}

CLASSIFIER_OUTSIDE_THE_PAPERS_DOMAIN = OUTSIDE_THE_PAPERS_DOMAIN | {
    "check_classifier_data_not_an_array": LARGE,
    "check_classifiers_one_label": CUBE,
    "check_classifiers_classes": BLOBS,
    "check_classifiers_train": BLOBS,
}
for _regression_only in (
    "check_regressors_no_decision_function",
    "check_regressors_train",
    "check_regressors_int",
    "check_regressor_data_not_an_array",
):
    del CLASSIFIER_OUTSIDE_THE_PAPERS_DOMAIN[_regression_only]

NO_DIRECTION = "it asks for one direction of 20 rows, of which appendix A's letter estimates 0: there is none"

TOO_FEW_ROWS_FOR_APPENDIX_A = {
    "check_dont_overwrite_parameters": NO_DIRECTION,
    "check_methods_sample_order_invariance": NO_DIRECTION,
    "check_methods_subset_invariance": NO_DIRECTION,
    "check_fit2d_predict1d": NO_DIRECTION,
}


class Anywhere:
    """One of the paper's learners, with rows squashed into the unit ball and labels into (0, 1)."""

    def _learn(self, state: Any, X: ArrayLike, y: ArrayLike, intervals: WantedIntervals = NO_INTERVALS) -> Floats:
        table = check_rows(X)
        squashed = 1 / (1 + np.exp(-check_labels(y, len(table))))
        return _stretched(super()._learn(state, _squashed(table), squashed, intervals))  # type: ignore[misc]  # of the learner

    def _predict(self, state: Any, X: ArrayLike, intervals: WantedIntervals = NO_INTERVALS) -> Floats:
        return _stretched(super()._predict(state, _squashed(check_rows(X)), intervals))  # type: ignore[misc]  # of the learner


class PackingAnywhere(Anywhere, PackingRegressor):
    pass


class ClassifierAnywhere(PackingClassifier):
    """`PackingClassifier`, with rows squashed into the unit ball."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Squashed blobs are closer than the radii of the first mistakes, and each of few rows is learned once.
        tags.classifier_tags.poor_score = True
        return tags

    def _learn_from_scratch(self, X: Any, y: Any, classes: Any) -> Any:
        (state, _), made = super()._learn_from_scratch(_squashed(check_rows(X)), y, classes)
        return (state, feature_names(X)), made

    def _fit_more(self, X: Any, y: Any, classes: Any) -> Any:
        if not hasattr(self, "state_"):
            return super()._fit_more(X, y, classes)
        return super()._fit_more(_squashed_like(check_features(self, X)), y, classes)

    def _predict(self, X: Any) -> Any:
        _ = self._fitted_state
        return super()._predict(_squashed_like(check_features(self, X)))


class TreeAnywhere(Anywhere, LocallyAdaptiveRegressor):
    pass


class DimensionAnywhere(Anywhere, IntrinsicDimensionRegressor):
    pass


class PhasedAnywhere(Anywhere, PhasedRegressor):
    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # A phase begins without centers; most of the rows that are scored came before the last phase.
        tags.regressor_tags.poor_score = True
        return tags


def _squashed(table: Floats) -> Floats:
    return np.asarray(table / (1 + np.linalg.norm(table, axis=1, keepdims=True)))


def _squashed_like(X: Any) -> Any:
    return _squashed(check_rows(X))


def _stretched(predictions: Floats) -> Floats:
    inside = np.clip(predictions, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(inside / (1 - inside)))


def _expected_failures(estimator: BaseEstimator) -> dict[str, str]:
    if type(estimator) in (
        PackingRegressor,
        PhasedRegressor,
        LocallyAdaptiveRegressor,
        IntrinsicDimensionRegressor,
    ):
        return OUTSIDE_THE_PAPERS_DOMAIN
    if type(estimator) is PackingClassifier:
        return CLASSIFIER_OUTSIDE_THE_PAPERS_DOMAIN
    if isinstance(estimator, GradientOuterProduct) and estimator.gradients is None:
        return TOO_FEW_ROWS_FOR_APPENDIX_A
    return {}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        MetricRegressor(),
        KeyedRegressor(0),
        GradientOuterProduct(LocalSlopes()),
        GradientOuterProduct(),
        PackingRegressor(),
        PhasedRegressor(),
        PackingClassifier(),
        PackingAnywhere(),
        PhasedAnywhere(),
        TreeAnywhere(),
        TreeAnywhere(adapt="dimension"),
        LocallyAdaptiveRegressor(),
        DimensionAnywhere(),
        IntrinsicDimensionRegressor(),
        ClassifierAnywhere(),
        ClassifierAnywhere(clock="ball"),
    ]
)
def test_scikit_learns_checks(estimator: BaseEstimator, check: partial[None]) -> None:
    if check.func.__name__ not in _expected_failures(estimator):
        check(estimator)
        return
    # Not an expected failure of pytest, which would format a long traceback.
    with pytest.raises((DomainError, AssertionError)) as failure:
        check(estimator)
    assert DomainError in (type(failure.value), type(failure.value.__cause__))


# Checks of scikit-learn's own estimators that are not in the public list.
@pytest.mark.parametrize("estimator", [MetricRegressor(), PackingAnywhere(), GradientOuterProduct(LocalSlopes())])
def test_feature_names_are_stored_and_compared(estimator: BaseEstimator) -> None:
    estimator_checks.check_dataframe_column_names_consistency(type(estimator).__name__, estimator)


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")  # it mixes frames and arrays
@pytest.mark.parametrize(
    "name",
    [
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_set_output_transform_polars",
        "check_global_output_transform_pandas",
        "check_global_set_output_transform_polars",
    ],
)
def test_the_transformer_names_its_outputs(name: str) -> None:
    getattr(estimator_checks, name)("GradientOuterProduct", GradientOuterProduct(LocalSlopes()))


def stream(n: int = 150, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 10 * np.sin(X[:, 1]) + X[:, 0] + 0.1 * rng.normal(size=n)


def quick() -> MetricRegressor:
    return MetricRegressor(config=MetricConfig(validation_points=16, pool=64))


def test_grid_search_over_a_pipeline() -> None:
    X, y = stream()
    pipeline = make_pipeline(StandardScaler(), GradientOuterProduct(LocalSlopes()), quick())
    grid = {"gradientouterproduct__gradients": [LocalSlopes(4), LocalSlopes()], "metricregressor__neighbors": [2, 16]}
    search = GridSearchCV(pipeline, grid, cv=KFold(3)).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert search.best_params_["metricregressor__neighbors"] == 16
    assert search.best_score_ == scores.max() > 0.9
    assert len(set(scores)) == 4  # each setting took effect
    assert search.predict(X[:3]).tolist() == search.best_estimator_.predict(X[:3]).tolist()


def test_nested_parameters_are_set_by_path() -> None:
    learner = PhasedRegressor(gop=GradientOuterProduct(LocalSlopes())).set_params(gop__diagonal=True)
    copy = clone(learner)
    assert copy.gop.diagonal
    assert copy.gop is not learner.gop
    assert copy.get_params()["gop__gradients"] == LocalSlopes()


def test_cross_validation_of_the_papers_learners_behind_scalers() -> None:
    X, y = stream()
    inside = make_pipeline(MinMaxScaler((-0.5, 0.5), clip=True), PackingRegressor())
    learner = TransformedTargetRegressor(inside, transformer=MinMaxScaler())
    assert cross_val_score(learner, X, y, cv=KFold(3)).min() > 0.3
    with pytest.raises(ValueError, match="X must lie in the unit ball"):
        cross_val_score(PackingRegressor(), X, y, cv=KFold(3), error_score="raise")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_in_and_out(frame: Any) -> None:
    X, y = stream()
    table = frame({name: X[:, i] for i, name in enumerate(["heat", "wind", "load"])})
    gop = GradientOuterProduct(LocalSlopes(), n_components=2)
    gop.set_output(transform="pandas" if frame is pd.DataFrame else "polars")
    out = gop.fit_transform(table, y)
    assert isinstance(out, frame)
    assert list(out.columns) == ["gradientouterproduct0", "gradientouterproduct1"]
    assert gop.feature_names_in_.tolist() == ["heat", "wind", "load"]
    learner = make_pipeline(gop, quick()).fit(table, y)
    assert learner[-1].feature_names_in_.tolist() == list(out.columns)
    assert learner.predict(table).tolist() == quick().fit(np.asarray(out), y).predict(np.asarray(out)).tolist()


def test_other_feature_names_are_refused_and_change_nothing() -> None:
    X, y = stream()
    table = pd.DataFrame(X, columns=["heat", "wind", "load"])
    learner = quick().fit(table, y)
    before = learner.predict(table)
    for wrong, message in [
        (table[["wind", "heat", "load"]], "Feature names must be in the same order"),
        (table.rename(columns={"heat": "cold"}), "Feature names unseen at fit time:\n- cold"),
        (table[["heat", "wind"]], "yet now missing:\n- load"),
        (table.assign(town="Ulm"), "Feature names unseen at fit time:\n- town"),
        (table.rename(columns={"heat": 0}), "all input features have string names"),
    ]:
        for method in (learner.predict, lambda X: learner.partial_fit(X, y)):
            with pytest.raises(InputError, match=message):
                method(wrong)
    with pytest.raises(InputError, match="all input features have string names"):
        learner.fit(table.rename(columns={"heat": 0}), y)
    assert learner.predict(table).tolist() == before.tolist()
    with pytest.warns(UserWarning, match="X does not have valid feature names, but MetricRegressor was fitted with"):
        assert learner.predict(X).tolist() == before.tolist()


def test_scores_are_weighted() -> None:
    X, y = stream()
    weights = np.random.default_rng(1).random(50)
    learner = quick().fit(X[:100], y[:100])
    expected = r2_score(y[100:], learner.predict(X[100:]), sample_weight=weights)
    assert learner.score(X[100:], y[100:], sample_weight=weights) == expected
    assert learner.score(X[100:], y[100:]) != expected


def test_sample_weights_are_routed_where_requested() -> None:
    X, y = stream()
    weights = np.random.default_rng(1).integers(0, 4, len(X))
    folds = KFold(3)

    def parts() -> tuple[GradientOuterProduct, MetricRegressor]:
        return GradientOuterProduct(LocalSlopes(), n_components=1), quick()

    expected = []
    for train, test in folds.split(X):
        gop, learner = parts()
        gop.fit(X[train].repeat(weights[train], axis=0), y[train].repeat(weights[train]))
        learner.fit(gop.transform(X[train]), y[train])
        expected.append(learner.score(gop.transform(X[test]), y[test], sample_weight=weights[test]))
    with config_context(enable_metadata_routing=True):
        gop, learner = parts()
        pipeline = make_pipeline(gop.set_fit_request(sample_weight=True), learner.set_score_request(sample_weight=True))
        done = cross_validate(pipeline, X, y, cv=folds, params={"sample_weight": weights})
        assert done["test_score"].tolist() == expected
        ignored = make_pipeline(gop.set_fit_request(sample_weight=False), learner.set_score_request(sample_weight=True))
        other = cross_validate(ignored, X, y, cv=folds, params={"sample_weight": weights})
        assert other["test_score"].tolist() != expected


def test_the_html_representation_shows_parameters_and_state() -> None:
    X, y = stream()
    pipeline = make_pipeline(FunctionTransformer(), GradientOuterProduct(LocalSlopes(7)), quick())
    assert "feature_importances_" not in pipeline._repr_html_()
    shown = pipeline.fit(X, y)._repr_html_()
    for text in ("GradientOuterProduct", "LocalSlopes(neighbors=7", "MetricRegressor", "feature_importances_"):
        assert text in shown


@pytest.mark.parametrize("make", [quick, PackingAnywhere, PhasedAnywhere])
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_memory_mapped_learner_continues_in_memory(make: Callable[[], Any], mode: str, tmp_path: Path) -> None:
    X, y = stream()
    learner = make().fit(X[:100], y[:100])
    file = tmp_path / "learner.joblib"
    joblib.dump(learner, file)
    before = file.read_bytes()
    loaded = joblib.load(file, mmap_mode=mode)
    assert loaded.progressive(X[100:], y[100:]).tolist() == learner.progressive(X[100:], y[100:]).tolist()
    assert loaded.predict(X).tolist() == learner.predict(X).tolist()
    assert file.read_bytes() == before
