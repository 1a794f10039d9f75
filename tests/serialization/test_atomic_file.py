import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from ellipack.errors import ModelFileError
from ellipack.serialization import Archive, read, write
from ellipack.serialization import atomic_file as module
from ellipack.serialization.atomic_file import atomic_file, hidden_sibling, try_lock
from tests.interrupts import interrupt_everywhere

TOKENS = [f"{i:016x}" for i in range(4)]

KILLED_WRITER = """
import os, signal, sys
from ellipack.serialization.atomic_file import atomic_file
with atomic_file(sys.argv[1]) as file:
    file.write(b"half of the con")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""

WAITING_WRITER = """
import sys
from ellipack.serialization.atomic_file import atomic_file
with atomic_file(sys.argv[1]) as file:
    file.write(b"new")
    file.flush()
    print("written", flush=True)
    sys.stdin.read()
"""


def replace(path: Path, data: bytes) -> None:
    with atomic_file(path) as file:
        file.write(data)


def test_an_exception_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model"
    replace(path, b"old")

    def interrupt() -> None:
        with atomic_file(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]


def test_permissions_are_kept_and_new_files_follow_the_umask(tmp_path: Path) -> None:
    path, before = tmp_path / "model", os.umask(0o027)
    try:
        replace(path, b"old")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    replace(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_leftovers_of_killed_writers_are_removed_by_the_next_writer(tmp_path: Path) -> None:
    path = tmp_path / "m[1]"
    subprocess.run([sys.executable, "-c", KILLED_WRITER, str(path)], check=False)
    assert len(os.listdir(tmp_path)) == 1
    replace(path, b"new")
    assert os.listdir(tmp_path) == ["m[1]"]


def test_files_of_others_are_kept(tmp_path: Path) -> None:
    """Everything may look similar to a leftover, and only a regular file of exactly that name is one."""
    others = [
        ".model.mine.partial",
        ".model.v2.17-1.partial",
        f".model.v2.{TOKENS[0]}.partial",
        f".model.{TOKENS[0]}.partial.old",
        f".model.{TOKENS[0][1:]}.partial",
        f".model.{'g' * 16}.partial",
        f"model.{TOKENS[0]}.partial",
        f".Model.{TOKENS[0]}.partial",
    ]
    for name in others:
        (tmp_path / name).write_text("mine")
    folder = tmp_path / f".model.{TOKENS[1]}.partial"
    folder.mkdir()
    (folder / "contents").touch()
    (tmp_path / f".model.{TOKENS[2]}.partial").symlink_to(others[0])
    os.mkfifo(tmp_path / f".model.{TOKENS[3]}.partial")
    before = sorted(os.listdir(tmp_path))
    replace(tmp_path / "model", b"new")
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "model"])
    assert os.listdir(folder) == ["contents"]


def test_the_file_of_a_live_writer_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "model"
    command = [sys.executable, "-c", WAITING_WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        replace(path, b"mine")
        assert path.read_bytes() == b"mine"
        writer.communicate()
    assert writer.returncode == 0
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["model"]


@pytest.fixture(params=["pipe", "device", "directory"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the path of something that is not a regular file."""
    path = tmp_path / "special"
    match request.param:
        case "pipe":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case "device":
            try:
                os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("only the superuser makes devices")
    return path


def test_what_is_not_a_regular_file_is_not_replaced(special: Path) -> None:
    before = special.lstat()
    with pytest.raises(ModelFileError, match=r"special can't be written.*not a regular file"):
        write(special, "Kind", Archive())
    assert os.path.samestat(special.lstat(), before)
    link = special.with_name("link")
    link.symlink_to(special)
    with pytest.raises(ModelFileError, match=r"link can't be written.*not a regular file"):
        write(link, "Kind", Archive())
    assert os.path.samestat(special.lstat(), before)


def test_a_device_that_appears_while_a_file_is_written_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with pytest.raises(OSError, match="it is a pipe, not a regular file"), atomic_file(path):
        os.mkfifo(path)
    assert path.is_fifo()
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("name", ["m" * 240, "m" * 255, "\N{CYRILLIC SMALL LETTER YA}" * 127])
def test_names_may_be_as_long_as_the_file_system_allows(name: str, tmp_path: Path) -> None:
    for clock in range(2):
        write(tmp_path / name, "Kind", Archive({"clock": clock}))
        assert read(tmp_path / name)[1].facts == {"clock": clock}
    assert os.listdir(tmp_path) == [name]
    assert len(os.fsencode(hidden_sibling(Path(name), f"{TOKENS[0]}.partial").name)) <= 255


def test_a_file_that_another_writer_takes_for_a_leftover_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[tuple[Path, BinaryIO]] = []

    def lock_after_another_writer(descriptor: int) -> bool:
        if not held:  # the other writer locks the new file first, and removes it later
            (partial,) = tmp_path.glob(".model.*.partial")
            held.append((partial, partial.open("rb")))
            assert try_lock(held[0][1].fileno())
        return try_lock(descriptor)

    monkeypatch.setattr(module, "try_lock", lock_after_another_writer)
    with atomic_file(tmp_path / "model") as file:
        held[0][0].unlink()
        file.write(b"whole")
    held[0][1].close()
    assert (tmp_path / "model").read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["model"]


def test_an_interrupt_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    """A file that is left open raises a warning, too."""
    path, old, new = tmp_path / "model", Archive({"clock": 1}), Archive({"clock": 2})
    seen = set()

    def check(_: object) -> None:
        seen.add(read(path)[1].facts["clock"])

    interrupt_everywhere(
        ("/ellipack/serialization/",),
        lambda: write(path, "Kind", old),
        lambda _: write(path, "Kind", new),
        check,
    )
    assert seen == {1, 2}


def test_a_failure_right_after_the_temporary_file_was_created_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory may run out while Python makes the file object."""
    create = Path.open

    def create_and_fail(path: Path, mode: str, buffering: int) -> None:
        create(path, mode, buffering).close()
        raise MemoryError

    monkeypatch.setattr(Path, "open", create_and_fail)
    with pytest.raises(MemoryError), atomic_file(tmp_path / "model"):
        pass
    assert os.listdir(tmp_path) == []
