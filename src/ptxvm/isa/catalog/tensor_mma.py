"""Tensor memory products: tcgen05.mma (PTX 9.7.16.10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from ptxvm.algebra.ports import TensorMemory
from ptxvm.algebra.types import b32
from ptxvm.algebra.value import Value
from ptxvm.isa.access import Trait, base_of, elements, has
from ptxvm.isa.exactness import SUMS
from ptxvm.isa.model import Decoded, Problem, checked, instruction
from ptxvm.isa.tensor_memory import Multiply

CHIPS = "PTX 8.6, sm_100a sm_103a sm_107a sm_110a"
SCALE_WORDS = ".scale_vec::1X .scale_vec::2X .scale_vec::4X"
NEEDS = {
    "": "PTX 8.6, sm_100f sm_110f",
    ".kind::i8": "PTX 8.6, sm_100a sm_110a",
    ".kind::mxf4nvf4": "PTX 8.7",
    SCALE_WORDS: CHIPS,
    ".block16 .block32": "PTX 8.8",
}
TYPES = """
    d a meta scale_a scale_b: u32, adesc bdesc mask: u64 plain numeric, idesc: u32 plain numeric, disabled: b32 registers,
    enable: pred plain, scale: u32 imm
    """
IN_TENSOR_MEMORY = ("d", "a", "meta", "scale_a", "scale_b")


def addresses_of_tensor_memory(i: Decoded) -> Problem | None:
    """An address of tensor memory is in a register of .b32."""
    for operand in IN_TENSOR_MEMORY:
        shape = i.shape(operand)
        base = base_of(shape) if shape is not None else None
        if base is not None and not (base.kind == "register" and base.type is b32):
            ptxas = "Illegal to use symbol as address operand. Use a 32-bit integer or bit register only."
            return Problem("P3501", "an address of tensor memory is in a register of .b32", operand=operand, ptxas=ptxas)
    return None


def masks_of_lanes(i: Decoded) -> Problem | None:
    """There are four masks of lanes that are not written for .cta_group::1, and eight for .cta_group::2."""
    shape, wanted = i.shape("disabled"), 4 * int(i.group[-1])
    if shape is None or (shape.kind == "vector" and elements(shape) == wanted):
        return None
    return Problem("P3601", f"{wanted} masks of lanes are expected with '.{i.group}'", operand="disabled",
                   ptxas=f"Argument vector size mismatch for instruction '{i.opcode}'")  # fmt: skip


def scale_of_the_sum(i: Decoded) -> str | None:
    """D is scaled by 2 to the power of -0 to -15, and not in .kind::f8f6f4."""
    scale = i.value("scale")
    if i.shape("scale") is None:
        return None
    if i.kind == "kind::f8f6f4":
        return f"Illegal modifier '.{i.kind}' for instruction '{i.opcode}' with 'arg scale-inp-d-imm'"
    if scale is not None and i.kind != "kind::i8" and not 0 <= scale <= 15:
        return f"Argument of instruction '{i.opcode}': value '{scale}' out of range, expected to be in range [0..15]"
    return None


def collector_of_a_shifted_matrix(i: Decoded) -> str | None:
    """A matrix that is shifted is discarded or used for the last time."""
    if i.ashift and i.collector not in (None, "collector::a::lastuse", "collector::a::discard"):
        return f"Modifier '.{i.collector}' cannot be combined with modifier '.ashift'"
    return None


SCALES = {
    "kind::mxf8f6f4": (None, "scale_vec::1X", "block32"),
    "kind::mxf4": (None, "scale_vec::2X", "block32"),
    "kind::mxf4nvf4": ("scale_vec::2X", "scale_vec::4X", "block16", "block32"),
}


def size_of_blocks(i: Decoded) -> str | None:
    """The size of the blocks that share a scale is one that the kind has; .kind::mxf4nvf4 has to name it."""
    allowed = SCALES[i.kind]
    if i.size in allowed:
        return None
    if i.size is None:
        return f"Modifier '.{i.kind}' requires modifier '.scale_vectorsize' for instruction '{i.opcode}'"
    return f"Modifier '.{i.kind}' cannot be combined with modifier '.{i.size}'"


def scaled_floats_or_halves(i: Decoded) -> bool:
    """Is D scaled in a product of floats?"""
    return i.shape("scale") is not None and i.kind in ("kind::f16", "kind::tf32")


def sparse_floats_of_four_bits(i: Decoded) -> bool:
    """Is it a sparse product of floats of four bits?"""
    return i.kind in ("kind::mxf4", "kind::mxf4nvf4")


ADDRESSES = Trait(rules=[("P3501", addresses_of_tensor_memory)])
PLAIN = Trait(
    rules=[
        *ADDRESSES.rules,
        ("P3601", masks_of_lanes),
        ("P3602", scale_of_the_sum),
        ("P3603", collector_of_a_shifted_matrix),
    ],
    needs=[("PTX 8.6, sm_100f", scaled_floats_or_halves)],
)
SCALED = Trait(rules=[*ADDRESSES.rules, ("P3604", size_of_blocks)])
FOUR_BITS = Trait(rules=[], needs=[(CHIPS, sparse_floats_of_four_bits)])

GROUPS = ".group = { .cta_group::1, .cta_group::2 };"
KINDS = ".kind = { .kind::f16, .kind::tf32, .kind::f8f6f4, .kind::i8 };"
SCALED_KINDS = f".kind = {{ {', '.join(f'.{kind}' for kind in SCALES)} }};"
SIZES = f".size = {{ {SCALE_WORDS.replace(' ', ', ')}, .block16, .block32 }};"


def collectors(*buffers: str) -> str:
    """The choices of `.collector`: what is done with buffers."""
    words = (f".collector::{buffer}::{use}" for buffer in buffers for use in ("fill", "use", "lastuse", "discard"))
    return f".collector = {{ {', '.join(words)} }};"


def lines(head: str, meta: str, tails: Iterable[str], shifted: str = "") -> str:
    """The syntax lines: A is a descriptor or lies in tensor memory, where it may be shifted; then one of the tails."""
    of_descriptors = (f"{head}{{.collector}}  [d], adesc, bdesc, {meta}idesc, {tail};" for tail in tails)
    in_memory = (f"{head}{shifted}{{.collector}}  [d], [a], bdesc, {meta}idesc, {tail};" for tail in tails)
    return "\n".join((*of_descriptors, *in_memory))


TAILS = ("{!}enable", "{!}enable, scale", "disabled, {!}enable", "disabled, {!}enable, scale")
PREDICATE_TAILS = ("{!}lanes, {!}enable, scale",)
SCALED_TAILS = ("[scale_a], [scale_b], {!}enable",)
WEIGHTS_TAILS = ("{!}enable{, mask}",)
multiplying = partial(instruction, types=TYPES, needs=NEEDS, fixed="mma ws", exact=SUMS)
BLOCKS = {"kind::mxf8f6f4": 1, "kind::mxf4": 2, "scale_vec::4X": 4, "block16": 4}


def started(
    i: Decoded, tmem: TensorMemory, a: Value | None, adesc: Value, disabled: Sequence[Value] | None = None,
    **operands: Value | None,
) -> None:  # fmt: skip
    """Start a product; A lies in tensor memory, or a descriptor names it."""
    scaled = "scale_a" in operands
    blocks = BLOCKS.get(i.size) or BLOCKS.get(i.kind) or 2 if scaled else 0
    work = Multiply(
        i.opcode, i.bound.get("group") == "cta_group::2", kind=i.kind.removeprefix("kind::"), in_tensor_memory=a is not None,
        weights="zeros" in operands, blocks=blocks, shifted="ashift" in i.bound, sparse="meta" in operands,
    )  # fmt: skip
    masks = {f"disabled{n}": each for n, each in enumerate(disabled or ())}
    present = {name: each for name, each in operands.items() if each is not None}
    tmem.tensor(work, a=adesc if a is None else a, **present, **masks)


@has(PLAIN)
@multiplying(
    f"{lines('tcgen05.mma.group.kind', '', TAILS, '{.ashift}')} {GROUPS} {KINDS} {collectors('a')}",
    section="9.7.16.10.9.1",
)
def tcgen05_mma(i, d, a, adesc, bdesc, idesc, disabled, enable, scale, tmem):
    """Start to multiply two matrices and add D, which lies in tensor memory."""
    started(i, tmem, a, adesc, disabled, d=d, b=bdesc, idesc=idesc, enable=enable, scale=scale)


# ptxas takes one predicate in the place of the masks of lanes, too; what it does is not said.
multiplying_with_predicate = partial(checked, types=f"{TYPES}, lanes: pred plain reg", needs=NEEDS, fixed="mma")


@has(PLAIN)
@multiplying_with_predicate(
    f"{lines('tcgen05.mma.group.kind', '', PREDICATE_TAILS, '{.ashift}')} {GROUPS} {KINDS} {collectors('a')}",
    section="9.7.16.10.9.1",
)
def tcgen05_mma_predicate(i, d, a, adesc, bdesc, idesc, lanes, enable, scale):
    """Multiply two matrices and add D, with a predicate in the place of the masks of lanes."""


@has(PLAIN)
@multiplying_with_predicate(
    f"{lines('tcgen05.mma.sp.group.kind', '[meta], ', PREDICATE_TAILS, '{.ashift}')} {GROUPS} {KINDS} {collectors('a')}",
    section="9.7.16.10.9.2",
)
def tcgen05_mma_sp_predicate(i, d, a, adesc, bdesc, meta, idesc, lanes, enable, scale):
    """Multiply a sparse matrix with a dense one and add D, with a predicate in the place of the masks of lanes."""


@has(SCALED)
@multiplying(
    f"{lines('tcgen05.mma.group.kind.block_scale{.size}', '', SCALED_TAILS)} {GROUPS} {SCALED_KINDS} {SIZES} {collectors('a')}",
    section="9.7.16.10.9.1",
)
def tcgen05_mma_scaled(i, d, a, adesc, bdesc, idesc, scale_a, scale_b, enable, tmem):
    """Start to multiply two matrices whose blocks have scales, and add D, which lies in tensor memory."""
    started(i, tmem, a, adesc, d=d, b=bdesc, idesc=idesc, enable=enable, scale_a=scale_a, scale_b=scale_b)


@has(PLAIN)
@multiplying(
    f"{lines('tcgen05.mma.sp.group.kind', '[meta], ', TAILS, '{.ashift}')} {GROUPS} {KINDS} {collectors('a')}",
    section="9.7.16.10.9.2",
)
def tcgen05_mma_sp(i, d, a, adesc, bdesc, meta, idesc, disabled, enable, scale, tmem):
    """Start to multiply a sparse matrix with a dense one and add D, which lies in tensor memory."""
    started(i, tmem, a, adesc, disabled, d=d, b=bdesc, meta=meta, idesc=idesc, enable=enable, scale=scale)


@has(SCALED, FOUR_BITS)
@multiplying(
    f"""
    {lines("tcgen05.mma.sp.group.kind.block_scale{.size}", "[meta], ", SCALED_TAILS)}
    {GROUPS} {SCALED_KINDS} {SIZES} {collectors("a")}
    """,
    section="9.7.16.10.9.2",
)
def tcgen05_mma_sp_scaled(i, d, a, adesc, bdesc, meta, idesc, scale_a, scale_b, enable, tmem):
    """Start to multiply a sparse matrix with a dense one, whose blocks have scales, and add D in tensor memory."""
    started(i, tmem, a, adesc, d=d, b=bdesc, meta=meta, idesc=idesc, enable=enable, scale_a=scale_a, scale_b=scale_b)


@has(ADDRESSES)
@multiplying(
    f"{lines('tcgen05.mma.ws.cta_group::1.kind', '', WEIGHTS_TAILS)} {KINDS} {collectors('b0', 'b1', 'b2', 'b3')}",
    section="9.7.16.10.9.3",
)
def tcgen05_mma_ws(i, d, a, adesc, bdesc, idesc, enable, mask, tmem):
    """Start to multiply two matrices, keeping B for the next products, and add D, which lies in tensor memory."""
    started(i, tmem, a, adesc, d=d, b=bdesc, idesc=idesc, enable=enable, zeros=mask)


@has(ADDRESSES)
@multiplying(
    f"{lines('tcgen05.mma.ws.sp.cta_group::1.kind', '[meta], ', WEIGHTS_TAILS)} {KINDS} {collectors('b0', 'b1', 'b2', 'b3')}",
    section="9.7.16.10.9.4",
)
def tcgen05_mma_ws_sp(i, d, a, adesc, bdesc, meta, idesc, enable, mask, tmem):
    """Start to multiply a sparse matrix with a dense one, keeping B for the next products, and add D in tensor memory."""
    started(i, tmem, a, adesc, d=d, b=bdesc, meta=meta, idesc=idesc, enable=enable, zeros=mask)
