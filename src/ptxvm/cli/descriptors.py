"""`ptxvm explain --descriptor`: the fields of a descriptor of `wgmma` or `tcgen05` (PTX 9.7.15.5.1.2.2, 9.7.16.4).

A tensor map (5.5.8) is one, too: its 128 bytes.
"""

from __future__ import annotations

import re

from ptxvm.cli.failures import FINDINGS, WrongCall, say
from ptxvm.cli.terminal import console, labelled
from ptxvm.isa.shared_matrix import MatrixDescriptor, warpgroup_descriptor
from ptxvm.isa.tensor_map import SIZE
from ptxvm.isa.tensor_memory import (
    TYPES,
    InstructionDescriptor,
    InvalidDescriptor,
    Multiply,
    instruction_descriptor,
    shared_descriptor,
)  # fmt: skip

MATRICES = {"wgmma": warpgroup_descriptor, "tcgen05": shared_descriptor}
BLOCKS = {"mxf8f6f4": 1, "mxf4": 2, "mxf4nvf4": 4}  # kinds whose blocks have scales

MAP, COLUMNS = "tensormap", "zero-columns"

Rows = list[tuple[str, ...]]


def explain_descriptor(of: str, value: str) -> int:
    """Print the fields of a descriptor of a matrix, of the instruction descriptor of a kind, or of a tensor map."""
    if of == MAP:
        return explain_map(value)
    bits = number(value)
    if of == COLUMNS:
        console().print(labelled(COLUMNS, of_columns(bits)))
        return 0
    try:
        rows = of_matrix(MATRICES[of](bits)) if of in MATRICES else of_instructions(instructions(of, bits))
    except InvalidDescriptor as wrong:
        return say(str(wrong), FINDINGS)
    console().print(labelled(of, rows))
    return 0


def explain_map(value: str) -> int:
    """Print the fields of a tensor map."""
    from ptxvm.machine.tensor_map_fields import fields

    digits = re.sub(r"0x|[\s,]", "", value)
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        data = b""
    if len(data) != SIZE:
        raise WrongCall("a tensor map is 128 bytes, as hexadecimal digits in the order of their addresses: `map.hex()`")
    try:
        console().print(labelled(MAP, list(fields(data))))
    except ValueError as wrong:
        return say(str(wrong), FINDINGS)
    return 0


def number(value: str) -> int:
    """The bits of a descriptor."""
    try:
        return int(value, 0)
    except ValueError:
        raise WrongCall(
            f"'{value}' is no number: a descriptor is 64 bits, or 32 for an instruction, as 0x4000004000010040"
        ) from None


def instructions(kind: str, bits: int) -> dict[str, InstructionDescriptor]:
    """The fields of an instruction descriptor, by the instruction that it may be of."""
    if kind not in TYPES:
        raise WrongCall(f"there is no descriptor of '{kind}': there are {', '.join((*MATRICES, *TYPES, MAP, COLUMNS))}")
    found, wrong = {}, []
    sparse = bool(bits >> 2 & 1)
    for weights, pairs in ((False, False), (False, True), (True, False)):
        work = Multiply("", pairs, kind=kind, blocks=BLOCKS.get(kind, 0), weights=weights, sparse=sparse)
        name = f"tcgen05.mma{'.ws' * weights}{'.sp' * sparse}.cta_group::{work.ctas}"
        try:
            if not (weights and work.blocks):
                found[name] = instruction_descriptor(work, bits)
        except InvalidDescriptor as each:
            wrong.append(each)
    if not found:
        raise wrong[0]
    return found


def of_matrix(found: MatrixDescriptor) -> Rows:
    """A matrix in shared memory."""
    width, by = found.swizzle.width, f", {16 * found.swizzle.atom} at once" if found.swizzle.atom > 1 else ""
    return [
        ("start address", f"{found.start:#x}"),
        ("leading dimension", f"{found.leading} bytes"),
        ("stride dimension", f"{found.stride} bytes"),
        ("base offset", str(found.base)),
        ("swizzle", "none" if width == 1 else f"{16 * width} bytes{by}"),
    ]


def of_columns(bits: int) -> Rows:
    """The mask of columns of B that count as zero (PTX 9.7.16.4.3), by the rows of D, which decide its parts."""
    if not bits >> 39 & 1:
        return [("columns", "all of B count")]
    skip, use = (bits >> 40 & 0xFF) + 1, (bits >> 48 & 0xFF) + 1
    rows: Rows = [("repeated", f"{use} columns of B, {skip} of zeros")]
    for part, of in enumerate(("all", "m64 and m32", "m32", "m32")):
        first = "zeros" if bits >> 32 + part & 1 else "columns of B"
        rows.append((f"part {part}, of {of}", f"{first} first, from column {bits >> 8 * part & 0xFF} on"))
    return [*rows, ("shifted by", f"{bits >> 56 & 63} columns")]


def of_instructions(forms: dict[str, InstructionDescriptor]) -> Rows:
    """A product, by one of some instructions, for which the fields are the same."""
    found = next(iter(forms.values()))
    rows: Rows = [("shape", f"m{found.m}n{found.n}k{found.k}"), ("D, A and B", f"{found.d}, {found.a}, {found.b}")]
    for name, pair in (("negated", found.negated), ("transposed", found.transposed)):
        rows.append((name, " and ".join(matrix for matrix, holds in zip("AB", pair, strict=True) if holds) or "neither"))
    if found.scales is not None:
        rows.append(("scales", f"{found.scales}, from byte {found.scale_ids[0]} of A's words and {found.scale_ids[1]} of B's"))
    if found.saturates:
        rows.append(("sums", "are limited to the range of .s32"))
    if found.sparse:
        rows.append(("sparsity", f"half of A is stored; selector {found.selector}"))
    return [*rows, *(("of" if n == 0 else "", name) for n, name in enumerate(forms))]
