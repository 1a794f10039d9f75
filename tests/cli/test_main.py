import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from ellipack import __version__
from ellipack.choices import LEARNER_NAMES
from ellipack.cli import learners, main
from ellipack.errors import StreamError
from tests.cli.runner import PROGRAM, TIMEOUT, CliRunner, run_command
from tests.cli.tables import TARGET, rides, write

COMMANDS = ("completion", "demo", "inspect", "predict", "report", "run")


def test_version_and_help(cli: CliRunner, tmp_path: Path) -> None:
    assert cli("--version", folder=tmp_path) == (0, f"ellipack {__version__}\n", "")
    for arguments in ([], ["--help"], ["-h"]):
        code, out, err = cli(*arguments, folder=tmp_path)
        assert (code, err) == (0, "")
        assert out.startswith("Usage: ellipack [OPTIONS] [COMMAND] [ARGS]...\n")
        assert all(f"\n  {name} " in out for name in COMMANDS)
        assert "\n    3    the table can't be read, or predictions or report can't be written\n" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_fits_a_terminal(name: str, cli: CliRunner, tmp_path: Path) -> None:
    code, out, err = cli(name, "--help", folder=tmp_path, environment={"COLUMNS": "80"})
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: ellipack {name} [OPTIONS]")
    assert "\\b" not in out
    assert max(map(len, out.splitlines())) <= 84  # examples are not wrapped


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell: str, cli: CliRunner, tmp_path: Path) -> None:
    code, out, err = cli("completion", shell, folder=tmp_path)
    assert (code, err) == (0, "")
    assert f"_ELLIPACK_COMPLETE={shell}_complete" in out
    write(tmp_path / "rides.csv", rides(2))
    for words, place, expected in (
        ("ellipack pre", 1, "predict"),
        ("ellipack run --pred", 2, "--predictions"),
        ("ellipack run rides.csv --target dur", 4, "duration"),
        ("ellipack run rides.csv -t duration --drop tr", 6, "traffic"),
    ):
        # fish passes the word itself, the others its position.
        at = words.split()[-1] if shell == "fish" else str(place)
        request = {"_ELLIPACK_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": at}
        assert expected in cli(folder=tmp_path, environment=request).out
    request = {"_ELLIPACK_COMPLETE": f"{shell}_complete", "COMP_WORDS": "ellipack run ", "COMP_CWORD": "2"}
    if shell == "fish":
        request["COMP_CWORD"] = ""
    assert "file" in cli(folder=tmp_path, environment=request).out  # the shell completes file names itself


@pytest.mark.parametrize("package", ["click", "rich"])
def test_missing_package_is_reported_in_one_line(package: str, tmp_path: Path) -> None:
    # A module that fails to import hides the installed package.
    (tmp_path / f"{package}.py").write_text(
        f"raise ModuleNotFoundError(\"No module named '{package}'\", name='{package}')\n"
    )
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = run_command("run", "rows.csv", "--target", "y", folder=tmp_path, environment={"PYTHONPATH": paths})
    assert result == (1, "", f"ellipack: the command line needs {package}: pip install 'ellipack[cli]'\n")


def error_caused_by(cause: Exception, error: Exception) -> Exception:
    """Return an error that was raised from another one."""
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "memory ran out"),
        (pa.ArrowMemoryError("malloc of size 1152921504606846976 failed"), "{}: memory ran out"),
        (SystemError("error return without exception set"), "{}: most likely, memory ran out"),
        (SystemError("<ufunc 'add'> returned NULL without setting an exception"), "{}: most likely, memory ran out"),
        (RuntimeError("can't allocate lock"), "{}: most likely, memory ran out"),
        (TypeError("expected str, bytes or os.PathLike object, not PosixPath"), "{}: most likely, memory ran out"),
        (pa.ArrowException("Failed to launch worker thread: std::bad_alloc"), "{}: most likely, memory ran out"),
        (OSError("Couldn't deserialize thrift: std::bad_alloc"), "{}: most likely, memory ran out"),
        (OSError(errno.ENOMEM, "Cannot allocate memory", "p.csv"), "{}: most likely, memory ran out"),
        (
            error_caused_by(OSError(errno.ENOMEM, "Cannot allocate memory"), StreamError("p.csv can't be written")),
            "{}: most likely, memory ran out",
        ),
    ],
)
def test_lack_of_memory_is_reported_in_one_line(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run_main_with(error, monkeypatch)
    assert left.value.code == 1
    hint = "a run that was saved with --save can be resumed from there"
    assert capsys.readouterr().err == f"ellipack: {message.format(error)}; {hint}\n"


@pytest.mark.parametrize("error", [SystemError("unknown opcode"), RuntimeError("a bug")])
def test_other_errors_are_tracebacks(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(type(error), match=str(error)):
        run_main_with(error, monkeypatch)


def run_main_with(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run `main` with a command that raises an error. A SystemExit stands for the end of the process."""

    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(sys.modules["ellipack.cli.main"].ellipack, "main", fail)
    monkeypatch.setattr(os, "_exit", sys.exit)
    main()


MISSING = {
    "jinja2": ("run rows.csv --target y", "the command line needs jinja2: pip install 'ellipack[cli]'"),
    "plotly": ("run rows.csv --target y", "the command line needs plotly: pip install 'ellipack[cli]'"),
    "pyarrow": ("run rows.csv --target y", "the command line needs pyarrow: pip install 'ellipack[cli]'"),
    "matplotlib": ("demo", "the demo needs matplotlib: pip install 'ellipack[demo]'"),
}
"""Packages that are imported late, commands that need them, and messages if they are missing."""


def test_packages_that_are_imported_late_may_be_missing_too(tmp_path: Path) -> None:
    """One process imports the learners, which takes most of the time, and forks for each of the packages."""
    program = """
import os, sys
import ellipack.estimators
for missing in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        package, *arguments = missing.split()
        sys.modules[package] = None
        sys.argv = ["ellipack", *arguments]
        from ellipack.cli import main
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
    each = [f"{package} {command}" for package, (command, _) in MISSING.items()]
    done = subprocess.run(
        [sys.executable, "-c", program, *each], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["1"] * len(MISSING)
    assert done.stderr.splitlines() == [f"ellipack: {message}" for _, message in MISSING.values()]


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="needs pipes of a given size")
def test_closed_output_is_not_reported(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(400))
    os.mkfifo(tmp_path / "pipe")
    run = "run", "rides.csv", "--target", TARGET, "--predictions", "-"
    with cli.start(*run, folder=tmp_path, stdout=tmp_path / "pipe") as running:
        with (tmp_path / "pipe").open("rb", buffering=0) as reader:
            fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)  # less than the predictions
            assert reader.readline() == b"row,prediction,label\n"
        assert running.wait(TIMEOUT) == 141
        (line,) = running.err().splitlines()
        assert line.startswith("ellipack: columns: ")


def test_exit_code_if_nobody_reads_the_output(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(30))
    os.mkfifo(tmp_path / "pipe")
    with cli.start("run", "rides.csv", "--target", TARGET, folder=tmp_path, stdout=tmp_path / "pipe") as running:
        (tmp_path / "pipe").open("rb").close()
        assert running.wait(TIMEOUT) == 141
        assert "Traceback" not in running.err()


def test_exit_code_of_a_new_process_if_nobody_reads_the_output() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*PROGRAM, "--help"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.returncode == 141
    assert b"Traceback" not in done.stderr


def test_ascii_terminal_gets_only_ascii(tmp_path: Path) -> None:
    write(tmp_path / "tiny.csv", [[str(t % 7), str(t % 7 * 2)] for t in range(400)], ["höhe", "y"])
    plain = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    result = run_command("run", "tiny.csv", "--target", "y", folder=tmp_path, environment=plain)
    assert result.code == 0, result.err
    assert result.out.isascii()
    assert "h\\xf6he" in result.out
    assert "####" in result.out


def test_command_is_installed() -> None:
    script = Path(sys.executable).parent / "ellipack"
    if not script.exists():
        pytest.skip("ellipack is on the path, not installed")
    result = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == f"ellipack {__version__}\n"


def test_help_and_completion_import_no_heavy_package() -> None:
    heavy = ["numpy", "pyarrow", "rich", "sklearn"]
    code = f"import sys, ellipack.cli.main; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_learner_choices_match_the_factories() -> None:
    assert tuple(learners.LEARNER_FACTORIES) == LEARNER_NAMES
