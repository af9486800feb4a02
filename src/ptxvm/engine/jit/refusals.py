"""What the JIT leaves to the interpreter, by name."""

from __future__ import annotations

from ptxvm.analysis.flow import reads_and_writes, targets
from ptxvm.analysis.program import Bound, Function
from ptxvm.machine.image import Image

STRONG = {"volatile", "relaxed", "acquire", "acq_rel", "mmio"}


def reason(image: Image, function: Function) -> str | None:
    """Why the JIT cannot run a kernel, as far as that shows before it is translated."""
    if image.memory.address_bits != 64:
        return "a module of .address_size 32 in the JIT"
    if not function.defined:
        return f"the kernel '{function.name}' without a body in the JIT"
    if image.module_local.size or any(program.scope.registers for program in image.programs):
        return "registers and local memory of a module in the JIT"
    spinning = spins(function)
    if spinning is not None:
        return f"a loop that waits for other threads ('{spinning.i.mnemonic}') in the JIT"
    return None


def spins(function: Function) -> Bound | None:  # noqa: C901
    """A branch of a loop that depends on what others write to memory while it runs: nobody may starve there."""
    code = function.instructions
    tainted = origin = 0
    for bound in code:
        if _watches(bound):
            _, writes = _flow(bound)
            tainted |= writes
            origin |= 1
    if not tainted:
        return None
    grows = True
    while grows:
        before = tainted
        for bound in code:
            reads, writes = _flow(bound)
            if reads & tainted:
                tainted |= writes
        grows = tainted != before
    loops = [(min(targets(b)), n) for n, b in enumerate(code) if targets(b) and min(targets(b)) <= n]
    for first, last in loops:
        inside = code[first : last + 1]
        if not any(_watches(b) for b in inside):
            continue
        for bound in inside:
            guard = bound.guard()
            leaves = bound.i.of.effects & {"flow"}
            if guard is not None and leaves and tainted >> guard[0].index & 1:
                return bound
    return None


def _watches(bound: Bound) -> bool:
    """Does it read what other threads may write meanwhile?"""
    opcode, words = bound.node.opcode, set(bound.node.words)
    return opcode == "atom" or (opcode == "ld" and bool(words & STRONG))


def _flow(bound: Bound) -> tuple[int, int]:
    reads, writes = reads_and_writes(bound)
    guard = bound.guard()
    if guard is not None:  # where it is guarded, what it writes counts among what it reads
        writes = reads & ~(1 << guard[0].index)
        reads |= 1 << guard[0].index
    return reads, writes
