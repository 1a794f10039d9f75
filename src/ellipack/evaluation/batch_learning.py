"""Learning of the rows of a batch: `PendingBatch`, `BatchLearning`.

A batch changes the learner, the encoder and the rows that wait for labels. The learner learns row by row, each
completely or not at all. Encoder and waiting rows are drafts, which are dropped if something fails. `PendingBatch`
keeps the rows and their predictions until the batch is complete. If it fails, the same steps are done again for the
rows that the learner has learned, without the learner, so that drafts and learner fit together.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellipack.estimators import KeyedRegressor, MetricRegressor
from ellipack.estimators.base import StreamingRegressor
from ellipack.evaluation.prediction_options import PredictionOptions, Texts, column_cells
from ellipack.evaluation.waiting_rows import LATE, LEARN, WaitingRow, WaitingRows, split_steps, widen
from ellipack.learners.intervals import Predictions, RowPredictions, check_coverage, select_intervals
from ellipack.learners.metric.sharded_learning import Workers
from ellipack.tabular import ParsedRows, TableBatch, TableEncoder
from ellipack.tabular.arrow import pa
from ellipack.validation import Floats

Keys = NDArray[np.object_]
"""Values of the keys of rows as text, shape (n_rows, n_columns)."""


@dataclass(frozen=True)
class PendingBatch:
    """Rows that are being learned.

    Attributes
    ----------
    batch : TableBatch
        The rows.
    rows : ParsedRows
        The same rows, parsed.
    keys : array of shape (n_rows, n_columns) or None
        Keys of the parsed rows.
    ids : list of str or None, or None
        Ids of the parsed rows.
    start : int
        Number of rounds of the learner before.
    predictions : Predictions
        Predictions of the rows that are learned, as far as they are.
    unlabeled : dict of int to RowPredictions
        Predictions of consecutive rows without labels, by the place of the first one, as far as they are made.
    """

    batch: TableBatch
    rows: ParsedRows
    keys: Keys | None
    ids: Texts | None
    start: int
    predictions: Predictions
    unlabeled: dict[int, RowPredictions] = field(default_factory=dict)

    def up_to_label(self, count: int) -> "PendingBatch":
        """Return the rows up to that with the last of `count` labels; all rows if there are no more labels."""
        labeled = np.flatnonzero(~np.isnan(self.rows.labels))
        if count >= len(labeled):
            return self
        n_rows = int(labeled[count - 1]) + 1
        last = self.rows.row_numbers[n_rows - 1]
        first = self.batch.split([int(np.searchsorted(self.batch.row_numbers, last)) + 1])[0]
        bad_rows = tuple(row for row in self.rows.bad_rows if row.row_number < last)
        part = slice(0, n_rows)
        return replace(
            self,
            batch=first,
            rows=replace(select_rows(self.rows, part), bad_rows=bad_rows),
            keys=None if self.keys is None else self.keys[part],
            ids=None if self.ids is None else self.ids[part],
            predictions=self.predictions.part(part),
        )


class BatchPredictions(NamedTuple):
    """Predictions and ends of their intervals, within the bounds."""

    values: Floats
    ends: Floats


@dataclass
class BatchLearning:
    """Steps that predict and learn the rows of a batch.

    Attributes
    ----------
    learner : StreamingRegressor
        The learner.
    encoder : TableEncoder
        Draft of the encoder.
    waiting : WaitingRows
        Draft of the rows that wait for their labels.
    options : PredictionOptions
        Bounds and intervals of the predictions.
    workers : Workers or None
        Workers that learn rows together.
    known : int
        Number of labels of the batch that the learner has learned already.
    n_unlabeled, n_late : int, default 0
        Number of rows without a label, and of late labels.
    """

    learner: StreamingRegressor[Any]
    encoder: TableEncoder
    waiting: WaitingRows
    options: PredictionOptions
    workers: Workers | None
    known: int
    n_unlabeled: int = 0
    n_late: int = 0

    def learn(self, pending: PendingBatch) -> BatchPredictions:
        """Predict the rows and learn those with labels; return the predictions."""
        count = len(pending.rows)
        found = BatchPredictions(np.empty(count), np.empty((count, len(self.options.interval_columns))))
        for step, where in split_steps(pending.rows.labels, pending.ids, self.waiting):
            late = self.waiting.pop((pending.ids or [])[where.start] or "") if step == LATE else None
            if late is not None:
                self._learn_late(late, float(pending.rows.labels[where.start]), pending.batch.source)
                part = self._publish_each(late.predictions)
            elif step in (LEARN, LATE):
                part = self._learn(pending, where)
            else:
                part = self._predict(pending, where)
            found.values[where], found.ends[where] = part
        self.add_features(self.encoder.remember_values(pending.batch), len(self.encoder.feature_names))
        return found

    def add_features(self, scales: Floats, count: int) -> None:
        """Add features to the learner, unless it has all `count` of them, and tell it the columns of all features."""
        is_fitted = self.learner.__sklearn_is_fitted__()
        if is_fitted and count > self.learner.n_features_in_:
            self.learner.add_features(scales)
        if isinstance(self.learner, MetricRegressor | KeyedRegressor) and (
            not is_fitted or count == self.learner.n_features_in_
        ):
            self.learner.set_columns(self.encoder.feature_columns[:count])

    def _learn(self, pending: PendingBatch, where: slice) -> BatchPredictions:
        """Predict and then learn rows with labels."""
        rows, keys = select_rows(pending.rows, where), None if pending.keys is None else pending.keys[where]
        predictions = pending.predictions.part(where)
        for block in self.encoder.partial_fit_transform(rows):
            todo = slice(min(block.rows.start + self.known, block.rows.stop), block.rows.stop)
            self.known -= todo.start - block.rows.start
            self.add_features(block.new_scales, block.X.shape[1])
            if todo.start < todo.stop:
                more: dict[str, Any] = {} if keys is None else {"keys": keys[todo]}
                if self.workers is not None:
                    more["workers"] = self.workers
                X, out = block.X[todo.start - block.rows.start :], predictions.part(todo)
                self.learner.learn_into(X, rows.labels[todo], out, **more)
        return self._publish(predictions)

    def _learn_late(self, row: WaitingRow, label: float, source: str) -> None:
        """Learn a row whose label has come, with the features and the past of its prediction."""
        names = self.encoder.column_names[1:]
        table = pa.table({name: pa.array([cell], pa.string()) for name, cell in zip(names, row.cells, strict=True)})
        parsed = self.encoder.parse_unlabeled(TableBatch.from_table(table, source))
        (block,) = self.encoder.partial_fit_transform(replace(parsed, labels=np.array([label])))
        self.n_late += 1
        if self.known:
            self.known -= 1
            return
        self.add_features(block.new_scales, block.X.shape[1])
        X, labels = widen(row.features, block.X.shape[1])[None], np.array([label])
        more = {"keys": np.array([row.key], dtype=object)} if row.key else {}
        self.learner.learn_late(X, labels, row.predictions, **more)

    def _predict(self, pending: PendingBatch, where: slice) -> BatchPredictions:
        """Predict rows without labels, each as if it were the next one. Those with an id wait for their labels."""
        rows, keys = select_rows(pending.rows, where), None if pending.keys is None else pending.keys[where]
        X = self.encoder.transform(rows)
        if where.start not in pending.unlabeled:
            more = {} if keys is None else {"keys": keys}
            pending.unlabeled[where.start] = self.learner.predict_each(X, **more)
        predictions = pending.unlabeled[where.start]
        self.n_unlabeled += len(rows)
        if pending.ids is not None:
            self._wait(pending.ids[where], self._cells(pending.batch, rows), X, keys, predictions)
        return self._publish_each(predictions)

    def _cells(self, batch: TableBatch, rows: ParsedRows) -> list[Texts]:
        """Return the cells of each row in the feature columns."""
        empty, undecided = [None] * len(rows), self.encoder.undecided_columns
        columns = [
            empty if name in undecided else column_cells(batch, rows, name) for name in self.encoder.column_names[1:]
        ]
        return [list(cells) for cells in zip(*columns, strict=True)]

    def _wait(self, ids: Texts, cells: list[Texts], X: Floats, keys: Keys | None, predictions: RowPredictions) -> None:
        for i, name in enumerate(ids):
            if name is not None:
                own = RowPredictions(*(each[i : i + 1].copy() for each in predictions))
                row = WaitingRow(cells[i], X[i].copy(), [] if keys is None else keys[i].tolist(), own)
                self.waiting.add(name, row)

    def _publish(self, predictions: Predictions) -> BatchPredictions:
        ends = np.empty((len(predictions.values), 0))
        if self.options.coverages:
            intervals = select_intervals(predictions.bounds, check_coverage(self.options.coverages))
            ends = self.options.interval_ends(intervals)
        return BatchPredictions(self.options.bound(predictions.values), ends)

    def _publish_each(self, predictions: RowPredictions) -> BatchPredictions:
        return self._publish(Predictions(predictions.values, predictions.bounds))


def select_rows(rows: ParsedRows, where: slice) -> ParsedRows:
    """Return some of the parsed rows."""
    if where == slice(0, len(rows)):
        return rows
    mask = np.zeros(len(rows), dtype=bool)
    mask[where] = True
    return rows.filter(mask)
