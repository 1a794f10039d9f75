"""The page of all benchmarks, made from their stored results alone: ``python -m benchmarks.page``.

Each section is a function that takes its results and a folder for its plots, and returns Markdown. To add a section,
add it to `SECTIONS`. A benchmark that has a section calls `publish` with its results.
"""

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks import results
from benchmarks.claims import page as claims_page
from benchmarks.command_line import make_parser
from benchmarks.comparison import page as comparison_page
from benchmarks.rates import page as rates_page
from benchmarks.results import Section
from benchmarks.scaling import page as scaling_page

LOCAL_RESULTS = Path("out/benchmarks/results.json")
"""Where results go without ``--publish``."""

README = Path("README.md")

SECTIONS: Final[dict[str, Callable[[Section, Path], str]]] = {
    "peers": comparison_page.section,
    "scaling": scaling_page.section,
    "claims": claims_page.section,
    "rates-estimation": rates_page.estimation_section,
    "rates-approximation": rates_page.approximation_section,
    "rates-metrics": rates_page.metrics_section,
    "rates-theorem-2": rates_page.theorem_2_section,
}
"""The function that renders each section, in the order of the page."""

QUOTED: Final[dict[str, Callable[[Section], str]]] = {
    "peers": comparison_page.quoted,
}
"""What the README quotes of a section, between ``<!-- bench-NAME -->`` and ``<!-- end -->``."""

_HEAD = """# Benchmarks

`make bench-page` writes this page from [results.json]({folder}/results.json). Do not edit it by hand.
"""
_END = "<!-- end -->"
_MODULES = {
    "peers": "comparison",
    "rates-estimation": "rates",
    "rates-approximation": "rates",
    "rates-metrics": "rates",
    "rates-theorem-2": "rates",
}  # sections that are named differently from their module


def render_page(sections: dict[str, Section], folder: Path) -> str:
    """Return the page with those sections that have results; write its plots into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rendered = [
        f"{render(sections[name], folder)}\n{_provenance(sections[name])}\n"
        for name, render in SECTIONS.items()
        if name in sections
    ]
    return "\n".join([_HEAD.format(folder=folder.name), *rendered])


def _provenance(section: Section) -> str:
    """Return a sentence that says how, when and where a section was measured."""
    where = section["environment"]
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    return (
        f"Measured by `{section['command']}` on {where['date']} at revision {where['revision']}, with Python "
        f"{where['python']} on {where['system']}, {where['processor']}, {where['cores']} cores; {versions}. "
        f"{section['note']}".strip()
    )


def quote_in_readme(sections: dict[str, Section], readme: str) -> str:
    """Return a README with the current quotes between its markers; the rest is unchanged."""
    for name, render in QUOTED.items():
        before, begin, rest = readme.partition(f"<!-- bench-{name} -->\n")
        _, end, after = rest.partition(_END)
        if name in sections and end:
            readme = f"{before}{begin}{render(sections[name])}\n{end}{after}"
    return readme


def write_page(path: Path, page: Path, readme: Path | None = None) -> None:
    """Write the page, its plots (into a folder of the same name) and the quotes in a README.

    Parameters
    ----------
    path : Path
        The results.
    page : Path
        The Markdown file to write.
    readme : Path, optional
        A README with markers.

    Raises
    ------
    ValueError
        If there are no results.
    """
    sections = results.read_results(path)
    if not sections:
        raise ValueError(f"{path} must contain results, got none: run make bench-peers first")
    page.write_text(render_page(sections, page.with_suffix("")), encoding="utf-8")
    if readme is not None:
        before = readme.read_text(encoding="utf-8")
        readme.write_text(quote_in_readme(sections, before), encoding="utf-8")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where results go."""
    parser.add_argument(
        "--publish", action="store_true", help=f"store results in {results.RESULTS_PATH} and update the README"
    )
    parser.add_argument(
        "--json", type=Path, help=f"where to store results without --publish (default: {LOCAL_RESULTS})"
    )
    parser.add_argument("--note", default="", help="a remark about this run, shown on the page")


def publish(section: str, figures: Section, options: argparse.Namespace, arguments: Sequence[str] | None) -> Path:
    """Store the results of a section with the command that produced them, and write the page; return its path."""
    path: Path = results.RESULTS_PATH if options.publish else options.json or LOCAL_RESULTS
    given = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["python", "-m", f"benchmarks.{_MODULES.get(section, section)}", *given])
    results.store_section(section, {"command": command, "note": options.note, **figures}, path)
    page = path.parent.with_suffix(".md")
    write_page(path, page, README if options.publish else None)
    return page


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    parser = make_parser("page", "Write the page of all benchmarks from stored results.")
    parser.add_argument("--json", type=Path, default=results.RESULTS_PATH, help="the results (default: %(default)s)")
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks.md"), help="the page (default: %(default)s)")
    parser.add_argument("--readme", type=Path, default=README, help="the README (default: %(default)s)")
    options = parser.parse_args(arguments)
    write_page(options.json, options.page, options.readme)


if __name__ == "__main__":
    main()
