"""The command `ellipack`."""

import sys
from typing import NoReturn

from ellipack.cli.messages import in_words

try:
    from ellipack.cli.main import main
except ModuleNotFoundError as missing:
    lacking = in_words(missing)

    def main() -> NoReturn:
        """Say what is missing, and how to get it."""
        sys.exit(f"ellipack: {lacking}")


__all__ = ["main"]
