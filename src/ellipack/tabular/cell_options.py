"""How cells are written, as far as the user says so: `CellOptions`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ellipack.errors import DomainError, ModelFileError
from ellipack.tabular.columns import JsonDict, get_entry, get_optional_str, get_str, get_strs, invalid_entry
from ellipack.tabular.number_format import DECIMALS, THOUSANDS, Separators
from ellipack.tabular.table_batch import is_valid_unicode
from ellipack.tabular.time_format import TimeFormat


@dataclass(frozen=True)
class CellOptions:
    """How the cells of a table are written. What is not given is inferred for each column from the first rows.

    Attributes
    ----------
    decimal : {".", ","} or None, default None
        Character before the decimals of numbers.
    thousands : {"", ",", ".", " ", "'", "_"} or None, default None
        Character between groups of three digits; an empty string if there is none.
    na : str or tuple of str, default ()
        Strings that mean a missing value, in addition to `MISSING_VALUES`.
    time_formats : mapping of str to str
        Formats of dates and times by column. See `TimeFormat`.
    trend : str or tuple of str, default ()
        Columns of dates whose days since the first row are a feature, too.
    """

    decimal: str | None = None
    thousands: str | None = None
    na: tuple[str, ...] = ()
    time_formats: Mapping[str, str] = field(default_factory=dict)
    trend: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.decimal not in (None, *DECIMALS):
            raise DomainError(f"decimal must be '.' or ',', got {self.decimal!r}")
        if self.thousands not in (None, *THOUSANDS):
            raise DomainError(f"thousands must be one of {', '.join(map(repr, THOUSANDS))}, got {self.thousands!r}")
        if self.thousands and self.thousands == self.decimal:
            raise DomainError(f"decimal and thousands must be different characters, got {self.decimal!r} for both")
        for name in ("na", "trend"):
            object.__setattr__(self, name, _texts(getattr(self, name), name))
        for text in self.na:
            if not is_valid_unicode(text):
                raise DomainError(f"na must be text in UTF-8, got {text!r}")
        formats: Any = self.time_formats
        if not isinstance(formats, Mapping) or not all(isinstance(pattern, str) for pattern in formats.values()):
            raise DomainError(f"time_formats must be a dictionary from names of columns to formats, got {formats!r}")
        for pattern in formats.values():
            TimeFormat(pattern)

    @property
    def separators(self) -> Separators:
        """Separators of numbers. If only the thousands separator is given, the decimal character is the other one."""
        others = {",": ".", ".": ","}
        return Separators(self.decimal or others.get(self.thousands or ""), self.thousands)

    def to_dict(self) -> JsonDict:
        """Return the options as JSON-compatible data."""
        own = {"decimal": self.decimal, "thousands": self.thousands, "na": list(self.na), "trend": list(self.trend)}
        return own | {"time_formats": dict(self.time_formats)}

    @classmethod
    def from_dict(cls, data: JsonDict) -> "CellOptions":
        """Restore options; raise ModelFileError if they are invalid."""
        decimal, thousands = get_optional_str(data, "decimal"), get_optional_str(data, "thousands")
        formats, na, trend = (
            get_entry(data, "time_formats"),
            tuple(get_strs(data, "na")),
            tuple(get_strs(data, "trend")),
        )
        if not isinstance(formats, dict):
            raise invalid_entry("time_formats", "a dictionary", formats)
        try:
            return cls(decimal, thousands, na, {name: get_str(formats, name) for name in formats}, trend)
        except DomainError as error:
            raise ModelFileError(f"the saved encoder is invalid: {error}") from error


def _texts(value: object, name: str) -> tuple[str, ...]:
    """Return strings as a tuple; a single one counts as a tuple of one."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Collection) or not all(isinstance(text, str) for text in value):
        raise DomainError(f"{name} must be a string, or a tuple of strings, got {value!r}")
    return tuple(value)
