"""The command ``ellipack``."""

import sys
from typing import NoReturn

from ellipack.cli.messages import missing_package_message

try:
    from ellipack.cli.main import main
except ModuleNotFoundError as error:
    message = missing_package_message(error)

    def main() -> NoReturn:
        """Exit with a message about the missing package."""
        sys.exit(f"ellipack: {message}")


__all__ = ["main"]
