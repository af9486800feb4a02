"""Checks on the JIT: a quick look that misses nothing, and the exact checker for what it cannot clear.

The compiled kernel looks for what the checkers report, but coarsely (`shadow.py`): an access is suspicious unless it is
plainly right.  What passes has no finding.  Whatever is suspicious, a fault included, ends the run; memory becomes again
what it was, and the exact checker follows the kernel on the interpreter, so that findings are the same whichever engine
ran.

**Why it misses no race.**  Take two accesses of a cell by different threads of which one writes, and not both are atomics
or strong ones of one size and of scopes that include each other.  If they are of one CTA and no barrier of the whole CTA is
between them, they have the same epoch, and whichever comes later finds the tag of the other: a write leaves its tag until
a write of a later epoch, a read until a later epoch or, of several, as `MANY`.  If they are of different CTAs, the later
one finds a tag below those of its own CTA: that of the first CTA that wrote the cell, or read it, stays.  What remains
is ordered by a barrier, and no race.

**Why one run answers for all schedules**, where values do not depend on the schedule: such a kernel has no atomics, no
strong accesses, and reads no clock and no set of active lanes.  Let it have a run in which all conflicting accesses are
ordered by barriers of the CTA.  Any other run does, thread by thread, the same: follow it up to the first access that reads
another value than in the first run.  Up to there all threads did the same accesses and came to the same barriers in the
same order, so the same accesses are ordered, and the write that is last before that read in this order is the same one:
the value is the same.  So no schedule has a race.  Where a kernel is not of this kind, one run of it answers for itself
only, and the exact checker runs the other schedules.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxvm.analysis.flow import segments
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.unset import may_be_unset
from ptxvm.diagnostics.errors import Fault, Unsupported
from ptxvm.engine.jit.shelf import Specialisation
from ptxvm.engine.jit.spinning import STRONG
from ptxvm.engine.jit.watched import Look, Suspicious
from ptxvm.engine.launch import Counters
from ptxvm.engine.watching import Watch
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.backing import Bytes
from ptxvm.machine.launch import LaunchShape

if TYPE_CHECKING:
    from ptxvm.engine.jit.engine import Jit
    from ptxvm.engine.jit.kernel import Kernel

log = logging.getLogger("ptxvm.jit")

SCHEDULE = ("%clock", "%globaltimer", "%smid", "%warpid")  # registers that tell how threads were scheduled
QUIET = frozenset({"", "vprintf", "__assertfail"})  # functions of the device that change no memory; the others have code
MOST_SPARE = 16 << 20  # bytes of an array that stay for the next launch
SURFACES = frozenset({"suld", "sust", "sured"})  # which compiled code does not look at
KNOWN = frozenset(
    "ld ldu st atom red cvta isspacep prefetch prefetchu membar fence ldmatrix stmatrix wmma applypriority discard "
    "stacksave stackrestore alloca griddepcontrol".split()
)


class Sieve:
    """The quick look.  What the JIT cannot run, it leaves to the exact checker too."""

    def __init__(self, jit: Jit) -> None:
        self.jit = jit
        self._decided: dict[tuple[Kernel, Callable[[Bound], bool]], Bound | None] = {}
        self._unset: dict[Kernel, bool] = {}
        self._spare: dict[int, Bytes] = {}

    def clears(
        self, watch: Watch, kernel: Function, shape: LaunchShape, parameters: int, *, shared: int, budget: int | None,
        new: Sequence[Allocation],
    ) -> tuple[Counters, str] | None:  # fmt: skip
        """Run the grid: what it did and printed; None, and memory is as before, where the exact checker has to look at it."""
        if not watch.checks:
            return None
        look: Look | None = None
        wanted = Specialisation(self.jit.image.resolve(kernel), shape.block, shared, checks=watch.checks)
        try:
            translated = self.jit.shelf.translation(wanted).versions.kernel
            reason = self._doubt(translated, watch)
            if reason is None:
                look = Look(self.jit.image.memory, wanted.checks, translated.shadow, frozenset(new), spare=self._spare)
                counters = self.jit.examine(wanted, shape, parameters, look, budget)
                self._spare = {room.nbytes: room for room in look.before.values() if room.nbytes <= MOST_SPARE}
                return counters, "".join(look.library.output)
        except (Fault, Unsupported, Suspicious) as found:
            reason = str(found)
            if look is not None:
                look.undo()
        log.info("the exact checker looks at '%s': %s", kernel.name, reason)
        return None

    def _doubt(self, kernel: Kernel, watch: Watch) -> str | None:
        """Why the quick look cannot judge a kernel."""
        if kernel.image.memory.address_bits != 64:
            return "addresses have 32 bits"
        if (unknown := self._first(kernel, known, expected=False)) is not None:
            return f"'{unknown.i.mnemonic}' is beyond the quick look"
        if kernel.shadow is not None and kernel.shadow.doubts:
            return next(iter(kernel.shadow.doubts))
        if "init" in watch.checks and kernel.uses_local:
            return "local memory may be read before it is written"
        if "init" in watch.checks and self._may_be_unset(kernel):
            return "a register may be read before it is written"
        if watch.schedules > 1 or watch.seed is not None:
            depends = self._first(kernel, scheduled, expected=True)
            return f"what '{depends.i.mnemonic}' does depends on the schedule" if depends else None
        return None

    def _may_be_unset(self, kernel: Kernel) -> bool:
        """May a register be read before it is written?"""
        if kernel not in self._unset:
            functions = {frame.function for frame in kernel.plan.frames}
            self._unset[kernel] = any(may_be_unset(each, segments(each)) for each in functions)
        return self._unset[kernel]

    def _first(self, kernel: Kernel, question: Callable[[Bound], bool], *, expected: bool) -> Bound | None:
        """The first instruction for which a question has the answer that decides."""
        key = kernel, question
        if key not in self._decided:
            self._decided[key] = next((bound for bound in kernel.places if question(bound) is expected), None)
        return self._decided[key]


def known(bound: Bound) -> bool:
    """Does the quick look see all that an instruction does to memory?"""
    words = bound.node.words
    if bound.node.opcode == "call":
        return called(bound) in QUIET
    if "async" in words or "bulk" in words or bound.node.opcode in SURFACES:
        return False
    return bound.node.opcode in KNOWN or not bound.i.of.effects & {"mem", "tasks"}


def called(bound: Bound) -> str:
    """The function of the device that a call asks for; empty for one of the module."""
    function = bound.callee()
    if function is None:
        return "?"
    return "" if function.defined else function.name


def scheduled(bound: Bound) -> bool:
    """May what it gives depend on the order in which threads run?"""
    opcode, words = bound.node.opcode, set(bound.node.words)
    if opcode in ("atom", "red", "activemask", "call") and (opcode != "call" or not known(bound)):
        return True
    if opcode in ("ld", "st") and words & (STRONG | {"release"}):
        return True
    if opcode in ("vote", "shfl") and "sync" not in words:
        return True
    return any(name.text.startswith(SCHEDULE) for node in bound.operands.values() for name in names_in(node))
