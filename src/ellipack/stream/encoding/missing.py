"""The mark of a missing value, a feature that a column gets with the first one."""

import numpy as np

from ellipack.stream.encoding.column import Event, Flags, Json
from ellipack.stream.encoding.saving import optional_whole, whole_number
from ellipack.validation import Floats


class MissingMark:
    """How many values of a column were missing, and the feature that says where.

    Attributes
    ----------
    count : how many were missing so far.
    feature : where in a row the mark stands, if there was any.
    """

    def __init__(self, count: int = 0, feature: int | None = None) -> None:
        self.count, self.feature = count, feature

    def learn(self, missing: Flags) -> list[Event]:
        """Count what is missing; return the first such row if it is the first ever."""
        found = int(np.count_nonzero(missing))
        self.count += found
        return [(int(missing.argmax()), None)] if found and self.feature is None else []

    def write(self, missing: Flags, X: Floats) -> None:
        """Write the mark, if there is one."""
        if self.feature is not None:
            X[:, self.feature] = missing

    def features(self, column: str) -> dict[int, str]:
        """Return the mark's name by its place."""
        return {} if self.feature is None else {self.feature: f"{column} is missing"}

    def to_json(self) -> Json:
        """Return all that is known."""
        return {"missing": self.count, "mark": self.feature}

    @classmethod
    def from_json(cls, data: Json) -> "MissingMark":
        """Return what `to_json` was taken of."""
        return cls(whole_number(data, "missing"), optional_whole(data, "mark"))
