"""What a kernel needs, as far as its code shows: what the JIT leaves to the interpreter, and who waits for whom."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from ptxvm.analysis.flow import bit_of, reads_and_writes, targets
from ptxvm.analysis.program import Bound, Function
from ptxvm.engine.jit import host
from ptxvm.engine.jit.plan import GROWS, callees
from ptxvm.machine.image import Image
from ptxvm.syntax import tree

STRONG = {"volatile", "relaxed", "acquire", "acq_rel", "mmio"}


def reason(image: Image, function: Function) -> str | None:
    """Why the JIT cannot run a kernel, as far as that shows before it is translated."""
    if not function.defined:
        return f"the kernel '{function.name}' without a body in the JIT"
    if any(_launches(image, bound) for each in called(image, function) for bound in each.instructions):
        return "a kernel that launches kernels in the JIT"
    if platform.machine() in ("x86_64", "AMD64") and not host.has("f16c"):
        return "a processor without f16 conversions in the JIT"
    return None


def _launches(image: Image, bound: Bound) -> bool:
    """Does it call one of CUDA's functions by which kernels launch others?"""
    node = bound.operands.get("func") if bound.node.opcode == "call" else None
    symbol = bound.scope.find(node.text) if isinstance(node, tree.Name) else None
    return isinstance(symbol, Function) and symbol.name.startswith(("cuda", "__cudaCDP2")) and not image.resolve(symbol).defined


def called(image: Image, function: Function) -> Iterator[Function]:
    """A kernel, and the functions that it calls by name."""
    seen, work = set(), [function]
    while work:
        each = image.resolve(work.pop())
        if each in seen:
            continue
        seen.add(each)
        yield each
        for bound in each.instructions:
            if bound.node.opcode == "call":
                work += callees(image, bound)


def unbounded(image: Image, kernel: Function) -> bool:
    """Does nobody know how deep its stack gets?  It takes memory as it goes, calls through pointers, or itself."""
    return any(b.node.opcode in GROWS or _points(b) for f in called(image, kernel) for b in f.instructions) or _recurs(
        image, kernel, ()
    )


def _points(bound: Bound) -> bool:
    return bound.node.opcode == "call" and "flow" in bound.i.of.effects and bound.operands.get("func") is None


def _recurs(image: Image, function: Function, above: tuple[Function, ...]) -> bool:
    if function in above:
        return True
    inner = {each for b in function.instructions if b.node.opcode == "call" for each in callees(image, b)}
    return any(_recurs(image, each, (*above, function)) for each in inner)


# ── barriers ────────────────────────────────────────────────────────────────────────────


def meets(image: Image, kernel: Function) -> bool:
    """Is one of the barriers for so many threads, or is it unknown which one it is?"""
    return any(_counts(bound) for each in called(image, kernel) for bound in each.instructions)


def _counts(bound: Bound) -> bool:
    if "cta" not in bound.i.of.effects:
        return False
    if "waits" not in bound.i.of.effects:  # bar.arrive
        return True
    number = bound.operands.get("a")
    return not isinstance(number, tree.Integer) or number.value >= 16 or bound.operands.get("b") is not None


# ── loops that wait ─────────────────────────────────────────────────────────────────────


def spins(image: Image, kernel: Function) -> Bound | None:
    """A branch of a loop that depends on what others write to memory while it runs: nobody may starve there."""
    return next((bound for each in called(image, kernel) if (bound := _spinning(each)) is not None), None)


def _spinning(function: Function) -> Bound | None:
    """The first such branch of a function."""
    code = function.instructions
    tainted = _tainted(code)
    if not tainted:
        return None
    loops = [(min(targets(b)), n) for n, b in enumerate(code) if targets(b) and min(targets(b)) <= n]
    for first, last in loops:
        inside = code[first : last + 1]
        if not any(_watches(b) for b in inside):
            continue
        for bound in inside:
            guard = bound.guard()
            if guard is not None and "flow" in bound.i.of.effects and tainted & bit_of(guard[0]):
                return bound
    return None


def _tainted(code: list[Bound]) -> int:
    """The registers that hold something of what others write."""
    tainted = 0
    for bound in code:
        if _watches(bound):
            tainted |= _flow(bound)[1]
    before = 0
    while tainted != before:
        before = tainted
        for bound in code:
            reads, writes = _flow(bound)
            if reads & tainted:
                tainted |= writes
    return tainted


def _watches(bound: Bound) -> bool:
    """Does it read what other threads may write meanwhile?"""
    opcode, words = bound.node.opcode, set(bound.node.words)
    return opcode in ("atom", "mbarrier") or (opcode == "ld" and bool(words & STRONG))


def _flow(bound: Bound) -> tuple[int, int]:
    reads, writes = reads_and_writes(bound)
    guard = bound.guard()
    if guard is not None:  # where it is guarded, what it writes counts among what it reads
        writes = reads & ~bit_of(guard[0])
        reads |= bit_of(guard[0])
    return reads, writes
