"""Register pressure: an estimate of the vector registers that a kernel needs, which decides its width."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.algebra.value import Value
from ptxvm.analysis.flow import bits, reads_and_writes
from ptxvm.engine.jit.ir.lane_values import Varying
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.node_code import NodeCode
from ptxvm.engine.jit.node.register_shapes import Key, base_key

BITS = 512  # of a register


def weight(at: NodeCode, value: Value) -> int:
    """The registers that a value takes; equal parts of it share one, and broadcasts of memory take none."""
    if not isinstance(value.raw, Varying):
        return 0
    whole = -(-at.width * value.type.bits // BITS) if value.type.kind != "p" else 0
    return at.light.get(value.raw.name, whole)


def most_registers(kernel: KernelContext) -> int:
    """The most registers that are live at once in a kernel."""
    varying: dict[int, dict[Key, int]] = {}  # by the number of a register: its parts, with their vector registers
    for key, shape in kernel.registers.shapes.items():
        if shape.varies and key[0] >= 0 and key == base_key(key):
            varying.setdefault(key[0], {})[key] = -(-kernel.width * kernel.registers.types[key].bits // BITS)
    mask = sum(1 << number for number in varying)
    usual = (at for (_, full), at in kernel.written.items() if full or not kernel.straight)  # there lanes seldom part
    return max(_pressure(at) + _through(at, varying, mask) for at in usual)


def expected_registers(kernel: KernelContext) -> int:
    """An estimate before translation: registers that depend on loaded values vary, and those of called functions."""
    by_size: dict[int, int] = {}  # the registers that vary, as masks, by the vector registers that they take
    for frame in kernel.graph.frames:
        varying = kernel.memory_dependent(frame) if frame.parent is None else -1
        for register in frame.body.registers:
            if register.type.kind != "p" and varying >> register.index & 1:
                taken = register.count * -(-kernel.width * register.type.bits // BITS)
                by_size[taken] = by_size.get(taken, 0) | 1 << register.index + frame.registers
    return max(sum(taken * (live & mask).bit_count() for taken, mask in by_size.items()) for live in _live_sets(kernel))


def _live_sets(kernel: KernelContext) -> Iterator[int]:
    """The registers that are live or written at each instruction, and at the end of each node, as masks."""
    for node in kernel.nodes:
        shift, live = node.frame.registers, node.live_out
        yield live
        for bound in reversed(node.code):
            reads, writes = reads_and_writes(bound)
            yield live | writes << shift
            live = live & ~(writes << shift) | reads << shift
            yield live


def ones(mask: int) -> Iterator[int]:
    """The indices of the set bits."""
    return (bit.bit_length() - 1 for bit in bits(mask))


def _through(at: NodeCode, varying: dict[int, dict[Key, int]], mask: int) -> int:
    """The registers that are live across a node and are not read in it."""
    parts = (part for number in ones(at.node.live_in & mask) for part in varying[number].items())
    return sum(taken for key, taken in parts if key not in at.loaded)


def _pressure(at: NodeCode) -> int:
    """The most registers that are live at once in a node."""
    code, shift = at.node.code, at.node.frame.registers
    alive = {key: [0, 0, weight(at, value)] for key, value in at.loaded.items()}
    ended: list[list[int]] = []
    parts: dict[int, set[Key]] = {}  # of the registers seen so far
    for key in alive:
        parts.setdefault(key[0], set()).add(key)
    definitions = at.definitions
    done = 0
    for position, bound in enumerate(code):
        for register in ones(reads_and_writes(bound)[0]):
            for key in parts.get(register + shift, ()):
                alive[key][1] = position
        while done < len(definitions) and definitions[done][0] == position:
            _, key, value = definitions[done]
            done += 1
            if key in alive:
                ended.append(alive[key])
            alive[key] = [position, position, weight(at, value)]
            parts.setdefault(key[0], set()).add(key)
    for key, life in alive.items():
        if key[0] < 0 or at.node.live_out >> key[0] & 1:
            life[1] = len(code)
        ended.append(life)
    return _most(ended, len(code))


def _most(ended: list[list[int]], length: int) -> int:
    """The greatest sum of live ranges (start, end, registers) that overlap."""
    change = [0] * (length + 2)
    for start, end, taken in ended:
        change[start] += taken
        change[max(end, start + 1)] -= taken  # the last reader may write its result to the same register
    most = total = 0
    for step in change:
        total += step
        most = max(most, total)
    return most
