"""Loads hostile files, one after the other, in a process that may not take much memory or time.

    python -m tests.fuzz.loading FIRST COUNT MODEL...

makes of each good MODEL so many others, by the seeds from FIRST on. Each must be refused with a `CheckpointError`, or
hold a learner that predicts finite numbers, learns 50 more rows and can be saved and loaded again. What is tried is
printed as it begins, so that whoever reads it knows even if the process dies.
"""

import faulthandler
import json
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import ellipack
import ellipack.river
from ellipack.errors import CheckpointError
from ellipack.estimators.loading import RUN_KIND
from ellipack.evaluation.run import load_run
from ellipack.serialization import Archive, file, read
from ellipack.tabular import TableBatch
from ellipack.validation import Floats
from tests.entry_points.learners import stream
from tests.fuzz.mutations import KNOWING, RAW, Random, signed

MEMORY = 2**30
"""Bytes that a hostile file may make us ask for beyond what a good one does."""

SECONDS = 100
"""After which a load hangs: a good one takes milliseconds."""

_CODES = {"float64": "F64", "int64": "I64", "float32": "F32"}


def mutated(rng: Random, data: bytes, kind: str, archive: Archive) -> bytes:
    """Return one of the files that a hostile author makes of a good one."""
    if rng.random() < 0.25:
        return RAW[rng.integers(len(RAW))](rng, data)
    for _ in range(rng.integers(1, 3)):
        archive = KNOWING[rng.integers(len(KNOWING))](rng, archive)
    return packed(kind, archive)


def packed(kind: str, archive: Archive) -> bytes:
    """Return a file with this archive, also such that the writer would refuse, and a right checksum."""
    header: dict[str, Any] = {}
    body = b""
    for name, array in archive.arrays.items():
        held = np.ascontiguousarray(array).tobytes()
        place = [len(body), len(body) + len(held)]
        header[name] = {"dtype": _CODES[str(array.dtype)], "shape": list(array.shape), "data_offsets": place}
        body += held
    facts = {"format": file.FORMAT, "version": "1", "kind": kind, "facts": archive.facts}
    metadata = {"__metadata__": {"ellipack": "0" * 64 + json.dumps(facts)}}
    text = json.dumps({**metadata, **header}, separators=(",", ":")).encode()
    return signed(len(text).to_bytes(8, "little") + text + body)


def table(n: int) -> pa.Table:
    """Return rows as a table, of which runs are saved here: numbers, texts, some missing, and a label."""
    X, y = stream(n)
    texts = [None if value > 0.8 else "low" if value < 0 else "high" for value in X[:, 2].tolist()]
    return pa.table({"a": X[:, 0], "b": [None if x > 0.7 else x for x in X[:, 1].tolist()], "c": texts, "y": y})


def refused_or_sound(path: Path, X: Floats, y: Floats) -> bool:
    """Load a file; return whether it was refused, and fail unless it was, or holds what works."""
    try:
        kind = read(path)[0]
        if kind.startswith("river."):
            goes_on_with_river(ellipack.river.load(path), path, X, y)
            return False
        if kind == RUN_KIND:
            run = load_run(path)
            learner = run.learner
            if {column.name for column in run.encoder.column_summaries()} <= {
                "a",
                "b",
                "c",
            } and run.encoder.target == "y":
                assert np.isfinite(run.learn_batch(TableBatch.from_table(table(50))).predictions).all()
                run.save(path)
                load_run(path)
                return False
        learner = ellipack.load(path)
    except CheckpointError:
        return True
    if hasattr(learner, "state_"):
        rows = np.resize(X, (len(X), learner.n_features_in_)) / np.sqrt(learner.n_features_in_)
        assert np.isfinite(learner.predict(rows)).all()
        assert np.isfinite(learner.progressive(rows, y)).all()
        learner.save(path)
        assert ellipack.load(path).predict(rows).tobytes() == learner.predict(rows).tobytes()
    return False


def goes_on_with_river(learner: Any, path: Path, X: Floats, y: Floats) -> None:
    """Fail unless one of River's, loaded from a file, predicts and learns, and can be saved and loaded again."""
    names = learner.feature_names or ["a", "b", "c"]
    values = np.resize(X, (len(X), len(names))) / np.sqrt(len(names))
    rows = [dict(zip(names, row, strict=True)) for row in values.tolist()]
    for x, label in zip(rows, y.tolist(), strict=True):
        assert np.isfinite(learner.predict_one(x))
        learner.learn_one(x, label)
    learner.save(path)
    again = ellipack.river.load(path)
    assert [again.predict_one(x) for x in rows] == [learner.predict_one(x) for x in rows]


def limit_memory() -> None:
    """From now on let the system refuse what goes far beyond what is taken already, where it can."""
    taken = Path("/proc/self/statm")
    if taken.exists():
        most = int(taken.read_text().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(first: int, count: int, models: list[Path]) -> None:
    """Try so many seeds on each model."""
    warnings.simplefilter("error")
    X, y = stream(50, seed=1)
    copy = models[0].with_name("copy")
    good = {model: model.read_bytes() for model in models}
    for data in good.values():  # which compiles all that will be needed
        copy.write_bytes(data)
        assert not refused_or_sound(copy, X, y)
    limit_memory()
    for model, data in good.items():
        copy.write_bytes(data)
        saved = read(copy)
        refused = 0
        for seed in range(first, first + count):
            print(f"{model.name}, seed {seed}", flush=True)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            copy.write_bytes(mutated(np.random.default_rng(seed), data, *saved))
            refused += refused_or_sound(copy, X, y)
            faulthandler.cancel_dump_traceback_later()
        print(f"{model.name}: {refused} of {count} refused")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), [Path(path) for path in sys.argv[3:]])
