import os
import shutil
import subprocess
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

import ellipack

ROOT = Path(__file__).parent.parent
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def make(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as from a shell, whether or not these tests are run by make themselves."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", *arguments], cwd=directory, env=clean, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a directory with the Makefile and what it needs."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for tree in ("src", "benchmarks", "tests", "cpp"):
        (tmp_path / tree).mkdir()
    for needed in ("pyproject.toml", "constraints.txt", "CMakeLists.txt", "src/module.py"):
        (tmp_path / needed).touch()
    return tmp_path


def a_python(checkout: Path, venv: str) -> str:
    """Return a stand-in for Python whose ``-m venv`` leaves an interpreter behind and then runs `venv`."""
    fake = checkout / "fake-python"
    fake.write_text(
        "#!/bin/sh\n"
        'case "$*" in *venv*) ;; *) exit 0 ;; esac\n'
        'echo "$*" >> asked\n'
        "mkdir -p .venv/bin && cp fake-python .venv/bin/python\n"
        f"{venv}\n"
    )
    fake.chmod(0o755)
    return f"PYTHON={fake}"


def test_the_package_is_marked_as_typed() -> None:
    assert (files(ellipack) / "py.typed").is_file()


def test_there_is_one_version() -> None:
    assert ellipack.__version__ == version("ellipack")
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()


def test_every_constraint_is_an_exact_version() -> None:
    first, *lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert first.startswith("#")
    names = [line.split("==")[0].lower() for line in lines]
    assert names == sorted(names)
    assert all(line.count("==") == 1 and "/" not in line for line in lines)
    # Needed only by way of others, which a constraint has to name all the same.
    assert {"iniconfig", "pygments", "markdown-it-py", "sortedcontainers", "typing_extensions"} <= set(names)
    assert not {"pip", "setuptools", "ellipack"} & set(names)


@needs_make
def test_a_failed_environment_is_built_again(checkout: Path) -> None:
    failing = a_python(checkout, venv="exit 1")
    for _ in range(2):  # the second finds an interpreter, and must not take it for an environment
        made = make(checkout, "demo", failing)
        assert made.returncode != 0
        assert "python3-venv" in made.stderr
    assert (checkout / "asked").read_text() == "-m venv --clear .venv\n" * 2
    assert make(checkout, ".venv/dev.stamp", a_python(checkout, venv="exit 0")).returncode == 0
    assert (checkout / ".venv/created.stamp").exists()
    assert (checkout / ".venv/dev.stamp").exists()


@needs_make
def test_a_missing_compiler_is_named(checkout: Path) -> None:
    for tool in ("sh", "make", "sed", "touch", "mkdir", "cp", "env", "rm", "chmod"):
        found = shutil.which(tool)
        assert found is not None
        (checkout / "bin").mkdir(exist_ok=True)
        (checkout / "bin" / tool).symlink_to(found)
    no_compiler = {**os.environ, "PATH": str(checkout / "bin")}
    for name in ("CXX", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        no_compiler.pop(name, None)
    command = ["make", ".venv/dev.stamp", a_python(checkout, venv="exit 0")]
    made = subprocess.run(
        command, cwd=checkout, env=no_compiler, capture_output=True, text=True, check=False, timeout=60
    )
    assert made.returncode != 0
    assert "ellipack needs a C++20 compiler, g++ 12 or clang 15 or later: apt-get install g++" in made.stderr


@needs_make
def test_clean_removes_all_compiled_files(checkout: Path) -> None:
    for tree in ("src/deep", "tests", "benchmarks"):
        (checkout / tree / "__pycache__").mkdir(parents=True)
    (checkout / "build/cp311").mkdir(parents=True)
    (checkout / ".venv").mkdir()
    assert make(checkout, "clean").returncode == 0
    assert not list(checkout.rglob("__pycache__"))
    assert not (checkout / ".venv").exists()
    assert not (checkout / "build").exists()
    assert (checkout / "src/module.py").exists()


@needs_make
def test_help_names_the_targets() -> None:
    shown = make(ROOT, "help").stdout
    named = {line.split()[1] for line in shown.splitlines()}
    assert named >= {"help", "demo", "test", "check", "bench", "clean"}
