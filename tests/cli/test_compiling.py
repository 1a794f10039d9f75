from pathlib import Path

from tests.cli.door import Door


def test_all_kernels_are_compiled_ahead_of_use(door: Door, tmp_path: Path) -> None:
    done = door("compile", "--jobs", "2", folder=tmp_path)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("ellipack: all kernels are compiled, in ")


def test_a_number_of_processes_has_to_be_one(door: Door, tmp_path: Path) -> None:
    done = door("compile", "--jobs", "0", folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "0 is not in the range x>=1" in done.err
