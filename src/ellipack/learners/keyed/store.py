"""Learners of many keys: the most recently used in memory, the others in files.

A file is a packed learner (`KeyLearner.pack`), with a checksum that is verified when it is read. Files are in a new
folder, which is removed with its owner. They are not synced to disk, because they do not outlive the process.

A learner is removed from memory after its file is written. If it can't be written, the learner stays in memory. A file
stays as long as its learner has not changed, so that a learner that only predicts is written once.
"""

import os
import shutil
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from ellipack.errors import ModelFileError
from ellipack.learners.keyed.key_learner import KeyLearner


class StoreLimits(NamedTuple):
    """Where learners are kept.

    Attributes
    ----------
    max_learners : int
        Largest number of learners in memory.
    folder : str or None
        Folder in which the folder of files is created; None for that of the system for temporary files.
    """

    max_learners: int
    folder: str | None


class _ScratchFolder:
    """New folder, which is removed when this object is deleted or the process ends."""

    def __init__(self, parent: str | None) -> None:
        try:
            self.path = Path(mkdtemp(prefix="ellipack-", dir=parent))
        except OSError as error:
            place = "the folder for temporary files" if parent is None else parent
            raise ModelFileError(f"{place} can't hold the learners of keys: {error.strerror or error}") from error
        weakref.finalize(self, _remove_folder, self.path, os.getpid())


def _remove_folder(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # and not a forked child
        shutil.rmtree(path, ignore_errors=True)


class LearnerStore:
    """Learners by key. It needs a lock if several threads use it.

    Parameters
    ----------
    packed : mapping of int to bytes, default {}
        Learners that were packed by another store. They are unpacked when they are used.
    """

    def __init__(self, packed: dict[int, bytes] | None = None) -> None:
        self._recent: OrderedDict[int, KeyLearner | bytes] = OrderedDict(packed or {})  # least recently used first
        self._files: dict[int, Path] = {}
        self._folders: dict[tuple[str | None, int], _ScratchFolder] = {}

    @property
    def n_on_disk(self) -> int:
        """Number of learners in files only."""
        return len(self._files.keys() - self._recent.keys())

    def fetch(self, keys: Iterable[int], limits: StoreLimits, features: int) -> dict[int, KeyLearner]:
        """Return the learners of those keys that have one, after others have made room for all these keys.

        Parameters
        ----------
        keys : iterable of int
            Different keys, at most `limits.max_learners`.
        limits : StoreLimits
            Where learners are kept.
        features : int
            Number of features.

        Raises
        ------
        ModelFileError
            If a file can't be written, or is lost or damaged. No learner is lost or changed.
        """
        wanted = list(keys)
        self._make_room(set(wanted), limits)
        found = {}
        for key in wanted:
            if key in self._recent or key in self._files:
                found[key] = self._recent[key] = self._read(key, features)
                self._recent.move_to_end(key)
        return found

    def put(self, learners: Mapping[int, KeyLearner | bytes]) -> None:
        """Store learners that have learned, packed or not. If `fetch` has made no room, the next one makes it."""
        for key, learner in learners.items():
            self._recent[key] = learner
            self._recent.move_to_end(key)
            file = self._files.pop(key, None)
            if file is not None and file.parent in [each.path for each in self._own_folders()]:
                with suppress(OSError):
                    file.unlink()

    def pack(self, key: int) -> bytes:
        """Return the packed learner of a key."""
        learner = self._recent.get(key)
        if learner is None:
            return self._read_file(key)
        return learner if isinstance(learner, bytes) else learner.pack()

    def _make_room(self, wanted: set[int], limits: StoreLimits) -> None:
        """Move learners that are not wanted to disk, until there is room for those that are."""
        surplus = len(self._recent.keys() | wanted) - limits.max_learners
        for key in [each for each in self._recent if each not in wanted][: max(0, surplus)]:
            if key not in self._files:
                self._files[key] = self._write_file(key, limits.folder)
            del self._recent[key]

    def _read(self, key: int, features: int) -> KeyLearner:
        learner = self._recent.get(key)
        if isinstance(learner, KeyLearner):
            return learner
        return KeyLearner.unpack(self._read_file(key) if learner is None else learner, f"learner {key}", features)

    def _read_file(self, key: int) -> bytes:
        try:
            return self._files[key].read_bytes()
        except OSError as error:
            raise ModelFileError(
                f"{self._files[key]}, the learner of a key, can't be read: {error.strerror or error}; "
                "load a saved model, or fit again"
            ) from error

    def _write_file(self, key: int, parent: str | None) -> Path:
        place = parent, os.getpid()  # a forked child has a folder of its own
        if place not in self._folders:
            self._folders[place] = _ScratchFolder(parent)
        path = self._folders[place].path / f"{key & (2**64 - 1):016x}"
        try:
            path.write_bytes(self.pack(key))
        except OSError as error:
            with suppress(OSError):
                path.unlink()
            raise ModelFileError(
                f"{path} can't be written, the learner of a key stays in memory: {error.strerror or error}"
            ) from error
        return path

    def _own_folders(self) -> list[_ScratchFolder]:
        return [folder for (_, process), folder in self._folders.items() if process == os.getpid()]
