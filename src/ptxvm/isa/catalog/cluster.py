"""Clusters of CTAs, and the registers of a warp (PTX 9.7.9.23, 9.7.13.3)."""

from __future__ import annotations

from functools import partial

from ptxvm.algebra.memory_order import Order
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import b32, b64, u32, u64
from ptxvm.isa.access import Trait, addresses, elements, has, space_of
from ptxvm.isa.matrix import all_lanes
from ptxvm.isa.mbarrier import completed
from ptxvm.isa.model import Problem, instruction
from ptxvm.isa.operand_types import is_vector_register
from ptxvm.isa.transfers import Pattern, Transfer

# ── addresses ───────────────────────────────────────────────────────────────────────────


def address_of_shared_memory(i):
    """What is mapped is an address in .shared, in a register or constant, or a variable that lies there."""
    shape = i.shape("a")
    if shape.kind == "special":
        return f"Special register argument not allowed for instruction '{i.opcode}'"
    if shape.kind == "vector" or is_vector_register(shape):
        return f"Vector operand is not allowed for instruction '{i.opcode}'"
    if shape.kind != "variable" or shape.space.window is Space.SHARED:
        return None
    ptxas = f"State space mismatch between instruction and address in instruction '{i.opcode}'"
    return Problem("P3001", f"the variable lies in .{shape.space}, and .shared is needed", operand="a", ptxas=ptxas)


IN_SHARED = Trait(rules=[("P3001", address_of_shared_memory)])


@has(IN_SHARED)
@instruction(
    """
    mapa{.ss}.type  d, a, b;
    .ss   = { .shared::cluster };
    .type = { .u32, .u64, .s32, .s64 };
    """,
    section="9.7.9.23",
    types="d: type plain, a: type, b: u32 plain",
    needs={"": "PTX 7.8, sm_90"},
)
def mapa(i, a, b, mem):
    """Give the address in another CTA of the cluster that corresponds to an address in shared memory."""
    return mem.mapped(Space(i.ss or Space.GENERIC), a.to(u64), b.to(u64)).to(i.type)


@has(IN_SHARED)
@instruction(
    """
    getctarank{.ss}.type  d, a;
    .ss   = { .shared::cluster };
    .type = { .u32, .u64, .s32, .s64 };
    """,
    section="9.7.9.24",
    types="d: u32 plain, a: type",
    needs={"": "PTX 7.8, sm_90"},
)
def getctarank(i, a, mem):
    """Give the rank of the CTA in which an address of shared memory lies."""
    return mem.rank(Space(i.ss or Space.GENERIC), a.to(u64)).to(u32)


# ── barriers ────────────────────────────────────────────────────────────────────────────


BARRIER_NEEDS = {"": "PTX 7.8, sm_90", ".release .relaxed .acquire": "PTX 8.0"}


@instruction(
    "barrier.cluster.arrive{.sem}{.aligned}; .sem = { .release, .relaxed };",
    section="9.7.13.3",
    needs=BARRIER_NEEDS,
    fixed="cluster arrive",
)
def barrier_cluster_arrive(i, cluster):
    """Arrive at the barrier of the cluster, and go on."""
    cluster.arrive_at_cluster(Order(i.sem or "release"))


@instruction(
    "barrier.cluster.wait{.acquire}{.aligned};",
    section="9.7.13.3",
    needs=BARRIER_NEEDS,
    fixed="cluster wait",
)
def barrier_cluster_wait(i, cluster):
    """Wait until all threads of the cluster have arrived at its barrier."""
    yield cluster.await_cluster()


# ── launches and registers ──────────────────────────────────────────────────────────────


CANCEL = "clusterlaunchcontrol.try_cancel.async{.ss}.mbarrier::complete_tx::bytesMULTICAST.b128  [a], [bar];"
cancelling = partial(
    instruction,
    section="9.7.13.17",
    types="a bar: u64",
    needs={"": "PTX 8.6, sm_100", ".multicast::cluster::all": "sm_100f sm_110f sm_120f"},
    fixed="try_cancel async",
)


@has(addresses(a=space_of, bar=space_of))
@cancelling(CANCEL.replace("MULTICAST", "") + " .ss = { .shared::cta };")
def clusterlaunchcontrol_try_cancel(i, a, bar, tasks):
    """Ask for the launch of a cluster that has not begun to be cancelled; the answer goes to shared memory."""
    tasks.transfer(Transfer(Pattern.CANCELLATION, Space.SHARED, mbarrier=True, type=b64), completed, a=a, bar=bar)


@has(addresses(a=space_of, bar=space_of))
@cancelling(CANCEL.replace("MULTICAST", ".multicast::cluster::all") + " .ss = { .shared::cta };")
def clusterlaunchcontrol_try_cancel_multicast(i, a, bar, cluster, tasks):
    """Ask for the launch of a cluster to be cancelled; the answer goes to the shared memory of all CTAs of this one."""
    kind = Transfer(Pattern.CANCELLATION, Space.SHARED_CLUSTER, mbarrier=True, multicast=True, type=b64)
    everyone = (cluster.size.lift(1) << cluster.size) - 1
    tasks.transfer(kind, completed, a=a, bar=bar, mask=everyone)


QUERY_NEEDS = {"": "PTX 8.6, sm_100"}


# The answer has 1 in its lowest bit where a cluster was cancelled, and the place of its first CTA in the words above
# (`machine.cluster_queue`); PTX leaves the layout open.


@instruction(
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128  d, a;",
    section="9.7.13.18",
    types="d: pred plain, a: b128 plain",
    needs=QUERY_NEEDS,
    fixed="query_cancel",
)
def clusterlaunchcontrol_query_cancel(i, a):
    """Read from the answer of `try_cancel` whether a cluster was cancelled."""
    return (a.to(u64) & 1).ne(0)


def word(a, n):
    """A word of 32 bits of the answer."""
    return (a >> 32 * n).to(u64).to(u32).view(b32)


@instruction(
    """
    clusterlaunchcontrol.query_cancel.component.b32.b128  d, a;
    .component = { .get_first_ctaid::x, .get_first_ctaid::y, .get_first_ctaid::z };
    """,
    section="9.7.13.18",
    types="d: b32 plain, a: b128 plain",
    needs=QUERY_NEEDS,
    fixed="query_cancel",
)
def clusterlaunchcontrol_query_cancel_component(i, a):
    """Read from the answer of `try_cancel` a component of the index of the first CTA of the cancelled cluster."""
    return word(a, 1 + "xyz".index(i.component[-1]))


@instruction(
    "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128  d, a;",
    section="9.7.13.18",
    types="d: b32, a: b128 plain",
    needs=QUERY_NEEDS,
    fixed="query_cancel",
)
def clusterlaunchcontrol_query_cancel_ctaid(i, a):
    """Read from the answer of `try_cancel` the index of the first CTA of the cancelled cluster."""
    return [*(word(a, n) for n in (1, 2, 3)), a.to(u64).lift(0).to(b32)]


@clusterlaunchcontrol_query_cancel_ctaid.rule("P3003")
def index_of_a_cta(i):
    """The index of a CTA goes to a vector of four elements."""
    if elements(i.shape("d")) == 4:
        return None
    return f"Vector of size 4 is expected for argument 0 of instruction '{i.opcode}'"


@instruction(
    """
    setmaxnreg.action.sync.aligned.type  n;
    .action = { .inc, .dec };
    .type   = { .u32, .s32 };
    """,
    section="9.7.19.5",
    types="n: u32 imm",
    needs={"": "PTX 8.0, sm_90a sm_100f sm_110f sm_120f"},
    fixed="action",
)
def setmaxnreg(i, n, warp):
    """Ask for more registers for each thread of the warp, or give some back; in ptxvm a thread has as many as it names.

    All threads of the warp execute it together.
    """
    yield warp.converge(all_lanes(warp))


@setmaxnreg.rule("P3002")
def number_of_registers(i):
    """The number of registers is a multiple of 8, from 24 to 256."""
    n = i.value("n")
    if n is None:
        return None
    n %= 1 << 32
    if not 24 <= n <= 256:
        return f"Argument 1 of instruction '{i.opcode}': value '{n}' out of range, expected to be in range [24..256]"
    if n % 8:
        return f"Argument 1 of instruction '{i.opcode}': unexpected value '{n}', expected to be multiple of 8"
    return None
