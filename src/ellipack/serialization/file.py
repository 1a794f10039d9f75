"""Files of saved models in the safetensors format.

A safetensors file has the length of its header, the header in JSON, and the bytes of the arrays. The metadata in the
header have one entry, ``ellipack``. It begins with a checksum of 64 hexadecimal digits: the SHA-256 of the file with
zeros in place of the digits. JSON follows, with ``format`` (an integer; other formats are refused), ``version`` (of
ellipack), ``kind`` (of model) and ``facts``. The file holds no time and no host name, so that equal models have equal
bytes.

Writing is atomic. A new file is written next to the old one, synced to disk and then renamed. After a failure either
the old or the new file is there, complete.
"""

import hashlib
import json
import os
import re
import reprlib
from contextlib import suppress
from glob import escape
from io import BufferedRandom
from mmap import ACCESS_READ, mmap
from pathlib import Path
from shutil import rmtree
from threading import get_ident
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse
from safetensors.numpy import save_file

from ellipack._version import __version__
from ellipack.errors import ModelFileError
from ellipack.serialization.archive import Archive

FORMAT = 1
_KEY = "ellipack"
_ZERO_CHECKSUM = "0" * 64
_HEADER_START = b'{"__metadata__":{"ellipack":"'  # the checksum follows
_CHECKSUM_BYTES = slice(8 + len(_HEADER_START), 8 + len(_HEADER_START) + 64)
_WRITER_ID = re.compile(r"\.(\d+)-\d+\.partial$", re.ASCII)  # captures the id of the writing process
_LARGEST_HEADER = 100_000_000  # bytes; safetensors refuses more itself


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
    target = Path(os.path.realpath(path))
    partial_directory = target.with_name(f".{target.name}.{os.getpid()}-{get_ident()}.partial")
    facts = {"format": FORMAT, "version": __version__, "kind": kind, "facts": archive.facts}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    # safetensors ignores strides.
    arrays = {name: np.ascontiguousarray(array) for name, array in archive.arrays.items()}
    _remove_partial_files_of_dead_processes(target)
    try:
        # A directory, because safetensors writes a temporary file of its own, which must be removed too.
        partial_directory.mkdir()
        partial = partial_directory / "model"
        partial.touch()
        mode = (target if target.exists() else partial).stat().st_mode & 0o777
        save_file(arrays, partial, {_KEY: _ZERO_CHECKSUM + text})
        with partial.open("r+b") as file:
            _write_checksum(file)
            os.chmod(partial, mode)
            os.fsync(file.fileno())
        partial.replace(target)
    except (OSError, SafetensorError) as error:
        raise ModelFileError(f"{path} can't be written; the existing file is unchanged: {error}") from error
    finally:
        rmtree(partial_directory, ignore_errors=True)
    try:
        _sync_directory(target.parent)
    except OSError as error:
        raise ModelFileError(
            f"{path} is written, but its directory entry could not be synced; a power failure may undo it: {error}"
        ) from error


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
    checksum, facts = _header(data, path)
    if _checksum(data) != checksum:
        raise ModelFileError(f"{path} is damaged: its checksum does not match; use another copy")
    if type(facts.get("format")) is not int or facts["format"] != FORMAT:
        raise ModelFileError(
            f"{path} has format {_shortened(facts.get('format'))} (ellipack {_shortened(facts.get('version'))}), but "
            f"ellipack {__version__} reads format {FORMAT}: pip install --upgrade ellipack"
        )
    try:
        arrays = parse(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} is not a safetensors file: {error}") from error
    whole = Archive(facts)
    return whole.fact("kind", str), Archive(whole.fact("facts", dict), arrays)


def remove_partial_files(path: str | os.PathLike[str]) -> None:
    """Remove the partial files that killed writers left next to a file.

    Call it only if no other thread or process writes to the same path.

    Parameters
    ----------
    path : str or path-like
        Path of the file itself, which is not changed.
    """
    for partial_directory in _partial_directories(Path(os.path.realpath(path))):
        rmtree(partial_directory, ignore_errors=True)


def _remove_partial_files_of_dead_processes(target: Path) -> None:
    """Remove the partial files of processes that no longer run, as far as permissions allow."""
    with suppress(OSError):
        for partial_directory in _partial_directories(target):
            writer = _WRITER_ID.search(partial_directory.name)
            if writer is not None and not _may_be_running(int(writer[1])):
                rmtree(partial_directory, ignore_errors=True)


def _partial_directories(target: Path) -> list[Path]:
    """Return the directories of partial files of a target."""
    return list(target.parent.glob(f".{escape(target.name)}.*.partial"))


def _may_be_running(process: int) -> bool:
    """Return False if no process has this id, and True if one has or if that is unknown."""
    if os.name != "posix":  # elsewhere signal 0 is not a test
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # such as a process of another user
        return True
    return True


def _write_checksum(file: BufferedRandom) -> None:
    """Replace the zeros in the header of a file with its checksum."""
    with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        if data[8 : _CHECKSUM_BYTES.stop] != _HEADER_START + _ZERO_CHECKSUM.encode():
            raise ModelFileError("the checksum has no place: this version of safetensors begins headers differently")
        checksum = _checksum(data)
    file.seek(_CHECKSUM_BYTES.start)
    file.write(checksum.encode())
    file.flush()


def _header(data: bytes, path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Return the checksum and the facts of a header."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(len(data) - 8, _LARGEST_HEADER):
        raise ModelFileError(f"{path} is not an ellipack model, or is truncated: {len(data)} bytes")
    if not data.startswith(_HEADER_START, 8):
        raise ModelFileError(f"{path} is not an ellipack model, or is damaged: its header begins differently")
    try:
        text = json.loads(data[8 : 8 + size])["__metadata__"][_KEY]
        checksum, facts = text[:64], json.loads(text[64:])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{path} is not an ellipack model, or is damaged: its header can't be read") from error
    if not isinstance(facts, dict):
        raise ModelFileError(f"{path} is not an ellipack model, or is damaged: its header has no facts")
    return checksum, facts


def _shortened(value: object) -> str:
    """Return a short representation without control characters."""
    return reprlib.repr(value).strip("'")


def _checksum(data: bytes | mmap) -> str:
    """Return the SHA-256 of a file with zeros in place of its checksum."""
    with memoryview(data) as view, view[: _CHECKSUM_BYTES.start] as before, view[_CHECKSUM_BYTES.stop :] as after:
        sha = hashlib.sha256(before)
        sha.update(_ZERO_CHECKSUM.encode())
        sha.update(after)
    return sha.hexdigest()


def _sync_directory(directory: Path) -> None:
    """Sync a directory to disk, on systems that allow it (not on Windows)."""
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
