"""Exceptions that ellipack raises on purpose.

::

    Exception
    └── EllipackError             base class of all of them
        ├── InputError            (also a ValueError) an argument breaks a rule
        │   ├── KindError         (also a TypeError) not real numbers: text, dates, complex or sparse data
        │   ├── ShapeError        wrong number of dimensions, rows or columns
        │   ├── NonFiniteError    NaN or an infinity
        │   ├── DomainError       a number outside its range
        │   └── MetricError       not the matrix or spectrum of a metric
        ├── ReentrantCallError    (also a RuntimeError) a signal handler changes a learner that is learning
        ├── WorkerError           (also a RuntimeError) a worker that learns rows has ended, or takes too long
        ├── StreamError           a source, or one of its rows, cannot be read
        └── ModelFileError        a saved file cannot be written, or is damaged, of another format or too new

    UserWarning
    └── TableWarning              a column may have been read in another way than you expect

Every message names the thing, the rule and the value: ``radius must be > 0, got -0.1``. Unless its documentation says
otherwise, a call that raises one of them has changed nothing.

Examples
--------
>>> from ellipack import PackingRegressor
>>> from ellipack.errors import EllipackError
>>> try:
...     PackingRegressor().fit([[2.0, 0.0]], [0.5])
... except EllipackError as error:
...     print(f"{type(error).__name__}: {error}")
DomainError: X must lie in the unit ball (norm <= 1), got norm 2 at row 0
"""


class EllipackError(Exception):
    """Base class of the exceptions that ellipack raises on purpose."""


class InputError(EllipackError, ValueError):
    """An argument breaks a rule."""


class KindError(InputError, TypeError):
    """An argument does not hold real numbers."""


class ShapeError(InputError):
    """An array has a wrong number of dimensions, rows or columns."""


class NonFiniteError(InputError):
    """An array holds NaN or an infinity."""


class DomainError(InputError):
    """A number is outside its range."""


class MetricError(InputError):
    """A matrix or a spectrum does not define a metric."""


class ReentrantCallError(EllipackError, RuntimeError):
    """A signal handler or a callback tries to change a learner or an index that the same thread is changing."""


class WorkerError(EllipackError, RuntimeError):
    """A worker that learns a shard of rows has ended, or takes too long.

    The learner is as before the step to which the shard belongs: it has learned the rows of all earlier steps.
    """


class StreamError(EllipackError):
    """A source, or one of its rows, cannot be read. The message names the file, the row and the column."""


class ModelFileError(EllipackError):
    """A saved file cannot be written, or is damaged, of another format or too new."""


class TableWarning(UserWarning):
    """A column of a table may have been read in another way than the user expects."""
