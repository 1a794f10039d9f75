"""Rows of Dask arrays, Dask data frames and Parquet files, as partitions that workers read."""

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pyarrow.parquet as pq
from dask.delayed import delayed
from numpy.typing import NDArray

from ellipack.errors import InputError, KindError, ShapeError, StreamError
from ellipack.estimators.input_checks import key_columns
from ellipack.learners.metric.row_checks import Rows
from ellipack.row_keys import RowKeys
from ellipack.validation import Floats

MAX_PARTITION_ROWS = 65_536  # of a partition of a Parquet file, unless a row group has more


class Columns(NamedTuple):
    """Columns of a data frame.

    Attributes
    ----------
    features : tuple of str
        Names of the features; empty for arrays.
    target : str
        Name of the label.
    by : tuple of str or int
        Names of the columns that are the key of a row, or their numbers; empty without keys.
    """

    features: tuple[str, ...]
    target: str
    by: tuple[str | int, ...]


class Partition(NamedTuple):
    """Consecutive rows that a worker reads at once.

    Attributes
    ----------
    name : str
        What messages call it, such as a file.
    first : int
        Number of its first row in what `name` stands for, from 0.
    size : int
        Number of rows.
    read : callable or Delayed
        Function without arguments that returns a pandas data frame, or a delayed data frame or pair of arrays.
    """

    name: str
    first: int
    size: int
    read: Any


@dataclass(frozen=True)
class Source:
    """Rows in their order.

    Attributes
    ----------
    partitions : list of Partition
        Partitions, without empty ones.
    columns : Columns
        Columns of data frames.
    dimension : int
        Number of features.
    """

    partitions: list[Partition]
    columns: Columns
    dimension: int

    @property
    def starts(self) -> list[int]:
        """Number of the first row of each partition, and the number of all rows."""
        return list(accumulate((each.size for each in self.partitions), initial=0))


def state_before(learner: Any, source: Source) -> Any:
    """Return the state from which a learner continues with the rows of a source, or raise `InputError`."""
    if not source.partitions:
        raise ShapeError("X must have at least one row, got none")
    if not learner.__sklearn_is_fitted__():
        return learner._initial_state(source.dimension)
    if learner.n_features_in_ != source.dimension:
        raise ShapeError(f"X must have {learner.n_features_in_} features, as before, got {source.dimension}")
    known, names = getattr(learner, "feature_names_in_", None), source.columns.features
    if known is not None and names and list(known) != list(names):
        raise InputError(f"columns must be {', '.join(known)}, as before, got {', '.join(names)}")
    return learner.state_


def open_source(X: Any, y: Any, target: str | None, by: Any) -> Source:
    """Return the rows of a Dask array or data frame, or of Parquet files.

    Parameters
    ----------
    X : Dask array, Dask data frame, or path of Parquet files
        A path is a file, a folder, a pattern such as ``"data/*.parquet"``, or a list of them. Files are learned in the
        order of their names, those of a list in its order.
    y : Dask array or None
        Labels of an array.
    target : str or None
        Column of the labels of a data frame or of files.
    by : str, int, sequence of them or None
        Columns that are the key of a row.

    Returns
    -------
    source : Source

    Raises
    ------
    InputError
        If an argument is not valid, or a column cannot be learned.
    """
    names = () if by is None else tuple(key_columns(by))
    if isinstance(X, da.Array):
        return _open_arrays(X, y, target, names)
    if y is not None or target is None:
        raise InputError("target must be the name of the column of labels, and y None, unless X is a Dask array")
    if isinstance(X, dd.DataFrame):
        columns = _check_columns(X.dtypes, target, names)
        sizes = [int(size) for size in X.map_partitions(len).compute()]
        parts = [
            Partition(f"partition {k}", 0, size, part)
            for k, (size, part) in enumerate(zip(sizes, X.to_delayed(), strict=True))
        ]
    else:
        paths = find_parquet_files(X)
        columns = _check_columns(_empty_frame(paths[0]).dtypes, target, names)
        parts = [part for path in paths for part in _open_parquet(path)]
    return Source([part for part in parts if part.size], columns, len(columns.features))


def _open_arrays(X: Any, y: Any, target: str | None, by: tuple[str | int, ...]) -> Source:
    if target is not None or not isinstance(y, da.Array):
        raise InputError("y must be a Dask array of labels, and target None, if X is a Dask array")
    if X.ndim != 2 or y.ndim != 1:
        raise ShapeError(f"X must have two dimensions and y one, got {X.ndim} and {y.ndim}")
    if not all(np.issubdtype(each.dtype, np.number) or each.dtype == bool for each in (X, y)):
        raise KindError(f"X and y must hold real numbers, got {X.dtype} and {y.dtype}")
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    if np.isnan(y.shape[0]):
        y = y.compute_chunk_sizes()
    if X.shape[0] != y.shape[0]:
        raise ShapeError(f"y must have one label per row, {X.shape[0]}, got {y.shape[0]}")
    X = X.rechunk({1: -1})
    y = y.rechunk((X.chunks[0],))
    blocks, labels = X.to_delayed()[:, 0], y.to_delayed()
    parts = [
        Partition(f"chunk {k}", 0, size, delayed(_pair)(blocks[k], labels[k])) for k, size in enumerate(X.chunks[0])
    ]
    return Source([part for part in parts if part.size], Columns((), "", by), X.shape[1])


def _pair(X: Any, y: Any) -> tuple[Any, Any]:
    return X, y


def find_parquet_files(paths: Any) -> list[Path]:
    """Return the Parquet files that a path, a folder, a pattern or a list of them stands for, in their order."""
    if isinstance(paths, str | Path):
        text = str(paths)
        found = [Path(text)] if Path(text).is_file() else sorted(map(Path, glob.glob(text)))
        if Path(text).is_dir():
            found = sorted(Path(text).glob("*.parquet"))
        if not found:
            raise StreamError(f"{text} must be a Parquet file, a folder with some, or a pattern, found none")
        return found
    if not isinstance(paths, Sequence):
        raise KindError(f"X must be a Dask array, a Dask data frame or paths, got {type(paths).__name__}")
    return [path for each in paths for path in find_parquet_files(each)]


def _open_parquet(path: Path) -> list[Partition]:
    """Return the partitions of a Parquet file: consecutive row groups."""
    metadata = pq.read_metadata(path)
    parts: list[Partition] = []
    groups: list[int] = []
    first = size = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if groups and size + rows > MAX_PARTITION_ROWS:
            parts.append(Partition(str(path), first, size, _ReadGroups(path, tuple(groups))))
            groups, first, size = [], first + size, 0
        groups.append(group)
        size += rows
    return [*parts, Partition(str(path), first, size, _ReadGroups(path, tuple(groups)))]


class _ReadGroups(NamedTuple):
    """Reads row groups of a Parquet file."""

    path: Path
    groups: tuple[int, ...]

    def __call__(self) -> Any:
        with pq.ParquetFile(self.path) as file:
            return file.read_row_groups(list(self.groups)).to_pandas()


def _empty_frame(path: Path) -> Any:
    """Return a data frame with the columns of a Parquet file, without rows."""
    try:
        return pq.read_schema(path).empty_table().to_pandas()
    except (OSError, ValueError) as error:
        raise StreamError(f"{path} must be a Parquet file: {error}") from error


def _check_columns(dtypes: Any, target: str, by: tuple[str | int, ...]) -> Columns:
    """Return the columns of a data frame. Keys may be of any kind; other columns must be numbers."""
    names = [str(name) for name in dtypes.index]
    for name in (target, *by):
        if str(name) not in names:
            raise InputError(f"columns must contain {name!r}, got {', '.join(names)}")
    if target in map(str, by):
        raise InputError(f"by must not be the target, because a row is predicted without it, got {target!r}")
    features = [name for name in names if name != target and (_is_numeric(dtypes[name]) or name not in by)]
    for name in (*features, target):
        if not _is_numeric(dtypes[name]):
            raise KindError(
                f"column {name!r} must hold numbers, got {dtypes[name]}: drop or encode it; on one machine, "
                "TableRegressor learns from text and dates"
            )
    return Columns(tuple(features), target, by)


def _is_numeric(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf"


def read_rows(partition: Partition, columns: Columns, content: Any = None) -> Rows:
    """Return the rows of a partition as arrays, on a worker.

    Parameters
    ----------
    partition : Partition
        The partition.
    columns : Columns
        Columns of a data frame.
    content : data frame or pair of arrays, optional
        Its content; by default, it is read.

    Returns
    -------
    rows : Rows

    Raises
    ------
    StreamError
        If a value is missing or not finite. The message names the partition, the row and the column.
    """
    rows, keys = read_keyed_rows(partition, columns, content)
    return rows._replace(keys=keys.hashes)


def read_keyed_rows(partition: Partition, columns: Columns, content: Any = None) -> tuple[Rows, RowKeys]:
    """Return the rows of a partition as arrays, and their keys with the values that they stand for; see `read_rows`."""
    try:
        content = partition.read() if content is None else content
    except (OSError, ValueError) as error:
        raise StreamError(f"{partition.name} cannot be read: {error}") from error
    if isinstance(content, tuple):
        X, y = (np.ascontiguousarray(each, dtype=np.float64) for each in content)
        keys = [X[:, int(column)] for column in columns.by]
        names: Sequence[str] = [str(k) for k in range(X.shape[1])]
    else:
        X = np.ascontiguousarray(_to_floats(content, columns.features, partition))
        y = np.ascontiguousarray(_to_floats(content, (columns.target,), partition)[:, 0])
        keys = [content[column].to_numpy() for column in columns.by]
        names = columns.features
    if len(X) != partition.size:
        raise StreamError(f"{partition.name} must have {partition.size} rows, as before, got {len(X)}")
    _check_finite(partition, X, names)
    _check_finite(partition, y[:, None], [columns.target or "y"])
    return Rows(X, y), RowKeys.of(keys)


def _to_floats(frame: Any, names: tuple[str, ...], partition: Partition) -> Floats:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise StreamError(f"{partition.name} must have the columns of the first partition, misses {missing[0]!r}")
    try:
        table: Floats = frame[list(names)].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise StreamError(f"{partition.name} must hold numbers in columns {', '.join(names)}: {error}") from error
    return table


def _check_finite(partition: Partition, table: Floats, names: Sequence[str]) -> None:
    invalid: NDArray[np.bool_] = ~np.isfinite(table)
    if invalid.any():
        row, column = (int(place) for place in np.argwhere(invalid)[0])
        raise StreamError(
            f"{partition.name}, row {partition.first + row}, column {names[column]!r}: must be a finite number, got "
            f"{table[row, column]}"
        )
