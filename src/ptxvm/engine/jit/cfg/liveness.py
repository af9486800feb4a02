"""Liveness of the registers of all frames: a backward data-flow analysis to a fixed point."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.analysis.flow import live_sets, reads_and_writes
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Register
from ptxvm.engine.data_flow import read
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.cfg.requirements import accumulators


def find(nodes: Sequence[Node], always: int, *, deferred: bool) -> None:
    """Find the registers that are live at the beginning and at the end of each node, as masks.

    Those in `always` are so everywhere; the asynchronous work of `deferred` code ends when the host chooses.
    """
    for node in nodes:
        _find_uses(node, deferred=deferred)
    before, after = live_sets([node.gen for node in nodes], [node.kill for node in nodes], [node.successors for node in nodes])
    for node in nodes:
        node.live_in, node.live_out = before[node.number] | always, after[node.number] | always
        node.escapes = _escapes(node)


def _find_uses(node: Node, *, deferred: bool) -> None:
    """Find the registers that a node reads before it writes them (`gen`), and those that it writes (`kill`)."""
    if node.returns is not None:
        _find_uses_of_return(node)
        return
    shift, written = node.frame.registers, 0
    for bound in node.code[: node.head]:
        reads, writes = _read(bound, node, deferred=deferred), reads_and_writes(bound)[1]
        if (node.callee is not None or node.calls) and bound is node.code[-1]:
            writes = 0
        if node.barrier or node.waits:
            writes = 0
        node.gen |= reads << shift & ~written
        written |= writes << shift
    node.kill = written
    if node.region is not None:  # there some lanes keep their old values
        node.gen |= node.region.reads << shift & ~written
    node.gen |= node.spilled & ~node.kill
    if node.callee is not None and node.code[-1].node.guard is None:
        for formal in node.callee.body.signature.parameters:
            if isinstance(formal, Register):
                node.kill |= 1 << formal.index + node.callee.registers


def _read(bound: Bound, node: Node, *, deferred: bool) -> int:
    """The registers that an instruction reads; those that take the results of a call it does not."""
    if bound.calls:
        return read(bound)
    reads = reads_and_writes(bound)[0]
    if deferred and bound.summary.awaits is AsyncKind.PRODUCT:  # it may leave each accumulator as it is
        reads |= _accumulators(node.frame.function)
    return reads


def _accumulators(function: Function) -> int:
    """The registers that waits for products write in deferred code, as bits."""
    return sum(1 << register.index for register in accumulators(function))


def _find_uses_of_return(node: Node) -> None:
    """Find those of the node that takes the results of a function."""
    callee = node.returns
    if callee is None:
        return
    call = callee.call or node.call
    for formal, target in zip(callee.body.signature.results, call.results() if call else [], strict=False):
        if isinstance(formal, Register):
            node.gen |= 1 << formal.index + callee.registers
        if isinstance(target, Register) and not target.of_module:
            node.kill |= 1 << target.index + node.frame.registers
    node.kill |= node.spilled


def _escapes(node: Node) -> tuple[int, ...]:
    """For each block of its region the registers that it writes and that are read behind it."""
    blocks, shift = node.region.blocks if node.region is not None else (), node.frame.registers
    return tuple((block.written & block.live) << shift | block.written << shift & node.live_out for block in blocks)
