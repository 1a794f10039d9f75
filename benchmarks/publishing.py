"""Where what a benchmark found goes: its section of the results, and the page of all sections made anew.

For oneself it goes under ``out/``; with ``--publish`` into ``docs/`` and, where the README quotes it, there as well.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import page, results
from benchmarks.results import Figures

OWN = Path("out/benchmarks/results.json")
README = Path("README.md")
_MODULES = {"peers": "race"}  # that are not called as their section is


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Let the command line say where results go."""
    parser.add_argument("--publish", action="store_true", help=f"into {results.PATH}, and what the README quotes")
    parser.add_argument("--json", type=Path, help=f"where results go instead of {OWN}, the page beside its folder")
    parser.add_argument("--note", default="", help="what a reader of the page should know of this run")


def put(section: str, figures: Figures, options: argparse.Namespace, arguments: Sequence[str] | None) -> Path:
    """Store a section with the command that it came from, and write the page; return where that is."""
    path: Path = results.PATH if options.publish else options.json or OWN
    words = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["python", "-m", f"benchmarks.{_MODULES.get(section, section)}", *words])
    results.store(section, {"command": command, "note": options.note, **figures}, path)
    written = path.parent.with_suffix(".md")
    page.write(path, written, README if options.publish else None)
    return written
