"""Runs over tables with mutated bytes either learn the rows or raise a clear error."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack import MetricRegressor
from ellipack.errors import EllipackError
from ellipack.evaluation.run import Run
from ellipack.tabular import TableEncoder, open_table
from tests.entry_points.learners import SMALL
from tests.entry_points.test_command import run_bits
from tests.fuzz.strategies import mutated_bytes, n_examples

ROWS = [
    {"n": i / 7, "where": ["north", "the, south"][i % 2], "when": f"2026-01-{1 + i % 28:02d} 07:30", "y": i % 5}
    for i in range(40)
]
CSV = "n,where,when,y\n" + "".join(f'{row["n"]},"{row["where"]}",{row["when"]},{row["y"]}\n' for row in ROWS)
TABLES = {
    "csv": CSV.encode(),
    "ndjson": "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    "csv, compressed": gzip.compress(CSV.encode(), mtime=0),
}

anything = st.sampled_from(sorted(TABLES)).flatmap(
    lambda kind: st.tuples(st.just(kind.partition(",")[0]), mutated_bytes(TABLES[kind]))
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables") / "table"


@settings(max_examples=n_examples(60))
@given(anything, st.sampled_from(["stop", "skip"]))
def test_mutated_tables_are_learned_or_give_a_clear_error(path: Path, table: tuple[str, bytes], on_error: str) -> None:
    form, content = table
    path.write_bytes(content)
    run, message, learned, before = None, "", 0, None
    try:
        with open_table(str(path), batch_rows=7, format=form, on_error=on_error) as source:
            encoder = TableEncoder.from_head(source.peek(20), "y")
            run = Run(MetricRegressor(24, neighbors=8, config=SMALL), encoder, source.name)
            for batch in source:
                result = run.learn_batch(batch, on_error)
                assert np.isfinite(result.predictions).all()
                learned += len(result.predictions)
                before = run_bits(run) if learned else None
    except EllipackError as error:
        message = str(error)
    if message:
        assert "\n" not in message
        # A batch that raises must leave the run unchanged.
        assert before is None or run is None or run_bits(run) == before
    else:
        assert run is not None
        assert run.scores.n_rows + run.unlabeled == learned
        assert run.position == learned + run.skipped
        assert on_error == "skip" or run.skipped == 0
