"""Files of saved models in the safetensors format.

A safetensors file has the length of its header, the header in JSON, and the bytes of the arrays. The metadata in the
header have one entry, ``ellipack``. It begins with a checksum of 64 hexadecimal digits: the SHA-256 of the file with
zeros in place of the digits. JSON follows, with ``format`` (an integer; other formats are refused), ``version`` (of
ellipack) and ``kind`` (of model). The facts are JSON in an array of bytes, because the length of a header is limited.
The file holds no time and no host name, so that equal models have equal bytes.

Writing is atomic (see `atomic_file`). Reading verifies the checksum before it parses anything.
"""

import hashlib
import json
import math
import os
import reprlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellipack._version import __version__
from ellipack.errors import ModelFileError
from ellipack.serialization.archive import Archive
from ellipack.serialization.atomic_file import DirectorySyncError, atomic_file

FORMAT = 1
_KEY = "ellipack"
_FACTS = "facts"  # name of the array that holds the facts
_ZERO_CHECKSUM = "0" * 64
_HEADER_START = b'{"__metadata__":{"ellipack":"'  # the checksum follows
_CHECKSUM_BYTES = slice(8 + len(_HEADER_START), 8 + len(_HEADER_START) + 64)
_LARGEST_HEADER = 100_000_000  # bytes; the limit of other readers of safetensors files
_TYPES: dict[str, np.dtype[Any]] = {"F64": np.dtype(np.float64), "I64": np.dtype(np.int64), "U8": np.dtype(np.uint8)}
_TYPE_CODES = {dtype: code for code, dtype in _TYPES.items()}
_MOST_DIMENSIONS = 32
_ALIGNMENT = 8  # of the arrays


def write(path: str | os.PathLike[str], kind: str, archive: Archive) -> None:
    """Write a file atomically.

    Parameters
    ----------
    path : str or path-like
        Path of the file. An existing file is replaced. If the path is a symbolic link, its target is replaced.
    kind : str
        Kind of the saved model, which `read` returns.
    archive : Archive
        Facts and arrays to write.

    Raises
    ------
    ModelFileError
        If the file cannot be written. An existing file is unchanged then.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(Path(folder) / "model", "Example", Archive({"clock": 3}))
    ...     read(Path(folder) / "model")
    ('Example', Archive(facts={'clock': 3}, arrays={}, prefix=''))
    """
    contents = _contents(kind, archive)
    try:
        with atomic_file(path) as file:
            file.writelines(contents)
    except DirectorySyncError as error:
        raise ModelFileError(f"{path} is written, but a power failure may undo it: {error.strerror}") from error
    except OSError as error:
        reason = error.strerror or error
        raise ModelFileError(f"{path} can't be written; the existing file is unchanged: {reason}") from error


def read(path: str | os.PathLike[str]) -> tuple[str, Archive]:
    """Read a file that `write` wrote.

    A file holds numbers, strings and arrays only. Reading it executes nothing.

    Parameters
    ----------
    path : str or path-like
        Path of the file.

    Returns
    -------
    kind : str
        Kind of the saved model.
    archive : Archive
        Facts and arrays.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is damaged, has another format or is not an ellipack model.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        raise ModelFileError(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from error
    return unpack(data, path)


def pack(kind: str, archive: Archive) -> bytes:
    """Return the contents of the file that `write` would write.

    Parameters
    ----------
    kind : str
        Kind of the saved model, which `unpack` returns.
    archive : Archive
        Facts and arrays.

    Returns
    -------
    data : bytes

    Examples
    --------
    >>> unpack(pack("Example", Archive({"clock": 3})), "an example")
    ('Example', Archive(facts={'clock': 3}, arrays={}, prefix=''))
    """
    return b"".join(_contents(kind, archive))


def unpack(data: bytes, path: str | os.PathLike[str]) -> tuple[str, Archive]:
    """Return the kind and the archive in the contents of a file.

    Parameters
    ----------
    data : bytes
        Result of `pack`.
    path : str or path-like
        Name of the contents, for messages.

    Returns
    -------
    kind : str
        Kind of the saved model.
    archive : Archive
        Facts and arrays.

    Raises
    ------
    ModelFileError
        If the contents are damaged, have another format or are not an ellipack model.
    """
    header = _verified_header(data, path)
    metadata = _metadata(header, path)
    if type(metadata.get("format")) is not int or metadata["format"] != FORMAT:
        raise ModelFileError(
            f"{path} has format {_shortened(metadata.get('format'))} (ellipack "
            f"{_shortened(metadata.get('version'))}), but ellipack {__version__} reads format {FORMAT}: "
            "pip install --upgrade ellipack"
        )
    try:
        arrays = _parse_arrays(header, data)
    except (ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} is not a safetensors file: {error}") from error
    kind = Archive(metadata).fact("kind", str)
    return kind, Archive.from_full_names(_decode_facts(arrays.pop(_FACTS, None), path), arrays)


def verify(data: bytes, path: str | os.PathLike[str]) -> None:
    """Raise `ModelFileError` unless the contents of a file have the checksum that was written."""
    _verified_header(data, path)


def _contents(kind: str, archive: Archive) -> list[bytearray | memoryview]:
    """Return the header with the checksum, and then the arrays, which are not copied on little-endian machines."""
    arrays = _all_arrays(archive)
    header = bytearray(_encode_header(kind, arrays))
    sha = hashlib.sha256(header)
    contents: list[bytearray | memoryview] = [header]
    for array in arrays.values():
        flat = array.reshape(-1).astype(array.dtype.newbyteorder("<"), copy=False).data
        sha.update(flat)
        contents.append(flat)
    header[_CHECKSUM_BYTES] = sha.hexdigest().encode()
    return contents


def _all_arrays(archive: Archive) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive in their order in a file, and its facts as an array of bytes."""
    text = json.dumps(archive.facts, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    # A path that is not UTF-8 has surrogates.
    facts = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    return {name: np.ascontiguousarray(array) for name, array in sorted(archive.arrays_by_full_name().items())} | {
        _FACTS: facts
    }


def _encode_header(kind: str, arrays: dict[str, NDArray[Any]]) -> bytes:
    """Return the header, with zeros as checksum, preceded by its length."""
    metadata = json.dumps({"format": FORMAT, "kind": kind, "version": __version__}, separators=(",", ":"))
    header: dict[str, Any] = {"__metadata__": {_KEY: _ZERO_CHECKSUM + metadata}}
    start = 0
    for name, array in arrays.items():
        place = [start, start + array.nbytes]
        header[name] = {"dtype": _TYPE_CODES[array.dtype], "shape": array.shape, "data_offsets": place}
        start = place[1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def _verified_header(data: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a file whose checksum matches."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(len(data) - 8, _LARGEST_HEADER):
        raise ModelFileError(f"{path} is not an ellipack model, or is truncated: {len(data)} bytes")
    if not data.startswith(_HEADER_START, 8):
        raise ModelFileError(f"{path} is not an ellipack model, or is damaged: its header begins differently")
    if _checksum(data) != data[_CHECKSUM_BYTES].decode("ascii", "replace"):
        raise ModelFileError(f"{path} is damaged: its checksum does not match; use another copy")
    try:
        header: dict[str, Any] = json.loads(data[8 : 8 + size])  # a dictionary, as it begins with {
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not an ellipack model, or is damaged: its header can't be read") from error
    return header


def _metadata(header: dict[str, Any], path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the metadata in a header."""
    try:
        metadata = json.loads(header["__metadata__"][_KEY][len(_ZERO_CHECKSUM) :])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{path} is not an ellipack model, or is damaged: its header can't be read") from error
    if not isinstance(metadata, dict):
        raise ModelFileError(f"{path} is not an ellipack model, or is damaged: its header has no metadata")
    return metadata


def _parse_arrays(header: dict[str, Any], data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays that a header describes, as views of the file; together they are all bytes that follow it.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the header does not describe such arrays.
    """
    arrays = {}
    first = end = 8 + int.from_bytes(data[:8], "little")
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape = _TYPES[entry["dtype"]], _checked_shape(entry["shape"])
        count = math.prod(shape)
        start, end = end, end + dtype.itemsize * count
        if end > len(data) or entry["data_offsets"] != [start - first, end - first]:
            raise ValueError(f"the array {_shortened(name)} must begin where the one before it ends")
        array = np.frombuffer(data, dtype.newbyteorder("<"), count, start)
        arrays[name] = array.astype(dtype, copy=False).reshape(shape)
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes follow the last array")
    return arrays


def _checked_shape(shape: object) -> list[int]:
    """Return a shape, if it is a list of counts."""
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        raise ValueError("a shape must be a short list")
    if not all(type(length) is int and 0 <= length < 2**63 for length in shape):
        raise ValueError(f"a shape must have counts, got {_shortened(shape)}")
    return shape


def _decode_facts(array: NDArray[Any] | None, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the facts that an array of bytes holds as JSON."""
    try:
        facts = None if array is None else json.loads(array.tobytes().decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not an ellipack model, or is damaged: its facts can't be read") from error
    return dict(Archive({_FACTS: facts}).fact(_FACTS, dict))


def _shortened(value: object) -> str:
    """Return a short representation without control characters."""
    return reprlib.repr(value).strip("'")


def _checksum(data: bytes) -> str:
    """Return the SHA-256 of a file with zeros in place of its checksum."""
    with memoryview(data) as view, view[: _CHECKSUM_BYTES.start] as before, view[_CHECKSUM_BYTES.stop :] as after:
        sha = hashlib.sha256(before)
        sha.update(_ZERO_CHECKSUM.encode())
        sha.update(after)
    return sha.hexdigest()
