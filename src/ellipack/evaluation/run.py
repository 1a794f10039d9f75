"""A run over a table: each row encoded, predicted, learned and scored; to be saved and gone on with at any batch."""

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ellipack import serialization
from ellipack.errors import CheckpointError
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.loading import RUN_KIND, learner_from_archive
from ellipack.evaluation.append_only_file import OutputPosition
from ellipack.evaluation.scores import Scores
from ellipack.serialization import Archive
from ellipack.tabular import BadRow, TableBatch, TableEncoder
from ellipack.validation import Floats, Ints


@dataclass(frozen=True)
class BatchResult:
    """What became of a batch: its rows by number, what was predicted, the labels, and the rows left out."""

    row_numbers: Ints
    predictions: Floats
    labels: Floats
    bad_rows: tuple[BadRow, ...]


@dataclass(eq=False)
class Run:
    """What a run carries from batch to batch.

    Attributes
    ----------
    learner, encoder, scores : which all move on with every row.
    source : what the stream is called.
    position : how many of its rows are behind, those left out included.
    skipped : how many were left out.
    output_position : how much was written of the predictions for the rows behind.
    row_offset : how many of the rows behind the source does not have; not saved, since it is another source then.
    """

    learner: StreamingRegressor[Any]
    encoder: TableEncoder
    source: str
    scores: Scores = field(default_factory=Scores)
    position: int = 0
    skipped: int = 0
    output_position: OutputPosition = field(default_factory=OutputPosition)
    row_offset: int = 0

    def learn_batch(self, batch: TableBatch, on_error: str = "stop") -> BatchResult:
        """Predict and then learn each row of a batch."""
        rows = self.encoder.parse(batch, on_error)  # raises before anything has moved
        predictions = np.empty(len(rows))
        for block in self.encoder.partial_fit_transform(rows) if len(rows) else []:
            if len(block.new_scales) and self.scores.n_rows + block.rows.start > 0:
                self.learner.add_features(block.new_scales)
            predictions[block.rows] = self.learner.progressive(block.X, rows.labels[block.rows])
        self.scores.update(predictions, rows.labels)
        bad = tuple(sorted((*batch.unreadable_rows, *rows.bad_rows), key=lambda row: row.row_number))
        self.position = self.row_offset + batch.last_row
        self.skipped += len(bad)
        return BatchResult(self.row_offset + rows.row_numbers, predictions, rows.labels, bad)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole run to a file, from which `load_run` goes on with the same bits."""
        facts = {"source": self.source, "position": self.position, "skipped": self.skipped}
        learner = self.learner.to_archive()
        archive = Archive(facts).with_parts(
            predictions=Archive(self.output_position._asdict()),
            encoder=Archive(self.encoder.to_dict()),
            scores=self.scores.to_archive(),
            learner=Archive({"class": type(self.learner).__name__}).with_parts(contents=learner),
        )
        serialization.write(path, RUN_KIND, archive)


def load_run(path: str | os.PathLike[str]) -> Run:
    """Return the run that `Run.save` wrote to a file."""
    kind, archive = serialization.read(path)
    if kind != RUN_KIND:
        raise CheckpointError(f"{path} holds a {kind} and not a run: `ellipack run --save` makes one")
    try:
        predictions = archive.part("predictions")
        run = Run(
            learner_from_archive(kind, archive),
            TableEncoder.from_dict(archive.fact("encoder", dict)),
            archive.fact("source", str),
            Scores.from_archive(archive.part("scores")),
            archive.integer("position", 0),
            archive.integer("skipped", 0),
            OutputPosition(predictions.integer("size", 0), predictions.integer("checksum", 0, 2**32 - 1)),
        )
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    if run.scores.n_rows and len(run.encoder.feature_names) != getattr(run.learner, "n_features_in_", 0):
        raise CheckpointError(f"{path}: features must be as many as are encoded, {len(run.encoder.feature_names)}")
    return run
