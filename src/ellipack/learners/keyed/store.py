"""Learners of many keys: the most recently used in memory, the others in a file.

The file holds packed learners (`KeyLearner.pack`), with checksums that are verified when they are read. It has no name,
and goes with its owner (`NamelessFile`). It is not synced to disk, because it does not outlive the process.

A learner is removed from memory after it is written. If it can't be written, it stays in memory. What was written is
valid as long as the learner has not changed, so that a learner that only predicts is written once. A learner that has
changed is appended. When the file is full, the valid learners are copied to a new one, which is full when it is twice
as large.

A forked child reads the file of its parent as it was at the fork, and writes to a file of its own.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ellipack.errors import ModelFileError
from ellipack.learners.keyed.key_learner import KeyLearner
from ellipack.learners.keyed.nameless_file import NamelessFile, Place
from ellipack.serialization import verify

_LEAST_FULL_SIZE = 2**24  # bytes


class StoreLimits(NamedTuple):
    """Where learners are kept.

    Attributes
    ----------
    max_learners : int
        Largest number of learners in memory.
    folder : str or None
        Folder on whose disk the file is; None for that of the system for temporary files.
    """

    max_learners: int
    folder: str | None


class LearnerStore:
    """Learners by key. It needs a lock if several threads use it.

    Parameters
    ----------
    packed : mapping of int to bytes, default {}
        Learners that were packed by another store. They are unpacked when they are used.
    """

    def __init__(self, packed: dict[int, bytes] | None = None) -> None:
        self._recent: OrderedDict[int, KeyLearner | bytes] = OrderedDict(packed or {})  # least recently used first
        self._places: dict[int, Place] = {}  # of the learners whose last state is in a file
        self._file: NamelessFile | None = None
        self._full_size = _LEAST_FULL_SIZE

    @property
    def n_on_disk(self) -> int:
        """Number of learners on disk only."""
        return len(self._places.keys() - self._recent.keys())

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
            If the file can't be written, or is damaged. No learner is lost or changed.
        """
        wanted = list(keys)
        self._make_room(set(wanted), limits)
        found = {}
        for key in wanted:
            if key in self._recent or key in self._places:
                found[key] = self._recent[key] = self._read(key, features)
                self._recent.move_to_end(key)
        return found

    def put(self, learners: Mapping[int, KeyLearner | bytes]) -> None:
        """Store learners that have learned, packed or not. If `fetch` has made no room, the next one makes it."""
        for key, learner in learners.items():
            self._recent[key] = learner
            self._recent.move_to_end(key)
            self._places.pop(key, None)

    def pack(self, key: int) -> bytes:
        """Return the packed learner of a key."""
        learner = self._recent.get(key)
        if learner is None:
            return self._read_packed(key)
        return learner if isinstance(learner, bytes) else learner.pack()

    def _make_room(self, wanted: set[int], limits: StoreLimits) -> None:
        """Move learners that are not wanted to disk, until there is room for those that are."""
        surplus = len(self._recent.keys() | wanted) - limits.max_learners
        for key in [each for each in self._recent if each not in wanted][: max(0, surplus)]:
            if key not in self._places:
                self._places[key] = self._write(self.pack(key), limits.folder)
            del self._recent[key]

    def _read(self, key: int, features: int) -> KeyLearner:
        learner = self._recent.get(key)
        if isinstance(learner, KeyLearner):
            return learner
        return KeyLearner.unpack(self._read_packed(key) if learner is None else learner, f"learner {key}", features)

    def _read_packed(self, key: int) -> bytes:
        name = f"learner {key}"
        try:
            packed = self._places[key].read()
        except OSError as error:
            raise ModelFileError(
                f"{name} can't be read from disk: {error.strerror or error}; load a saved model, or fit again"
            ) from error
        verify(packed, name)
        return packed

    def _write(self, packed: bytes, folder: str | None) -> Place:
        try:
            return self._file_with_room(len(packed), folder).append(packed)
        except OSError as error:
            name = "the folder for temporary files" if folder is None else folder
            raise ModelFileError(
                f"{name} can't hold the learners of keys, which stay in memory: {error.strerror or error}"
            ) from error

    def _file_with_room(self, size: int, folder: str | None) -> NamelessFile:
        """Return the file of this process in a folder, a new one if there is none or if it is full."""
        file = self._file
        if file is None or (file.folder, file.process) != (folder, os.getpid()):  # the file of a parent is not changed
            file, self._full_size = NamelessFile(folder), _LEAST_FULL_SIZE
        elif file.size + size > self._full_size:
            file = self._copy_valid(file)
        self._file = file
        return file

    def _copy_valid(self, full: NamelessFile) -> NamelessFile:
        """Copy the valid learners of a file to a new one."""
        file = NamelessFile(full.folder)
        places = {
            key: file.append(place.read()) if place.file is full else place for key, place in self._places.items()
        }
        self._places, self._full_size = places, max(_LEAST_FULL_SIZE, 2 * file.size)
        return file
