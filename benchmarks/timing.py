"""How functions are timed."""

import time
from collections.abc import Callable


def best_of(repeats: int, *functions: Callable[[], object]) -> list[float]:
    """Return the least seconds that each function took, the functions taking turns.

    The least and not the mean: what else the machine does can only add. Turns, so that it adds to all alike.
    """
    least = [float("inf")] * len(functions)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            least[i] = min(least[i], time.perf_counter() - start)
    return least
