"""Ask the index in a process of its own: ``python -m benchmarks.first_answers``.

Prints the seconds from the end of the imports to the last answer.
"""

import time

from ellipack.compiling.tasks import index

if __name__ == "__main__":
    start = time.perf_counter()
    index()
    print(time.perf_counter() - start)
