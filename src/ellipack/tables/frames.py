"""Conversion of data frames and other tables to batches of Arrow tables.

pandas and polars are not imported. Their frames are recognized by their methods.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from ellipack.errors import InputError, KindError, ShapeError
from ellipack.memory_errors import raise_if_memory_ran_out
from ellipack.tabular import TableBatch
from ellipack.tabular.arrow import pa
from ellipack.tabular.table_batch import concat_tables

SOURCE: Final = "table"
"""Name of a table in Python, for messages."""

_BATCH_ROWS = 1024  # an interrupt waits for the end of a batch
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}
_INDEX_REMARK = b"ellipack.index"  # in the metadata of a schema


def to_arrow(frame: Any) -> pa.Table:
    """Return a table of any kind as an Arrow table.

    Parameters
    ----------
    frame : table
        Data frame of pandas or polars, Arrow table or record batch, any object with the Arrow PyCapsule interface,
        dictionary of columns, list of dictionaries (rows), or two-dimensional array, whose columns are called x0, x1
        and so on.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    InputError
        If it is none of these.

    Examples
    --------
    >>> to_arrow({"sky": ["blue", None], "y": [1, 2]}).to_pylist()
    [{'sky': 'blue', 'y': 1}, {'sky': None, 'y': 2}]
    """
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):  # pandas: its own conversion adds the index
        return _from_pandas(frame)
    if isinstance(frame, Mapping):
        return _from_columns({str(name): column for name, column in frame.items()})
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):
        try:
            return pa.table(frame)
        except pa.ArrowInvalid as error:  # a single column
            raise _no_table(frame) from error
    if isinstance(frame, list) and frame and all(isinstance(row, Mapping) for row in frame):
        names = list(dict.fromkeys(name for row in frame for name in row))
        return _from_columns({str(name): [row.get(name) for row in frame] for name in names})
    return _from_array(frame)


def index_remark(table: pa.Table | pa.RecordBatch) -> str:
    """Return a warning that a table lacks the index of its data frame; an empty string if nobody will miss it.

    Examples
    --------
    >>> import pandas as pd
    >>> index_remark(to_arrow(pd.DataFrame({"day": [1, 2], "y": [3, 4]}).set_index("day")))
    "the index 'day' is not a column, and so not a feature: df.reset_index() makes it one"
    """
    remark: bytes = (table.schema.metadata or {}).get(_INDEX_REMARK, b"")
    return remark.decode()


def iterate_tables(data: Any) -> Iterator[pa.Table]:
    """Yield a table, or the tables of an iterator or a list of tables, as Arrow tables."""
    is_list = isinstance(data, list | tuple) and len(data) > 0 and hasattr(data[0], "columns")
    if isinstance(data, Iterator | pa.RecordBatchReader) or is_list:
        for frame in data:
            yield to_arrow(frame)
    else:
        yield to_arrow(data)


def is_iterator(data: Any) -> bool:
    """Return whether data can be read only once."""
    return isinstance(data, Iterator | pa.RecordBatchReader)


def iterate_batches(tables: Iterable[pa.Table], first: int) -> Iterator[TableBatch]:
    """Yield the rows of tables in batches, numbered from `first` on."""
    for table in tables:
        for start in range(0, table.num_rows, _BATCH_ROWS):
            part = table.slice(start, _BATCH_ROWS)
            yield TableBatch.from_table(part, SOURCE, first)
            first += part.num_rows


def regroup_tables(
    tables: Iterable[pa.Table], first: int, batch_rows: Callable[[int, int], int]
) -> Iterator[TableBatch]:
    """Yield the rows of tables in batches that do not depend on how rows are divided into tables.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        Tables, with the same columns.
    first : int
        Number of the first row.
    batch_rows : callable
        Function of the number of rows before a batch and of the number of columns, which returns its size.

    Yields
    ------
    batch : TableBatch
    """
    held: pa.Table | None = None
    for table in tables:
        held = table if held is None else _append(held, table)
        while held.num_rows >= (size := batch_rows(first - 1, held.num_columns)):
            yield TableBatch.from_table(held.slice(0, size), SOURCE, first)
            held, first = held.slice(size), first + size
    if held is not None and held.num_rows:
        yield TableBatch.from_table(held, SOURCE, first)


def _append(table: pa.Table, other: pa.Table) -> pa.Table:
    """Return the rows of both tables."""
    names = table.schema.names
    missing = [name for name in names if name not in other.schema.names]
    if missing:
        raise InputError(f"all tables must have the columns of the first one, but one lacks: {', '.join(missing)}")
    parts = [TableBatch.from_table(each.select(names), SOURCE).table for each in (table, other) if each.num_rows]
    if not parts:
        return table
    return pa.Table.from_batches([concat_tables(parts, names)]).replace_schema_metadata(table.schema.metadata)


def with_labels(table: pa.Table, labels: Any, name: str) -> pa.Table:
    """Return a table with a column of labels."""
    if name in table.schema.names:
        raise InputError(
            f"X must not have the column {name!r}, if y holds the labels: omit y, or use TableRegressor() without a "
            "target and leave the column out of X; scoring= of scikit-learn needs labels as y"
        )
    column = _to_column(labels, name)
    if len(column) != table.num_rows:
        raise ShapeError(f"y must hold one label per row, {table.num_rows:,}, got {len(column):,}")
    return table.append_column(name, column)


def _from_pandas(frame: Any) -> pa.Table:
    """Return the columns of a data frame. The metadata has the remark of `index_remark`."""
    remark = _remark_on_index(frame.index)
    if len(frame) and not len(frame.columns):
        raise InputError("X must have at least one column, got none" + (f": {remark}" if remark else ""))
    table = _from_columns({str(name): frame.iloc[:, i] for i, name in enumerate(_unique(frame.columns))})
    return table.replace_schema_metadata({_INDEX_REMARK: remark}) if remark else table


def _remark_on_index(index: Any) -> str:
    """Return that an index with a name, or of dates, is not a column; an empty string for any other index."""
    names = ", ".join(repr(str(name)) for name in index.names if name is not None)
    kinds = {level.inferred_type for level in getattr(index, "levels", [index])}
    if not names and not kinds & {"datetime64", "datetime", "date", "period"}:
        return ""
    which = f"the index {names}" if names else "the index, which holds dates,"
    return f"{which} is not a column, and so not a feature: df.reset_index() makes it one"


def _from_columns(columns: Mapping[str, Any]) -> pa.Table:
    arrays = [_to_column(values, name) for name, values in columns.items()]
    if len({len(array) for array in arrays}) > 1:
        lengths = ", ".join(f"{name}: {len(array):,}" for name, array in zip(columns, arrays, strict=True))
        raise ShapeError(f"columns must have the same number of rows, got {lengths}")
    return pa.table(arrays, names=list(columns))


def _from_array(values: Any) -> pa.Table:
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise _no_table(values) from error
    if array.ndim != 2:
        raise _no_table(values)
    return _from_columns({f"x{i}": array[:, i] for i in range(array.shape[1])})


def _no_table(values: Any) -> InputError:
    shape = f" of shape {values.shape}" if isinstance(values, np.ndarray) else ""
    remedy = ": X.collect() makes it a data frame" if hasattr(values, "collect") else ""  # a lazy frame of polars
    return InputError(
        "X must be a data frame, an Arrow table, a dictionary of columns, a list of dictionaries, a two-dimensional "
        f"array or an iterator of these, got {type(values).__name__}{shape}{remedy}"
    )


def _to_column(values: Any, name: str) -> Any:
    """Return a column as an Arrow array; values of several types become text."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    shape = _shape(values)
    if len(shape) == 2 and shape[1] == 1:
        values = np.asarray(values)[:, 0]
    elif len(shape) != 1:
        raise ShapeError(f"column {name!r} must be one-dimensional, got shape {shape}")
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError) as error:
        raise_if_memory_ran_out(error)  # otherwise numbers would become text
        if any(isinstance(each, complex | np.complexfloating) for each in values):
            message = f"column {name!r} must hold numbers, text, dates or Booleans, got complex numbers"
            raise KindError(message) from None
        return pa.array([None if _is_missing(each) else str(each) for each in values], pa.string())


def _shape(values: Any) -> tuple[int, ...]:
    """Return the shape of a column; cells of a list may be of any kind."""
    try:
        return np.shape(values)
    except ValueError:
        return (len(values),)


def _is_missing(value: Any) -> bool:
    return type(value).__name__ in _MISSING_TYPES or (isinstance(value, float) and math.isnan(value))


def _unique(names: Iterable[Any]) -> list[Any]:
    """Return names; raise InputError if two are the same."""
    listed = list(names)
    texts = [str(name) for name in listed]
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        raise InputError(f"X must have columns with distinct names, got {twice!r} twice")
    return listed
