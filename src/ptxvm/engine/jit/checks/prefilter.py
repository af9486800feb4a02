"""The prefilter of the checkers: instrumented code that misses nothing; the exact checker decides its suspicions.

Instrumented code checks coarsely (`memory.shadow_tags`): an access is suspicious unless it is plainly right.  A run without
suspicion has no finding.  A suspicion, or a fault, ends the run; memory is restored, and the exact checker runs the kernel
on the interpreter.  So findings are the same whichever engine ran.

**Why it misses no race.**  Take two accesses of a cell by different threads of which one writes, and not both are atomics
or strong ones of one size and of scopes that include each other.  If they are of one CTA and no barrier of the whole CTA is
between them, they have the same epoch, and whichever comes later finds the tag of the other: a write leaves its tag until
a write of a later epoch, a read until a later epoch or, of several, as `MANY`.  If they are of different CTAs, the later
one finds a tag below those of its own CTA: that of the first CTA that wrote the cell, or read it, stays.  What remains
is ordered by a barrier, and no race.  Memory that the grid does not write has no race, and no tags.

Where barriers are for some of the threads, *epoch* is the clock of a warp, and an access is ordered where the warp of the later
one knows the clock in the tag of the earlier one (`memory.cta_clocks`).  So it is where the lanes of a warp meet, once a run
has been suspicious that knew barriers alone: clocks take longer.  Warps come to such barriers as a whole, or it is
suspicious.  The warps of a cluster have clocks together, and its barrier is one more.  An access in the shared memory of
another CTA is suspicious where some CTA of the cluster has ended, or ends without knowing the last such access of a warp.
Of a whole warp that arrives at an mbarrier the phase has all accesses, of some lanes those that all lanes of the
warp know.  Of several reads a tag has the latest clock and the groups of their warps, which is no less than they are.

Where CTAs wait for each other they run beside each other, each until it waits.  Then accesses of several CTAs are in order only
if notes of fences and strong accesses tell so (`checks.told_order`); a tag of reads by several CTAs stands for all that
have read, and when.  A CTA that has told others something lets these run before it goes on behind a barrier: what it does next
is nothing that they have waited for.

**Why one run answers for all schedules**, where values do not depend on the schedule: such a kernel has no atomics, no
strong accesses, and reads no clock and no set of active lanes.  Let it have a run in which all conflicting accesses are
ordered by barriers of the CTA.  Any other run does, thread by thread, the same: follow it up to the first access that reads
another value than in the first run.  Up to there all threads did the same accesses and came to the same barriers in the
same order, so the same accesses are ordered, and the write that is last before that read in this order is the same one:
the value is the same.  So no schedule has a race.  Which warps meet at a barrier for some threads is up to the schedule
only where a warp may come to a phase before it knows that the last one is over, which is suspicious.  Where a kernel is
not of this kind, one run of it answers for itself only, and the exact checker runs the other schedules.  The same holds of
when copies end: what they read and write counts as accesses from their start to the wait for them, so that a run in which
each ends at its start answers for those in which it ends later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from ptxvm.algebra.memory_order import Order
from ptxvm.algebra.state_space import Space
from ptxvm.analysis.flow import special_registers
from ptxvm.analysis.outputs import read_parameters, written_parameters
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Variable
from ptxvm.diagnostics.errors import Fault, Unsupported
from ptxvm.engine.call_targets import called
from ptxvm.engine.jit.abi.specialisation import Specialisation
from ptxvm.engine.jit.cfg import unset_registers
from ptxvm.engine.jit.checks.cell_tags import Suspicious, WrittenLater
from ptxvm.engine.jit.checks.observed_launch import ObservedLaunch, Overwritten
from ptxvm.engine.jit.engine import Jit
from ptxvm.engine.jit.run.runner import pointers_at
from ptxvm.engine.jit.translate.checked_kernel import CheckedKernel
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Counters
from ptxvm.engine.time_box import GivenUp
from ptxvm.engine.watching import Watch
from ptxvm.isa.effects import Collective
from ptxvm.isa.summary import orders_lanes
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.launch import Extent, LaunchShape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.options import Check
from ptxvm.named_tuple import NamedTuple

log = logging.getLogger("ptxvm.jit")

QUIET = frozenset({"", "vprintf", "__assertfail"})
"""Names of called functions whose effects the prefilter sees: those with code (""), and two that change no memory."""


class Doubtful(Exception):  # noqa: N818 - it says what is the case
    """Instrumented code cannot judge a kernel."""


class Way(NamedTuple):
    """A way in which instrumented code may show what barriers leave open: what fences tell, or what each warp knows."""

    by_fences: bool = False
    by_warps: bool = False

    def of(self, wanted: Specialisation) -> Specialisation:
        """The code that follows this, and nothing else."""
        return wanted._replace(by_fences=self.by_fences, by_warps=self.by_warps)


BY_BARRIERS, BY_FENCES, BY_WARPS = Way(), Way(by_fences=True), Way(by_warps=True)


class Prefilter:
    """Runs launches on instrumented code; what the JIT cannot run is left to the exact checker."""

    def __init__(self, jit: Jit) -> None:
        self.jit = jit
        self.spent: dict[tuple[Function, Extent], float] = {}
        self._unsupported: dict[Specialisation, Unsupported] = {}
        self._decided: dict[tuple[Function, Callable[[Bound], bool]], Bound | None] = {}
        self._unset: dict[Function, str | None] = {}
        self._alone: dict[Function, bool] = {}  # the kernels whose threads need no others
        self._outputs: dict[Function, list[int]] = {}  # the offsets of the parameters through which it writes
        self._inputs: dict[Function, list[int] | None] = {}  # of those through which it reads; None if it may read others
        self._written_anywhere: set[Function] = set()  # kernels that write memory which no such parameter points to
        self._ways: dict[Function, Way] = {}  # what is followed in kernels that barriers do not show to be in order

    def clears(
        self, watch: Watch, kernel: Function, shape: LaunchShape, parameters: int, options: LaunchOptions, *,
        limits: Limits | None, new: Sequence[Allocation],
    ) -> tuple[Counters, str] | None:  # fmt: skip
        """Run the grid; returns its counters and output, or None, with memory restored, if the exact checker must run it.

        Memory is restored too where the limits raise `GivenUp`.
        """
        if not watch.checks:
            return None
        shape = self.jit.clustered(kernel, shape)
        wanted = self._wanted(watch, kernel, shape, options, limits)
        run = partial(self._judged, watch, shape, parameters, options, limits, frozenset(new))
        try:
            return self._in_order(run, wanted, limits)
        except Overwritten:
            raise
        except (Fault, Unsupported, Suspicious, Doubtful) as found:
            log.info("the exact checker runs '%s': %s", kernel.name, found)
            return None

    def _in_order(
        self, run: Callable[[Specialisation], tuple[Counters, str]], wanted: Specialisation, limits: Limits | None
    ) -> tuple[Counters, str]:
        """Run code for which barriers alone order threads; where it is suspicious, code that follows more."""
        try:
            return run(wanted)
        except Suspicious as found:
            suspicion = found
        for way in self._further(wanted):
            self._ways[wanted.function] = way
            if limits is not None:
                limits.renew()
            try:
                return run(way.of(wanted))
            except Suspicious as found:
                suspicion = found
        raise suspicion

    def _judged(
        self, watch: Watch, shape: LaunchShape, parameters: int, options: LaunchOptions, limits: Limits | None,
        new: frozenset[Allocation], wanted: Specialisation,
    ) -> tuple[Counters, str]:  # fmt: skip
        """Run instrumented code that can judge the kernel; raises why there is none, or why it does not clear it."""
        translated = self._translated(wanted)
        if (reason := self._doubt(translated, watch, options)) is not None:
            raise Doubtful(reason)
        unread = self._unread(translated, parameters) if watch.host is None else frozenset[Allocation]()
        launch = partial(self._observed, wanted, shape, parameters, limits, new, unread)
        written = self._written(translated, parameters)
        try:
            return launch(translated, written)
        except WrittenLater:
            self._written_anywhere.add(translated.function)
            if limits is not None:
                limits.renew()
            return launch(translated, None)

    def _further(self, wanted: Specialisation) -> Iterator[Way]:
        """What else code may follow that shows accesses to be in order which barriers, or what is wanted, leave open."""
        if "race" not in wanted.checks:
            return
        kernel = self._translated(wanted)
        tells_others = not wanted.by_fences and self._first(kernel, tells, expected=True) is not None
        if tells_others and self._translated(BY_FENCES.of(wanted)).follows_fences:
            yield BY_FENCES
        if not wanted.by_warps and self._first(kernel, meets_lanes, expected=True) is not None:
            yield BY_WARPS

    def _observed(
        self, wanted: Specialisation, shape: LaunchShape, parameters: int, limits: Limits | None, new: frozenset[Allocation],
        unread: frozenset[Allocation], kernel: CheckedKernel, written: frozenset[Allocation] | None,
    ) -> tuple[Counters, str]:  # fmt: skip
        """Run instrumented code; whatever ends it early restores memory."""
        observed = ObservedLaunch(self.jit.image.memory, kernel, new, written, unread)
        try:
            counters = self.jit.examine(wanted, shape, parameters, observed, limits)
        except (GivenUp, Fault, Unsupported, Suspicious, WrittenLater):
            observed.undo()
            raise
        finally:
            if observed.reread is not None:
                self._inputs[kernel.function] = None
        observed.leave()
        return counters, "".join(observed.library.output)

    def _written(self, kernel: CheckedKernel, parameters: int) -> frozenset[Allocation] | None:
        """The memory that a launch is expected to write, by the parameters through which it writes; None for all memory."""
        if kernel.function in self._written_anywhere:
            return None
        if kernel.function not in self._outputs:
            self._outputs[kernel.function] = self._offsets(kernel, written_parameters(kernel.function))
        return self._pointed_to(parameters, self._outputs[kernel.function])

    def _unread(self, kernel: CheckedKernel, parameters: int) -> frozenset[Allocation]:
        """The memory that a launch is expected to write, and not to read, by its parameters; a host beside it may read it."""
        if kernel.function not in self._inputs:
            through = read_parameters(kernel.function)
            self._inputs[kernel.function] = None if through is None else self._offsets(kernel, through)
        inputs, written = self._inputs[kernel.function], self._written(kernel, parameters)
        if inputs is None or written is None:
            return frozenset()
        return written - self._pointed_to(parameters, inputs)

    def _offsets(self, kernel: CheckedKernel, parameters: Iterable[Variable]) -> list[int]:
        offsets = self.jit.image.parameters(kernel.function).offsets
        return [offsets[each] for each in parameters]

    def _pointed_to(self, parameters: int, offsets: Sequence[int]) -> frozenset[Allocation]:
        """The memory that some parameters point to."""
        found = (self.jit.image.memory.table.find(each) for each in pointers_at(parameters, offsets).values())
        return frozenset(each for each in found if each is not None)

    def judges(self, watch: Watch, kernel: Function, shape: LaunchShape, options: LaunchOptions, limits: Limits | None) -> bool:
        """Could instrumented code clear the kernel?"""
        try:
            wanted = self._wanted(watch, kernel, self.jit.clustered(kernel, shape), options, limits)
            return bool(watch.checks) and self._doubt(self._translated(wanted), watch, options) is None
        except Unsupported:
            return False

    def _wanted(
        self, watch: Watch, kernel: Function, shape: LaunchShape, options: LaunchOptions, limits: Limits | None
    ) -> Specialisation:
        """The instrumented code for a launch."""
        metered = limits is not None and limits.counts
        function = self.jit.image.resolve(kernel)
        checks = self._checks(function, watch)
        way = self._ways.get(function, BY_BARRIERS) if "race" in checks else BY_BARRIERS
        cluster = shape.cluster
        return way.of(Specialisation(function, shape.block, options.shared, checks=checks, metered=metered, cluster=cluster))

    def _translated(self, wanted: Specialisation) -> CheckedKernel:
        """What instrumented code is like; Unsupported where there is none."""
        if wanted not in self._unsupported:
            try:
                return self.jit.code_cache.checked(wanted)
            except Unsupported as reason:
                self._unsupported[wanted] = reason
        raise self._unsupported[wanted].with_traceback(None)

    def _checks(self, kernel: Function, watch: Watch) -> frozenset[Check]:
        """The checks that code is instrumented for: not `sync` where no thread needs another.

        All instrumented code sees where accesses go, since memory is put back behind a wrong one.
        """
        if kernel not in self._alone:
            functions = called(self.jit.image, kernel)
            self._alone[kernel] = not any(needs_others(bound) for each in functions for bound in each.instructions)
        return (watch.checks - {"sync"} or frozenset({"memory"})) if self._alone[kernel] else watch.checks

    def _doubt(self, kernel: CheckedKernel, watch: Watch, options: LaunchOptions) -> str | None:
        """Why instrumented code cannot judge a kernel; None if it can."""
        if kernel.address_bits != 64:
            return "addresses have 32 bits"
        if (unknown := self._first(kernel, known, expected=False)) is not None:
            return f"'{unknown.i.mnemonic}' has effects that instrumented code does not see"
        if "sync" in watch.checks and (reason := self._mbarrier_doubt(kernel)):
            return reason
        if kernel.shadow is not None and kernel.shadow.doubts:
            return next(iter(kernel.shadow.doubts))
        if kernel.several:
            return f"only a run tells which object the address of '{kernel.several[0].i.mnemonic}' belongs to"
        if "init" in watch.checks and kernel.loses_local:
            return "local memory may be read before it is written"
        if kernel.shadow is not None and kernel.shadow.init and (unset := self._unset_doubt(kernel)):
            return unset
        if "sync" in watch.checks and kernel.clock_words and len(kernel.reductions) > 1:
            return "barriers with different reductions may be mixed"
        return self._doubt_of_one_run(kernel, watch, options)

    def _mbarrier_doubt(self, kernel: CheckedKernel) -> str | None:
        """Why instrumented code does not see all misuse of mbarriers; None if it does."""
        used = self._first(kernel, uses_mbarriers, expected=True)
        if used is None or kernel.watches_mbarriers:
            return None
        return f"no thread waits for the mbarriers of '{used.i.mnemonic}', and instrumented code does not follow them"

    def _doubt_of_one_run(self, kernel: CheckedKernel, watch: Watch, options: LaunchOptions) -> str | None:
        """Why one run, in which copies end at once, does not answer for those that are asked for; None if it does."""
        late = self.jit.defers(kernel.function, options)
        if late and "race" not in watch.checks:
            return f"asynchronous work ends {options.asynchronous}, and nothing tells whether threads wait for it"
        if not late and watch.schedules == 1 and watch.seed is None:
            return None
        depends = self._first(kernel, scheduled, expected=True)
        return f"what '{depends.i.mnemonic}' does depends on the schedule" if depends else None

    def _unset_doubt(self, kernel: CheckedKernel) -> str | None:
        """Why masks do not tell whether a register is unset; None if they do."""
        if kernel.function not in self._unset:
            self._unset[kernel.function] = unset_registers.doubt(kernel.function, kernel.functions)
        return self._unset[kernel.function]

    def _first(self, kernel: CheckedKernel, question: Callable[[Bound], bool], *, expected: bool) -> Bound | None:
        """The first instruction for which a question has the expected answer."""
        key = kernel.function, question
        if key not in self._decided:
            self._decided[key] = next((bound for bound in kernel.instructions if question(bound) is expected), None)
        return self._decided[key]


def known(bound: Bound) -> bool:
    """Does instrumented code see all effects of an instruction on memory?"""
    if bound.calls:
        return callee_name(bound) in QUIET
    found = bound.summary
    followed = found.own_groups or found.tells_of_copies
    return not ((found.copies and not followed) or Space.SURFACE in found.spaces)


def uses_mbarriers(bound: Bound) -> bool:
    """Does it use an mbarrier?"""
    return bound.summary.polls or any(access.mbarrier for access in bound.summary.accesses)


def needs_others(bound: Bound) -> bool:
    """Does it need other threads: does it meet them, or use an mbarrier?"""
    return bound.summary.collective is not None or bound.summary.waits or uses_mbarriers(bound)


def tells(bound: Bound) -> bool:
    """May a thread tell others by it what comes before?"""
    orders = [*(fence.order for fence in bound.summary.fences), *(access.order for access in bound.summary.accesses)]
    return any(isinstance(order, Order) and (order.releases or order.acquires) for order in orders)


def meets_lanes(bound: Bound) -> bool:
    """Do lanes of a warp meet at it, so that their accesses are in order?"""
    return orders_lanes(bound.i)


def callee_name(bound: Bound) -> str:
    """The name of the called function of the device; empty for one with code, as all are that a pointer may call."""
    function = bound.callee()
    return "" if function is None or function.defined else function.name


def scheduled(bound: Bound) -> bool:
    """May its results depend on the thread schedule?"""
    if bound.calls:
        return not known(bound)
    found = bound.summary
    if found.collective is Collective.ACTIVE_LANES or any(access.strong for access in found.accesses):
        return True
    return any(register.volatile or register.scheduled for register in special_registers(bound))
