"""Fabric transfers, to and from the memory of other devices (in ptxas since PTX 9.3)."""

from __future__ import annotations

from functools import partial

from ptxvm.algebra.state_space import Space
from ptxvm.isa.access import ADDRESS, VECTOR, Trait, addresses, has, result_vector
from ptxvm.isa.model import Problem, checked

NEEDS = {"": "PTX 9.3, sm_100"}
TYPES = "a bar: u64, handle: u32, offset counter: u64, size: u32 plain, members: u32 imm"
BYTES = ".mbarrier::complete_tx::bytes.mbarrier::report::fabric{.relaxed}.sys"
UNITS = ".mbarrier::complete_tx::16B.mbarrier::report::fabric"
ORDER = "{.relaxed}.sys"
reaching = partial(checked, section="9.7.9", types=TYPES, needs=NEEDS)
IN_SHARED = addresses(bar=Space.SHARED)
REDUCTIONS = """
    .op   = { .add, .min, .max, .and, .or, .xor };
    .type = { .b32, .b64, .u32, .u64, .s32, .s64, .f16, .bf16, .f32, .f64 };
    """
OPERATIONS = {
    "add": "u32 u64 f16 bf16 f32 f64",
    "min": "u32 u64 s32 s64 f16 bf16",
    "max": "u32 u64 s32 s64 f16 bf16",
}


def operation_of_a_type(i):
    """.and, .or and .xor are for bits, .add for numbers without a sign and floats, .min and .max for integers and halves."""
    if i.type.name in OPERATIONS.get(i.op, "b32 b64").split():
        return None
    ptxas = f"Incorrect type '{i.type}' for operation '.{i.op}' in instruction '{i.opcode}'"
    return Problem("P3701", f"there is no '.{i.op}' of {i.type} here", word=i.op, ptxas=ptxas)


OPERATION = Trait(rules=[("P3701", operation_of_a_type)])


@has(IN_SHARED)
@reaching(
    f"fabric.try_get.async.shared::cta{BYTES}.b128  [a], [handle, offset], size, [bar];",
    fixed="try_get async",
)
def fabric_try_get(i, a, handle, offset, size, bar):
    """Start to copy from the memory of another device to shared memory."""


@has(IN_SHARED)
@reaching(
    f"""
    fabric.try_put.async{{.multimem}}.shared::cta{UNITS}{ORDER}.b128            [handle, offset], [a], size, [bar];
    fabric.try_put.async.shared::cta{UNITS}.counted::bytes{ORDER}.b128          [handle, offset, counter], [a], size, [bar];
    """,
    fixed="try_put async",
)
def fabric_try_put(i, handle, offset, counter, a, size, bar):
    """Start to copy from shared memory to the memory of another device."""


@has(IN_SHARED, OPERATION)
@reaching(
    f"""
    fabric.try_red.async{{.multimem}}.shared::cta{UNITS}{ORDER}.op.type    [handle, offset], [a], size, [bar];
    fabric.try_red.async.shared::cta{UNITS}.counted::bytes{ORDER}.op.type  [handle, offset, counter], [a], size, [bar];
    {REDUCTIONS}
    """,
    fixed="try_red async",
)
def fabric_try_red(i, handle, offset, counter, a, size, bar):
    """Start to combine what lies in shared memory with the memory of another device."""


PULL = f"fabric.try_pullred.async.multimem.shared::cta{BYTES}"


@has(IN_SHARED, OPERATION)
@reaching(
    f"""
    {PULL}.op{{.acc::f32}}.type.sync  [a], [handle, offset], size, [bar], members;
    {REDUCTIONS}
    """,
    fixed="try_pullred async",
)
def fabric_try_pullred(i, a, handle, offset, size, bar, members):
    """Start to combine what lies in the memories of several devices, to shared memory."""


@fabric_try_pullred.rule("P3702")
def precision_of_sums(i):
    """.acc::f32 is for sums of 16-bit floats."""
    if "acc_f32" in i.bound and (i.op != "add" or i.type.name not in ("f16", "bf16")):
        return f"Illegal modifier '.acc::f32' for instruction '{i.opcode}' with type '{i.type}'"
    return None


@checked("fabric.submit{.op_restrict::fetching};", section="9.7.9", needs=NEEDS, fixed="submit")
def fabric_submit(i):
    """Start what was asked of the fabric."""


@checked(
    """
    fabric.wait.sync_restrict::reads  {, n};
    fabric.wait.sync_restrict::read   n;
    """,
    section="9.7.9",
    types="n: u32 imm",
    needs={**NEEDS, ".sync_restrict::read": "PTX 9.5"},
    fixed="wait",
)
def fabric_wait(i, n):
    """Wait for what was asked of the fabric."""


# ── fences ──────────────────────────────────────────────────────────────────────────────

FENCE_SLOTS = """
    .restrict = { .sync_restrict::shared::cta, .sync_restrict::shared::cluster, .sync_restrict::shared::cluster::read };
    .scope    = { .cta, .cluster, .gpu, .sys };
    """
READ = ".sync_restrict::shared::cluster::read"
fencing = partial(checked, section="9.7.13.4", fixed="proxy")


@fencing(
    f"""
    fence.proxy.alias.generic::fabric.acq_rel{{.restrict}}.scope;
    fence.proxy.alias.generic::fabric.acquire{{.restrict}}.sys;
    fence.proxy.alias.generic::fabric.release{{.restrict}}.sys;
    {FENCE_SLOTS}
    """,
    needs={"": "PTX 9.3, sm_100", READ: "PTX 9.4"},
)
def fence_proxy_fabric(i):
    """Order accesses through the fabric against those through generic addresses."""


@fencing(
    f"""
    fence.proxy.alias.acquire{{.restrict}}.sys;
    fence.proxy.alias.release{{.restrict}}.sys;
    {FENCE_SLOTS}
    """,
    needs={"": "PTX 9.4, sm_90"},
)
def fence_proxy_alias(i):
    """Order accesses through aliased addresses before, or after, those of others."""


@fencing(
    f"fence.proxy.async::generic.release{READ}.scope; {FENCE_SLOTS}",
    needs={"": "PTX 9.4, sm_90"},
)
def fence_proxy_reads(i):
    """Order reads of the shared memory of the cluster before asynchronous accesses."""


# ── hints ───────────────────────────────────────────────────────────────────────────────


@has(ADDRESS, VECTOR, result_vector("d"))
@checked(
    """
    ld.proxy::readonly{.ss}{.vec}.type  d, [a];
    .ss   = { .global };
    .vec  = { .v2, .v4, .v8 };
    .type = { .b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    """,
    section="9.7.9.8",
    types="d: type wide, a: u64",
    needs={"": "PTX 9.4, sm_90"},
)
def ld_readonly(i, a):
    """Load what is not written while the kernel runs, through the proxy for such data."""


@has(ADDRESS)
@checked(
    "prefetch{.ss}.valid_addr.L1::32B  [a]; .ss = { .global };",
    section="9.7.9.15",
    types="a: u64",
    needs={"": "PTX 9.4, sm_90"},
)
def prefetch_valid(i, a):
    """Ask for 32 bytes, which are there for certain, to be brought into the L1 cache."""
