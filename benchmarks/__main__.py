"""Run the benchmarks: ``python -m benchmarks``."""

import platform
from importlib.metadata import version

from rich.console import Console

from benchmarks import foundation
from benchmarks.timing import run, tables


def main() -> None:
    """Run everything and print what came out."""
    console = Console()
    versions = f"Python {platform.python_version()}, NumPy {version('numpy')}, ellipack {version('ellipack')}"
    console.print(versions, highlight=False)
    console.print(*tables(run(foundation.BENCHMARKS)), sep="\n")
    note = "Seconds are the least of several runs. Other work on the machine lowers the ratio of two threads most."
    console.print(note, highlight=False)


if __name__ == "__main__":
    main()
