"""Barriers and fences (PTX 9.7.13.1 to 9.7.13.4)."""

from __future__ import annotations

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.algebra.memory_order import Order, PartialFence, Scope
from ptxvm.algebra.ports import Votes
from ptxvm.algebra.value import Value
from ptxvm.isa.access import SCOPE_NEEDS, before_hopper, has, no_address
from ptxvm.isa.model import Decoded, Problem, instruction

# ── barriers of the CTA ─────────────────────────────────────────────────────────────────
#
# `bar` is `barrier…aligned`.  The words `cta`, `arrive` and `red` belong to the opcode, `sync` is a modifier.


def unaligned_before_hopper(i: Decoded) -> bool:
    """Is it without .aligned, on a target older than sm_90?"""
    return not i.aligned and before_hopper(i)


NO_ADDRESS = no_address("a", "b", when=unaligned_before_hopper)


@instruction(
    """
    bar.sync{.all}      a{, b};
    bar.cta.sync{.all}  a{, b};
    .all = { .all, .any };
    """,
    section="9.7.13.1",
    types="*: u32 plain",
    needs={"": "PTX 1.0", ".cta": "PTX 7.8, sm_20", ".all .any": "PTX 6.0, sm_30"},
    fixed="cta",
)
def bar_sync(i, a, b, cta):
    """Wait at barrier `a` until `b` threads, all by default, have arrived there."""
    yield cta.barrier(a, b)


@has(NO_ADDRESS)
@instruction(
    """
    barrier.sync{.aligned}      a{, b};
    barrier.cta.sync{.aligned}  a{, b};
    """,
    section="9.7.13.1",
    types="*: u32 plain",
    needs={"": "PTX 6.0, sm_30", ".cta": "PTX 7.8"},
    fixed="cta",
)
def barrier_sync(i, a, b, cta):
    """Wait at barrier `a` until `b` threads, all by default, have arrived there."""
    yield cta.barrier(a, b)


@instruction(
    """
    bar.arrive      a, b;
    bar.cta.arrive  a, b;
    """,
    section="9.7.13.1",
    types="*: u32 plain",
    needs={"": "PTX 2.0, sm_20", ".cta": "PTX 7.8"},
    fixed="cta arrive",
)
def bar_arrive(i, a, b, cta):
    """Arrive at barrier `a`, for which `b` threads are expected, and go on."""
    cta.arrive(a, b)


@has(NO_ADDRESS)
@instruction(
    """
    barrier.arrive{.aligned}      a, b;
    barrier.cta.arrive{.aligned}  a, b;
    """,
    section="9.7.13.1",
    types="*: u32 plain",
    needs={"": "PTX 6.0, sm_30", ".cta": "PTX 7.8"},
    fixed="cta arrive",
)
def barrier_arrive(i, a, b, cta):
    """Arrive at barrier `a`, for which `b` threads are expected, and go on."""
    cta.arrive(a, b)


def reduced(i: Decoded, votes: Votes) -> Value:
    """The outcome of a vote: a count, or whether all or any are true."""
    if i.popc:
        return votes.count()
    return votes.all() if i.op == "and" else votes.any()


@instruction(
    """
    bar.red.popc.u32      d, a{, b}, {!}c;
    bar.red.op.pred       d, a{, b}, {!}c;
    bar.cta.red.popc.u32  d, a{, b}, {!}c;
    bar.cta.red.op.pred   d, a{, b}, {!}c;
    .op = { .and, .or };
    """,
    section="9.7.13.1",
    types="d: type plain, a b: u32 plain, c: pred plain",
    needs={"": "PTX 2.0, sm_20", ".cta": "PTX 7.8"},
    fixed="cta red",
)
def bar_red(i, a, b, c, cta):
    """Wait at a barrier, and combine the predicates `c` of the threads that meet there."""
    return reduced(i, (yield cta.barrier(a, b, c)))


@has(NO_ADDRESS)
@instruction(
    """
    barrier.red.popc{.aligned}.u32      d, a{, b}, {!}c;
    barrier.red.op{.aligned}.pred       d, a{, b}, {!}c;
    barrier.cta.red.popc{.aligned}.u32  d, a{, b}, {!}c;
    barrier.cta.red.op{.aligned}.pred   d, a{, b}, {!}c;
    .op = { .and, .or };
    """,
    section="9.7.13.1",
    types="d: type plain, a b: u32 plain, c: pred plain",
    needs={"": "PTX 6.0, sm_30", ".cta": "PTX 7.8"},
    fixed="cta red",
)
def barrier_red(i, a, b, c, cta):
    """Wait at a barrier, and combine the predicates `c` of the threads that meet there."""
    return reduced(i, (yield cta.barrier(a, b, c)))


def barrier_number(i: Decoded) -> Problem | None:
    """A CTA has the barriers 0 to 15."""
    a = i.value("a")
    if a is None or a & 0xFFFF_FFFF < 16:
        return None
    said = f"Barrier number '{a % 2**64}' out of range, expected to be in range [0..15]"
    return Problem("P2101", f"there is no barrier {a}: they are numbered 0 to 15", operand="a", ptxas=said)


def whole_warps(i: Decoded) -> str | None:
    """The number of threads is a multiple of the warp size."""
    b = i.value("b")
    if b is not None and b % 32:
        return "Number of threads participating in barrier must be in multiple of warp size"
    return None


def expects_a_warp(i: Decoded) -> str | None:
    """A barrier at which threads arrive without waiting expects at least one warp."""
    if i.value("b") == 0:
        return f"Instruction '{i.form.opcode}.arrive' requires a non-zero thread count argument"
    return None


for barrier in (bar_sync, barrier_sync, bar_arrive, barrier_arrive, bar_red, barrier_red):
    barrier.rule("P2101")(barrier_number)
    barrier.rule("P2102")(whole_warps)
for barrier in (bar_arrive, barrier_arrive):
    barrier.rule("P2103")(expects_a_warp)


@has(no_address("membermask", when=before_hopper))
@instruction(
    "bar.warp.sync membermask;",
    section="9.7.13.2",
    types="membermask: u32 plain mask",
    needs={"": "PTX 6.0, sm_30"},
    fixed="warp",
)
def bar_warp_sync(i, membermask, warp):
    """Wait until all lanes of the mask are here, and order their memory accesses."""
    yield warp.converge(membermask)


# ── fences ──────────────────────────────────────────────────────────────────────────────

LEVELS = {"cta": Scope.CTA, "gl": Scope.GPU, "sys": Scope.SYS}


@instruction(
    """
    membar.level;
    .level = { .cta, .gl, .sys };
    """,
    section="9.7.13.4",
    needs={"": "PTX 1.4", ".sys": "PTX 2.0, sm_20"},
)
def membar(i, mem):
    """Order the accesses of this thread before the fence against those after it, for a level of observers."""
    mem.fence(Order.SC, LEVELS[i.level])


@instruction(
    """
    fence{.sem}.scope;
    .sem   = { .sc, .acq_rel, .acquire, .release };
    .scope = { .cta, .cluster, .gpu, .sys };
    """,
    section="9.7.13.4",
    needs={"": "PTX 6.0, sm_70", ".acquire .release": "PTX 8.6, sm_90", ".cluster": SCOPE_NEEDS[0][0]},
)
def fence(i, mem):
    """Order accesses around the fence for the threads of a scope; .sc also puts all such fences in one order."""
    mem.fence(Order(i.sem or "acq_rel"), Scope(i.scope))


@instruction(
    """
    fence.acquire.sync_restrict::shared::cluster.cluster;
    fence.release.sync_restrict::shared::cta.cluster;
    """,
    section="9.7.13.4",
    needs={"": "PTX 8.6, sm_90"},
)
def fence_restricted(i, mem):
    """A fence of the cluster that orders accesses to shared memory only."""
    mem.fence(Order.ACQUIRE if i.acquire else Order.RELEASE, Scope.CLUSTER)


@instruction("fence.mbarrier_init.release.cluster;", section="9.7.13.4", needs={"": "PTX 8.0, sm_90"})
def fence_mbarrier_init(i, mem):
    """Make the mbarriers that this thread initialised visible to the cluster."""
    mem.fence(PartialFence.MBARRIER_INIT, Scope.CLUSTER)


@instruction(
    """
    membar.proxy.kind;
    .kind = { .alias, .async };
    """,
    section="9.7.13.4",
    needs={"": "PTX 7.5, sm_60", ".async": "PTX 8.0, sm_90"},
    fixed="proxy",
)
def membar_proxy(i, mem):
    """Order accesses through different proxies, as aliased addresses and asynchronous copies are."""
    mem.fence(Proxy(i.kind), Scope.CTA)


@instruction(
    """
    fence.proxy.alias;
    fence.proxy.async{.ss};
    .ss = { .global, .shared::cta, .shared::cluster };
    """,
    section="9.7.13.4",
    needs={"": "PTX 7.5, sm_70", ".async": "PTX 8.0, sm_90"},
    fixed="proxy",
)
def fence_proxy(i, mem):
    """Order accesses through different proxies, as aliased addresses and asynchronous copies are."""
    asynchronous = Proxy.ASYNC if not i.ss else Proxy.ASYNC_GLOBAL if i.ss == "global" else Proxy.ASYNC_SHARED
    mem.fence(Proxy.ALIAS if i.alias else asynchronous, Scope.CTA)


@instruction(
    """
    fence.proxy.pair.acq_rel{.restrict}.scope;
    fence.proxy.pair.acq_rel.scope                            [a], size;
    fence.proxy.tensormap::generic.release{.restrict}.scope;
    fence.proxy.tensormap::generic.acquire.scope              [a], size;
    fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
    fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
    .pair     = { .tensormap::generic, .async::generic };
    .restrict = { .sync_restrict::shared::cta, .sync_restrict::shared::cluster };
    .scope    = { .cta, .cluster, .gpu, .sys };
    """,
    section="9.7.13.4",
    types="a: u64, size: u32 imm",
    needs={"": "PTX 8.3, sm_90", ".sync_restrict::shared::cta .sync_restrict::shared::cluster": "PTX 8.6"},
    fixed="proxy",
)
def fence_proxy_pair(i, a, size, mem):
    """Order accesses through one proxy before the fence against those through another after it."""
    order = next(order for order in ("acq_rel", "acquire", "release") if getattr(i, order))
    mem.fence(Order(order), Scope(i.scope or "cluster"), a)


@fence_proxy_pair.rule("P2104")
def acquired_bytes(i):
    """A proxy fence that acquires is for 128 bytes."""
    size = i.value("size")
    if i.acquire and size not in (None, 128):
        return f"Argument 1 of instruction 'fence.proxy': unexpected value '{size}', expected to be 128"
    return None
