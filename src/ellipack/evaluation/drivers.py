"""What drives the predictions of a run: importances and effects of the columns of its table."""

from ellipack.errors import InputError
from ellipack.estimators import KeyedRegressor, MetricRegressor
from ellipack.evaluation.run import Run
from ellipack.learners.metric.effects import Effect, partial_dependence, recent_rows
from ellipack.learners.metric.importances import Importances, summarize_importances


def metric_learner(run: Run) -> MetricRegressor | None:
    """Return the `MetricRegressor` of a run, that of all keys if there is one per key; None for other learners."""
    learner = run.learner.pooled_ if isinstance(run.learner, KeyedRegressor) else run.learner
    return learner if isinstance(learner, MetricRegressor) else None


def column_importances(run: Run) -> Importances | None:
    """Return the importances with the names of the columns; None if the learner does not measure them."""
    learner = metric_learner(run)
    if learner is None:
        return None
    state, columns = learner.state_, run.encoder.feature_columns
    if state.phase.layout.columns != tuple(range(len(columns))):
        columns = list(dict.fromkeys(columns))
    return summarize_importances(state, columns)


def column_effects(run: Run, column: str) -> list[Effect]:
    """Return how the prediction moves with a column, averaged over recent rows, with their spread.

    A column of times has an effect for each part that varies, such as the hour and the weekday.

    Parameters
    ----------
    run : Run
        Run of a `MetricRegressor` that has learned at least one row.
    column : str
        Name of the column.

    Returns
    -------
    effects : list of Effect
        Empty for a column that has no features.

    Raises
    ------
    InputError
        If there is no such column, or if the learner is another one.
    """
    names = run.encoder.column_names[1:]
    if column not in names:
        raise InputError(f"column must be one of {', '.join(names)}, got {column!r}")
    learner = metric_learner(run)
    if learner is None:
        raise InputError(f"the learner must be a MetricRegressor, got a {type(run.learner).__name__}")
    state = learner.state_
    rows = recent_rows(state)
    return [partial_dependence(state, grid, rows) for grid in run.encoder.effect_grids(column, rows)]
