"""`run`: predict and then learn each row of a table, in one call."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ellipack.evaluation.run import BatchResult
from ellipack.learners.metric.sharded_learning import Workers
from ellipack.report.record import Record, Summary
from ellipack.tables.parameters import column_name
from ellipack.tables.regressor import ColumnNames, TableRegressor
from ellipack.tabular import FileOptions, open_table
from ellipack.tabular.arrow import pa
from ellipack.validation import Floats, Ints


@dataclass(frozen=True, repr=False)
class RunResult:
    """Result of `ellipack.run`.

    Attributes
    ----------
    model : TableRegressor
        The model after the last row. It continues with `partial_fit` or `progressive`.
    row_numbers : array of int
        Numbers of the rows, counted from 1, without those that were skipped.
    predictions : array of float
        Prediction for each row, made before its label was seen.
    labels : array of float
        Label of each row, NaN where there is none.
    kept : dict of str to list
        Columns that were kept, as text.
    intervals : dict of str to array
        Ends of the prediction intervals, such as ``lower_90`` and ``upper_90``.
    record : Record
        Everything that the report shows.
    """

    model: TableRegressor
    row_numbers: Ints
    predictions: Floats
    labels: Floats
    kept: dict[str, list[str | None]]
    intervals: dict[str, Floats]
    record: Record

    @property
    def scores(self) -> Summary:
        """Errors of the predictions: `rmse`, `mae`, `r2` and others."""
        return self.record.summary

    def to_arrow(self) -> pa.Table:
        """Return the predictions as an Arrow table, as ``ellipack run --predictions`` writes it."""
        labels = pa.array(self.labels, mask=np.isnan(self.labels))
        return pa.table(
            {"row": self.row_numbers}
            | self.kept
            | {"prediction": self.predictions}
            | self.intervals
            | {"label": labels}
        )

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Write the report page, which is one HTML file."""
        self.model.write_report(path)

    def __repr__(self) -> str:
        scores = self.scores
        return f"RunResult({scores.rows:,} rows, rmse={scores.rmse:.4g}, mean_rmse={scores.mean_rmse:.4g})"


def run(
    table: Any,
    target: str | int,
    *,
    keep: ColumnNames = (),
    coverage: float | Sequence[float] | None = None,
    workers: Workers | None = None,
    **parameters: Any,
) -> RunResult:
    """Predict the target of each row of a table and then learn from the row, from the first to the last.

    It does the same as the command ``ellipack run``.

    Parameters
    ----------
    table : table, iterator of tables, str or path-like
        Rows, as `TableRegressor` takes them, or the path of a file.
    target : str
        Column of the labels.
    keep : str or sequence of str, default ()
        Columns to pass through to the predictions.
    coverage : float or sequence of float, optional
        Coverages of prediction intervals: fractions of labels in them.
    workers : Workers, optional
        Workers that learn the rows together; see `TableRegressor.fit`.
    **parameters
        Parameters of `TableRegressor`.

    Returns
    -------
    RunResult
        Predictions, scores, model and report.

    Examples
    --------
    >>> table = {"day": ["mon", "tue", "wed"] * 50, "id": range(150), "sales": [10.0, 20.0, 30.0] * 50}
    >>> result = run(table, target="sales", drop=["id"], keep=["id"])
    >>> result.scores.rmse < 0.5 * result.scores.mean_rmse
    True
    >>> result.to_arrow().column_names
    ['row', 'id', 'prediction', 'label']
    """
    model = TableRegressor(column_name(target, "target"), **parameters)
    given = model.checked_parameters()  # before a file is opened
    if isinstance(table, str | os.PathLike):
        files = FileOptions(take=given.take, drop=given.drop)
        with open_table(os.fspath(table), batch_rows=1024, on_error=model.on_error, file_options=files) as stream:
            results = model.learn_stream(stream, keep, coverage, workers)
    else:
        results = model.progressive_batches(table, keep=keep, coverage=coverage, workers=workers)
    return _make_result(model, results)


def _make_result(model: TableRegressor, results: list[BatchResult]) -> RunResult:
    options = model.run_.options
    names = options.kept_columns
    kept = {name: [cell for result in results for cell in result.kept[i]] for i, name in enumerate(names)}
    ends = np.concatenate([result.interval_ends for result in results])
    intervals = dict(zip(options.interval_columns, ends.T, strict=True))
    numbers, predictions, labels = (
        np.concatenate([getattr(result, name) for result in results])
        for name in ("row_numbers", "predictions", "labels")
    )
    return RunResult(model, numbers, predictions, labels, kept, intervals, model.record_)
