"""Locally adaptive regression with a tree of packings.

Each level of the tree is a packing with its own radius. A row descends from the root: at each level to the nearest
child of the current node, or to a new child at the row itself if that is beyond the radius. The nodes on this path are
awake. Each predicts the mean of its labels, a new one that of its parent. The prediction is their weighted mean. The
weights on the path are then multiplied by ``exp(-loss / 2)`` and by a common factor that keeps their sum. The regret
against every pruning of the tree is bounded; see `ellipack.theory.prunings`.

In the original, a node without labels predicts a constant. The mean of its parent is as good for the bound, which
allows any number in [0, 1], and better in practice. The root, which the original has no node for, adds the mean of all
labels. Any Mahalanobis metric takes the place of the Euclidean one, and its effective rank that of the dimension.

References
----------
.. [1] I. Kuzborskij and N. Cesa-Bianchi. Locally-Adaptive Nonparametric Online Learning. NeurIPS 2020.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import DeferredCalibration, PackingTreeCore
from ellipack.errors import ModelFileError
from ellipack.learners.intervals import NO_INTERVALS, WantedIntervals, calibration_from_archive, calibration_to_archive
from ellipack.learners.units import UnitChange, insert_features
from ellipack.learners.whitened import WhitenedState, add_features, check_positive_definite, predict, run_rounds
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats, Ints

__all__ = ["Levels", "LocallyAdaptiveState", "add_features", "from_archive", "init", "learn", "predict", "to_archive"]

_ROUNDS_PER_CALL = 1024  # of the core; between calls, other threads can predict and interrupts are handled
_MAX_ROUNDS = 2**52  # in a file; floats represent them exactly
_MAX_LEVELS = 1024  # in a file
_SLACK = 1e-6  # tolerance for rounding errors


class TreeNodes(NamedTuple):
    """Nodes of the tree in order of their creation.

    Attributes
    ----------
    points : array of shape (n_nodes, d)
        Whitened coordinates of the centers. The root comes first; its center has no effect.
    parents : array of int, shape (n_nodes,)
        Parent of each node; -1 for the root.
    label_sums : array of float, shape (n_nodes,)
        Sum of the labels.
    label_counts : array of int, shape (n_nodes,)
        Number of labels.
    log_weights : array of float, shape (n_nodes,)
        Logarithm of the weight.
    """

    points: Floats
    parents: Ints
    label_sums: Floats
    label_counts: Ints
    log_weights: Floats

    def depths(self) -> Ints:
        """Return the level of each node; 0 for the root."""
        levels = np.zeros(len(self.parents), dtype=np.int64)
        for node, parent in enumerate(self.parents[1:].tolist(), start=1):
            levels[node] = levels[parent] + 1
        return levels


class Levels(NamedTuple):
    """Levels below the root.

    Attributes
    ----------
    lipschitz : array of float, shape (n_levels,)
        Lipschitz constant L of each level, at least 1.
    dimensions : array of int, shape (n_levels,)
        Dimension D of each level; 0 stands for the effective rank of the metric. The radius in round t is ``(L
        t)**(-1/(1+D))``.
    """

    lipschitz: Floats
    dimensions: Ints


class LocallyAdaptiveState(WhitenedState[PackingTreeCore]):
    """State of the learner. The core has the nodes, the levels and the calibration of intervals."""

    @property
    def nodes(self) -> TreeNodes:
        """Copies of the nodes."""
        return TreeNodes(*self.core.to_arrays()[:5])

    @property
    def levels(self) -> Levels:
        """Levels below the root."""
        return Levels(*self.core.to_arrays()[5:7])

    def in_units(self, change: UnitChange) -> "LocallyAdaptiveState":
        """Return a copy in other units."""
        metric, core = self.parts
        arrays = core.to_arrays()
        nodes, calibration = TreeNodes(*arrays[:5]), arrays[-1]
        moved = nodes._replace(
            points=change.convert_whitened(nodes.points, metric),
            label_sums=change.convert_labels(nodes.label_sums, nodes.label_counts),
        )
        return self._with(metric, moved, calibration.in_units(change.label_slope))

    def with_added_features(self, count: int) -> "LocallyAdaptiveState":
        """Return a copy with features added as last columns, each with an eigenvalue of 1.

        Levels stay the same. Where they use the effective rank of the metric, radii become larger, so that predictions
        may change.
        """
        nodes = self.nodes
        inserted = insert_features(nodes.points, self.metric, count)
        return self._with(self.metric.with_added_features(count), nodes._replace(points=inserted), self.calibration)

    def _with(self, metric: Metric, nodes: TreeNodes, calibration: DeferredCalibration) -> "LocallyAdaptiveState":
        core = PackingTreeCore(*nodes, *self.levels, rank_starts(metric.eigenvalues), calibration)
        return LocallyAdaptiveState(metric, core)


def init(metric: Metric, levels: Levels) -> LocallyAdaptiveState:
    """Return the initial state.

    Parameters
    ----------
    metric : Metric
        Positive definite metric of spectral norm 1.
    levels : Levels
        Levels below the root, from the largest radius to the smallest.

    Returns
    -------
    state : LocallyAdaptiveState

    Examples
    --------
    >>> levels = Levels(np.array([1.0, 16.0]), np.zeros(2, dtype=np.int64))
    >>> state = init(Metric.identity(1), levels)
    >>> learn(state, [[0.5], [0.6], [-0.5]], [0.25, 0.75, 0.25]).round(3).tolist()
    [0.5, 0.25, 0.5]
    >>> state.core.size
    5
    """
    core = PackingTreeCore(*levels, rank_starts(check_positive_definite(metric).eigenvalues))
    return LocallyAdaptiveState(metric, core)


def learn(state: LocallyAdaptiveState, X: ArrayLike, y: ArrayLike, intervals: WantedIntervals = NO_INTERVALS) -> Floats:
    """Run one round for each row: predict, then learn the label. See `run_rounds`."""
    return run_rounds(state, X, y, PackingTreeCore.learn, _ROUNDS_PER_CALL, intervals)


def to_archive(state: LocallyAdaptiveState) -> Archive:
    """Return an archive of a state, with copies of its arrays."""
    metric, core = state.parts
    arrays = core.to_arrays()
    return Archive().with_parts(
        metric=metric.to_archive().copy(),
        nodes=Archive(arrays=TreeNodes(*arrays[:5])._asdict()),
        levels=Archive(arrays=Levels(*arrays[5:7])._asdict()),
        intervals=calibration_to_archive(arrays[-1]),
    )


def from_archive(saved: Archive, d: int) -> LocallyAdaptiveState:
    """Restore a state from an archive.

    Parameters
    ----------
    saved : Archive
        The archive.
    d : int
        Number of features.

    Returns
    -------
    state : LocallyAdaptiveState

    Raises
    ------
    ModelFileError
        If the archive is not valid.
    """
    metric, part, kept = Metric.from_archive(saved.part("metric"), d), saved.part("nodes"), saved.part("levels")
    count, n_levels = part.shape("points", 2)[0], kept.shape("lipschitz", 1)[0]
    if not 1 <= n_levels <= _MAX_LEVELS:
        raise ModelFileError(f"{kept.prefix}lipschitz must have 1 to {_MAX_LEVELS} entries, got {n_levels}")
    levels = Levels(kept.floats("lipschitz", n_levels), kept.ints("dimensions", n_levels, most=_MAX_ROUNDS))
    nodes = TreeNodes(
        points=part.floats_between(-1.0 - _SLACK, 1.0 + _SLACK, "points", count, d),
        parents=part.ints("parents", count, least=-1, most=count),
        label_sums=part.floats("label_sums", count),
        label_counts=part.ints("label_counts", count, least=1, most=_MAX_ROUNDS),
        log_weights=part.floats("log_weights", count),
    )
    if (nodes.label_sums < 0).any() or (nodes.label_sums > nodes.label_counts * (1 + _SLACK)).any():
        raise ModelFileError(f"{part.prefix}label_sums must be sums of labels in [0, 1]")
    if count == 0:
        raise ModelFileError(f"{part.prefix}points must not be empty")
    calibration = calibration_from_archive(saved.part("intervals"), _MAX_ROUNDS)
    try:
        core = PackingTreeCore(*nodes, *levels, rank_starts(metric.eigenvalues), calibration)
    except ValueError as error:
        raise ModelFileError(f"{saved.prefix}{error}") from error
    return LocallyAdaptiveState(metric, core)
