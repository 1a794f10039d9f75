"""Errors other than MemoryError that Python and libraries raise if memory runs out."""

import errno
import re

_MESSAGES = re.compile(
    "|".join(
        [
            r"without exception set$",
            r"without setting an exception$",
            r"^can't allocate ",
            r"^can't start new thread$",
            r"std::bad_alloc$",
            r"Failed to launch worker thread: ",
            r"^Got unexpected argument type <class '(str|NoneType)'> for compute function$",  # which accepts both
            r"^A loop/promoter has already been registered with ",  # by NumPy itself
            r"^\[digital envelope routines\] (initialization error|not able to copy ctx)$",  # checksums of OpenSSL
            r"os.PathLike.*, not \w+Path$",
            r"^table schema does not match this writer's. table:'(?P<schema>.*)' this:'(?P=schema)'$",  # they are equal
        ]
    ),
    re.DOTALL,
)

_ARROW_MESSAGE = "I/O operation on closed file"  # of Arrow about an open file, which it had no memory to ask


def is_lack_of_memory(error: BaseException) -> bool:
    """Return whether an error, or one that caused it, was raised because memory ran out.

    Examples
    --------
    >>> is_lack_of_memory(OSError("Couldn't deserialize thrift: std::bad_alloc"))
    True
    >>> is_lack_of_memory(OSError("Couldn't deserialize thrift: TProtocolException: Invalid data"))
    False
    """
    is_one = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    if is_one or _MESSAGES.search(str(error)):
        return True
    return error.__cause__ is not None and is_lack_of_memory(error.__cause__)


def raise_if_memory_ran_out(error: Exception) -> None:
    """Raise a MemoryError in place of an error of Arrow that was raised because memory ran out.

    Call it before an error is taken for that of an invalid file or value.
    """
    if is_lack_of_memory(error) or str(error) == _ARROW_MESSAGE:
        raise MemoryError(str(error).strip()) from error
