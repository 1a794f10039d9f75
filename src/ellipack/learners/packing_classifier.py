"""Classification over packings whose radius shrinks with mistakes instead of time.

The conclusions of the paper ask for this variant of Algorithm 1. A packing tells one class from the rest: it predicts
the mean of the labels 0 and 1 of the nearest center, and above 1/2 it votes for the class. If the vote is right,
nothing changes. If not, the packing counts the mistake and runs a round of Algorithm 1, whose clock is the number of
mistakes. Theorem 1 then holds on the rounds with mistakes; see `ellipack.theory.mistakes`.

Two classes share one packing, for the second of them. Three and more classes have a packing each, and the largest mean
wins. A class may appear at any time. Its packing starts empty, which is exact: it would have been right about all
earlier rows. When a third class appears, the packing of the second class is mirrored for the first: its labels are
swapped.

References
----------
.. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
   section 5.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack._core import PackingClassifierCore
from ellipack.errors import ModelFileError, ShapeError
from ellipack.learners.short_calls import row_slices
from ellipack.learners.units import UnitChange, insert_features
from ellipack.learners.whitened import check_positive_definite, whitened_rows_per_call
from ellipack.locks import LearnLock
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats, Ints, check_in_unit_ball, check_rows

_ROUNDS_PER_CALL = 4096  # of the core; between calls, other threads can predict and interrupts are handled
_SLACK = 1e-6  # tolerance for rounding errors
_MAX_MISTAKES = 2**52  # in a file; floats represent them exactly
_MAX_CLASSES = 2**16  # in a file

Classes = NDArray[Any]
"""Labels of classes: booleans, integers, floats or strings."""


class Centers(NamedTuple):
    """Centers of all packings, one packing after the other.

    Attributes
    ----------
    coordinates : array of shape (n, d)
        Whitened coordinates.
    label_sums : array of float, shape (n,)
        Number of labels of the class.
    label_counts : array of int, shape (n,)
        Number of labels, which is the number of mistakes.
    creation_mistakes : array of int, shape (n,)
        Mistake of the packing at which the center was added.
    sizes : array of int, shape (n_packings,)
        Number of centers of each packing.
    """

    coordinates: Floats
    label_sums: Floats
    label_counts: Ints
    creation_mistakes: Ints
    sizes: Ints


class PackingClassifierState:
    """State of the classifier.

    Everything is kept in one attribute, which is replaced as a whole. Threads and interrupts always see parts that
    match.

    Attributes
    ----------
    parts : tuple of (Metric, array, PackingClassifierCore)
        Metric, classes in ascending order, and compiled core.
    learn_lock : LearnLock
        Lock that a thread holds while it changes the state.
    """

    def __init__(self, metric: Metric, classes: Classes, core: PackingClassifierCore) -> None:
        self.parts = metric, classes, core
        self.learn_lock = LearnLock()

    @property
    def metric(self) -> Metric:
        """Metric of spectral norm 1."""
        return self.parts[0]

    @property
    def classes(self) -> Classes:
        """Classes in ascending order."""
        return self.parts[1]

    @property
    def core(self) -> PackingClassifierCore:
        """Compiled core: the packings."""
        return self.parts[2]

    @property
    def centers(self) -> Centers:
        """Copies of the centers of all packings."""
        return Centers(*self.core.to_arrays()[:5])

    def in_units(self, change: UnitChange) -> "PackingClassifierState":
        """Return a copy with rows in other units."""
        centers = self.centers
        return self._with(
            self.metric, centers._replace(coordinates=change.convert_whitened(centers.coordinates, self.metric))
        )

    def with_added_features(self, count: int) -> "PackingClassifierState":
        """Return a copy with features added as last columns, each with an eigenvalue of 1."""
        metric, centers = self.metric, self.centers
        inserted = insert_features(centers.coordinates, metric, count)
        return self._with(metric.with_added_features(count), centers._replace(coordinates=inserted))

    def with_added_class(self, label: Classes) -> "PackingClassifierState":
        """Return a copy with one more class, which is the only entry of an array."""
        metric, classes, core = self.parts
        if len(classes) == 0:
            return PackingClassifierState(metric, label.copy(), core.copy())
        larger = np.union1d(classes, label.astype(object) if classes.dtype == object else label)
        if len(classes) < 2:  # two classes share the packing that exists already
            return PackingClassifierState(metric, larger, core.copy())
        centers = _mirrored(self.centers) if len(classes) == 2 else self.centers
        sizes = np.insert(centers.sizes, int(np.searchsorted(larger, label)[0]), 0)
        return self._with(metric, centers._replace(sizes=sizes), larger)

    def _with(self, metric: Metric, centers: Centers, classes: Classes | None = None) -> "PackingClassifierState":
        """Return a state with other centers in a metric."""
        core = PackingClassifierCore(*centers, rank_starts(metric.eigenvalues), self.core.ball_clocks)
        return PackingClassifierState(metric, self.classes if classes is None else classes, core)


def _mirrored(centers: Centers) -> Centers:
    """Return a packing with swapped labels, followed by the packing itself."""
    swapped = centers._replace(label_sums=centers.label_counts - centers.label_sums)
    return Centers(*(np.concatenate(pair) for pair in zip(swapped, centers, strict=True)))


def init(metric: Metric, classes: ArrayLike = (), *, ball_clocks: bool = False) -> PackingClassifierState:
    """Return the initial state.

    Parameters
    ----------
    metric : Metric
        Positive definite metric of spectral norm 1.
    classes : array-like, default ()
        Classes that are known from the start.
    ball_clocks : bool, default False
        Whether the radius of a ball depends on its own mistakes instead of those of its packing.

    Returns
    -------
    state : PackingClassifierState

    Examples
    --------
    >>> state = init(Metric.identity(1), ["left", "right"])
    >>> learn(state, [[0.5], [0.6], [0.6]], np.array(["right"] * 3)).tolist()
    ['left', 'right', 'right']
    >>> state.core.mistakes.tolist()
    [1]
    """
    known, starts = np.unique(np.asarray(classes)), rank_starts(check_positive_definite(metric).eigenvalues)
    core = PackingClassifierCore(metric.dimension, starts, _packing_count(len(known)), ball_clocks)
    return PackingClassifierState(metric, known, core)


def _packing_count(n_classes: int) -> int:
    """Return the number of packings: one for up to two classes."""
    return n_classes if n_classes > 2 else 1


def predict(state: PackingClassifierState, X: ArrayLike) -> Floats:
    """Return the estimated probability of each class without a change of the state.

    Parameters
    ----------
    state : PackingClassifierState
        The state.
    X : array-like of shape (n, d)
        Rows in the unit ball.

    Returns
    -------
    probabilities : array of shape (n, n_classes)
        For two classes the mean label and its complement; for more, the means of all packings divided by their sum.
    """
    metric, classes, core = state.parts
    table = check_in_unit_ball(check_rows(X, metric.dimension))
    parts = row_slices(len(table), whitened_rows_per_call(metric.dimension, int(core.mistakes.sum())))
    if len(parts) > 1:
        core = core.copy()  # other threads may learn between two calls
    means = np.concatenate([core.predict(metric.whiten(table[part])) for part in parts])
    return _probabilities(means, len(classes))


def learn(state: PackingClassifierState, X: ArrayLike, y: Classes, classes: Classes | None = None) -> Classes:
    """Run one round for each row: predict its class, then learn it.

    A class that is not known yet is added in the round in which it first appears, after the prediction. Predictions
    and state do not depend on how rows are grouped into calls, bit for bit. An interrupt leaves the state of a
    completed round.

    Parameters
    ----------
    state : PackingClassifierState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows in the unit ball.
    y : array of shape (n,)
        Class of each row.
    classes : array, optional
        Classes to know before these rows.

    Returns
    -------
    predictions : array of shape (n,)
        Predicted classes, each made before its label was learned. If no class was known, the first one is the label
        itself.
    """
    with state.learn_lock.turn:
        table = check_in_unit_ball(check_rows(X, state.metric.dimension))
        if y.shape != (len(table),):
            raise ShapeError(f"y must hold one label per row: {len(table)} rows, got {y.size} labels")
        if classes is not None:
            _add_classes(state, classes)
        new_rows = np.flatnonzero(_are_new(y, state.classes))
        if len(new_rows) == 0:
            return _learn_known(state, table, y)
        _, first = np.unique(y[new_rows], return_index=True)
        starts = sorted({0, *new_rows[first].tolist()})
        parts = [slice(a, b) for a, b in zip(starts, [*starts[1:], len(table)], strict=True)]
        return np.concatenate([_learn_part(state, table[part], y[part]) for part in parts])


def _add_classes(state: PackingClassifierState, classes: Classes) -> None:
    """Add classes that are not known yet."""
    larger = state
    for label in np.setdiff1d(classes, state.classes):
        larger = larger.with_added_class(np.array([label], dtype=classes.dtype))
    state.parts = larger.parts


def _learn_part(state: PackingClassifierState, table: Floats, y: Classes) -> Classes:
    """Learn rows of which only the first may have a class that is not known yet."""
    if not _are_new(y[:1], state.classes)[0]:
        return _learn_known(state, table, y)
    # The first row is learned with the larger state before it replaces the state: its round is complete or did not run.
    larger = state.with_added_class(y[:1])
    first = _learn_known(larger, table[:1], y[:1])
    if len(state.classes):
        first = _winners(predict(state, table[:1]), state.classes)
    state.parts = larger.parts
    return np.concatenate([first, _learn_known(state, table[1:], y[1:])])


def _learn_known(state: PackingClassifierState, table: Floats, y: Classes) -> Classes:
    """Learn rows of known classes, and return the classes predicted before each."""
    metric, classes, core = state.parts
    if len(table) == 0:
        return classes[:0]
    # The packing of two classes is that of the second one.
    packings = np.searchsorted(classes, y).astype(np.int64) - (len(classes) <= 2)
    most = min(_ROUNDS_PER_CALL, whitened_rows_per_call(metric.dimension, int(core.mistakes.sum())))
    batches = row_slices(len(table), most)
    means = np.concatenate([core.learn(metric.whiten(table[batch]), packings[batch]) for batch in batches])
    return _winners(_probabilities(means, len(classes)), classes)


def add_features(state: PackingClassifierState, count: int) -> None:
    """Add features as last columns, each with an eigenvalue of 1. They were 0 in all earlier rows."""
    with state.learn_lock.turn:
        state.parts = state.with_added_features(count).parts


def _are_new(labels: Classes, classes: Classes) -> NDArray[np.bool_]:
    """Return for each label whether it is not one of the classes."""
    if len(classes) == 0:
        return np.ones(len(labels), dtype=np.bool_)
    nearest = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.asarray(classes[nearest] != labels, dtype=np.bool_)


def _winners(probabilities: Floats, classes: Classes) -> Classes:
    """Return the most probable class of each row, the first of equals."""
    return np.asarray(classes[probabilities.argmax(axis=1)])


def _probabilities(means: Floats, n_classes: int) -> Floats:
    """Return the probabilities of the classes from the predictions of the packings."""
    if n_classes < 2:
        return np.ones((len(means), 1))
    if n_classes == 2:
        return np.concatenate([1 - means, means], axis=1)
    sums = means.sum(axis=1, keepdims=True)
    return np.where(sums > 0, means, 1.0) / np.where(sums > 0, sums, n_classes)


def to_archive(state: PackingClassifierState) -> Archive:
    """Return an archive of a state, with copies of its arrays."""
    metric, classes, core = state.parts
    centers = Centers(*core.to_arrays()[:5])
    kind = "str" if classes.dtype.kind == "U" else classes.dtype.name
    facts = {"classes": classes.tolist(), "class_type": kind, "ball_clocks": core.ball_clocks}
    return Archive(facts).with_parts(metric=metric.to_archive().copy(), centers=Archive(arrays=centers._asdict()))


def from_archive(saved: Archive, d: int) -> PackingClassifierState:
    """Restore a state from an archive.

    Parameters
    ----------
    saved : Archive
        The archive.
    d : int
        Number of features.

    Returns
    -------
    state : PackingClassifierState

    Raises
    ------
    ModelFileError
        If the archive is not valid.
    """
    metric, classes = Metric.from_archive(saved.part("metric"), d), _restore_classes(saved)
    part = saved.part("centers")
    count = part.shape("coordinates", 2)[0]
    centers = Centers(
        coordinates=part.floats_between(-1.0 - _SLACK, 1.0 + _SLACK, "coordinates", count, d),
        label_sums=part.floats("label_sums", count),
        label_counts=part.counts("label_counts", count, _MAX_MISTAKES, least=1),
        creation_mistakes=part.ints("creation_mistakes", count, least=1, most=_MAX_MISTAKES),
        sizes=part.ints("sizes", _packing_count(len(classes)), most=count),
    )
    sums = centers.label_sums
    if (sums % 1 != 0).any() or (sums < 0).any() or (sums > centers.label_counts).any():
        raise ModelFileError(f"{part.prefix}label_sums must be sums of labels 0 and 1")
    if len(classes) == 1 and count:
        raise ModelFileError(f"{part.prefix}coordinates must be empty for a single class, got {count} rows")
    try:
        core = PackingClassifierCore(*centers, rank_starts(metric.eigenvalues), saved.fact("ball_clocks", bool))
    except ValueError as error:
        raise ModelFileError(f"{part.prefix}{error}") from error
    return PackingClassifierState(metric, classes, core)


_CLASS_TYPES: dict[str, tuple[Any, type]] = {
    "bool": (np.bool_, bool),
    "int64": (np.int64, int),
    "float64": (np.float64, float),
    "str": (np.str_, str),
    "object": (object, str),
}
"""Array type and Python type of the classes, by name."""


def _restore_classes(saved: Archive) -> Classes:
    """Return the classes from an archive: different values of one type in ascending order."""
    values, kind = saved.fact("classes", list), saved.fact("class_type", str)
    if kind not in _CLASS_TYPES:
        raise ModelFileError(f"{saved.prefix}class_type must be one of {', '.join(_CLASS_TYPES)}, got {kind!r}")
    array_type, python_type = _CLASS_TYPES[kind]
    if not values or len(values) > _MAX_CLASSES or not all(type(value) is python_type for value in values):
        raise ModelFileError(f"{saved.prefix}classes must be 1 to {_MAX_CLASSES} values of type {kind}")
    try:
        classes: Classes = np.array(values, dtype=array_type)
    except OverflowError as error:
        raise ModelFileError(f"{saved.prefix}classes must be values of type {kind}") from error
    if not all(a < b for a, b in pairwise(values)):
        raise ModelFileError(f"{saved.prefix}classes must be in ascending order")
    return classes
