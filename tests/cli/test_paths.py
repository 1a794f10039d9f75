"""No command overwrites its own input, or replaces a device or a pipe."""

import os
import stat
from pathlib import Path

import pytest

from tests.cli.runner import CliRunner
from tests.cli.tables import TARGET, rides, write

SAME = "must be different files"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a table, under two names."""
    write(tmp_path / "rides.csv", rides(60))
    os.link(tmp_path / "rides.csv", tmp_path / "linked.csv")
    (tmp_path / "symbolic.csv").symlink_to("rides.csv")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        "run - -t duration --predictions rides.csv",
        "run /dev/stdin -t duration --report linked.csv",
        "run - -t duration --save linked.csv",
        "predict model - -o rides.csv",
        "report - -o rides.csv",
    ],
)
def test_standard_input_is_not_overwritten(arguments: str, folder: Path, cli: CliRunner) -> None:
    before = (folder / "rides.csv").read_bytes()
    result = cli.redirected(*arguments.split(), folder=folder, stdin=folder / "rides.csv")
    assert (result.code, SAME in result.err) == (2, True), result.err
    assert (folder / "rides.csv").read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        "run - -t duration",
        "run rides.csv -t duration",
        "run rides.csv -t duration --predictions -",
        "run rides.csv -t duration --predictions /dev/stdout",
        "run other.csv -t duration --predictions linked.csv",
        "run other.csv -t duration --save linked.csv",
        "predict model rides.csv",
        "predict model rides.csv -o /dev/stdout",
        "predict rides.csv table.csv -o /dev/fd/1",
        "report rides.csv -o -",
        "inspect rides.csv",
        "inspect linked.csv --json",
        "inspect -",
    ],
)
def test_standard_output_does_not_overwrite_a_file_in_use(arguments: str, folder: Path, cli: CliRunner) -> None:
    table = folder / "rides.csv"
    before = table.read_bytes()
    result = cli.redirected(*arguments.split(), folder=folder, stdin=table, stdout=table)
    assert (result.code, SAME in result.err) == (2, True), result.err
    assert table.read_bytes() == before


@pytest.mark.parametrize("is_stdout", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        "run - -t duration",
        "run rides.csv -t duration",
        "run other.csv -t duration --predictions linked.csv",
        "run other.csv -t duration --predictions p --report p --resume linked.csv",
        "predict model rides.csv",
        "predict rides.csv table.csv",
        "report rides.csv",
        "inspect rides.csv",
    ],
)
def test_messages_are_not_written_to_a_file_in_use(
    arguments: str, is_stdout: bool, folder: Path, cli: CliRunner
) -> None:
    """The message of the error is on standard output, unless that is the same file."""
    table = folder / "rides.csv"
    before = table.read_bytes()
    stdout = table if is_stdout else None
    result = cli.redirected(*arguments.split(), folder=folder, stdin=table, stdout=stdout, stderr=table)
    assert (result.code, SAME in result.out, result.err) == (2, not is_stdout, "")
    assert table.read_bytes() == before


def test_standard_output_and_error_may_be_the_same_file(folder: Path, cli: CliRunner) -> None:
    log = folder / "log"
    log.touch()
    run = "run", "rides.csv", "-t", TARGET, "--predictions", "-"
    assert cli.redirected(*run, folder=folder, stdin=folder / "rides.csv", stdout=log, stderr=log).code == 0
    assert log.read_text().startswith("row,prediction,label\nellipack: columns: ")


@pytest.mark.parametrize("name", ["linked.csv", "symbolic.csv", "./rides.csv"])
@pytest.mark.parametrize("option", ["--predictions", "--report", "--save"])
def test_another_name_of_the_table_is_not_overwritten(option: str, name: str, folder: Path, cli: CliRunner) -> None:
    before = (folder / "rides.csv").read_bytes()
    result = cli("run", "rides.csv", "-t", TARGET, option, name, folder=folder)
    assert (result.code, result.err) == (2, f"ellipack: TABLE and {option} {SAME}, got {name!r} for both\n")
    assert (folder / "rides.csv").read_bytes() == before


def test_outputs_are_different_files(folder: Path, cli: CliRunner) -> None:
    run = "run", "rides.csv", "-t", TARGET
    (folder / "a.csv").touch()
    os.link(folder / "a.csv", folder / "b.csv")
    assert SAME in cli(*run, "--predictions", "a.csv", "--save", "b.csv", folder=folder).err
    assert SAME in cli(*run, "--predictions", "new", "--report", "new", folder=folder).err


def test_standard_output_by_another_name_is_appended_to(folder: Path, cli: CliRunner) -> None:
    """Opening /dev/stdout for writing would truncate the file."""
    out = folder / "out.csv"
    out.write_text("before\n")
    run = "run", "rides.csv", "-t", TARGET, "--predictions", "/dev/stdout"
    assert cli.redirected(*run, folder=folder, stdin=folder / "rides.csv", stdout=out).code == 0
    lines = out.read_text().splitlines()
    assert (lines[:2], len(lines)) == (["before", "row,prediction,label"], 62)


def test_models_are_not_saved_to_standard_output(folder: Path, cli: CliRunner) -> None:
    result = cli("run", "rides.csv", "-t", TARGET, "--save", "-", folder=folder)
    assert (result.code, result.err) == (2, "ellipack: --save must be the path of a file, got '-'\n")


@pytest.mark.parametrize(
    "arguments",
    [
        "run rides.csv -t duration --save",
        "run rides.csv -t duration --resume",
        "run rides.csv -t duration --predictions",
        "run rides.csv -t duration --report",
        "predict model rides.csv --output",
        "report model --output",
    ],
)
def test_empty_paths_are_refused(arguments: str, folder: Path, cli: CliRunner) -> None:
    before = sorted(os.listdir(folder))
    words = arguments.split()
    result = cli(*words, "", folder=folder)
    message = "it must be the path of a file, got ''. (see ellipack"
    assert (result.code, words[-1] in result.err, message in result.err) == (2, True, True), result.err
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("option", ["--save", "--predictions", "--report"])
def test_devices_and_pipes_are_not_replaced(option: str, kind: str, folder: Path, cli: CliRunner) -> None:
    path = folder / ("special.parquet" if option == "--predictions" else "special")
    if kind == "pipe":
        if option == "--report":
            pytest.skip("a report may go to a pipe, which waits for a reader")
        os.mkfifo(path)
    else:
        try:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only the superuser makes devices")
    before = path.lstat()
    result = cli("run", "rides.csv", "-t", TARGET, option, path.name, folder=folder)
    assert (result.code, os.path.samestat(path.lstat(), before)) == ({"--save": 4, "--report": 0}.get(option, 3), True)
    if option != "--report":
        assert f"{path.name} can't be written: it is a {kind}, not a regular file" in result.err


@pytest.mark.parametrize("length", [240, 255])
def test_long_names_can_be_written(length: int, folder: Path, cli: CliRunner) -> None:
    names = {"--save": "m" * length, "--predictions": f"{'p' * (length - 8)}.parquet", "--report": "r" * length}
    options = [word for pair in names.items() for word in pair]
    for _ in range(2):
        result = cli("run", "rides.csv", "-t", TARGET, "--resume", names["--save"], *options, folder=folder)
        assert result.code == 0, result.err
    assert sorted(os.listdir(folder)) == sorted(["rides.csv", "linked.csv", "symbolic.csv", *names.values()])


@pytest.mark.parametrize("option", ["--save", "--predictions", "--report"])
def test_names_that_are_too_long_fail_before_the_first_row(option: str, folder: Path, cli: CliRunner) -> None:
    result = cli("run", "missing.csv", "-t", TARGET, option, "m" * 256, folder=folder)
    assert "File name too long" in result.err
    assert result.code == (4 if option == "--save" else 3)
