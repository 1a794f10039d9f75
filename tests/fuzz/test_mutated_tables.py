"""Tables with bytes changed anywhere, played from the file to the learner: rows that are learned, or a clear error."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ellipack import MetricRegressor
from ellipack.errors import EllipackError
from ellipack.evaluation.run import Run
from ellipack.tabular import TableEncoder, open_table
from tests.entry_points.learners import SMALL
from tests.entry_points.test_command import carried
from tests.fuzz.strategies import effort, mutations

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
    lambda kind: st.tuples(st.just(kind.partition(",")[0]), mutations(TABLES[kind]))
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables") / "table"


@settings(max_examples=effort(120), derandomize=effort(1) == 1, suppress_health_check=[HealthCheck.too_slow])
@given(anything, st.sampled_from(["stop", "skip"]))
def test_a_table_is_learned_up_to_its_end_or_to_an_error_that_says_why(
    path: Path, table: tuple[str, bytes], on_error: str
) -> None:
    form, content = table
    path.write_bytes(content)
    run, refusal, learned, before = None, "", 0, None
    try:
        with open_table(str(path), batch_rows=7, format=form, on_error=on_error) as source:
            encoder = TableEncoder.from_head(source.peek(20), "y")
            run = Run(MetricRegressor(24, neighbors=8, config=SMALL), encoder, source.name)
            for batch in source:
                played = run.learn_batch(batch, on_error)
                assert np.isfinite(played.predictions).all()
                learned += len(played.predictions)
                before = carried(run) if learned else None
    except EllipackError as error:
        refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        # Of a batch that was refused nothing has been learned: all there is comes from those before.
        assert before is None or run is None or carried(run) == before
    else:
        assert run is not None
        assert run.scores.n_rows == learned
        assert run.position == learned + run.skipped
        assert on_error == "skip" or run.skipped == 0
