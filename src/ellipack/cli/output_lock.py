"""Locks on the output files of a command, so that two commands do not write to the same file.

A hidden file ``.NAME.ellipack-lock`` beside an output names the process that writes it. The system releases the lock on
that file when the process ends, however it ends.
"""

import os
import shlex
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ellipack.cli.messages import print_message
from ellipack.errors import EllipackError, StreamError
from ellipack.serialization.atomic_file import hidden_sibling, is_open_at, try_lock

_SUFFIX = "ellipack-lock"
_START = b"ellipack lock: "
_MAX_BYTES = 4096  # of a lock file


@contextmanager
def lock_output(path: str | None, error_type: Callable[[str], EllipackError] = StreamError) -> Iterator[None]:
    """Hold the lock on an output inside a ``with`` block.

    Parameters
    ----------
    path : str or None
        Path of the output. None, ``-``, devices and pipes are not locked.
    error_type : callable, default StreamError
        Makes the error from a message.

    Raises
    ------
    EllipackError
        If another process holds the lock. The message says which. Also if the output has the name of a lock file.
    """
    if path in (None, "-") or (os.path.exists(path) and not os.path.isfile(path)):
        yield
        return
    output = Path(os.path.realpath(path))
    if output.name.endswith(f".{_SUFFIX}"):
        raise error_type(f"{path} can't be written: names that end in .{_SUFFIX} are those of locks")
    lock = hidden_sibling(output, _SUFFIX)
    try:
        descriptor = _open_locked(lock, path, error_type)
    except OSError as error:
        raise error_type(f"{path} can't be written: {error.strerror or error}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(descriptor)


def _open_locked(lock: Path, path: str, error_type: Callable[[str], EllipackError]) -> int:
    """Open, lock and fill a lock file; return its descriptor."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        try:
            if not _is_locked_by_us(descriptor, path):
                raise error_type(f"{path} is in use by {_read_holder(descriptor)}: wait for it, or choose another file")
            if is_open_at(descriptor, lock):  # its last holder may have removed it
                _write_holder(descriptor, lock, path, error_type)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_locked_by_us(descriptor: int, path: str) -> bool:
    """Try to lock a file. Return False if another process holds the lock; warn if the file system has no locks."""
    try:
        return try_lock(descriptor)
    except OSError as error:
        reason = error.strerror or error
        print_message(f"warning: {path} can't be locked ({reason}): make sure that no other command writes to it")
        return True


def _read_holder(descriptor: int) -> str:
    text = os.pread(descriptor, _MAX_BYTES, 0).removeprefix(_START).decode(errors="replace")
    return text or "another process"  # which has not yet filled the file


def _write_holder(descriptor: int, lock: Path, path: str, error_type: Callable[[str], EllipackError]) -> None:
    """Write this process to its lock file. Leave a file alone that is not a lock file."""
    found = os.pread(descriptor, _MAX_BYTES, 0).rstrip(b"\0")  # a power loss may leave zeros
    if not stat.S_ISREG(os.fstat(descriptor).st_mode) or not (found.startswith(_START) or _START.startswith(found)):
        raise error_type(f"{path} can't be locked: {lock} is not a lock file of ellipack: remove it")
    command = shlex.join(["ellipack", *sys.argv[1:]])
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    holder = f"process {os.getpid()} on {socket.gethostname()} since {now} ({command})"
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, (_START + os.fsencode(holder))[:_MAX_BYTES], 0)
