"""The page of all benchmarks, out of their results and nothing else: ``python -m benchmarks.page``.

A section is a function of its figures and of the folder for its pictures that returns Markdown. To add one is to add a
line to the table of sections.
"""

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import results
from benchmarks.claims import page as claims_page
from benchmarks.comparison import page as comparison_page
from benchmarks.results import Figures
from benchmarks.scaling import page as scaling_page

_HEAD = """# Benchmarks

Made by `make bench-page` out of [results.json]({folder}/results.json); nothing here is written by hand.
"""

_END = "<!-- end -->"

SECTIONS: Final[dict[str, Callable[[dict[str, Any], Path], str]]] = {
    "peers": comparison_page.section,
    "scaling": scaling_page.section,
    "claims": claims_page.section,
}
"""How each section of the results is shown, in the order of the page."""

QUOTED: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "peers": comparison_page.quoted,
}
"""What the README says of a section, between ``<!-- bench-NAME -->`` and ``<!-- end -->``, where it has these."""


def text(sections: dict[str, dict[str, Any]], folder: Path) -> str:
    """Return the page of those sections that there are results of; write its pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = [
        f"{show(sections[name], folder)}\n{_made(sections[name])}\n"
        for name, show in SECTIONS.items()
        if name in sections
    ]
    return "\n".join([_HEAD.format(folder=folder.name), *shown])


def _made(figures: dict[str, Any]) -> str:
    """Say how, when and on what a section was made."""
    made = figures["made"]
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    return (
        f"Made by `{figures['command']}` on {made['on']} at revision {made['revision']}, with Python {made['python']} "
        f"on {made['system']}, {made['processor']}, {made['cores']} cores; {versions}. {figures['note']}".strip()
    )


def quote(sections: dict[str, dict[str, Any]], readme: str) -> str:
    """Return a README with what it quotes of the results between its markers; all else stays."""
    for name, show in QUOTED.items():
        before, begin, rest = readme.partition(f"<!-- bench-{name} -->\n")
        _, end, after = rest.partition(_END)
        if name in sections and end:
            readme = f"{before}{begin}{show(sections[name])}\n{end}{after}"
    return readme


def write(path: Path, page: Path, readme: Path | None = None) -> None:
    """Write the page, its pictures (into a folder of its name) and a README's quotes out of a file of results."""
    sections = results.read(path)
    if not sections:
        raise ValueError(f"{path} must hold results, got none: run make bench-peers first")
    page.write_text(text(sections, page.with_suffix("")), encoding="utf-8")
    if readme is not None:
        before = readme.read_text(encoding="utf-8")
        readme.write_text(quote(sections, before), encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Write the page as the command line asks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description="Write the page of all benchmarks.")
    parser.add_argument("--json", type=Path, default=results.PATH, help="the results (default: %(default)s)")
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks.md"), help="the page (default: %(default)s)")
    parser.add_argument("--readme", type=Path, default=Path("README.md"), help="quotes them (default: %(default)s)")
    options = parser.parse_args(arguments)
    write(options.json, options.page, options.readme)


OWN = Path("out/benchmarks/results.json")
README = Path("README.md")
_MODULES = {"peers": "comparison"}  # that are not called as their section is


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Let the command line say where results go."""
    parser.add_argument("--publish", action="store_true", help=f"into {results.PATH}, and what the README quotes")
    parser.add_argument("--json", type=Path, help=f"where results go instead of {OWN}, the page beside its folder")
    parser.add_argument("--note", default="", help="what a reader of the page should know of this run")


def publish(section: str, figures: Figures, options: argparse.Namespace, arguments: Sequence[str] | None) -> Path:
    """Store a section with the command that it came from, and write the page; return where that is."""
    path: Path = results.PATH if options.publish else options.json or OWN
    words = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["python", "-m", f"benchmarks.{_MODULES.get(section, section)}", *words])
    results.store(section, {"command": command, "note": options.note, **figures}, path)
    written = path.parent.with_suffix(".md")
    write(path, written, README if options.publish else None)
    return written


if __name__ == "__main__":
    main()
