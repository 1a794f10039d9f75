"""Make hostile model files, with valid checksums, and load them in a process with limited memory and time.

    python -m tests.fuzz.hostile_files FIRST COUNT MODEL...

mutates each MODEL with COUNT seeds, starting at FIRST. Loading a mutated file must raise `ModelFileError`, or return a
learner that predicts finite numbers, learns 50 more rows, and can be saved and loaded again. Each attempt is printed
before it starts, so that the output names the file even if the process crashes.

Some mutations change arbitrary bytes. Others change a number, a fact, a shape or a name.
"""

import faulthandler
import json
import resource
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import ellipack
import ellipack.river
from ellipack.errors import ModelFileError
from ellipack.estimators.loading import RUN_KIND
from ellipack.evaluation.run import load_run
from ellipack.serialization import file, read
from ellipack.tabular import TableBatch
from ellipack.validation import Floats
from tests.entry_points.learners import stream

FLOATS = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e150, 1e-150, 1e-308, 5e-324]
FLOATS += [1e60, -1e60, 1e140, 2.0**62, 0.5, 1 + 1e-12, 1e6, 1e9]
INTS = [0, 1, -1, 2, 17, 2**31, 2**53, 2**62, 2**63 - 1, -(2**63)]
FACTS: list[Any] = [
    None,
    True,
    "",
    "text",
    "MetricRegressor",
    "LocalSlopes",
    [],
    {},
    [1.0],
    [[]],
    1,
    0,
    -1,
    3,
    64,
    0.5,
    1e-300,
]
FACTS += [
    1e300,
    10**6,
    10**18,
    2**62,
    2**63,
    10**400,
    -(10**400),
    float("nan"),
    float("inf"),
    {"kind": "plain", "value": 1},
]

Random = np.random.Generator


class Contents(NamedTuple):
    """Facts, and arrays by full name, which may contradict each other."""

    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def with_checksum(data: bytes) -> bytes:
    """Return a file with a valid checksum."""
    place = file._CHECKSUM_BYTES
    blank = data[: place.start] + b"0" * 64 + data[place.stop :]
    return blank[: place.start] + file._checksum(blank).encode() + blank[place.stop :]


def flip_bytes(rng: Random, data: bytes) -> bytes:
    """Change a few bytes after the checksum."""
    changed = bytearray(data)
    for at in rng.integers(file._CHECKSUM_BYTES.stop, len(data), size=rng.integers(1, 4)):
        changed[at] = rng.choice([0, 0xFF, 0x7F, int(rng.integers(256)), changed[at] ^ (1 << int(rng.integers(8)))])
    return with_checksum(bytes(changed))


def flip_header(rng: Random, data: bytes) -> bytes:
    """Change a byte of the header: a digit to another digit, or any byte to any character."""
    size = 8 + int.from_bytes(data[:8], "little")
    changed = bytearray(data)
    digits = [at for at in range(file._CHECKSUM_BYTES.stop, size) if chr(data[at]).isdigit()]
    if digits and rng.random() < 0.8:
        changed[digits[rng.integers(len(digits))]] = ord("0") + int(rng.integers(10))
    else:
        changed[rng.integers(file._CHECKSUM_BYTES.stop, size)] = int(rng.integers(32, 127))
    return with_checksum(bytes(changed))


def cut(rng: Random, data: bytes) -> bytes:
    """Remove or duplicate a range of bytes."""
    a, b = np.sort(rng.integers(file._CHECKSUM_BYTES.stop, len(data), size=2))
    return with_checksum(data[:a] + data[b:] if rng.random() < 0.5 else data[:b] + data[a:])


def change_array(rng: Random, contents: Contents) -> Contents:
    """Write a hostile number to an element, a row or all of an array."""
    names = sorted(name for name, array in contents.arrays.items() if array.size)
    if not names:
        return contents
    name = names[rng.integers(len(names))]
    array = np.array(contents.arrays[name])
    values: list[Any] = INTS if array.dtype.kind == "i" else FLOATS
    value = values[rng.integers(len(values))]
    flat: NDArray[Any] = array.reshape(-1)
    match rng.integers(4):
        case 0:
            flat[:] = value
        case 1:
            array[rng.integers(len(array))] = value
        case 2 if array.dtype.kind == "f" and np.isfinite(value):
            with np.errstate(over="ignore"):
                array *= value
        case _:
            flat[rng.integers(len(flat))] = value
    return contents._replace(arrays={**contents.arrays, name: array})


def change_shape(rng: Random, contents: Contents) -> Contents:
    """Change the shape or the type of an array."""
    names = sorted(contents.arrays)
    name = names[rng.integers(len(names))]
    array = contents.arrays[name]
    ways: list[Callable[[], NDArray[Any]]] = [
        lambda: np.concatenate([array, array]),
        lambda: array[: len(array) // 2],
        lambda: array[:0],
        lambda: array[..., None],
        lambda: array[..., :1],
        lambda: np.empty((0, 10**9)),
        lambda: np.empty((10**9, 0)),
        lambda: np.zeros((1, 10**5)),
        lambda: array.astype(np.int64 if array.dtype.kind == "f" else np.float64),
        lambda: array.astype(np.float32),
    ]
    with np.errstate(all="ignore"):
        return contents._replace(arrays={**contents.arrays, name: ways[rng.integers(len(ways))]()})


def change_fact(rng: Random, contents: Contents) -> Contents:
    """Replace or remove a fact at any depth."""
    facts = json.loads(json.dumps(contents.facts))
    every = list(places(facts))
    inside, key = every[rng.integers(len(every))]
    if rng.random() < 0.1 and isinstance(inside, dict):
        del inside[key]
    else:
        inside[key] = FACTS[rng.integers(len(FACTS))]
    return contents._replace(facts=facts)


def swap(rng: Random, contents: Contents) -> Contents:
    """Replace an array by another one."""
    names = sorted(contents.arrays)
    one, other = (names[i] for i in rng.integers(len(names), size=2))
    return contents._replace(arrays={**contents.arrays, one: contents.arrays[other]})


def rename(rng: Random, contents: Contents) -> Contents:
    """Move an array to another part, or to the place of a part."""
    names = sorted(contents.arrays)
    one, other = (names[i] for i in rng.integers(len(names), size=2))
    part = other.rpartition("/")[0]
    ways = [part, f"{part}/", f"{other}/{one}", f"{part}/{one}", f"/{one}", f"none/{one}", "a/" * 1000 + one]
    arrays = {name: array for name, array in contents.arrays.items() if name != one}
    return contents._replace(arrays={**arrays, ways[rng.integers(len(ways))]: contents.arrays[one]})


def places(facts: Any) -> Any:
    entries = facts.items() if isinstance(facts, dict) else enumerate(facts)
    for key, value in entries:
        yield facts, key
        if isinstance(value, dict | list):
            yield from places(value)


BYTE_MUTATIONS = [flip_bytes, flip_header, cut]
STRUCTURED_MUTATIONS = [change_array, change_array, change_array, change_fact, change_fact, change_shape, swap, rename]


EXTRA_MEMORY = 2**30
"""Bytes that loading a hostile file may allocate beyond the memory in use."""

TIMEOUT_SECONDS = 100
"""Time limit per file. Loading a valid file takes milliseconds."""

_CODES = {"float64": "F64", "int64": "I64", "float32": "F32", "uint8": "U8"}


def mutate_file(rng: Random, data: bytes, kind: str, contents: Contents) -> bytes:
    """Return a mutated copy of a valid file."""
    if rng.random() < 0.25:
        return BYTE_MUTATIONS[rng.integers(len(BYTE_MUTATIONS))](rng, data)
    for _ in range(rng.integers(1, 3)):
        contents = STRUCTURED_MUTATIONS[rng.integers(len(STRUCTURED_MUTATIONS))](rng, contents)
    return pack(kind, contents)


def pack(kind: str, contents: Contents) -> bytes:
    """Return a file with a valid checksum, even if the writer would refuse its contents."""
    header: dict[str, Any] = {}
    body = b""
    facts = np.frombuffer(json.dumps(contents.facts).encode(), np.uint8)
    for name, array in (contents.arrays | {"facts": facts}).items():
        held = np.ascontiguousarray(array).tobytes()
        place = [len(body), len(body) + len(held)]
        header[name] = {"dtype": _CODES[str(array.dtype)], "shape": list(array.shape), "data_offsets": place}
        body += held
    facts_of_file = {"format": file.FORMAT, "version": "1", "kind": kind}
    metadata = {"__metadata__": {"ellipack": "0" * 64 + json.dumps(facts_of_file)}}
    text = json.dumps({**metadata, **header}, separators=(",", ":")).encode()
    return with_checksum(len(text).to_bytes(8, "little") + text + body)


def table(n: int) -> pa.Table:
    """Return a table with numbers, categories, missing values and a label."""
    X, y = stream(n)
    texts = [None if value > 0.8 else "low" if value < 0 else "high" for value in X[:, 2].tolist()]
    return pa.table({"a": X[:, 0], "b": [None if x > 0.7 else x for x in X[:, 1].tolist()], "c": texts, "y": y})


def is_refused(path: Path, X: Floats, y: Floats) -> bool:
    """Load a file. Return whether it was refused; if not, check that the learner works."""
    try:
        kind = read(path)[0]
        if kind.startswith("river."):
            check_river_learner(ellipack.river.load(path), path, X, y)
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
    except ModelFileError:
        return True
    if hasattr(learner, "state_"):
        rows = np.resize(X, (len(X), learner.n_features_in_)) / np.sqrt(learner.n_features_in_)
        if isinstance(learner, ellipack.PackingClassifier):
            assert np.isfinite(learner.predict_proba(rows)).all()
            learner.progressive(rows, np.resize(learner.classes_, len(y)))
        else:
            assert np.isfinite(learner.predict(rows)).all()
            assert np.isfinite(learner.progressive(rows, y)).all()
        learner.save(path)
        assert ellipack.load(path).predict(rows).tolist() == learner.predict(rows).tolist()
    return False


def check_river_learner(learner: Any, path: Path, X: Floats, y: Floats) -> None:
    """Check that a loaded River learner predicts and learns, and can be saved and loaded again."""
    names = learner.feature_names or ["a", "b", "c"]
    values = np.resize(X, (len(X), len(names))) / np.sqrt(len(names))
    by = getattr(learner, "by", None)
    keys = dict.fromkeys(by if isinstance(by, list | tuple) else [by], "key") if by is not None else {}
    rows = [{**keys, **dict(zip(names, row, strict=True))} for row in values.tolist()]
    for x, label in zip(rows, y.tolist(), strict=True):
        assert np.isfinite(learner.predict_one(x))
        learner.learn_one(x, label)
    learner.save(path)
    again = ellipack.river.load(path)
    assert [again.predict_one(x) for x in rows] == [learner.predict_one(x) for x in rows]


def limit_memory() -> None:
    """Limit the memory of the process to the memory in use plus `EXTRA_MEMORY`, on systems that support it."""
    taken = Path("/proc/self/statm")
    if taken.exists():
        most = int(taken.read_text().split()[0]) * resource.getpagesize() + EXTRA_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(first: int, count: int, models: list[Path]) -> None:
    """Load mutated copies of each model, for `count` seeds."""
    warnings.simplefilter("error")
    X, y = stream(50, seed=1)
    copy = models[0].with_name("copy")
    good = {model: model.read_bytes() for model in models}
    for data in good.values():  # valid files must load, and this imports everything before memory is limited
        copy.write_bytes(data)
        assert not is_refused(copy, X, y)
    limit_memory()
    for model, data in good.items():
        copy.write_bytes(data)
        kind, archive = read(copy)
        contents = Contents(archive.facts, archive.arrays_by_full_name())
        refused = 0
        for seed in range(first, first + count):
            print(f"{model.name}, seed {seed}", flush=True)
            faulthandler.dump_traceback_later(TIMEOUT_SECONDS, exit=True)
            copy.write_bytes(mutate_file(np.random.default_rng(seed), data, kind, contents))
            refused += is_refused(copy, X, y)
            faulthandler.cancel_dump_traceback_later()
        print(f"{model.name}: {refused} of {count} refused")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), [Path(path) for path in sys.argv[3:]])
