"""Replace a file atomically: write a temporary file beside it, sync it to disk, and rename it.

The temporary file is called ``.NAME.TOKEN.partial``, with 16 hexadecimal digits as token. Its writer holds a lock on
it, which the system releases when the process ends, however it ends. A temporary file without a lock is therefore a
leftover of a dead writer. Nothing else is ever removed.
"""

import hashlib
import os
import re
import stat
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

_MAX_NAME_BYTES = 255  # on all common file systems
_BUFFER_BYTES = 1 << 20  # so that the many small arrays of a model take few system calls
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


class DirectorySyncError(OSError):
    """A file was replaced, but its directory could not be synced, so that a power failure may undo it."""


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file, which replaces `path` if the ``with`` block ends without an exception.

    Parameters
    ----------
    path : str or path-like
        Path of the file. If it is a symbolic link, its target is replaced.

    Yields
    ------
    file : binary file
        The new file, open for reading and writing.

    Raises
    ------
    DirectorySyncError
        If the file was replaced, but a power failure may undo it.
    OSError
        If the file cannot be written, or `path` is not a regular file. What is there is unchanged then.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_file(f"{folder}/greeting") as file:
    ...         _ = file.write(b"hello")
    ...     print(os.listdir(folder))
    ['greeting']
    """
    target = Path(os.path.realpath(path))
    check_is_replaceable(target)
    _remove_leftovers(target)
    is_replaced = False
    while not is_replaced:
        is_replaced = yield from _replace(target)
    try:
        sync_directory(target.parent)
    except OSError as error:
        raise DirectorySyncError(error.errno, f"its directory could not be synced: {error.strerror}") from error


def write_file(path: Path, data: bytes) -> None:
    """Write a file, atomically unless it is a device or a pipe, which can't be replaced."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    with atomic_file(path) as file:
        file.write(data)


def check_is_replaceable(path: Path) -> None:
    """Raise OSError if a path exists and is not a regular file: a rename would destroy a device or a pipe."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise OSError(f"it is {_KINDS.get(stat.S_IFMT(mode), 'no regular file')}, not a regular file")


def hidden_sibling(path: Path, suffix: str) -> Path:
    """Return the path ``.NAME.SUFFIX`` beside a file. If that name is too long, a digest replaces NAME.

    Examples
    --------
    >>> hidden_sibling(Path("a/model"), "lock").as_posix()
    'a/.model.lock'
    >>> len(hidden_sibling(Path("a" * 255), "lock").name)
    38
    """
    name = os.fsencode(path.name)
    if len(name) + len(suffix) + 2 > _MAX_NAME_BYTES:
        return path.with_name(f".{hashlib.sha256(name).hexdigest()[:32]}.{suffix}")
    return path.with_name(f".{path.name}.{suffix}")


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed. Return False if another process or descriptor holds the lock.

    Raises
    ------
    OSError
        If the file system has no locks. On Windows there are none.
    """
    if sys.platform == "win32":
        raise OSError("files can't be locked on Windows")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_open_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def sync_directory(directory: Path) -> None:
    """Sync a directory to disk, on systems that allow it (not on Windows)."""
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _replace(target: Path) -> Generator[BinaryIO, None, bool]:
    """Yield a new temporary file beside a target, then rename it. Return False if another writer has removed it."""
    partial = hidden_sibling(target, f"{token_hex(8)}.partial")
    try:
        with partial.open("x+b", buffering=_BUFFER_BYTES) as file:
            if not _lock_new(file, partial):
                return False
            yield file
            file.flush()
            if target.exists():
                os.chmod(partial, target.stat().st_mode & 0o777)
            os.fsync(file.fileno())
            check_is_replaceable(target)
            if os.name == "nt":  # where open files can't be renamed
                file.close()
            partial.replace(target)
    except FileExistsError:  # another writer has drawn the same token
        raise
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    return True


def _lock_new(file: BinaryIO, partial: Path) -> bool:
    """Lock a new file, if the file system has locks.

    Return False if another writer took it for a leftover, before it was locked, and has removed it or will.
    """
    try:
        is_locked = try_lock(file.fileno())
    except OSError:  # the file system has no locks
        is_locked = True
    return is_locked and is_open_at(file.fileno(), partial)


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary files that dead writers left beside a target, as far as permissions and locks allow."""
    prefix, suffix = hidden_sibling(target, f"{'?' * 16}.partial").name.split("?" * 16)
    pattern = re.compile(re.escape(prefix) + "[0-9a-f]{16}" + re.escape(suffix))
    with suppress(OSError):
        for entry in list(os.scandir(target.parent)):
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_if_unlocked(Path(entry.path))


def _remove_if_unlocked(partial: Path) -> None:
    with suppress(OSError), partial.open("rb") as file:
        if try_lock(file.fileno()) and is_open_at(file.fileno(), partial):
            partial.unlink()
