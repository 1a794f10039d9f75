"""One file for one learner: safetensors, its header holding facts and a checksum of the whole file.

The format is that of the safetensors library: the length of a header, the header in JSON, the bytes of the arrays.
Its metadata have one entry, ``ellipack``: 64 hexadecimal digits, the SHA-256 of the file with zeros in their place,
and then JSON with ``format`` (a number; files of any other are refused), ``version`` (of ellipack), ``kind`` (of
learner) and ``facts``. No time and no name of a machine is written: same learner, same bytes.

A file is written beside the one that it replaces, brought to the disk, and only then renamed: whatever happens on the
way, the old file or the new one is there, whole.
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
from ellipack.errors import CheckpointError
from ellipack.serialization.archive import Archive

FORMAT = 1
_KEY = "ellipack"
_NO_DIGEST = "0" * 64
_OPENING = b'{"__metadata__":{"ellipack":"'  # a header begins with this, and then comes the checksum
_PLACE = slice(8 + len(_OPENING), 8 + len(_OPENING) + 64)
_PARTIAL = re.compile(r"\.(\d+)-\d+\.partial$", re.ASCII)  # behind the name: the process that writes there
_LARGEST_HEADER = 100_000_000  # bytes; safetensors refuses more itself


def write(path: str | os.PathLike[str], kind: str, archive: Archive) -> None:
    """Write a file, or leave the one that was there as it was.

    Parameters
    ----------
    path : where; a file that is there is replaced, and a link is followed, so that it stays one.
    kind : what kind of learner this is, by which `read` and its caller know how to go on.
    archive : what to write.
    """
    target = Path(os.path.realpath(path))
    aside = target.with_name(f".{target.name}.{os.getpid()}-{get_ident()}.partial")
    facts = {"format": FORMAT, "version": __version__, "kind": kind, "facts": archive.facts}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    # The library takes the address of an array as it is, whatever its strides.
    arrays = {name: np.ascontiguousarray(array) for name, array in archive.arrays.items()}
    _sweep_the_dead(target)
    try:
        # A folder, since the library goes by a file of its own, with a name of its own, which has to be swept too.
        aside.mkdir()
        partial = aside / "model"
        partial.touch()
        mode = (target if target.exists() else partial).stat().st_mode & 0o777
        save_file(arrays, partial, {_KEY: _NO_DIGEST + text})
        with partial.open("r+b") as file:
            _sign(file)
            os.chmod(partial, mode)
            os.fsync(file.fileno())
        partial.replace(target)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} can't be written, what was there is as it was: {error}") from error
    finally:
        rmtree(aside, ignore_errors=True)
    try:
        _sync_directory(target.parent)
    except OSError as error:
        raise CheckpointError(
            f"{path} is written, but the disk did not confirm its name, which a power cut may undo: {error}"
        ) from error


def read(path: str | os.PathLike[str]) -> tuple[str, Archive]:
    """Return the kind of learner that a file holds, and its archive.

    Nothing is taken from a file but numbers, texts and arrays; one that is not whole to the bit is refused.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # no file has such a name, for one
        raise CheckpointError(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from error
    digest, facts = _header(data, path)
    if _digest(data) != digest:
        raise CheckpointError(f"{path} is damaged: its checksum does not match; use another copy")
    if type(facts.get("format")) is not int or facts["format"] != FORMAT:
        raise CheckpointError(
            f"{path} has format {_shown(facts.get('format'))} (ellipack {_shown(facts.get('version'))}), and this is "
            f"ellipack {__version__}, which reads format {FORMAT}: pip install --upgrade ellipack"
        )
    try:
        arrays = parse(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is no safetensors file: {error}") from error
    whole = Archive(facts)
    return whole.fact("kind", str), Archive(whole.fact("facts", dict), arrays)


def sweep(path: str | os.PathLike[str]) -> None:
    """Remove what writers that were killed have left beside a file; to be called by its only writer."""
    for aside in _asides(Path(os.path.realpath(path))):
        rmtree(aside, ignore_errors=True)


def _sweep_the_dead(target: Path) -> None:
    """Remove what processes that are no more have left beside a file, where that can be told and done."""
    with suppress(OSError):
        for aside in _asides(target):
            writer = _PARTIAL.search(aside.name)
            if writer is not None and not _lives(int(writer[1])):
                rmtree(aside, ignore_errors=True)


def _asides(target: Path) -> list[Path]:
    """Return the folders in which a file is, or was once, being written."""
    return list(target.parent.glob(f".{escape(target.name)}.*.partial"))


def _lives(process: int) -> bool:
    """Return whether there is a process of this number, or may be one."""
    if os.name != "posix":  # where signal 0 is a signal like others
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # one of another user's
        return True
    return True


def _sign(file: BufferedRandom) -> None:
    """Put the checksum of a file in its place."""
    with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        if data[8 : _PLACE.stop] != _OPENING + _NO_DIGEST.encode():
            raise CheckpointError("the checksum has no place: the safetensors library begins a header in another way")
        digest = _digest(data)
    file.seek(_PLACE.start)
    file.write(digest.encode())
    file.flush()


def _header(data: bytes, path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Return the checksum and the facts that a header holds."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(len(data) - 8, _LARGEST_HEADER):
        raise CheckpointError(f"{path} is no model of ellipack, or cut short: {len(data)} bytes")
    if not data.startswith(_OPENING, 8):
        raise CheckpointError(f"{path} is no model of ellipack, or damaged: its header begins with something else")
    try:
        text = json.loads(data[8 : 8 + size])["__metadata__"][_KEY]
        digest, facts = text[:64], json.loads(text[64:])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path} is no model of ellipack, or damaged: its header can't be read") from error
    if not isinstance(facts, dict):
        raise CheckpointError(f"{path} is no model of ellipack, or damaged: its header holds no facts")
    return digest, facts


def _shown(value: object) -> str:
    """Return a value for a message: not too long, and nothing in it that a terminal would obey."""
    return reprlib.repr(value).strip("'")


def _digest(data: bytes | mmap) -> str:
    """Return the checksum of a file in which zeros stand in its place."""
    with memoryview(data) as view, view[: _PLACE.start] as before, view[_PLACE.stop :] as behind:
        whole = hashlib.sha256(before)
        whole.update(_NO_DIGEST.encode())
        whole.update(behind)
    return whole.hexdigest()


def _sync_directory(directory: Path) -> None:
    """Bring a renaming to the disk, where directories can be opened (not on Windows)."""
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
