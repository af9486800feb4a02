"""Tensor copies by compiled code: loads and stores of boxes that are whole in the tensor (`abi.copy_plan`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, s32, u64
from ptxvm.engine.jit.abi.copy_plan import PLANS, WORDS
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.ir.runtime import runtime, words_of_plan
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.tensor_map import SIZE
from ptxvm.isa.transfers import Pattern, Transfer
from ptxvm.machine.allocation import REACHES
from ptxvm.machine.tensor_tiles import SLICES, SPANS, SWIZZLES, DecodedMap, decoded

CHUNK, LINE = 16, 128  # bytes that are copied at once, and among which they are moved
FIELDS = (
    "base", "element", "row.size", "rows", "pitch", "amount", "mask.0", "by.0", "mask.1", "by.1", "offsets", "size", "writable",
)  # fmt: skip


def is_plain(kind: Transfer) -> bool:
    """Does it copy boxes to or from the shared memory of a CTA?"""
    return kind.pattern is Pattern.TENSOR and kind.mode == "tile" and not (kind.multicast or kind.pair or kind.operation)


def written(at: NodeBuilder, kind: Transfer, names: Sequence[str], types: Sequence[Type]) -> str | None:
    """Write the function for a copy, given the operands and their types; returns its name, or None where there is none."""
    kernel, rank, loads = at.kernel, names.count("c"), kind.to is not Space.GLOBAL
    expected = ["a", "map", *["c"] * rank, *["bar"] * loads], [u64, u64, *[s32] * rank, *[u64] * loads]
    if not is_plain(kind) or (list(names), list(types)) != expected or kernel.cluster_size > 1 or kernel.shadow is not None:
        return None
    if kernel.image.memory.address_bits != 64:
        return None
    unit, name = at.code.unit, f"ptxvm.{'load' if loads else 'store'}_tensor.{rank}"
    if name not in unit.helpers:
        unit.declare("llvm.cttz.i32", "i32", "i32", "i1 immarg")
        unit.helper(name, runtime(
            "copy_tensor", name=name, step=STEP, last_plan=PLANS - 1, words=len(WORDS), contents=WORDS.index("contents.0"),
            shared_size=kernel.shared_size, fields=words_of_plan(WORDS, *FIELDS), coordinates="\n".join(_coordinates(rank)),
            **({"from": "%piece.at", "into": "%to", "may": "true"} if loads else
               {"from": "%to", "into": "%piece.at", "may": "%may.write"}),
        ))  # fmt: skip
    return name


def _coordinates(rank: int) -> list[str]:
    """Load the coordinates: is the box inside the tensor, and how far along the outer dimensions does it lie?"""
    lines, inside, far = [], "true", "0"
    for n in range(rank):
        lines += [
            f"  %c.{n}.at.first = getelementptr i8, ptr %room, i64 {STEP * (2 + n)}",
            f"  %c.{n}.at = getelementptr i32, ptr %c.{n}.at.first, i32 %lane",
            f"  %c.{n}.short = load i32, ptr %c.{n}.at, align 4",
            f"  %c.{n} = sext i32 %c.{n}.short to i64",
            words_of_plan(WORDS, f"last.{n}"),
            f"  %c.{n}.inside = icmp ule i64 %c.{n}, %last.{n}",
            f"  %inside.{n} = and i1 {inside}, %c.{n}.inside",
        ]
        inside = f"%inside.{n}"
        if n:
            lines += [
                words_of_plan(WORDS, f"stride.{n}"),
                f"  %c.{n}.far = mul i64 %c.{n}, %stride.{n}",
                f"  %far.{n} = add i64 {far}, %c.{n}.far",
            ]
            far = f"%far.{n}"
    return [*lines, f"  %inside = and i1 {inside}, true", f"  %far = add i64 {far}, 0"]


# ── the host's part ─────────────────────────────────────────────────────────────────────


def remember(host: Host, kind: Transfer, address: int) -> None:
    """Make a plan of the tensor map at an address, if there can be one."""
    if not is_plain(kind) or host.memory.address_bits != 64:
        return
    found = decoded(host.memory.read(address, SIZE))
    made = plan(host, found, address)
    if made is not None:
        host.plan_tables.copy(*made)


def plan(host: Host, found: DecodedMap, address: int) -> tuple[list[int], npt.NDArray[np.int64]] | None:
    """The words of a plan, and the offsets of the rows of a box; None where boxes are not copied by whole chunks."""
    element, moves = found.element, SWIZZLES.get((found.number("swizzle_mode"), found.number("swizzle_atomicity")), ())
    simple = element.packed == element.padded and element.count == 1 and not element.name.startswith("tf32")
    row = found.number("box_dim") * element.packed
    if not simple or found.number("interleave_layout") in SLICES or row % CHUNK or any(to < 4 for _, _, to in moves):
        return None
    base, sizes, strides = found.number("global_address"), found.sizes, found.strides
    end = base + sum((size - 1) * stride for size, stride in zip(sizes[1:], strides, strict=True)) + sizes[0] * element.packed
    allocation = host.memory.table.find(base)
    if allocation is None or end > allocation.end or allocation.home is not None or allocation.foreign:
        return None
    if allocation.space not in REACHES[Space.GLOBAL]:
        return None
    offsets, _, spans = found.box
    lasts = [sizes[0] - found.number("box_dim"), *(size - span.stop for size, span in zip(sizes[1:], spans, strict=True))]
    if min(lasts) < 0:
        return None
    pitch = max(row, SPANS.get(found.number("swizzle_mode"), 0))
    words = {
        "map": address, "base": base, "element": element.packed, "row.size": row, "rows": len(offsets), "pitch": pitch,
        "amount": len(offsets) * row, "offsets": offsets.ctypes.data, "size": -(-len(offsets) * pitch // LINE) * LINE,
        "writable": allocation.writable,
    }  # fmt: skip
    words |= {f"contents.{n}": each for n, each in enumerate(np.frombuffer(found.data, np.uint64).tolist())}
    words |= {f"last.{n}": last for n, last in enumerate(lasts)} | {f"stride.{n}": each for n, each in enumerate(strides, 1)}
    for n, (_, bits, to) in enumerate(moves):
        words |= {f"mask.{n}": (1 << bits) - 1, f"by.{n}": to}
    return [int(words.get(word, 0)) for word in WORDS], offsets
