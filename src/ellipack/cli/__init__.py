"""The command `ellipack`."""

import sys
from typing import NoReturn

from ellipack.cli.messages import missing_package_message

try:
    from ellipack.cli.main import main
except ModuleNotFoundError as missing:
    lacking = missing_package_message(missing)

    def main() -> NoReturn:
        """Say what is missing, and how to get it."""
        sys.exit(f"ellipack: {lacking}")


__all__ = ["main"]
