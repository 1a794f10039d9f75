"""What a hostile author makes of a good model file: its checksum is right, its numbers are not.

Some of these change bytes wherever they are, others know what a file holds and change a number, a fact or a shape.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellipack.serialization import Archive, file

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


def signed(data: bytes) -> bytes:
    """Return a file with its checksum made right."""
    place = file._CHECKSUM_BYTES
    blank = data[: place.start] + b"0" * 64 + data[place.stop :]
    return blank[: place.start] + file._checksum(blank).encode() + blank[place.stop :]


def flip_bytes(rng: Random, data: bytes) -> bytes:
    """Change a few bytes, behind the checksum."""
    changed = bytearray(data)
    for at in rng.integers(file._CHECKSUM_BYTES.stop, len(data), size=rng.integers(1, 4)):
        changed[at] = rng.choice([0, 0xFF, 0x7F, int(rng.integers(256)), changed[at] ^ (1 << int(rng.integers(8)))])
    return signed(bytes(changed))


def flip_header(rng: Random, data: bytes) -> bytes:
    """Change a byte of the header: digits to digits, or anything to anything."""
    size = 8 + int.from_bytes(data[:8], "little")
    changed = bytearray(data)
    digits = [at for at in range(file._CHECKSUM_BYTES.stop, size) if chr(data[at]).isdigit()]
    if digits and rng.random() < 0.8:
        changed[digits[rng.integers(len(digits))]] = ord("0") + int(rng.integers(10))
    else:
        changed[rng.integers(file._CHECKSUM_BYTES.stop, size)] = int(rng.integers(32, 127))
    return signed(bytes(changed))


def cut(rng: Random, data: bytes) -> bytes:
    """Leave out, or double, a stretch of bytes."""
    a, b = np.sort(rng.integers(file._CHECKSUM_BYTES.stop, len(data), size=2))
    return signed(data[:a] + data[b:] if rng.random() < 0.5 else data[:b] + data[a:])


def change_array(rng: Random, archive: Archive) -> Archive:
    """Put hostile numbers into an array: one, a row, or all."""
    names = sorted(name for name, array in archive.arrays.items() if array.size)
    if not names:
        return archive
    name = names[rng.integers(len(names))]
    array = np.array(archive.arrays[name])
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
    return Archive(archive.facts, {**archive.arrays, name: array})


def change_shape(rng: Random, archive: Archive) -> Archive:
    """Make an array longer, shorter, empty, wider, or of another kind."""
    names = sorted(archive.arrays)
    name = names[rng.integers(len(names))]
    array = archive.arrays[name]
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
        return Archive(archive.facts, {**archive.arrays, name: ways[rng.integers(len(ways))]()})


def change_fact(rng: Random, archive: Archive) -> Archive:
    """Replace a fact, however deep, or take it away."""
    facts = json.loads(json.dumps(archive.facts))
    places = list(_places(facts))
    inside, key = places[rng.integers(len(places))]
    if rng.random() < 0.1 and isinstance(inside, dict):
        del inside[key]
    else:
        inside[key] = FACTS[rng.integers(len(FACTS))]
    return Archive(facts, archive.arrays)


def swap(rng: Random, archive: Archive) -> Archive:
    """Let an array stand in for another."""
    names = sorted(archive.arrays)
    one, other = (names[i] for i in rng.integers(len(names), size=2))
    return Archive(archive.facts, {**archive.arrays, one: archive.arrays[other]})


def _places(facts: Any) -> Any:
    entries = facts.items() if isinstance(facts, dict) else enumerate(facts)
    for key, value in entries:
        yield facts, key
        if isinstance(value, dict | list):
            yield from _places(value)


RAW = [flip_bytes, flip_header, cut]
KNOWING = [change_array, change_array, change_array, change_fact, change_fact, change_shape, swap]
