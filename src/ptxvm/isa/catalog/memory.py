"""Loads and stores, prefetches and addresses (PTX 9.7.9)."""

from __future__ import annotations

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import u64
from ptxvm.isa.access import (
    ADDRESS,
    CACHE,
    HINT,
    LOAD,
    NEEDS,
    ORDER,
    ORDERED_CACHE,
    STORE,
    VECTOR,
    WEAK,
    as_list,
    attributes,
    base_of,
    count,
    has,
    of_a_word,
    result_vector,
    source_vector,
    space_of,
    window,
)
from ptxvm.isa.exactness import MOVED
from ptxvm.isa.model import Decoded, Problem, instruction
from ptxvm.isa.operand_types import is_vector_register

# ── ld, st ──────────────────────────────────────────────────────────────────────────────


@has(LOAD, ADDRESS, ORDER, CACHE, ORDERED_CACHE, HINT, VECTOR, result_vector("d"))
@instruction(
    """
    ld{.mmio}{.order}{.scope}{.ss}{.cop}{.evict1}{.evict2}{.hint}{.prefetch}{.vec}.type  d, [a]{, policy};
    .order    = { .weak, .volatile, .relaxed, .acquire };
    .scope    = { .cta, .cluster, .gpu, .sys };
    .ss       = { .const, .global, .local, .param, .param::entry, .param::func,
                  .shared, .shared::cta, .shared::cluster };
    .cop      = { .ca, .cg, .cs, .lu, .cv };
    .evict1   = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate };
    .evict2   = { .L2::evict_normal, .L2::evict_first, .L2::evict_last };
    .hint     = { .L2::cache_hint };
    .prefetch = { .L2::64B, .L2::128B, .L2::256B };
    .vec      = { .v2, .v4, .v8 };
    .type     = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    """,
    section="9.7.9.8",
    types="d: type wide, a: u64 element, policy: u64 plain numeric",
    needs={"": "PTX 1.0", **NEEDS},
    exact=MOVED,
)
def ld(i, a, policy, mem):
    """Load from memory into a register, or into the registers of a vector.

    A register wider than the type is filled up by zeros, or by the sign for `.s` types.
    """
    values = mem.load(window(i), i.type, a, count(i), cache=i.cop, **attributes(i))
    return values if i.vec else values[0]


@has(LOAD, ADDRESS, CACHE, HINT, VECTOR, result_vector("d"))
@instruction(
    """
    ld.ss{.cop}.nc{.evict1}{.evict2}{.hint}{.prefetch}{.vec}.type  d, [a]{, policy};
    .ss       = { .global };
    .cop      = { .ca, .cg, .cs };
    .evict1   = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate };
    .evict2   = { .L2::evict_normal, .L2::evict_first, .L2::evict_last };
    .hint     = { .L2::cache_hint };
    .prefetch = { .L2::64B, .L2::128B, .L2::256B };
    .vec      = { .v2, .v4, .v8 };
    .type     = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    """,
    section="9.7.9.9",
    types="d: type wide, a: u64 element, policy: u64 plain numeric",
    needs={"": "PTX 3.1, sm_32", **NEEDS},
    exact=MOVED,
)
def ld_global_nc(i, a, policy, mem):
    """Load from global memory that nothing writes while the kernel runs, through a cache that need not be coherent."""
    values = mem.load(Space.GLOBAL, i.type, a, count(i), cache=i.cop, proxy=Proxy.TEXTURE, **WEAK)
    return values if i.vec else values[0]


@has(LOAD, ADDRESS, result_vector("d"))
@instruction(
    """
    ldu{.ss}{.vec}.type  d, [a];
    .ss   = { .global };
    .vec  = { .v2, .v4 };
    .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    """,
    section="9.7.9.10",
    types="d: type wide, a: u64 element",
    needs={"": "PTX 2.0, sm_20", **NEEDS},
    exact=MOVED,
)
def ldu(i, a, mem):
    """Load read-only data from an address that is the same in all lanes of the warp."""
    values = mem.load(window(i), i.type, a, count(i), **WEAK)
    return values if i.vec else values[0]


@ldu.rule("P1814")
def uniform_vector_too_large(i):
    """A vector has 128 bits at most."""
    return "Vector type too large, exceeds 128 bit limit" if count(i) * i.type.bits > 128 else None


@has(STORE, ADDRESS, ORDER, CACHE, ORDERED_CACHE, HINT, VECTOR, source_vector("b"))
@instruction(
    """
    st{.mmio}{.order}{.scope}{.ss}{.cop}{.evict1}{.evict2}{.hint}{.vec}.type  [a], b{, policy};
    .order  = { .weak, .volatile, .relaxed, .release };
    .scope  = { .cta, .cluster, .gpu, .sys };
    .ss     = { .global, .local, .param, .param::func, .shared, .shared::cta, .shared::cluster };
    .cop    = { .wb, .cg, .cs, .wt };
    .evict1 = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate };
    .evict2 = { .L2::evict_normal, .L2::evict_first, .L2::evict_last };
    .hint   = { .L2::cache_hint };
    .vec    = { .v2, .v4, .v8 };
    .type   = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    """,
    section="9.7.9.11",
    types="a: u64 element, b: type wide sink, policy: u64 plain numeric",
    needs={"": "PTX 1.0", **NEEDS},
    exact=MOVED,
)
def st(i, a, b, policy, mem):
    """Store a register, the low bits of a wider one, or the registers of a vector into memory."""
    values = as_list(b)
    if None not in values:
        mem.store(window(i), i.type, a, values, cache=i.cop, **attributes(i))
        return
    for n, value in enumerate(values):  # `_` leaves an element as it is
        if value is not None:
            mem.store(window(i), i.type, a + n * i.type.bytes, [value], cache=i.cop, **attributes(i))


def memory_mapped_io(i: Decoded) -> str | None:
    """.mmio is an access of .relaxed order and .sys scope to .global or a generic address."""
    if not i.mmio:
        return None
    if space_of(i) not in (Space.GENERIC, Space.GLOBAL):
        return f"Modifier '.mmio' cannot be applied to '.{i.ss}' space"
    if i.order in (None, "weak", "volatile"):
        return f"Modifier '.mmio' requires modifier '.relaxed or .acquire' for instruction '{i.form.opcode}'"
    if i.scope and i.scope != "sys":
        return f"Modifier '.mmio' cannot be combined with modifier '.{i.scope}'"
    other = next((i.bound[s] for s in ("vec", "evict1", "evict2", "hint", "prefetch") if s in i.bound), None)
    return f"Modifier '.{other}' cannot be combined with modifier '.mmio'" if other else None


def synchronising_io(i: Decoded) -> bool:
    """Does an access to mapped memory acquire or release?"""
    return i.mmio and i.order in ("acquire", "release")


for access in (ld, st):
    access.rule("P1820")(memory_mapped_io)
    access.needs_when("PTX 9.3")(synchronising_io)


@ld.rule("P1819")
@st.rule("P1819")
def register_as_parameter_address(i):
    """.param::func names its parameter, since it has no address that a register could hold."""
    if i.ss == Space.PARAM_FUNC and base_of(i.shape("a")).kind != "variable":
        return f"Illegal state space for address operand '::func' with instruction '{i.form.opcode}'"
    return None


@st.needs_when("PTX 2.0, sm_20")
def parameter_of_a_call(i):
    return i.ss == Space.PARAM


@ld.rule("P1821")
@ld_global_nc.rule("P1821")
def prefetch_outside_global(i):
    """A prefetch size is for .global and generic addresses."""
    if i.prefetch and space_of(i) not in (Space.GENERIC, Space.GLOBAL):
        return "State space incorrect for feature 'cache prefetching'"
    return None


# ── prefetch ────────────────────────────────────────────────────────────────────────────


@has(ADDRESS)
@instruction(
    """
    prefetch{.ss}.level  [a];
    .ss    = { .global, .local };
    .level = { .L1, .L2, .L2::evict_last, .L2::evict_normal };
    """,
    section="9.7.9.15",
    types="a: u64",
    needs={"": "PTX 2.0, sm_20", ".L2::evict_last .L2::evict_normal": "PTX 7.4, sm_80"},
)
def prefetch(i, a, mem):
    """Ask for the line of an address to be brought into a cache; in ptxvm without effect."""
    mem.prefetch(space_of(i), a, level=i.level)


@prefetch.rule("P1822")
def eviction_priority_of_local(i):
    """An eviction priority is for .global and generic addresses."""
    if i.level.startswith("L2::") and i.ss == Space.LOCAL:
        return "State space incorrect for feature 'cache eviction priority'"
    return None


@has(ADDRESS, of_a_word("a"))
@instruction(
    """
    prefetch{.ss}.tensormap  [a];
    .ss = { .const, .param };
    """,
    section="9.7.9.15",
    types="a: u64",
    needs={"": "PTX 8.0, sm_90"},
)
def prefetch_tensormap(i, a, mem):
    """Ask for the line of a tensor map to be brought into the cache; in ptxvm without effect."""
    mem.prefetch(space_of(i), a, level="tensormap")


@instruction("prefetchu.L1 [a];", section="9.7.9.15", types="a: u64", needs={"": "PTX 2.0, sm_20"})
def prefetchu(i, a, mem):
    """Ask for the line of a generic address to be brought into the uniform cache; in ptxvm without effect."""
    mem.prefetch(Space.GENERIC, a, level="L1")


@prefetchu.rule("P1823")
def not_a_generic_address(i):
    """The address is in a register, or a variable in .global or .local."""
    base = base_of(i.shape("a"))
    if base.kind == "integer":
        return "Immediate addresses allowed only for .local state space"
    if base.kind == "special" or (base.kind == "variable" and base.space not in (Space.GLOBAL, Space.LOCAL)):
        return "Non-generic address is not supported as operand for prefetchu instruction"
    return None


# ── addresses ───────────────────────────────────────────────────────────────────────────

SPACES = ".const, .global, .local, .shared, .shared::cta, .shared::cluster, .param, .param::entry"
WINDOW_NEEDS = {
    ".const": "PTX 3.1",
    ".param": "PTX 7.7, sm_70",
    ".param::entry": "PTX 8.3, sm_70",
    ".shared::cta": "PTX 7.8, sm_30",
    ".shared::cluster": "PTX 7.8, sm_90",
}


@instruction(
    f"""
    cvta.ss.type  d, a;
    .ss   = {{ {SPACES} }};
    .type = {{ .u32, .u64 }};
    """,
    section="9.7.9.20",
    types="d: type plain, a: type",
    needs={"": "PTX 2.0, sm_20", **WINDOW_NEEDS},
)
def cvta(i, a, mem):
    """The generic address of one in a state space."""
    return mem.to_generic(window(i), a.to(u64)).to(i.type)


@cvta.rule("P1824")
def not_of_the_space(i):
    """What is converted is a register or constant, or a variable of the space."""
    a = i.shape("a")
    if a.kind == "special":
        return "Special register argument not allowed for instruction 'cvta'"
    if a.kind == "vector" or is_vector_register(a):
        return "Vector operand is not allowed for instruction 'cvta'"
    if a.kind == "function" or (a.kind == "variable" and a.space.partition("[")[0] != space_of(i)):
        return "State space mismatch between instruction and address in instruction 'cvta'"
    return None


@instruction(
    f"""
    cvta.to.ss.type  d, a;
    .ss   = {{ {SPACES} }};
    .type = {{ .u32, .u64 }};
    """,
    section="9.7.9.20",
    types="*: type plain function",
    needs={"": "PTX 2.0, sm_20", **WINDOW_NEEDS},
    fixed=1,
)
def cvta_to(i, a, mem):
    """The address in a state space of a generic one; undefined where it lies outside."""
    return mem.from_generic(window(i), a.to(u64)).to(i.type)


@instruction(
    f"""
    isspacep.ss  p, a;
    .ss = {{ {SPACES} }};
    """,
    section="9.7.9.19",
    types="p: pred plain, a: u64 any",
    needs={"": "PTX 2.0, sm_20", **WINDOW_NEEDS},
)
def isspacep(i, a, mem):
    """Does a generic address lie in the window of a state space?"""
    return mem.within(window(i), a)


@isspacep.rule("P1825")
def not_an_address(i):
    """The address is a register of 32 or 64 bits that holds an integer, or a constant."""
    a = i.shape("a")
    is_register = a.kind == "register" and a.type.kind in "bsu" and a.type.bits in (32, 64) and not a.detail
    if is_register or a.kind == "integer":
        return None
    return Problem("P1825", "an address is a register of 32 or 64 bits, or a constant", operand="a",
                   ptxas="Arguments mismatch for instruction 'isspacep'")  # fmt: skip
