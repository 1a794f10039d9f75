"""The practical learner's state: how it begins, and how it makes room."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ellipack.learners.aggregation import bernstein
from ellipack.learners.aggregation._kernels import LeastSquares
from ellipack.learners.experts._kernels import fit_room, kriging_room, neighborhood
from ellipack.learners.experts.names import expert_names
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.machine import Machine, Memory, Mixing, Room, View
from ellipack.learners.metric.seeing._kernels import embed
from ellipack.learners.metric.selection import Reputation
from ellipack.metric import Metric
from ellipack.packing._kernels import LANES
from ellipack.packing.centers import Centers, padded
from ellipack.packing.index import Index
from ellipack.packing.tree import state as trees
from ellipack.packing.tree._kernels import TRAIL
from ellipack.packing.tree.growth._kernels import insert_rows
from ellipack.packing.tree.state import POINTS, Tree
from ellipack.theory.spectrum import rank_starts
from ellipack.threads import Gate
from ellipack.validation import Floats, whole

FIRST_PHASE = 4  # rounds, and no phase has fewer; short, because until its end features count by their raw size
_MOST_FITTED = 40  # coordinates that take part in local fits: leading ones, where there are more
_MOST_NEIGHBORS = 512  # kriging costs their cube
_FIRST_ROOM = 64  # centres
_PACKED_PART = 4  # Algorithm 1 has at most this part of the centres, so that memory is bounded for it too


class MetricPhase(NamedTuple):
    """What a phase that is over was like, and what was chosen at its end."""

    number: int
    end: int  # its last round
    n_centers: int
    metrics: tuple[Metric, ...]  # chosen, one for each view, in standard units
    choices: tuple[str, ...]  # which candidates these are
    expert_weights: Floats  # at its end


class Desks:
    """The desks at which nobody works at present. They are no part of what is copied, pickled or saved."""

    def __init__(self) -> None:
        self.free: list[Any] = []

    def __reduce__(self) -> tuple[type["Desks"], tuple[()]]:
        return Desks, ()


@dataclass(eq=False)
class MetricState:
    """What the practical learner carries from round to round."""

    machine: Machine
    neighbors: int
    max_centers: int
    random_state: int
    config: MetricConfig
    metrics: tuple[Metric, ...]
    fitted: int  # how many coordinates, the first ones, take part in local fits; set anew at a phase's end
    phase_end: int = FIRST_PHASE
    phases: list[MetricPhase] = field(default_factory=list)
    reputations: tuple[Reputation, ...] = ()  # of candidates for the metric, in each view
    gate: Gate = field(default_factory=Gate)
    desks: Desks = field(default_factory=Desks)

    @property
    def clock(self) -> int:
        """How many rounds there were."""
        return int(self.machine.clock[0])

    @property
    def n_centers(self) -> int:
        """How many centres there are."""
        return int(self.machine.views[0].points.counters[POINTS])


class Size(NamedTuple):
    """How large a learner may become."""

    views: int
    neighbors: int
    max_centers: int


def init(d: int, size: Size, random_state: int, config: MetricConfig) -> MetricState:
    """Return the practical learner before its first round, for d features."""
    views, neighbors = whole(size.views, "views", 1, 2), whole(size.neighbors, "neighbors", 2, _MOST_NEIGHBORS)
    most = whole(size.max_centers, "max_centers", 16)
    whole(random_state, "random_state", 0)
    room, experts = min(_FIRST_ROOM, most), len(expert_names(views))
    identity = Metric.identity(d)
    machine = Machine(
        views=tuple(_view(d) for _ in range(views)),
        memory=Memory(np.zeros((room, d)), np.zeros(room), np.zeros(room, dtype=np.int64), np.zeros(room)),
        packing=Centers.init(d),
        rank_starts=rank_starts(identity.eigenvalues),
        reach=np.ones(1),
        ridge=LeastSquares(np.eye(d + 1), np.zeros(d + 1)),
        fading=LeastSquares(np.eye(d + 1), np.zeros(d + 1)),
        mixture=bernstein.init(experts),
        # A stack that can't move, until labels have shown a variance to set its prior by.
        stack=LeastSquares(np.zeros((experts, experts)), np.zeros(experts)),
        top=bernstein.init(2),
        labels=np.zeros(6),
        features=np.zeros((5, d)),
        clock=np.array([0, 0, max(LANES, most // _PACKED_PART)], dtype=np.int64),
        widening=np.array([config.widening], dtype=np.float64),
    )
    reputations: tuple[Reputation, ...] = tuple({} for _ in range(views))
    metrics = (identity,) * views
    return MetricState(machine, neighbors, most, random_state, config, metrics, fitted(d), reputations=reputations)


def fitted(d: int) -> int:
    """Return how many coordinates of d are to take part in local fits."""
    return min(d, _MOST_FITTED)


def _view(d: int) -> View:
    return View(
        np.zeros((0, d)),
        np.zeros(d),
        np.ones(d),
        np.eye(d),
        trees.empty(d),
        np.zeros((d, d)),
    )


def re_embedded(view: View, rows: Floats) -> tuple[View, float]:
    """Return a view of other centres, or of the same through another metric, and how far from 0 they are at most."""
    coordinates = np.empty_like(rows)
    embed(view, rows, coordinates)
    farthest = math.sqrt(np.einsum("ij,ij->i", coordinates, coordinates).max())
    return view._replace(points=Index.build(coordinates).tree), farthest


def working_room(state: MetricState) -> Room:
    """Return room for one thread to work in."""
    machine = state.machine
    d, views, experts = machine.memory.rows.shape[1], len(machine.views), len(machine.mixture.gains)
    neighbors = max(state.neighbors, 2 * state.fitted + 10)
    return Room(
        near=neighborhood(neighbors, d),
        fit=fit_room(neighbors, state.fitted),
        kriging=kriging_room(state.neighbors, d),
        positions=np.empty(neighbors, dtype=np.int64),
        held=np.empty(d),
        standard=np.empty(d + 1),
        queries=np.empty((views, d)),
        scaled=np.empty(d),
        mixing=Mixing(np.empty(experts), np.empty(experts), np.empty(experts), np.empty(2), np.empty(2)),
        slopes=np.empty((views, state.fitted)),
        gradient=np.empty(d),
        gain=np.empty(max(experts, d + 1)),
        trail=np.empty(TRAIL),
    )


def make_room(state: MetricState, queries: Floats, scaled: Floats) -> None:
    """Let there be room for a centre, given its coordinates in all views, and as Algorithm 1 sees them.

    What is full grows: trees as trees do, the rest by half, up to `max_centers`. If nothing is, the machine stays.
    """
    machine = state.machine
    for v, query in enumerate(queries):
        while not _makes_room(machine.views[v].points, query):
            machine = machine._replace(views=(*machine.views[:v], _grown(machine.views[v]), *machine.views[v + 1 :]))
    while not _makes_room(machine.packing.points, scaled):
        machine = machine._replace(packing=machine.packing.grown())
    memory, have = machine.memory, len(machine.memory.label_sums)
    if state.n_centers == have:
        room = min(state.max_centers, have + max(_FIRST_ROOM, have // 2))
        machine = machine._replace(memory=Memory._make(padded(each, room) for each in memory))
    state.machine = machine


def _grown(view: View) -> View:
    return view._replace(points=trees.grow(view.points))


def _makes_room(tree: Tree, point: Floats) -> bool:
    """Let there be room in the leaf of a point; return False if the arrays have to grow for that."""
    return bool(insert_rows(tree, point[None], 0, 1))
