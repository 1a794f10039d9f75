"""How rows are cut into steps, and steps into shards, for a learner on many workers."""

import math
from dataclasses import dataclass
from itertools import pairwise

from ellipack.validation import check_in_range, check_integer

_MAX_SHARDS = 4096
_MAX_ROWS_FACTOR = 8  # times `min_rows`; longer shards win little, and memory would grow with the stream
_MIN_FIRST_ROUND = 512  # before, everything changes too fast to be learned in parts


@dataclass(frozen=True)
class Sharding:
    """How rows are cut into steps and shards. The result of learning depends on it.

    Parameters
    ----------
    shards : int, default 8
        Largest number of shards of a step, which are learned at the same time.
    exchange : float, default 0.0625
        Number of rows of a step, relative to the number of rows before it. After a step, what its shards learned is
        merged, and all know it.
    min_rows : int, default 8192
        Smallest number of rows of a shard. Steps that are too short for two shards are learned by one worker. To send
        the state to a worker and to merge costs as much as some thousand rows if there are many centers. A shard has at
        most eight times as many rows, so that memory does not grow with the stream.

    Raises
    ------
    DomainError
        If a value is out of range.

    Examples
    --------
    >>> Sharding(exchange=2.0)
    Traceback (most recent call last):
    ellipack.errors.DomainError: exchange must be from 0.001 to 1, got 2.0
    """

    shards: int = 8
    exchange: float = 0.0625
    min_rows: int = 8192

    def __post_init__(self) -> None:
        values = {
            "shards": check_integer(self.shards, "shards", 1, _MAX_SHARDS),
            "exchange": check_in_range(self.exchange, "exchange", 1e-3, 1.0),
            "min_rows": check_integer(self.min_rows, "min_rows", 1),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def first_round(self) -> int:
        """Number of rows that one worker learns before the first step with several shards."""
        return max(_MIN_FIRST_ROUND, math.ceil(2 * self.min_rows / self.exchange))

    def next_step(self, clock: int, phase_end: int, rows: int) -> list[int]:
        """Return the number of rows of each shard of the next step.

        Parameters
        ----------
        clock : int
            Number of rows learned so far.
        phase_end : int
            Last round of the phase.
        rows : int
            Number of rows to learn, at least 1.

        Returns
        -------
        sizes : list of int
            A single number is a step for one worker, which may continue beyond the end of the phase.

        Examples
        --------
        >>> sharding = Sharding(shards=4)
        >>> sharding.next_step(clock=0, phase_end=4, rows=10**7)
        [262144]
        >>> sharding.next_step(clock=800_000, phase_end=1_000_000, rows=10**7)
        [12500, 12500, 12500, 12500]
        >>> sharding.next_step(clock=9_000_000, phase_end=12_000_000, rows=10**7)
        [62500, 62500, 62500, 62500]
        """
        if self.shards == 1:
            return [rows]
        if clock < self.first_round:
            return [min(rows, self.first_round - clock)]
        left = phase_end - clock
        most = min(max(1, int(self.exchange * clock)), _MAX_ROWS_FACTOR * self.shards * self.min_rows)
        steps = math.ceil(left / most)
        size = min(rows, math.ceil(left / steps))
        return [each.stop - each.start for each in split(size, max(1, min(self.shards, size // self.min_rows)))]


def split(rows: int, shards: int) -> list[slice]:
    """Cut consecutive rows into shards of nearly equal size.

    Examples
    --------
    >>> split(10, 3)
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    return [slice(*ends) for ends in pairwise(rows * k // shards for k in range(shards + 1))]
