"""The practical learner's state as it is saved: what was learned, without spare room and without trees.

Trees are built anew from the coordinates that they hold. Which tree holds points makes no difference to any answer,
so a learner goes on with the same bits; and no file can bring in a tree that leads a search astray.

What is read is taken for what a learner could have come to: numbers within the bounds that its rounds keep, so that
no sum overflows and no search sees anything but numbers, however long it goes on.
"""

from dataclasses import asdict, fields
from typing import Any

import numpy as np

from ellipack.checkpoint import Contents
from ellipack.errors import CheckpointError, DomainError
from ellipack.learners.aggregation._kernels import LEAST_SCALE, Bernstein, LeastSquares
from ellipack.learners.experts.names import expert_names
from ellipack.learners.metric import state as states
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.machine import COUNT, HIGH, LOW, MEAN, SQUARES, Machine, Memory, View
from ellipack.learners.metric.seeing._kernels import FARTHEST
from ellipack.learners.metric.selection import Reputation, Standing
from ellipack.learners.metric.state import FIRST_PHASE, MetricPhase, MetricState, Size
from ellipack.metric import Metric
from ellipack.packing.centers import Centers
from ellipack.packing.index import Index
from ellipack.theory.spectrum import rank_starts

_LABEL, _FEATURE = 2e60, 2e140  # twice as large as any that is taken: means and knots are rounded, hints are doubled
_LEAST_LENGTH, _CROOKED = 1e-5, 1e-6  # of directions: a tenth of the least there are; far beyond rounding
_LEAST_SCALE = 1e-165  # a deviation is the root of a float
_FAR = 1e200  # no reach is larger, nor the inverse of one
_STANDING = 1e9  # judges, or a logarithm
_LONGEST = 2**52  # rounds
_LEAST_LOG_PRIOR = -50.0  # a prior weight is at least 0.02 / N for N experts
_PARTS = ("ridge", "fading", "mixture", "stack", "top")


def contents(state: MetricState) -> Contents:
    """Return what is saved of a state, in arrays of its own."""
    with state.gate.looking():
        return _contents(state).copy()


def _contents(state: MetricState) -> Contents:
    machine, size = state.machine, state.n_centers
    facts = {
        "neighbors": state.neighbors,
        "max_centers": state.max_centers,
        "random_state": state.random_state,
        "fitted": state.fitted,
        "phase_end": state.phase_end,
        "views": len(machine.views),
        "phases": len(state.phases),
        "reputations": [{name: list(standing) for name, standing in each.items()} for each in state.reputations],
    }
    arrays = {name: getattr(machine, name) for name in ("reach", "labels", "features", "clock")}
    parts = {name: Contents(arrays=getattr(machine, name)._asdict()) for name in _PARTS}
    held = {name: array[:size] for name, array in machine.memory._asdict().items()}
    views = {f"view{v}": _view_contents(view, state.metrics[v]) for v, view in enumerate(machine.views)}
    phases = {f"phase{i}": _phase_contents(phase) for i, phase in enumerate(state.phases)}
    return Contents(facts, arrays).having(
        config=Contents(asdict(state.config)),
        memory=Contents(arrays=held),
        packing=machine.packing.contents(),
        **parts,
        **views,
        **phases,
    )


def restore(saved: Contents, d: int) -> MetricState:
    """Return the state for d features that was saved as these contents."""
    if saved.part("view0").shape("directions", 2) != (d, d):  # before anything is made that large
        raise CheckpointError(f"view0/directions must be {d} by {d}, one a feature")
    config = config_of(saved.part("config"))
    views = saved.whole("views", 1, 2)
    size = Size(views, saved.whole("neighbors", 2), saved.whole("max_centers", 16))
    try:
        state = states.init(d, size, saved.whole("random_state", 0), config)
    except DomainError as error:
        raise CheckpointError(str(error)) from error
    experts, (rounds, played, _) = len(expert_names(views)), _clock(saved, state.machine).tolist()
    memory = _memory(saved.part("memory"), d, size.max_centers, rounds)
    pairs = [_view(saved.part(f"view{v}"), d, len(memory.label_sums)) for v in range(views)]
    state.metrics = tuple(metric for _, metric in pairs)
    state.machine = state.machine._replace(
        views=tuple(view for view, _ in pairs),
        memory=memory,
        packing=Centers.restore(saved.part("packing"), d, played),
        rank_starts=rank_starts(state.metrics[0].eigenvalues),
        reach=saved.between(1 / _FAR, _FAR, "reach", 1),
        ridge=_least_squares(saved.part("ridge"), d + 1),
        fading=_least_squares(saved.part("fading"), d + 1),
        mixture=_bernstein(saved.part("mixture"), experts, rounds),
        stack=_least_squares(saved.part("stack"), experts),
        top=_bernstein(saved.part("top"), 2, rounds),
        labels=saved.floats("labels", *state.machine.labels.shape),
        features=saved.floats("features", *state.machine.features.shape),
        clock=_clock(saved, state.machine),
    )
    _check_statistics(state.machine)
    state.fitted = saved.whole("fitted", 1, state.fitted)
    state.phase_end = saved.whole("phase_end", state.clock + 1, int(config.growth * state.clock) + FIRST_PHASE)
    state.phases = [_phase(saved.part(f"phase{i}"), d, views) for i in range(saved.whole("phases", 0, 10_000))]
    state.reputations = _reputations(saved, views)
    return state


def config_of(saved: Contents) -> MetricConfig:
    """Return the configuration that was saved as these contents."""
    values: dict[str, Any] = {}
    for each in fields(MetricConfig):
        value = saved.facts.get(each.name)
        values[each.name] = tuple(value) if isinstance(value, list) else value
    try:
        return MetricConfig(**values)
    except (DomainError, TypeError) as error:
        raise CheckpointError(f"{saved.place}{error}") from error


def _memory(saved: Contents, d: int, most: int, rounds: int) -> Memory:
    count = saved.shape("rows", 2)[0]
    if not 1 <= count <= most:
        raise CheckpointError(f"{saved.place}rows must be from 1 to max_centers, {most}, got {count}")
    counts = saved.counts("label_counts", count, rounds, least=1)
    sums = saved.floats("label_sums", count)
    if (np.abs(sums) / counts).max() > _LABEL:
        raise CheckpointError(f"{saved.place}label_sums must be those of labels of at most {_LABEL:g}")
    came = saved.floats("round_sums", count)
    if not (came.min() >= 0 and (came <= counts * float(rounds)).all()):
        raise CheckpointError(f"{saved.place}round_sums must be those of label_counts rounds of at most {rounds}")
    return Memory(saved.between(-_FEATURE, _FEATURE, "rows", count, d), sums, counts, came)


def _view_contents(view: View, metric: Metric) -> Contents:
    arrays = {name: getattr(view, name) for name in ("knots", "shift", "scale", "directions", "gop")}
    coordinates = Index(view.points).points()
    return Contents(arrays={**arrays, "coordinates": coordinates}).having(metric=metric.contents())


def _view(saved: Contents, d: int, size: int) -> tuple[View, Metric]:
    farthest = 2 * d * FARTHEST
    coordinates = saved.between(-farthest, farthest, "coordinates", size, d)
    knots = saved.between(-_FEATURE, _FEATURE, "knots", saved.shape("knots", 2)[0], d)
    if (np.diff(knots, axis=0) < 0).any():
        raise CheckpointError(f"{saved.place}knots must rise")
    directions = saved.between(-2.0, 2.0, "directions", d, d)  # none is longer than 1
    lengths = np.sqrt((directions**2).sum(axis=0))
    if not lengths.min() >= _LEAST_LENGTH:
        raise CheckpointError(f"{saved.place}directions must be at least {_LEAST_LENGTH:g} long, got {lengths.min():g}")
    cosines = directions.T @ directions / np.outer(lengths, lengths)
    if np.abs(cosines - np.eye(d)).max() > _CROOKED:
        raise CheckpointError(f"{saved.place}directions must be at right angles to each other")
    view = View(
        knots=knots,
        shift=saved.between(-_FEATURE, _FEATURE, "shift", d),
        scale=saved.between(_LEAST_SCALE, _FEATURE, "scale", d),
        directions=directions,
        points=Index.build(coordinates).tree,
        gop=saved.numbers("gop", d, d),  # slopes may overflow, and whoever chooses a metric knows
    )
    return view, Metric.restore(saved.part("metric"), d)


def _least_squares(saved: Contents, count: int) -> LeastSquares:
    return LeastSquares(saved.numbers("inverse", count, count), saved.numbers("coefficients", count))


def _bernstein(saved: Contents, experts: int, rounds: int) -> Bernstein:
    scale = saved.between(0.0, 16 * _LABEL**2, "scale", 1)
    if 0.0 < scale[0] < LEAST_SCALE:
        raise CheckpointError(f"{saved.place}scale must be 0 or >= {LEAST_SCALE:g}, got {scale[0]:g}")
    most = 2 * rounds * scale[0]  # a round adds less than twice the scale to a gain, and its square to the squares
    gains = saved.between(-most, most, "gains", experts)
    squares = saved.between(0.0, most * scale[0], "squares", experts)
    priors = saved.between(_LEAST_LOG_PRIOR, 1.0, "priors", experts)
    return Bernstein(priors, gains, squares, scale)


def _check_statistics(machine: Machine) -> None:
    """Raise if what is known of labels and features can't be: neither they nor their squares may be too large."""
    labels, features, rounds = machine.labels, machine.features, machine.clock[0]
    values, others = labels[[LOW, MEAN, HIGH]], np.delete(labels, [LOW, MEAN, HIGH])
    if not (labels[LOW] <= labels[HIGH] and np.abs(values).max() <= _LABEL and others.min() >= 0):
        raise CheckpointError(f"labels must be of at most {_LABEL:g}, the least first, got {labels.tolist()}")
    if not (1 <= labels[COUNT] <= rounds and labels[SQUARES] <= 16 * _LABEL**2 * rounds):
        raise CheckpointError(f"labels must be of at most {rounds} rounds, got {labels.tolist()}")
    squares, others = features[1], np.delete(features, 1, axis=0)
    if not (squares.min() >= 0 and squares.max() / rounds <= 16 * _FEATURE**2 and np.abs(others).max() <= _FEATURE):
        raise CheckpointError(f"features must be of at most {_FEATURE:g}, and their squares not negative")


def _clock(saved: Contents, machine: Machine) -> Any:
    clock = saved.ints("clock", len(machine.clock), most=_LONGEST)
    if clock[0] < 1 or clock[1] > clock[0] or clock[2] != machine.clock[2]:
        raise CheckpointError(f"clock must fit together, got {clock.tolist()}")
    return clock


def _phase_contents(phase: MetricPhase) -> Contents:
    facts = {"number": phase.number, "end": phase.end, "n_centers": phase.n_centers, "choices": list(phase.choices)}
    metrics = {f"metric{v}": metric.contents() for v, metric in enumerate(phase.metrics)}
    return Contents(facts, {"expert_weights": phase.expert_weights}).having(**metrics)


def _phase(saved: Contents, d: int, views: int) -> MetricPhase:
    return MetricPhase(
        saved.whole("number", 1),
        saved.whole("end", 1),
        saved.whole("n_centers", 0),
        tuple(Metric.restore(saved.part(f"metric{v}"), d) for v in range(views)),
        tuple(saved.texts("choices", views)),
        saved.floats("expert_weights", len(expert_names(views))),
    )


def _reputations(saved: Contents, views: int) -> tuple[Reputation, ...]:
    listed = saved.fact("reputations", list)
    try:
        reputations = tuple({name: Standing(*map(float, pair)) for name, pair in each.items()} for each in listed)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"reputations must hold a pair of numbers for each name: {error}") from error
    standings = [standing for each in reputations for standing in each.values()]
    if not all(abs(value) <= _STANDING and 0 <= judges <= _STANDING for value, judges in standings):
        raise CheckpointError(f"reputations must be of at most {_STANDING:g}, by no fewer than 0 judges")
    if len(reputations) != views:
        raise CheckpointError(f"reputations must be one set for each of {views} views, got {len(reputations)}")
    return reputations
