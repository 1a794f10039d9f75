"""Progressive run over a table: encode, predict, learn and score each row.

A row without a label is predicted as if it were the next one, and not learned. If rows have ids, its label may come
later; then the row is learned with what was known when it was predicted. A run can be saved and resumed after any
batch.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellipack import serialization
from ellipack.errors import IncompleteBatchError, InputError, ModelFileError
from ellipack.estimators import KeyedRegressor, MetricRegressor
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.loading import RUN_KIND, regressor_from_archive
from ellipack.evaluation.append_only_file import OutputPosition
from ellipack.evaluation.interval_scores import IntervalScores
from ellipack.evaluation.prediction_options import PredictionOptions, Texts, column_cells
from ellipack.evaluation.scores import Scores
from ellipack.evaluation.table_fingerprint import TableFingerprint
from ellipack.evaluation.waiting_rows import LATE, LEARN, WaitingRow, WaitingRows, split_steps, widen
from ellipack.learners.intervals import RowPredictions
from ellipack.learners.keyed.key_learner import OFFER_SIZE
from ellipack.learners.metric.past import past_feature_names, past_labels
from ellipack.learners.metric.sharded_learning import Workers
from ellipack.serialization import Archive
from ellipack.tabular import BadRow, ParsedRows, TableBatch, TableEncoder, column_text
from ellipack.tabular.arrow import pa
from ellipack.validation import Floats, Ints

Keys = NDArray[np.object_]
"""Values of the keys of rows as text, shape (n_rows, n_columns)."""


@dataclass(frozen=True)
class BatchResult:
    """Result of one batch.

    Attributes
    ----------
    row_numbers : ndarray of int
        Numbers of the rows.
    predictions : ndarray of float
        Prediction for each row, made before its label was seen. For a late label, that of the row to which it belongs.
    labels : ndarray of float
        Label of each row, NaN where there is none.
    bad_rows : tuple of BadRow
        Rows that were skipped.
    kept : list of list of str or None
        Cells of the columns that are passed through.
    interval_ends : ndarray of float, shape (n_rows, n_interval_columns)
        Ends of the prediction intervals, in the order of `PredictionOptions.interval_columns`.
    """

    row_numbers: Ints
    predictions: Floats
    labels: Floats
    bad_rows: tuple[BadRow, ...]
    kept: list[Texts]
    interval_ends: Floats


@dataclass(eq=False)
class Run:
    """State of a run between two batches.

    Attributes
    ----------
    learner : StreamingRegressor
        The learner.
    encoder : TableEncoder
        Encoder of the table.
    source : str
        Path of the table, or ``-`` for standard input.
    scores : Scores
        Scores of the predictions so far.
    position : int, default 0
        Number of rows processed, skipped rows included.
    skipped : int, default 0
        Number of skipped rows.
    options : PredictionOptions
        Bounds of the predictions, columns that are passed through, and the column of ids.
    unlabeled : int, default 0
        Number of rows that came without a label.
    late_labels : int, default 0
        Number of rows that were learned when their labels came later.
    waiting : WaitingRows
        Rows whose labels may come later.
    output_position : OutputPosition
        Position of the prediction file after these rows.
    fingerprint : TableFingerprint
        Digests of rows, by which the table is recognized when the run is resumed.
    row_offset : int, default 0
        Number to add to the row numbers of the source, if the run continues with another source. It is not saved.
    interval_scores : IntervalScores
        Scores of the prediction intervals so far.
    is_incomplete : bool, default False
        Whether a batch is being learned, or its learning has failed. Such a run can't be used.
    workers : Workers or None, default None
        Workers that learn the rows of a batch together. They are not saved.

    Examples
    --------
    >>> from ellipack import MetricRegressor
    >>> from ellipack.tabular.arrow import pa
    >>> batch = TableBatch.from_table(pa.table({"x": [0.0, 1.0, 2.0], "y": [1.0, 1.0, 1.0]}))
    >>> run = Run(MetricRegressor(), TableEncoder.from_head(batch, "y"), "table")
    >>> run.learn_batch(batch).predictions.tolist()
    [0.0, 1.0, 1.0]
    """

    learner: StreamingRegressor[Any]
    encoder: TableEncoder
    source: str
    scores: Scores = field(default_factory=Scores)
    position: int = 0
    skipped: int = 0
    options: PredictionOptions = field(default_factory=PredictionOptions)
    unlabeled: int = 0
    late_labels: int = 0
    waiting: WaitingRows = field(default_factory=WaitingRows)
    output_position: OutputPosition = field(default_factory=OutputPosition)
    fingerprint: TableFingerprint = field(default_factory=TableFingerprint)
    row_offset: int = 0
    interval_scores: IntervalScores = field(default_factory=IntervalScores)
    is_incomplete: bool = False
    workers: Workers | None = None

    def __post_init__(self) -> None:
        if self.interval_scores.coverages != self.options.coverages:
            self.interval_scores = IntervalScores(self.options.coverages)

    def learn_batch(self, batch: TableBatch, on_error: str = "stop") -> BatchResult:
        """Predict each row of a batch, then learn it if its label is known.

        Parameters
        ----------
        batch : TableBatch
            The rows.
        on_error : {"stop", "skip"}, default "stop"
            "stop" raises StreamError at a bad row and leaves the run unchanged; "skip" omits it.
        """
        self.check_is_complete()
        parts = self.encoder.split_at_decisions(batch)
        if len(parts) == 1:
            return self._learn_part(batch, on_error)
        self.check_rows([batch], on_error)
        return _join_results([self._learn_part(part, on_error) for part in parts])

    def check_is_complete(self) -> None:
        """Raise IncompleteBatchError if the run is in the middle of a batch."""
        if self.is_incomplete:
            raise IncompleteBatchError(
                "a batch must be learned completely, but learning one has failed (memory ran out, or the process "
                "forked meanwhile): load a saved model, or fit again"
            )

    def check_rows(self, batches: Iterable[TableBatch], on_error: str = "stop") -> None:
        """Raise StreamError if batches that follow the rows so far have a bad row. Does not change the run."""
        encoder = self.encoder.copy_to_parse()
        for batch in batches:
            for part in encoder.split_at_decisions(batch):
                encoder.parse(part, on_error)
                encoder.remember_values(part)

    def _learn_part(self, batch: TableBatch, on_error: str) -> BatchResult:
        """Learn rows of which at most the last one decides the kind of a column."""
        rows = self.encoder.parse(batch, on_error)  # raises before the state changes
        keys, kept, ids = self.row_keys(batch, rows), self.options.kept_cells(batch, rows), self._row_ids(batch, rows)
        predictions, ends = np.empty(len(rows)), np.empty((len(rows), len(self.options.interval_columns)))
        self.is_incomplete = True
        for step, where in split_steps(rows.labels, ids, self.waiting):
            part, part_keys = _select(rows, where), None if keys is None else keys[where]
            late = self.waiting.pop((ids or [])[where.start] or "") if step == LATE else None
            if late is not None:
                predictions[where], ends[where] = self._published(late.predictions)
                self._learn_late(late, float(part.labels[0]), batch.source)
            elif step in (LEARN, LATE):
                predictions[where], ends[where] = self._learn(part, part_keys)
            else:
                names = None if ids is None else ids[where]
                predictions[where], ends[where] = self._predict(batch, part, part_keys, names)
        labeled = ~np.isnan(rows.labels)
        self.scores.update(predictions[labeled], rows.labels[labeled], self.encoder.row_times(rows)[labeled])
        self.interval_scores.update(ends[labeled], rows.labels[labeled])
        bad = tuple(sorted((*batch.unreadable_rows, *rows.bad_rows), key=lambda row: row.row_number))
        self.position = self.row_offset + batch.last_row
        self.skipped += len(bad)
        if self.source != "-":  # standard input is not read again
            self.fingerprint = self.fingerprint.extended_by(batch, self.encoder.column_names)
        new_scales = self.encoder.remember_values(batch)
        if len(new_scales) and self.learner.__sklearn_is_fitted__():
            self.learner.add_features(new_scales)
            self._name_columns(len(self.encoder.feature_names))
        result = BatchResult(self.row_offset + rows.row_numbers, predictions, rows.labels, bad, kept, ends)
        self.is_incomplete = False
        return result

    def _learn(self, rows: ParsedRows, keys: Keys | None) -> tuple[Floats, Floats]:
        """Predict and then learn rows with labels; return the predictions and the ends of their intervals."""
        predictions, ends = np.empty(len(rows)), np.empty((len(rows), len(self.options.interval_columns)))
        for block in self.encoder.partial_fit_transform(rows):
            if len(block.new_scales) and self.learner.__sklearn_is_fitted__():
                self.learner.add_features(block.new_scales)
            self._name_columns(block.X.shape[1])
            more: dict[str, Any] = {} if keys is None else {"keys": keys[block.rows]}
            if self.workers is not None:
                more["workers"] = self.workers
            labels = rows.labels[block.rows]
            if self.options.coverages:
                more["coverage"] = self.options.coverages
                predictions[block.rows], intervals = self.learner.progressive(block.X, labels, **more)
                ends[block.rows] = self.options.interval_ends(intervals)
            else:
                predictions[block.rows] = self.learner.progressive(block.X, labels, **more)
        return self.options.bound(predictions), ends

    def _predict(
        self, batch: TableBatch, rows: ParsedRows, keys: Keys | None, ids: Texts | None
    ) -> tuple[Floats, Floats]:
        """Predict rows without labels, each as if it were the next one. Those with an id wait for their labels."""
        self.unlabeled += len(rows)
        X = self.encoder.transform(rows)
        predictions = self.learner.predict_each(X, **({} if keys is None else {"keys": keys}))
        if ids is not None:
            empty, undecided = [None] * len(rows), self.encoder.undecided_columns
            columns = [
                empty if name in undecided else column_cells(batch, rows, name)
                for name in self.encoder.column_names[1:]
            ]
            cells = list(zip(*columns, strict=True))
            for i, name in enumerate(ids):
                if name is not None:
                    own = RowPredictions(*(each[i : i + 1].copy() for each in predictions))
                    row = WaitingRow(list(cells[i]), X[i].copy(), [] if keys is None else keys[i].tolist(), own)
                    self.waiting.add(name, row)
        return self._published(predictions)

    def _published(self, predictions: RowPredictions) -> tuple[Floats, Floats]:
        """Return predictions and the ends of their intervals within the bounds."""
        ends = np.empty((len(predictions.values), 0))
        if self.options.coverages:
            ends = self.options.interval_ends(predictions.intervals(self.options.coverages))
        return self.options.bound(predictions.values), ends

    def _learn_late(self, row: WaitingRow, label: float, source: str) -> None:
        """Learn a row whose label has come, with the features and the past of its prediction."""
        names = self.encoder.column_names[1:]
        table = pa.table({name: pa.array([cell], pa.string()) for name, cell in zip(names, row.cells, strict=True)})
        parsed = self.encoder.parse_unlabeled(TableBatch.from_table(table, source))
        (block,) = self.encoder.partial_fit_transform(replace(parsed, labels=np.array([label])))
        if len(block.new_scales) and self.learner.__sklearn_is_fitted__():
            self.learner.add_features(block.new_scales)
        self._name_columns(block.X.shape[1])
        X, labels = widen(row.features, block.X.shape[1])[None], np.array([label])
        more = {"keys": np.array([row.key], dtype=object)} if row.key else {}
        self.learner.learn_late(X, labels, row.predictions, **more)
        self.late_labels += 1

    def _name_columns(self, count: int) -> None:
        """Tell the learner the columns of its features, of which there are `count`, to measure their importance."""
        if isinstance(self.learner, MetricRegressor | KeyedRegressor):
            self.learner.set_columns(self.encoder.feature_columns[:count])

    def _row_ids(self, batch: TableBatch, rows: ParsedRows) -> Texts | None:
        """Return the id of each parsed row; None without an id column."""
        if self.options.id_column is None:
            return None
        kept = np.searchsorted(batch.row_numbers, rows.row_numbers)
        ids: Texts = column_text(batch, self.options.id_column)[kept].tolist()
        return ids

    def predict_keys(self, batch: TableBatch, rows: ParsedRows) -> dict[str, Any]:
        """Return the keys of rows as an argument of `predict`, which only learners per key take."""
        return {"keys": self.row_keys(batch, rows)} if isinstance(self.learner, KeyedRegressor) else {}

    def row_keys(self, batch: TableBatch, rows: ParsedRows) -> Keys | None:
        """Return the values of the key of each parsed row as text, shape (n_rows, n_columns); None without keys."""
        by = getattr(self.learner, "by", None)
        if by is None:
            return None
        kept = np.searchsorted(batch.row_numbers, rows.row_numbers)
        names = [by] if isinstance(by, str) else by
        return np.column_stack([column_text(batch, name)[kept] for name in names])

    @contextmanager
    def learning_on(self, workers: Workers | None) -> Iterator[None]:
        """Learn on workers within the block; None learns in this thread."""
        if workers is not None and not isinstance(self.learner, MetricRegressor):
            raise InputError(f"workers need a MetricRegressor, got {type(self.learner).__name__}")
        self.workers = workers
        try:
            yield
        finally:
            self.workers = None

    def use_coverages(self, coverages: tuple[float, ...]) -> None:
        """Make intervals of these coverages from now on, also for rows that wait for their labels."""
        if coverages != self.options.coverages:
            self.options, self.interval_scores = replace(self.options, coverages=coverages), IntervalScores(coverages)

    def start_table(self, source: str) -> None:
        """Continue with another table, from its first row and with predictions of its own."""
        self.source, self.position = source, 0
        self.output_position, self.fingerprint = OutputPosition(), TableFingerprint()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the run to a file. A run loaded with `load_run` continues with exactly the same results."""
        self.check_is_complete()
        facts = {name: getattr(self, name) for name in ("source", "position", "skipped", "unlabeled", "late_labels")}
        learner = self.learner.to_archive()
        archive = Archive(facts).with_parts(
            output_position=Archive(self.output_position._asdict()),
            fingerprint=self.fingerprint.to_archive(),
            options=self.options.to_archive(),
            waiting=self.waiting.to_archive(len(self.encoder.feature_names), _n_past_features(self.learner)),
            interval_scores=self.interval_scores.to_archive(),
            encoder=Archive(self.encoder.to_dict()),
            scores=self.scores.to_archive(),
            learner=Archive({"class": type(self.learner).__name__}).with_parts(contents=learner),
        )
        serialization.write(path, RUN_KIND, archive)


def _join_results(results: Sequence[BatchResult]) -> BatchResult:
    """Return the results of the parts of a batch as one."""
    return BatchResult(
        np.concatenate([each.row_numbers for each in results]),
        np.concatenate([each.predictions for each in results]),
        np.concatenate([each.labels for each in results]),
        tuple(row for each in results for row in each.bad_rows),
        [list(chain.from_iterable(cells)) for cells in zip(*(each.kept for each in results), strict=True)],
        np.concatenate([each.interval_ends for each in results]),
    )


def load_run(path: str | os.PathLike[str]) -> Run:
    """Load a run that was saved with `Run.save`; raise ModelFileError if the file is invalid."""
    kind, archive = serialization.read(path)
    if kind != RUN_KIND:
        raise ModelFileError(f"{path} holds a {kind} and not a run: create one with `ellipack run --save`")
    try:
        return run_from_archive(archive)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def run_from_archive(archive: Archive) -> Run:
    """Restore a run; raise ModelFileError if the archive is invalid."""
    output_position, saved = archive.part("output_position"), archive.part("learner")
    encoder = TableEncoder.from_dict(archive.fact("encoder", dict))
    learner = regressor_from_archive(saved.fact("class", str), saved.part("contents"))
    scores = Scores.from_archive(archive.part("scores"))
    if scores.n_rows and len(encoder.feature_names) != getattr(learner, "n_features_in_", 0):
        raise ModelFileError(f"the number of features must match that of the encoder, {len(encoder.feature_names)}")
    options = PredictionOptions.from_archive(archive.part("options"))
    sizes = len(encoder.column_names) - 1, len(encoder.feature_names), _n_past_features(learner)
    return Run(
        learner,
        encoder,
        archive.fact("source", str),
        scores,
        archive.integer("position", 0),
        archive.integer("skipped", 0),
        options,
        archive.integer("unlabeled", 0),
        archive.integer("late_labels", 0),
        WaitingRows.from_archive(archive.part("waiting"), *sizes),
        OutputPosition(output_position.integer("size", 0), output_position.integer("checksum", 0, 2**32 - 1)),
        TableFingerprint.from_archive(archive.part("fingerprint")),
        interval_scores=IntervalScores.from_archive(archive.part("interval_scores"), options.coverages),
    )


def _n_past_features(learner: Any) -> int:
    """Return the number of features of the past that a learner uses."""
    if isinstance(learner, KeyedRegressor):
        return _n_past_features(learner.new_pooled()) + OFFER_SIZE
    labels = past_labels(learner.past) if isinstance(learner, MetricRegressor) else 0
    return len(past_feature_names(labels, None if learner.by is None else "key")) if labels else 0


def _select(rows: ParsedRows, where: slice) -> ParsedRows:
    """Return some of the parsed rows."""
    if where == slice(0, len(rows)):
        return rows
    mask = np.zeros(len(rows), dtype=bool)
    mask[where] = True
    return rows.filter(mask)
