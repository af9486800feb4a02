"""An estimate of the registers that a thread of a kernel takes: liveness and register pressure.

PTX has any number of registers, and the assembler of a GPU chooses how many a thread gets.  It needs at least one of 32 bits
for each value of 32 bits that is live at one time, and some more; it rounds up to the granularity of a warp.
"""

from __future__ import annotations

from ptxvm.analysis.flow import reads_and_writes, segments
from ptxvm.analysis.program import Function
from ptxvm.engine.call_targets import called
from ptxvm.machine.image import Image
from ptxvm.machine.launch import most_threads
from ptxvm.syntax import tree

MOST = 255  # of a thread (CUDA C++ Programming Guide, "Compute Capabilities")
FEWEST, UNIT = 16, 8  # the least of a kernel, and the granularity for each thread of a warp
FILE = 1 << 16  # of a multiprocessor
ADDED = 6  # for addresses and copies


def registers(image: Image, kernel: Function) -> int:
    """An estimate of the registers of a thread, within the limits of `.maxnreg` and the number of threads (PTX 11.4)."""
    pressure = max(most_live(each) for each in called(image, kernel))
    wanted = -(-(pressure + ADDED) // UNIT) * UNIT
    return max(min(wanted, most(kernel)), min(FEWEST, most(kernel)))


def most(kernel: Function) -> int:
    """The most registers that a kernel may take."""
    node = kernel.directives.get("maxnreg")
    limits = [each.value for each in node.arguments if isinstance(each, tree.Integer)] if node is not None else []
    if not kernel.directives.keys().isdisjoint(("maxntid", "reqntid")):
        limits.append(FILE // most_threads(kernel) // UNIT * UNIT)
    return min([*limits, MOST])


def most_live(function: Function) -> int:
    """The most registers of 32 bits that are live at one time; predicates have registers of their own."""
    code = function.instructions  # reading them names the registers
    widths = [0 if each.type.bits == 1 else -(-each.type.bits * each.count // 32) for each in function.scope.registers]
    groups: dict[int, int] = {}  # registers of one width, as bits
    for index, width in enumerate(widths):
        if width:
            groups[width] = groups.get(width, 0) | 1 << index

    def size(live: int) -> int:
        return sum(width * (live & group).bit_count() for width, group in groups.items())

    found = 0
    for segment in segments(function) if code else ():
        live = segment.live_out
        found = max(found, size(live))
        for bound in reversed(code[segment.start : segment.end]):
            reads, writes = reads_and_writes(bound)
            live = live & ~writes | reads
            found = max(found, size(live))
    return found


def limited(text: bytes, kernels: list[Function], count: int) -> bytes:
    """A module with a limit of registers for all kernels without `.maxnreg`."""
    starts = [each.node.body.start for each in kernels if each.node.body is not None and "maxnreg" not in each.directives]
    for at in sorted(starts, reverse=True):
        text = text[:at] + b".maxnreg %d " % count + text[at:]
    return text


__all__ = ["limited", "registers"]
