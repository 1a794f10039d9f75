"""The exceptions that ellipack raises on purpose.

::

    Exception
    └── EllipackError             catch this for all of them
        ├── InputError            (also a ValueError) what was passed in breaks a rule
        │   ├── KindError         (also a TypeError) no real numbers: text, dates, complex or sparse data
        │   ├── ShapeError        a wrong number of dimensions, rows or columns, or none at all
        │   ├── NonFiniteError    NaN or an infinity
        │   ├── DomainError       a number outside its range
        │   └── MetricError       not the matrix or spectrum of a metric
        ├── StreamError           a source, or a row of it, that can't be read
        └── CheckpointError       a saved file that can't be written, or is broken, foreign or too new

Every message names the thing, the rule and the value: ``radius must be > 0, got -0.1``. Whatever raised one of
them has changed nothing.
"""


class EllipackError(Exception):
    """The root of every exception that ellipack raises on purpose."""


class InputError(EllipackError, ValueError):
    """What was passed in breaks a rule."""


class KindError(InputError, TypeError):
    """Something other than real numbers."""


class ShapeError(InputError):
    """A wrong number of dimensions, rows or columns, or none at all."""


class NonFiniteError(InputError):
    """NaN or an infinity where a finite number is wanted."""


class DomainError(InputError):
    """A number outside the range that its rule allows."""


class MetricError(InputError):
    """A matrix or a spectrum that no metric has."""


class StreamError(EllipackError):
    """A source, or a row of it, that can't be read: the message says which file, row and column."""


class CheckpointError(EllipackError):
    """A saved file that can't be written, or is broken, foreign or too new."""
