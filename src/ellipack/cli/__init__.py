"""The command `ellipack`."""

import sys
from typing import NoReturn

try:
    from ellipack.cli.main import main
except ModuleNotFoundError as missing:
    package = (missing.name or "a package").partition(".")[0]
    if package == "ellipack":
        raise

    def main() -> NoReturn:
        """Say what is missing, and how to get it."""
        sys.exit(f"ellipack: the command line needs {package}: pip install 'ellipack[cli]'")


__all__ = ["main"]
