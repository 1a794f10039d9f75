"""Progressive run over a table: encode, predict, learn and score each row.

A row without a label is predicted as if it were the next one, and not learned. If rows have ids, its label may come
later; then the row is learned with what was known when it was predicted. A run can be saved and resumed after any
batch.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ellipack import serialization
from ellipack.errors import InputError, ModelFileError
from ellipack.estimators import KeyedRegressor, MetricRegressor
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.loading import RUN_KIND, regressor_from_archive
from ellipack.evaluation.append_only_file import OutputPosition
from ellipack.evaluation.batch_learning import BatchLearning, Keys, PendingBatch
from ellipack.evaluation.interval_scores import IntervalScores
from ellipack.evaluation.prediction_options import PredictionOptions, Texts
from ellipack.evaluation.scores import Scores
from ellipack.evaluation.table_fingerprint import TableFingerprint
from ellipack.evaluation.waiting_rows import WaitingRows
from ellipack.learners.intervals import empty_predictions
from ellipack.learners.keyed.key_learner import PREDICTION_PAIRS_SIZE
from ellipack.learners.metric.past import past_feature_names, past_labels
from ellipack.learners.metric.sharded_learning import Workers
from ellipack.serialization import Archive
from ellipack.tabular import BadRow, ParsedRows, TableBatch, TableEncoder, column_text
from ellipack.validation import Floats, Ints


class StopLearning(BaseException):
    """Raised by a signal handler to end a batch after the last row that was learned; see `Run.learn_batch`."""


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


class RunChange(NamedTuple):
    """Attributes of a `Run` that a batch changes, with their new values."""

    encoder: TableEncoder
    waiting: WaitingRows
    scores: Scores
    interval_scores: IntervalScores
    position: int
    skipped: int
    unlabeled: int
    late_labels: int
    fingerprint: TableFingerprint


class LearnedBatch(NamedTuple):
    """What rows that were learned change, and their result."""

    change: RunChange
    result: BatchResult


@dataclass(eq=False)
class Run:
    """State of a run between two batches.

    What a batch changes is computed apart, and replaces the attributes at once.

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
    workers : Workers or None, default None
        Workers that learn the rows of a batch together. They are not saved.
    pending : PendingBatch or None, default None
        Rows that are being learned, or whose learning has failed; see `complete_batch`.
    learned : LearnedBatch or None, default None
        What these rows change and their result, if it is known but not applied.

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
    workers: Workers | None = None
    pending: PendingBatch | None = None
    learned: LearnedBatch | None = None

    def __post_init__(self) -> None:
        if self.interval_scores.coverages != self.options.coverages:
            self.interval_scores = IntervalScores(self.options.coverages)

    def learn_batch(
        self,
        batch: TableBatch,
        on_error: str = "stop",
        stoppable: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> BatchResult:
        """Predict each row of a batch, then learn it if its label is known.

        An error or an interrupt leaves the run after one of the rows, or before the first one. `StopLearning` does the
        same, but is not raised again: the result of the rows that were learned is returned.

        Parameters
        ----------
        batch : TableBatch
            The rows.
        on_error : {"stop", "skip"}, default "stop"
            "stop" raises StreamError at a bad row and leaves the run unchanged; "skip" omits it.
        stoppable : callable, optional
            Returns a context manager. Only inside its block may a signal handler raise `StopLearning`. By default none
            does.

        Returns
        -------
        result : BatchResult
        """
        self.complete_batch()
        parts = self.encoder.split_at_decisions(batch)
        if len(parts) > 1:
            self.check_rows([batch], on_error)
        results: list[BatchResult | None] = []
        try:
            for part in parts:
                results.append(self._learn_part(part, on_error, stoppable))
        except StopLearning:
            results.append(self.complete_batch())
        found = [result for result in results if result is not None]
        return found[0] if len(found) == 1 else _join_results([self._empty_result(), *found])

    def complete_batch(self) -> BatchResult | None:
        """Complete a batch whose learning has failed: with the rows that the learner has learned.

        If it fails, it can be called again. All methods that learn or save call it; so must those who use the learner
        or the encoder on their own.

        Returns
        -------
        result : BatchResult or None
            Result of these rows; None if there are none.
        """
        if self.pending is None:
            return None
        if self.learned is None:
            self.learned = self._recover(self.pending)
        if self.learned is None:
            self.pending = None
            return None
        change, result = self.learned
        change.encoder.commit()
        change.waiting.commit()
        # In one call, so that an interrupt sees all of these or none.
        vars(self).update(change._asdict(), pending=None, learned=None)
        return result

    def _recover(self, pending: PendingBatch) -> LearnedBatch | None:
        """Return what those rows of a batch change that the learner has learned; None if there are none."""
        count = self.learner.n_rounds - pending.start
        learned = self._learn_pending(pending.up_to_label(count), count) if count else None
        n_features = len((self if learned is None else learned.change).encoder.feature_names)
        if self.learner.__sklearn_is_fitted__() and self.learner.n_features_in_ > n_features:
            # Features of the next row were added.
            learned = self._learn_pending(pending.up_to_label(count + 1), count)
        return learned

    def check_rows(self, batches: Iterable[TableBatch], on_error: str = "stop") -> None:
        """Raise StreamError if batches that follow the rows so far have a bad row. Does not change the run."""
        encoder = self.encoder.draft()
        for batch in batches:
            for part in encoder.split_at_decisions(batch):
                encoder.parse(part, on_error)
                encoder.remember_values(part)

    def _learn_part(
        self, batch: TableBatch, on_error: str, stoppable: Callable[[], AbstractContextManager[None]]
    ) -> BatchResult | None:
        """Learn rows of which at most the last one decides the kind of a column."""
        rows = self.encoder.parse(batch, on_error)  # raises before the state changes
        predictions = empty_predictions(len(rows), with_intervals=bool(self.options.coverages))
        start, row_keys, ids = self.learner.n_rounds, self.row_keys(batch, rows), self._row_ids(batch, rows)
        try:
            self.pending = PendingBatch(batch, rows, row_keys, ids, start, predictions)
            with stoppable():
                self.learned = self._learn_pending(self.pending, 0)
            return self.complete_batch()
        except StopLearning:
            raise
        except BaseException:
            with suppress(Exception):  # then the next call completes it
                self.complete_batch()
            raise

    def _learn_pending(self, pending: PendingBatch, known: int) -> LearnedBatch:
        """Learn rows of which the learner has learned the first `known` labels."""
        batch, rows = pending.batch, pending.rows
        kept, bad = self.options.kept_cells(batch, rows), _bad_rows(batch, rows)
        learning = BatchLearning(
            self.learner, self.encoder.draft(), self.waiting.draft(), self.options, self.workers, known
        )
        found = learning.learn(pending)
        labeled = ~np.isnan(rows.labels)
        labels, times = rows.labels[labeled], self.encoder.row_times(rows)[labeled]
        fingerprint = self.fingerprint
        if self.source != "-":  # standard input is not read again
            fingerprint = fingerprint.extended_by(batch, self.encoder.column_names)
        change = RunChange(
            learning.encoder,
            learning.waiting,
            self.scores.updated(found.values[labeled], labels, times),
            self.interval_scores.updated(found.ends[labeled], labels),
            self.row_offset + batch.last_row,
            self.skipped + len(bad),
            self.unlabeled + learning.n_unlabeled,
            self.late_labels + learning.n_late,
            fingerprint,
        )
        numbers = self.row_offset + rows.row_numbers
        return LearnedBatch(change, BatchResult(numbers, found.values, rows.labels, bad, kept, found.ends))

    def _empty_result(self) -> BatchResult:
        """Return the result of no rows."""
        no_rows, no_ends = np.empty(0), np.empty((0, len(self.options.interval_columns)))
        return BatchResult(
            np.empty(0, dtype=np.int64), no_rows, no_rows, (), [[] for _ in self.options.kept_columns], no_ends
        )

    def _row_ids(self, batch: TableBatch, rows: ParsedRows) -> Texts | None:
        """Return the id of each parsed row; None without an id column."""
        if self.options.id_column is None:
            return None
        kept = batch.positions_of(rows.row_numbers)
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
        kept = batch.positions_of(rows.row_numbers)
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
            options = replace(self.options, coverages=coverages)
            # In one call, so that an interrupt sees all of these or none.
            vars(self).update(options=options, interval_scores=IntervalScores(coverages))

    def start_table(self, source: str) -> None:
        """Continue with another table, from its first row and with predictions of its own."""
        start = {"output_position": OutputPosition(), "fingerprint": TableFingerprint()}
        # In one call, so that an interrupt sees all of these or none.
        vars(self).update(source=source, position=0, **start)

    @contextmanager
    def starting_table(self, source: str) -> Iterator[None]:
        """Learn another table within the block. If this fails before a batch is learned, the run is as before."""
        names = "source", "position", "output_position", "fingerprint"
        before = {name: vars(self)[name] for name in names}
        self.start_table(source)
        try:
            yield
        finally:
            if self.position == 0:
                # In one call, so that an interrupt sees all of these or none.
                vars(self).update(before)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the run to a file. A run loaded with `load_run` continues with exactly the same results."""
        self.complete_batch()
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


def _bad_rows(batch: TableBatch, rows: ParsedRows) -> tuple[BadRow, ...]:
    """Return the rows that were skipped, in their order."""
    return tuple(sorted((*batch.unreadable_rows, *rows.bad_rows), key=lambda row: row.row_number))


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
        return _n_past_features(learner.new_pooled()) + PREDICTION_PAIRS_SIZE
    labels = past_labels(learner.past) if isinstance(learner, MetricRegressor) else 0
    return len(past_feature_names(labels, None if learner.by is None else "key")) if labels else 0
