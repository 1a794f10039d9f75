"""How hard the fuzzers try: a little in every run of the tests, ``FUZZ`` times as hard when that is set."""

import os

FUZZ = int(os.environ.get("FUZZ", "1"))


def effort(quick: int) -> int:
    """Return how many examples to try, given how many a quick run tries."""
    return quick * FUZZ
