import errno

import pytest

from ellipack.errors import StreamError
from ellipack.memory_errors import is_lack_of_memory, raise_if_memory_ran_out

SCHEMA = "row: int64\nprediction: double"
MISMATCH = "table schema does not match this writer's. table:'{}' this:'{}'"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        OSError("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
        TypeError("Got unexpected argument type <class 'str'> for compute function"),
        TypeError("A loop/promoter has already been registered with 'minimum' for (<class 'Float64DType'>, ...)"),
        ValueError("[digital envelope routines] not able to copy ctx"),
        ValueError(MISMATCH.format(SCHEMA, SCHEMA)),
    ],
)
def test_errors_of_libraries_without_memory_become_memory_errors(error: Exception) -> None:
    assert is_lack_of_memory(error)
    with pytest.raises(MemoryError) as raised:
        raise_if_memory_ran_out(error)
    assert str(raised.value) == str(error)
    caused = StreamError("p.parquet can't be read")
    caused.__cause__ = error
    assert is_lack_of_memory(caused)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("Couldn't deserialize thrift: TProtocolException: Invalid data"),
        ValueError("[digital envelope routines] unsupported"),
        TypeError("Got unexpected argument type <class 'object'> for compute function"),
        ValueError(MISMATCH.format(SCHEMA, "row: int64")),
        StreamError("rides.csv is empty: it needs a header and rows"),
    ],
)
def test_other_errors_are_left_alone(error: Exception) -> None:
    assert not is_lack_of_memory(error)
    raise_if_memory_ran_out(error)


def test_a_closed_file_is_a_lack_of_memory_only_if_arrow_was_given_an_open_one() -> None:
    error = ValueError("I/O operation on closed file")
    assert not is_lack_of_memory(error)
    with pytest.raises(MemoryError, match="closed file"):
        raise_if_memory_ran_out(error)
