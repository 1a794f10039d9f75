"""A disk that loses power: what was not synced is lost, in any combination."""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

Change = TypeVar("Change")


@dataclass
class File:
    """Contents of a file: those on disk, and the changes since the last sync."""

    durable: bytes = b""
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)

    def contents(self, changes: list[tuple[int, bytes | None]]) -> bytes:
        """Return the contents after some changes: bytes at a place, or a new size (None)."""
        data = bytearray(self.durable)
        for place, written in changes:
            if written is None:
                data = data[:place].ljust(place, b"\0")
            else:
                data = data.ljust(place, b"\0")
                data[place : place + len(written)] = written
        return bytes(data)

    def sync(self) -> None:
        """Make all changes durable."""
        self.durable, self.changes = self.contents(self.changes), []


class Disk:
    """Directory of files, changed by the lines of a log of `io_faults.c`.

    Parameters
    ----------
    table : Path
        File that is durable from the start.
    """

    def __init__(self, table: Path) -> None:
        file = File(table.read_bytes())
        self._files = {table.stat().st_ino: file}  # the file system gives the number of a removed file to another
        self._durable: dict[str, File] = {table.name: file}
        self._changes: list[tuple[str, File | None]] = []  # of the directory, since its last sync

    def apply(self, line: str) -> None:
        """Apply a logged call."""
        match line.split("\t"):
            case ["create", inode, path]:
                self._files[int(inode)] = File()
                self._changes.append((os.path.basename(path), self._files[int(inode)]))
            case ["write", inode, place, data]:
                self._files[int(inode)].changes.append((int(place), bytes.fromhex(data)))
            case ["truncate", inode, size]:
                self._files[int(inode)].changes.append((int(size), None))
            case ["sync", inode]:
                self._files[int(inode)].sync()
            case ["sync directory"]:
                self._durable, self._changes = self._directory(self._changes), []
            case ["rename", source, target]:
                file = self._directory(self._changes)[os.path.basename(source)]
                self._changes += [(os.path.basename(target), file), (os.path.basename(source), None)]
            case ["unlink", path]:
                self._changes.append((os.path.basename(path), None))
            case _:
                raise AssertionError(line)

    def lose_power(self, rng: random.Random) -> dict[str, bytes]:
        """Return the files on disk after a power loss: of the changes since the last syncs, some, in any order."""
        files = {}
        for name, file in self._directory(_some(self._changes, rng)).items():
            kept = _some(file.changes, rng)
            rng.shuffle(kept)
            files[name] = file.contents(kept)
        return files

    def _directory(self, changes: list[tuple[str, File | None]]) -> dict[str, File]:
        """Return the directory after some changes."""
        names = dict(self._durable)
        for name, file in changes:
            if file is None:
                names.pop(name, None)
            else:
                names[name] = file
        return names


def distinct_losses(disk: Disk, log: list[str], draws: int, rng: random.Random) -> Iterator[dict[str, bytes]]:
    """Yield what power losses after each change of a log leave on disk, each state once.

    Temporary files are removed without being read, so that their contents make no difference.
    """
    seen = set()
    for line in ["", *log]:
        if line:
            disk.apply(line)
        for files in (disk.lose_power(rng) for _ in range(draws)):
            state = frozenset((name, b"" if name.endswith(".partial") else data) for name, data in files.items())
            if state not in seen:
                seen.add(state)
                yield files


def _some(changes: list[Change], rng: random.Random) -> list[Change]:
    """Return none, all or a random part of the changes."""
    share = rng.choice([0.0, 0.5, 1.0])
    return [change for change in changes if rng.random() < share]
