"""Tensor memory: tcgen05 (PTX 9.7.16.7 to 9.7.16.9, 9.7.16.11, 9.7.16.12)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.memory_order import PartialFence, Scope
from ptxvm.algebra.ports import Peers, Request, TensorMemory, Warp
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, b32, u32
from ptxvm.algebra.value import Value, select
from ptxvm.isa import tensor_memory as works
from ptxvm.isa.access import (
    ORDER_OF_A_MATRIX,
    Trait,
    addresses,
    base_of,
    elements,
    has,
    mask_of_ctas,
    of_a_word,
    space_of,
    vector_of_sinks,
    window,
)
from ptxvm.isa.exactness import MOVED
from ptxvm.isa.matrix import all_lanes, double_moved
from ptxvm.isa.mbarrier import arrived
from ptxvm.isa.model import Declaration, Decoded, Problem, instruction
from ptxvm.isa.tensor_memory import Tile

NEEDS = {"": "PTX 8.6, sm_100f sm_110f"}
GROUP = ".group = { .cta_group::1, .cta_group::2 };"


def address_of_tensor_memory(i: Decoded) -> Problem | None:
    """An address of tensor memory has 32 bits, and is in a register."""
    base = base_of(i.shape("a"))
    if base.kind == "register" and base.type is not None and base.type.bits == 32:
        return None
    return Problem("P3501", "an address of tensor memory is in a register of 32 bits", operand="a",
                   ptxas="Illegal to use symbol as address operand. Use a 32-bit integer or bit register only.")  # fmt: skip


TENSOR_ADDRESS = Trait(rules=[("P3501", address_of_tensor_memory)])


def pairs(i: Decoded) -> bool:
    """Does it work on two CTAs?"""
    return bool(i.group == "cta_group::2")


# ── allocation ──────────────────────────────────────────────────────────────────────────


def number_of_columns(i: Decoded) -> str | None:
    """Columns are allocated by 32, up to 512."""
    n = i.value("columns")
    if n is None or (n % 32 == 0 and 32 <= n % (1 << 32) <= 512):
        return None
    if n == 0:
        return f"Argument 1 of instruction '{i.opcode}' : value '{n}' expected to be a non-zero positive"
    if n % 32:
        return f"Argument 1 of instruction '{i.opcode}': unexpected value '{n}', expected to be multiple of 32"
    return f"Argument 1 of instruction '{i.opcode}': value '{n}' out of range, expected to be in range [32..512]"


ALLOCATION = Trait(rules=[("P3502", number_of_columns)])
allocating = partial(instruction, section="9.7.16.7.1", needs={**NEEDS, ".exclusive": "PTX 9.4"})


@has(ALLOCATION, addresses(a=space_of), of_a_word("a"))
@allocating(
    f"tcgen05.alloc.group{{.exclusive}}.sync.aligned{{.ss}}.b32  [a], columns; .ss = {{ .shared::cta }}; {GROUP}",
    types="a: u64, columns: u32 plain",
    fixed="alloc",
)
def tcgen05_alloc(i, a, columns, warp, mem, tmem):
    """Allocate columns of tensor memory, waiting until there are so many; their address goes to shared memory."""
    yield tmem.converge_for_columns(all_lanes(warp), columns)
    tmem.tensor(works.Allocate(i.opcode, pairs(i)), a=a if i.ss else mem.from_generic(Space.SHARED, a), columns=columns)


@has(ALLOCATION)
@allocating(
    f"tcgen05.dealloc.group{{.exclusive}}.sync.aligned.b32  a, columns; {GROUP}",
    types="a columns: u32 plain",
    fixed="dealloc",
)
def tcgen05_dealloc(i, a, columns, warp, tmem):
    """Give columns of tensor memory back."""
    yield warp.converge(all_lanes(warp))
    tmem.tensor(works.Free(i.opcode, pairs(i)), a=a, columns=columns)


@allocating(f"tcgen05.relinquish_alloc_permit.group.sync.aligned; {GROUP}", fixed="relinquish_alloc_permit")
def tcgen05_relinquish_alloc_permit(i, warp, tmem):
    """Tell that this CTA allocates no more tensor memory."""
    yield warp.converge(all_lanes(warp))
    tmem.tensor(works.Relinquish(i.opcode, pairs(i)))


# ── loads and stores ────────────────────────────────────────────────────────────────────

REGISTERS = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1, "16x32bx2": 1}
NUMBERS = ".num = { .x1, .x2, .x4, .x8, .x16, .x32, .x64, .x128 };"
MOST = 128


def number_of_registers(i: Decoded, operand: str) -> Problem | None:
    """The vector has the registers of the shape, times .num: at most 128."""
    shape, wanted = i.shape(operand), REGISTERS[i.tile] * int(i.num[1:])
    if wanted > MOST:
        return Problem("P3503", f"'.{i.tile}.{i.num}' would take {wanted} registers; 128 are the most", word=i.num,
                       ptxas=f"Illegal vector size: {wanted}")  # fmt: skip
    if shape.kind == "vector" and elements(shape) == wanted:
        return None
    return Problem("P3503", f"a vector of {wanted} registers in braces is needed", operand=operand,
                   ptxas=f"instruction '{i.opcode}': Argument vector size mismatch")  # fmt: skip


def result_registers(i: Decoded) -> Problem | None:
    """The vector has the registers of the shape, times .num: at most 128."""
    return number_of_registers(i, "d")


def source_registers(i: Decoded) -> Problem | None:
    """The vector has the registers of the shape, times .num: at most 128."""
    return number_of_registers(i, "b")


def result_thrown_away(i: Decoded) -> str | None:
    """Each element of the result is a register, and not `_`."""
    if any(item.kind == "sink" for item in i.shape("d").items):
        return "Result discard mode is not allowed for instruction 'ld'"
    return vector_of_sinks(i, "d")


def special_register(operand: str, opcode: str) -> Callable[[Decoded], Problem | None]:
    """No element of what is loaded or stored is a special register, nor a part of a register."""

    def rule(i: Decoded) -> Problem | None:
        """No element of the vector is a special register, nor a part of one."""
        kinds = {item.kind for item in i.shape(operand).items}
        if "special" in kinds:
            return Problem("P3504", "a special register stands where one of the program is needed", operand=operand,
                           ptxas=f"Special register argument not allowed for instruction '{opcode}'")  # fmt: skip
        if "component" not in kinds:
            return None
        where = "destination" if operand == "d" else "source operand"
        return Problem("P3504", "a part of a register stands where a whole one is needed", operand=operand,
                       ptxas=f"Video selector is not allowed on {where} for instruction '{opcode}'")  # fmt: skip

    return rule


def double_stored(i: Decoded) -> Problem | None:
    """No element that is stored is a constant of 64 bits."""
    return double_moved(i, "b", "st")


LOADED = Trait(
    rules=[
        *TENSOR_ADDRESS.rules,
        ("P3503", result_registers),
        ("P3504", result_thrown_away),
        ("P3504", special_register("d", "ld")),
    ],
    ignored=ORDER_OF_A_MATRIX.ignored,
)
STORED = Trait(
    rules=[
        *TENSOR_ADDRESS.rules,
        ("P3503", source_registers),
        ("P3504", special_register("b", "st")),
        ("P2703", double_stored),
    ],
    ignored=ORDER_OF_A_MATRIX.ignored,
)
SHAPES = ".tile = { .16x64b, .16x128b, .16x256b, .32x32b };"
SPLIT = ".tile = { .16x32bx2 };"
LOAD = "tcgen05.ld.sync.aligned.tile.num{.pack::16b}.b32"
STORE = "tcgen05.st.sync.aligned.tile.num{.unpack::16b}.b32"
declared = partial(instruction, needs=NEEDS, exact=MOVED)
loading = partial(declared, section="9.7.16.8.1", types="d: b32, a: u32, split: u32 imm", fixed="ld")
storing = partial(declared, section="9.7.16.8.2", types="a: u32, b: b32 registers, split: u32 imm", fixed="st")


def loaded(
    i: Decoded, warp: Warp, tmem: TensorMemory, *, operation: str = "", type: Type = b32, **operands: Value
) -> Generator[Request, Peers, list[Value]]:
    """The registers of a warp from tensor memory, and what a reduction finds in each lane."""
    yield warp.converge(all_lanes(warp))
    count = REGISTERS[i.tile] * int(i.num[1:])
    floats = operation and type.is_float
    work = works.Load(
        i.opcode, tile=Tile(i.tile), registers=count, packed="pack::16b" in i.bound.values(), operation=operation, type=type,
        absolute=bool(floats and i.abs), propagates=bool(floats and i.NaN), results=(b32,) * (count + bool(operation)),
    )  # fmt: skip
    return tmem.tensor(work, **operands)


def stored(
    i: Decoded, b: Sequence[Value], warp: Warp, tmem: TensorMemory, **operands: Value
) -> Generator[Request, Peers, None]:
    """Registers of a warp go to tensor memory."""
    yield warp.converge(all_lanes(warp))
    unpacks = "unpack::16b" in i.bound.values()
    work = works.Store(i.opcode, tile=Tile(i.tile), registers=REGISTERS[i.tile] * int(i.num[1:]), packed=unpacks)
    tmem.tensor(work, **operands, **{f"b{n}": each for n, each in enumerate(b)})


@has(LOADED, ORDER_OF_A_MATRIX)
@loading(f"{LOAD}  d, [a]; {SHAPES} {NUMBERS}")
def tcgen05_ld(i, a, warp, tmem):
    """Start to load from tensor memory into the registers of a warp."""
    return (yield from loaded(i, warp, tmem, a=a))


@has(LOADED, ORDER_OF_A_MATRIX)
@loading(f"{LOAD}  d, [a], split; {SPLIT} {NUMBERS}")
def tcgen05_ld_split(i, a, split, warp, tmem):
    """Start to load from two places in tensor memory, so many columns apart, into the registers of a warp."""
    return (yield from loaded(i, warp, tmem, a=a, split=split))


@has(STORED, ORDER_OF_A_MATRIX)
@storing(f"{STORE}  [a], b; {SHAPES} {NUMBERS}")
def tcgen05_st(i, a, b, warp, tmem):
    """Start to store from the registers of a warp to tensor memory."""
    yield from stored(i, b, warp, tmem, a=a)


@has(STORED, ORDER_OF_A_MATRIX)
@storing(f"{STORE}  [a], split, b; {SPLIT} {NUMBERS}")
def tcgen05_st_split(i, a, split, b, warp, tmem):
    """Start to store from the registers of a warp to two places in tensor memory, so many columns apart."""
    yield from stored(i, b, warp, tmem, a=a, split=split)


REDUCE = "tcgen05.ld.red.sync.aligned.tile.num.op{.abs}{.NaN}.type"
REDUCE_SLOTS = ".op = { .min, .max }; .type = { .u32, .s32, .f32 };" + NUMBERS.replace(" .x1,", "")
reducing = partial(
    instruction,
    exact=MOVED,
    section="9.7.16.8.1",
    types="d extreme: type bits, a: u32, split: u32 imm",
    needs={"": "PTX 8.8, sm_103f sm_110f"},
    fixed="ld red",
)


@has(LOADED, ORDER_OF_A_MATRIX)
@reducing(f"{REDUCE}  d, extreme, [a]; .tile = {{ .32x32b }}; {REDUCE_SLOTS}")
def tcgen05_ld_red(i, a, warp, tmem):
    """Start to load from tensor memory, and to find the least or greatest of what each lane loads."""
    *found, extreme = yield from loaded(i, warp, tmem, operation=i.op, type=i.type, a=a)
    return found, extreme.view(i.type)


@has(LOADED, ORDER_OF_A_MATRIX)
@reducing(f"{REDUCE}  d, extreme, [a], split; {SPLIT} {REDUCE_SLOTS}")
def tcgen05_ld_red_split(i, a, split, warp, tmem):
    """Start to load from two places in tensor memory, and to find the least or greatest of what each lane loads."""
    *found, extreme = yield from loaded(i, warp, tmem, operation=i.op, type=i.type, a=a, split=split)
    return found, extreme.view(i.type)


@tcgen05_ld_red.rule("P3503")
@tcgen05_ld_red_split.rule("P3503")
def one_extreme(i: Decoded) -> Problem | None:
    """What a reduction finds is in one register, with or without braces."""
    shape = i.shape("extreme")
    if shape.kind != "vector" or (elements(shape) == 1 and shape.items[0].kind != "sink"):
        return None
    return Problem("P3503", "one register is needed", operand="extreme",
                   ptxas="Argument vector size mismatch for instruction 'ld'")  # fmt: skip


@tcgen05_ld_red.rule("P3505")
@tcgen05_ld_red_split.rule("P3505")
def modifiers_of_floats(i: Decoded) -> str | None:
    """.abs and .NaN are for .f32."""
    word = "abs" if i.abs else "NaN" if i.NaN else ""
    return f"Illegal modifier '.{word}' for instruction '{i.opcode}' with type '{i.type}'" if word and i.type.is_int else None


@instruction("tcgen05.kind.sync.aligned; .kind = { .wait::ld, .wait::st };", section="9.7.16.8.3", needs=NEEDS, fixed="kind")
def tcgen05_wait(i, warp, tasks):
    """Wait for all loads from tensor memory, or all stores to it, that this thread has started."""
    yield warp.converge(all_lanes(warp))
    tasks.wait(None, AsyncKind.TENSOR_LOAD if i.kind == "wait::ld" else AsyncKind.TENSOR_STORE)


# ── copies within tensor memory, and from shared memory ─────────────────────────────────

# Of each warp the first row that it gets.
ROWS_OF_WARPS = {
    None: (0, 32, 64, 96), "warpx2::02_13": (0, 32, 0, 32), "warpx2::01_23": (0, 0, 32, 32), "warpx4": (0, 0, 0, 0),
}  # fmt: skip
WARPS = {"64x128b": ("warpx2::02_13", "warpx2::01_23"), "32x128b": ("warpx4",)}


@has(TENSOR_ADDRESS, ORDER_OF_A_MATRIX)
@instruction(
    f"""
    tcgen05.cp.group.tile{{.warps}}                      [a], b;
    tcgen05.cp.group.tile{{.warps}}.b8x16.format         [a], b;
    .tile  = {{ .128x256b, .4x256b, .128x128b, .64x128b, .32x128b }};
    .warps  = {{ .warpx2::02_13, .warpx2::01_23, .warpx4 }};
    .format = {{ .b6x16_p32, .b4x16_p64 }};
    {GROUP}
    """,
    section="9.7.16.9.2",
    types="a: u32, b: u64 plain numeric",
    needs=NEEDS,
    fixed="cp",
)
def tcgen05_cp(i, a, b, tmem):
    """Start to copy from shared memory, which a descriptor names, to tensor memory."""
    rows, _, bits = i.tile.removesuffix("b").partition("x")
    firsts = (0, 1, 2, 3) if rows == "4" else ROWS_OF_WARPS[i.warps]
    format = i.bound.get("format", "")
    work = works.CopyToTensor(i.opcode, pairs(i), rows=int(rows), bytes=int(bits) // 8, warps=firsts, format=format)
    tmem.tensor(work, a=a, b=b)


@tcgen05_cp.rule("P3506")
def warps_of_a_shape(i: Decoded) -> str | None:
    """.64x128b goes to two pairs of warps, .32x128b to four warps, the other shapes to all."""
    allowed = WARPS.get(i.tile, (None,))
    if i.warps in allowed:
        return None
    if i.warps is None:
        return f"Modifier '.warptype' require for instruction tcgen05.cp with shape '.{i.tile}'"
    return f"Modifier .{i.warps} not allowed for instruction tcgen05.cp with shape '.{i.tile}'"


@has(TENSOR_ADDRESS)
@instruction(
    f"tcgen05.shift.group.down  [a]; {GROUP}",
    section="9.7.16.9.3",
    types="a: u32",
    needs={"": "PTX 8.6, sm_100a sm_103a sm_107a sm_110a"},
    fixed="shift",
)
def tcgen05_shift(i, a, tmem):
    """Start to shift rows of 32 bytes in tensor memory down by one, each to the lane before it; the last of 32 rows stays.

    The direction, and that the lanes of all four warps are shifted, were seen on a B200.
    """
    tmem.tensor(works.Shift(i.opcode, pairs(i)), a=a)


# ── order ───────────────────────────────────────────────────────────────────────────────


@instruction(
    "tcgen05.kind; .kind = { .fence::before_thread_sync, .fence::after_thread_sync };",
    section="9.7.16.11",
    needs=NEEDS,
    fixed="kind",
)
def tcgen05_fence(i, mem):
    """Order asynchronous work on tensor memory before, or after, the next synchronisation of threads."""
    mem.fence(PartialFence(i.kind.removeprefix("fence::")), Scope.CLUSTER)


COMMITTING: Declaration = {
    "section": "9.7.16.12.1",
    "types": "bar: u64, mask: u16 plain numeric",
    "needs": {**NEEDS, ".multicast::cluster::16b": "PTX 9.4"},
    "fixed": "commit",
}
COMMIT = "tcgen05.commit.group.mbarrier::arrive::one{.ss}"


@has(addresses(bar=space_of), of_a_word("bar"))
@instruction(f"{COMMIT}.b64  [bar]; .ss = {{ .shared::cluster }}; {GROUP}", **COMMITTING)
def tcgen05_commit(i, bar, mem, tasks, tmem):
    """Let an mbarrier be arrived at when all asynchronous work on tensor memory that this thread has started is done."""
    tmem.tensor(works.Commit(i.opcode, pairs(i)))
    tasks.arrive(window(i), bar if i.ss else generic_of(mem, bar), arrived, None, kind=AsyncKind.TENSOR)


def generic_of(mem, bar):
    """The generic address of an mbarrier.  The unit reads 32 bits of an address in shared memory, and Triton passes no more."""
    return select(bar < 1 << 32, mem.to_generic(Space.SHARED, bar), bar)


@has(addresses(bar=space_of), of_a_word("bar"), Trait(rules=[("P1831", mask_of_ctas)]))
@instruction(
    f"{COMMIT}.multicast.b64  [bar], mask; .ss = {{ .shared::cluster }};"
    f".multicast = {{ .multicast::cluster, .multicast::cluster::16b }}; {GROUP}",
    **COMMITTING,
)
def tcgen05_commit_multicast(i, bar, mask, mem, tasks, tmem):
    """Let mbarriers of several CTAs be arrived at when all work on tensor memory that this thread has started is done."""
    tmem.tensor(works.Commit(i.opcode, pairs(i)))
    there = bar if i.ss else mem.from_generic(Space.SHARED_CLUSTER, generic_of(mem, bar))
    tasks.arrive(Space.SHARED_CLUSTER, there, arrived, None, mask.to(u32), kind=AsyncKind.TENSOR)
