"""Miscellaneous instructions, to stop, delay or observe a kernel, and hints (PTX 9.7.19, 9.7.13.13, 9.7.9.16 to 9.7.9.18)."""

from __future__ import annotations

from ptxvm.algebra.memory_order import GridStep, Order, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import b64
from ptxvm.isa.access import ADDRESS, has, of_a_word
from ptxvm.isa.model import instruction


@instruction("trap;", section="9.7.19.4", needs={"": "PTX 1.0"}, ends=True)
def trap(i, flow):
    """Abort the grid with a fault."""
    flow.trap()


@instruction("brkpt;", section="9.7.19.1", needs={"": "PTX 1.0, sm_11"})
def brkpt(i, flow):
    """Stop where `ptxvm debug` runs the kernel; elsewhere in ptxvm it has no effect."""
    flow.breakpoint()


@instruction("nanosleep.u32 t;", section="9.7.19.2", types="t: u32 plain", needs={"": "PTX 6.2, sm_70"})
def nanosleep(i, t, clock):
    """Suspend the thread for about `t` nanoseconds, at most twice as long and at most a millisecond.

    In ptxvm other threads run meanwhile, but the thread does not wait for the clock.
    """
    clock.sleep(t)


@instruction("pmevent a;", section="9.7.19.3", types="a: u32 imm", needs={"": "PTX 1.4"})
def pmevent(i, a, flow):
    """Signal a performance monitor event; in ptxvm without effect, since there are no counters."""
    flow.event(a, None)


@pmevent.rule("P2301")
def event_number(i):
    """The events are numbered 0 to 15."""
    a = i.value("a")
    if a is not None and not 0 <= a < 16:
        return f"Argument 0 of instruction 'pmevent': value '{a}' out of range, expected to be in range [0..15]"
    return None


@instruction("pmevent.mask a;", section="9.7.19.3", types="a: u32 imm", needs={"": "PTX 3.0, sm_20"}, fixed="mask")
def pmevent_mask(i, a, flow):
    """Signal the performance monitor events of a mask; in ptxvm without effect, since there are no counters."""
    flow.event(None, a)


@pmevent_mask.rule("P2302")
def event_mask(i):
    """The mask has 16 bits."""
    a = i.value("a")
    if a is not None and not 0 <= a < 1 << 16:
        return f"Argument 0 of instruction 'pmevent.mask': value '{a}' out of range, expected to be in range [0..65535]"
    return None


# ── hints ───────────────────────────────────────────────────────────────────────────────


@instruction(
    """
    griddepcontrol.action;
    .action = { .launch_dependents, .wait };
    """,
    section="9.7.13.13",
    needs={"": "PTX 7.8, sm_90"},
)
def griddepcontrol(i, mem):
    """Let dependent grids start, or wait for the grids that this one depends on.

    In ptxvm grids run one after another: dependent grids start when this one has ended, and the wait is over at once.  The
    check `race` knows what may come before the wait.
    """
    mem.fence(GridStep(i.action), Scope.SYS)
    if i.action == "wait":
        mem.fence(Order.ACQUIRE, Scope.SYS)


@has(ADDRESS)
@instruction(
    """
    applypriority{.ss}.L2::evict_normal  [a], size;
    .ss = { .global };
    """,
    section="9.7.9.16",
    types="a: u64, size: u32 imm",
    needs={"": "PTX 7.4, sm_80"},
)
def applypriority(i, a, size, mem):
    """Give a range of memory its normal priority in the cache again; in ptxvm without effect."""
    mem.prefetch(Space.GLOBAL, a)


@has(ADDRESS)
@instruction(
    """
    discard{.ss}.L2  [a], size;
    .ss = { .global };
    """,
    section="9.7.9.17",
    types="a: u64, size: u32 imm",
    needs={"": "PTX 7.4, sm_80"},
)
def discard(i, a, size, mem):
    """Tell that the contents of a range of memory are not needed; in ptxvm without effect, since they may stay."""
    mem.prefetch(Space.GLOBAL, a)


@applypriority.rule("P2303")
@discard.rule("P2303")
def line_size(i):
    """The size is 128 bytes."""
    size = i.value("size")
    if size is not None and size != 128:
        return f"Argument 2 of instruction '{i.form.opcode}': unexpected value '{size}', expected to be 128"
    return None


@has(ADDRESS, of_a_word("a"))
@instruction(
    """
    createpolicy.range{.ss}.primary{.secondary}.b64  d, [a], size, total;
    .ss        = { .global };
    .primary   = { .L2::evict_last, .L2::evict_normal, .L2::evict_first, .L2::evict_unchanged };
    .secondary = { .L2::evict_first, .L2::evict_unchanged };
    """,
    section="9.7.9.18",
    types="d: u64 plain, a: u64, size total: u32 plain numeric",
    needs={"": "PTX 7.4, sm_80"},
    fixed=1,
)
def createpolicy_range(i, a, size, total):
    """A cache policy for a range of addresses, which is opaque: in ptxvm it is 0."""
    return a.lift(0)


@createpolicy_range.rule("P2306")
def primary_within_total(i):
    """The primary range is part of the total."""
    size, total = i.value("size"), i.value("total")
    if size is not None and total is not None and size % 2**32 > total % 2**32:
        return f"Argument 2 of instruction 'createpolicy': the primary size {size} is greater than the total {total}"
    return None


@instruction(
    """
    createpolicy.fractional.primary{.secondary}.b64  d{, fraction};
    .primary   = { .L2::evict_last, .L2::evict_normal, .L2::evict_first, .L2::evict_unchanged };
    .secondary = { .L2::evict_first, .L2::evict_unchanged };
    """,
    section="9.7.9.18",
    types="d: u64 plain, fraction: f32 plain",
    needs={"": "PTX 7.4, sm_80"},
    fixed=1,
)
def createpolicy_fractional(i, fraction, warp):
    """A cache policy for a part of the accesses, which is opaque: in ptxvm it is 0."""
    return warp.lane.to(b64).lift(0)


@createpolicy_fractional.rule("P2307")
def part_of_the_accesses(i):
    """A part of the accesses is more than none, and at most all."""
    part = i.real("fraction")
    if part is None or 0 < part <= 1:
        return None
    said = f"value '{part:.6f}' out of range, expected to be in range (0.000000 .. 1.000000]"
    return f"Argument 2 of instruction 'createpolicy.fractional': {said}"


@instruction(
    "createpolicy.cvt.L2.b64 d, a;",
    section="9.7.9.18",
    types="*: u64 plain numeric",
    needs={"": "PTX 7.4, sm_80"},
    fixed=1,
)
def createpolicy_cvt(i, a):
    """A cache policy from an access property of the CUDA API, which is opaque: in ptxvm they are the same."""
    return a
