"""A compiled round for one row, whose arrays are unpacked once for many calls."""

import math
from typing import NamedTuple

from ellipack._kernels import Held, kernel
from ellipack.learners.metric._kernels import Machine, Room, consult, has_room, learn_row
from ellipack.validation import Floats, Ints


class Desk(NamedTuple):
    """What a row's round takes: the machine, room to work in, the row, and which row the room was last used for.

    `asked` holds the round for which that was (-1: none) and the centre that was found, `before` that row, and `made`
    what was predicted for it and how far the centre is.
    """

    machine: Machine
    room: Room
    x: Floats
    asked: Ints
    before: Floats
    made: Floats


@kernel
def play_row(held: Held[Desk], label: float, learning: bool) -> float:
    """Return the prediction for the desk's row, and learn its label if told to.

    What predicting the same row in the same round has left in the room is not worked out again. Returns NaN, with
    nothing changed, if there is no room for another centre.
    """
    desk = held.value
    machine = desk.machine
    if learning and not has_room(machine.views, len(machine.memory.label_sums), machine.packing.points):
        return math.nan
    known = desk.asked[0] == machine.clock[0]
    for k in range(len(desk.x)):
        known = known and desk.before[k] == desk.x[k]
    if not known:
        desk.made[0], desk.asked[1], desk.made[1] = consult(machine, desk.x, desk.room)
        desk.asked[0] = machine.clock[0]
        desk.before[:] = desk.x
    if learning:
        learn_row(machine, desk.x, label, (desk.made[0], desk.asked[1], desk.made[1]), desk.room)
        desk.asked[0] = -1
    return float(desk.made[0])
