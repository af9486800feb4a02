"""How many vector registers the code of a node needs: an estimate, by which the width of a kernel is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxvm.algebra.value import Value
from ptxvm.analysis.flow import reads_and_writes
from ptxvm.engine.jit.raw import Vec

if TYPE_CHECKING:
    from ptxvm.engine.jit.emitter import Emitter
    from ptxvm.engine.jit.kernel import Kernel

Key = tuple[int, int]
BITS = 512  # of a register


Definition = tuple[int, Key, Value]  # the position of an instruction, and what it gave to a register


def weight(at: Emitter, value: Value) -> int:
    """The registers that a value takes; pieces of it that are equal take one, and those of one element none."""
    if not isinstance(value.raw, Vec):
        return 0
    whole = -(-at.width * value.type.bits // BITS) if value.type.kind != "p" else 0
    return at.light.get(value.raw.name, whole)


def most_registers(kernel: Kernel) -> int:
    """The most that live at one time in a kernel."""
    return max(_pressure(at) for at, _ in kernel.texts.values())


def _pressure(at: Emitter) -> int:
    """The most that live at one time in a node."""
    code, shift = at.node.code, at.node.frame.registers
    alive = {key: [0, 0, weight(at, value)] for key, value in at.loaded.items()}
    ended: list[list[int]] = []
    waiting = at.definitions
    for position, bound in enumerate(code):
        reads = reads_and_writes(bound)[0] << shift
        for key, life in alive.items():
            if key[0] >= 0 and reads >> key[0] & 1:
                life[1] = position
        while waiting and waiting[0][0] == position:
            (_, key, value), waiting = waiting[0], waiting[1:]
            if key in alive:
                ended.append(alive[key])
            alive[key] = [position, position, weight(at, value)]
    for key, life in alive.items():
        if key[0] < 0 or at.node.live_out >> key[0] & 1:
            life[1] = len(code)
        ended.append(life)
    registers = at.kernel.registers
    through = sum(
        -(-at.width * registers.types[key].bits // BITS)
        for key, shape in registers.shapes.items()
        if shape.varies and key not in at.loaded and key[0] >= 0 and at.node.live_in >> key[0] & 1
    )
    change = [0] * (len(code) + 2)
    for start, end, taken in ended:
        change[start] += taken
        change[max(end, start + 1)] -= taken  # the last who reads it may write its result there
    most = total = through
    for step in change:
        total += step
        most = max(most, total)
    return most
