"""What the practical learner is made of, as its kernels see it: flat arrays in tuples."""

from typing import NamedTuple

from ellipack.learners.aggregation._kernels import Bernstein, LeastSquares
from ellipack.learners.experts._kernels import Fit, Kriging, Neighborhood
from ellipack.packing.centers import Centers
from ellipack.packing.tree.state import Tree
from ellipack.validation import Floats, Ints

MEAN, SQUARES, LOW, HIGH, WILD, COUNT = range(6)
"""Where the statistics of the labels stand, and all but the last of each feature's: mean, sum of squared deviations,
least and greatest, how many wild ones there were in the phase, how many others in all."""


class View(NamedTuple):
    """A way to see the features, and a metric on what is seen.

    Attributes
    ----------
    knots : for each feature (a column), values between which ranks are interpolated; no rows: values count as such.
    shift, scale : take what is seen to zero mean and unit deviation; frozen, like the knots, until the phase ends.
    directions : the columns that whitening projects on, at right angles to each other.
    points : the centres in whitened coordinates.
    gop : the sum of outer products of slopes, with respect to what is seen, since the phase began.
    """

    knots: Floats
    shift: Floats
    scale: Floats
    directions: Floats
    points: Tree
    gop: Floats


class Memory(NamedTuple):
    """The centres that all views share: mean positions, sums of labels and of the rounds they came in, counts."""

    rows: Floats
    label_sums: Floats
    label_counts: Ints
    round_sums: Floats


class Machine(NamedTuple):
    """The practical learner as its kernels see it: flat arrays, most of them moved on in place."""

    views: tuple[View, ...]
    memory: Memory
    packing: Centers  # Algorithm 1's, in the first view's coordinates over their reach
    rank_starts: Ints
    reach: Floats
    ridge: LeastSquares
    fading: LeastSquares  # the same, by rounds the less the longer ago they were
    mixture: Bernstein
    stack: LeastSquares
    top: Bernstein
    labels: Floats
    features: Floats  # their statistics, a column each
    clock: Ints  # rounds in all, rounds that Algorithm 1 has played, and the most centres that it may have
    widening: Floats


class Mixing(NamedTuple):
    """What the experts say of a row, and how that is mixed."""

    predictions: Floats
    weights: Floats
    deviations: Floats  # of the predictions from their mixture, which the stack goes by
    pair: Floats  # the mixture and the stack
    pair_weights: Floats


class Room(NamedTuple):
    """Room to work in for one thread, and what the last prediction left for learning."""

    near: Neighborhood
    fit: Fit
    kriging: Kriging
    mixing: Mixing
    positions: Ints
    held: Floats
    standard: Floats
    queries: Floats
    scaled: Floats
    slopes: Floats
    gradient: Floats
    gain: Floats
    trail: Floats


class Desk(NamedTuple):
    """What rounds take: the machine, room to work in, rows and labels, and which row the room was last used for.

    `asked` holds the round for which that was (-1: none) and Algorithm 1's centre that was found, `before` that row,
    and `made` what was predicted for it and how far the centre is.
    """

    machine: Machine
    room: Room
    rows: Floats
    labels: Floats
    predictions: Floats
    asked: Ints
    before: Floats
    made: Floats
