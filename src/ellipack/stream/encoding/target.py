"""The column that is to be predicted."""

import numpy as np

from ellipack.stream.arrow import pa
from ellipack.stream.encoding.column import Json
from ellipack.stream.encoding.numbers import LARGEST_LABEL, Reals, parse_booleans, parse_numbers, why_no_number
from ellipack.stream.encoding.saving import broken, text
from ellipack.stream.sources.cells import shown


class Target:
    """The labels: numbers, or yes and no as 1 and 0. A label that is missing is a bad one."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind

    def parse(self, column: pa.Array) -> Reals:
        """Return labels."""
        cells = parse_numbers(column) if self.kind == "number" else parse_booleans(column)
        return Reals(cells.values, cells.bad | np.isnan(cells.values) | (np.abs(cells.values) > LARGEST_LABEL))

    def refusal(self, value: str | None) -> str:
        """Return why a label can't be used."""
        if value is None:
            return "the label is missing"
        if self.kind == "boolean":
            return f"{shown(value)} is not yes or no"
        return why_no_number(value, LARGEST_LABEL)

    def to_json(self) -> Json:
        """Return all that is known of it."""
        return {"name": self.name, "kind": self.kind}

    @classmethod
    def from_json(cls, data: Json) -> "Target":
        """Return what `to_json` was taken of."""
        kind = text(data, "kind")
        if kind not in ("number", "boolean"):
            raise broken("kind", "number or boolean", kind)
        return cls(text(data, "name"), kind)
