"""Progressive run over a table: encode, predict, learn and score each row.

A run can be saved and resumed after any batch.
"""

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ellipack import serialization
from ellipack.errors import ModelFileError
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.loading import RUN_KIND, regressor_from_archive
from ellipack.evaluation.append_only_file import OutputPosition
from ellipack.evaluation.scores import Scores
from ellipack.evaluation.table_fingerprint import TableFingerprint
from ellipack.row_keys import hash_rows
from ellipack.serialization import Archive
from ellipack.tabular import BadRow, ParsedRows, TableBatch, TableEncoder, column_text
from ellipack.validation import Floats, Ints


@dataclass(frozen=True)
class BatchResult:
    """Result of one batch.

    Attributes
    ----------
    row_numbers : ndarray of int
        Numbers of the learned rows.
    predictions : ndarray of float
        Prediction for each row, made before its label was seen.
    labels : ndarray of float
        Label of each row.
    bad_rows : tuple of BadRow
        Rows that were skipped.
    """

    row_numbers: Ints
    predictions: Floats
    labels: Floats
    bad_rows: tuple[BadRow, ...]


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
    output_position : OutputPosition
        Position of the prediction file after these rows.
    fingerprint : TableFingerprint
        Digests of rows, by which the table is recognized when the run is resumed.
    row_offset : int, default 0
        Number to add to the row numbers of the source, if the run continues with another source. It is not saved.

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
    output_position: OutputPosition = field(default_factory=OutputPosition)
    fingerprint: TableFingerprint = field(default_factory=TableFingerprint)
    row_offset: int = 0

    def learn_batch(self, batch: TableBatch, on_error: str = "stop") -> BatchResult:
        """Predict and then learn each row of a batch.

        Parameters
        ----------
        batch : TableBatch
            The rows.
        on_error : {"stop", "skip"}, default "stop"
            "stop" raises StreamError at a bad row and leaves the run unchanged; "skip" omits it.
        """
        rows = self.encoder.parse(batch, on_error)  # raises before the state changes
        keys = self.row_keys(batch, rows)
        predictions = np.empty(len(rows))
        for block in self.encoder.partial_fit_transform(rows) if len(rows) else []:
            if len(block.new_scales) and self.scores.n_rows + block.rows.start > 0:
                self.learner.add_features(block.new_scales)
            more = {} if keys is None else {"keys": keys[block.rows]}
            predictions[block.rows] = self.learner.progressive(block.X, rows.labels[block.rows], **more)
        self.scores.update(predictions, rows.labels)
        bad = tuple(sorted((*batch.unreadable_rows, *rows.bad_rows), key=lambda row: row.row_number))
        self.position = self.row_offset + batch.last_row
        self.skipped += len(bad)
        if self.source != "-":  # standard input is not read again
            self.fingerprint = self.fingerprint.extended_by(batch, self.encoder.column_names)
        return BatchResult(self.row_offset + rows.row_numbers, predictions, rows.labels, bad)

    def row_keys(self, batch: TableBatch, rows: ParsedRows) -> Ints | None:
        """Return the key of each parsed row, from the columns by which the learner uses the past; None without keys."""
        by = getattr(self.learner, "by", None)
        if by is None:
            return None
        kept = np.searchsorted(batch.row_numbers, rows.row_numbers)
        names = [by] if isinstance(by, str) else by
        return hash_rows([column_text(batch, name)[kept] for name in names])

    def start_table(self, source: str) -> None:
        """Continue with another table, from its first row and with predictions of its own."""
        self.source, self.position = source, 0
        self.output_position, self.fingerprint = OutputPosition(), TableFingerprint()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the run to a file. A run loaded with `load_run` continues with exactly the same results."""
        facts = {"source": self.source, "position": self.position, "skipped": self.skipped}
        learner = self.learner.to_archive()
        archive = Archive(facts).with_parts(
            output_position=Archive(self.output_position._asdict()),
            fingerprint=self.fingerprint.to_archive(),
            encoder=Archive(self.encoder.to_dict()),
            scores=self.scores.to_archive(),
            learner=Archive({"class": type(self.learner).__name__}).with_parts(contents=learner),
        )
        serialization.write(path, RUN_KIND, archive)


def load_run(path: str | os.PathLike[str]) -> Run:
    """Load a run that was saved with `Run.save`; raise ModelFileError if the file is invalid."""
    kind, archive = serialization.read(path)
    if kind != RUN_KIND:
        raise ModelFileError(f"{path} holds a {kind} and not a run: create one with `ellipack run --save`")
    try:
        output_position = archive.part("output_position")
        run = Run(
            regressor_from_archive(kind, archive),
            TableEncoder.from_dict(archive.fact("encoder", dict)),
            archive.fact("source", str),
            Scores.from_archive(archive.part("scores")),
            archive.integer("position", 0),
            archive.integer("skipped", 0),
            OutputPosition(output_position.integer("size", 0), output_position.integer("checksum", 0, 2**32 - 1)),
            TableFingerprint.from_archive(archive.part("fingerprint")),
        )
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    if run.scores.n_rows and len(run.encoder.feature_names) != getattr(run.learner, "n_features_in_", 0):
        raise ModelFileError(
            f"{path}: the number of features must match that of the encoder, {len(run.encoder.feature_names)}"
        )
    return run
