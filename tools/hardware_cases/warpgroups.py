"""`wgmma` on any layout of shared memory that a descriptor can name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from . import Case, numbers, random

SHARED = 48 * 1024
COLUMNS = (8, 24, 64, 136)
EACH = 4  # layouts of a form

FLOATS = [(d, a, a) for a in ("f16", "bf16") for d in ("f16", "f32") if (d, a) != ("f16", "bf16")]
FLOATS += [("f32", "tf32", "tf32")]
FLOATS += [(d, a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2") for d in ("f16", "f32")]
TYPES = FLOATS + [("s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")] + [("s32", "b1", "b1")]


def products() -> Iterator[Case]:
    """Dense and sparse, A in registers and in shared memory, each with some layouts."""
    for types in TYPES:
        for sparse in (False, True):
            for in_registers in (False, True):
                if sparse and types[1] == "b1":
                    continue
                for columns in COLUMNS:
                    if types[0] == "s32" and columns == 136:
                        continue
                    for n in range(EACH if columns < 64 else 1):
                        yield product(types, columns, n, sparse=sparse, in_registers=in_registers)


def descriptor(rng: np.random.Generator, rows: int, *, transposed: bool) -> int:
    """A layout whose matrix of 64 or `rows` rows and 32 (or 64) bytes of K stays in shared memory."""
    swizzle = int(rng.integers(0, 4))
    span = (16, 128, 64, 32)[swizzle]
    most = max(rows // 8, 1)
    if transposed or not swizzle:
        leading = 16 * int(rng.integers(1, 2048 // 16))
        stride = 16 * int(rng.integers(1, min(2048, 24576 // most) // 16 + 1))
        if swizzle:
            leading, stride = leading // 128 * 128 + 128, stride // 128 * 128 + 128
    else:
        leading = 16 * int(rng.integers(0, 64))
        stride = max(8 * span, 8 * span * int(rng.integers(1, 3)))
        if most * stride > 40 * 1024:
            stride = 8 * span
    grain = (16, 1024, 512, 256)[swizzle]
    start = grain * int(rng.integers(0, 4096 // grain))
    if swizzle and rng.integers(0, 2):  # a step along K within the pattern
        start += 32 * int(rng.integers(0, span // 32))
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62


def product(types: tuple[str, str, str], columns: int, number: int, *, sparse: bool, in_registers: bool) -> Case:
    """One launch."""
    d, a, b = types
    k = 256 // numbers.BITS[a] * (2 if sparse else 1)
    halves = a in ("f16", "bf16")
    name = f"wgmma{'.sp' if sparse else ''} m64n{columns}k{k} {d} {a} {b} {'registers' if in_registers else 'shared'} {number}"
    rng = random(name)
    trans = [int(rng.integers(0, 2)) if halves else 0 for _ in range(2)]
    mode = numbers.MODES[number % 2]
    memory = numbers.packed(numbers.elements(rng, a, mode, SHARED * 8 // numbers.BITS[a]), numbers.BITS[a]).astype(np.uint32)
    count = columns // (4 if d == "f16" else 2)
    old = numbers.packed(numbers.elements(rng, d, mode, 128 * count * (2 if d == "f16" else 1)), numbers.BITS[d])
    fragment = numbers.packed(numbers.elements(rng, a, mode, 128 * 4 * 32 // numbers.BITS[a]), numbers.BITS[a])
    metadata_words = numbers.metadata(rng, a, 128)
    registers = np.zeros((128, 5), np.uint32)
    registers[:, :4] = fragment.reshape(128, 4)
    registers[:, 4] = metadata_words
    da = descriptor(rng, 64, transposed=bool(trans[0]))
    db = descriptor(rng, columns, transposed=bool(trans[1]))
    scales = "" if d == "s32" else f", {rng.choice([-1, 1])}, {rng.choice([-1, 1])}"
    if halves:
        scales += f", {trans[1]}" if in_registers else f", {trans[0]}, {trans[1]}"
    of_a = "{%a0, %a1, %a2, %a3}" if in_registers else "%da"
    selector = int(rng.integers(0, 2)) if a in ("f16", "bf16", "tf32") else 0
    metadata = f", %a4, {selector}" if sparse else ""
    values = ", ".join(f"%v{n}" for n in range(count))
    loads = " ".join(f"ld.global.b32 %v{n}, [%pd+{4 * n}];" for n in range(count))
    stores = " ".join(f"st.global.b32 [%pd+{4 * n}], %v{n};" for n in range(count))
    opcode = "wgmma.mma_async.sp" if sparse else "wgmma.mma_async"
    kinds = ".and.popc" if a == "b1" else ""
    text = f"""
.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pd, .param .u64 pa, .param .u64 ps, .param .u64 da, .param .u64 db, .param .u32 en)
{{
.reg .b64 %pd, %pa, %ps, %da, %db; .reg .b32 %v<{count}>, %a<5>, %t, %s, %n; .reg .pred %p, %more;
.shared .align 1024 .b8 tile[{SHARED}];
mov.u32 %t, %tid.x;
ld.param.u64 %pd, [pd]; mad.wide.u32 %pd, %t, {4 * count}, %pd;
ld.param.u64 %pa, [pa]; mad.wide.u32 %pa, %t, 20, %pa;
ld.param.u64 %ps, [ps]; ld.param.u64 %da, [da]; ld.param.u64 %db, [db];
mov.u32 %s, tile; shr.u32 %n, %s, 4; cvt.u64.u32 %da, %n; cvt.u64.u32 %db, %n;
{{ .reg .b64 %x; ld.param.u64 %x, [da]; add.u64 %da, %da, %x; ld.param.u64 %x, [db]; add.u64 %db, %db, %x; }}
mad.wide.u32 %ps, %t, 16, %ps; mad.lo.u32 %s, %t, 16, %s; mov.u32 %n, 0;
L: ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%ps]; st.shared.v4.b32 [%s], {{%a0, %a1, %a2, %a3}};
add.u64 %ps, %ps, 2048; add.u32 %s, %s, 2048; add.u32 %n, %n, 2048;
setp.lt.u32 %more, %n, {SHARED}; @%more bra L;
ld.global.b32 %a0, [%pa]; ld.global.b32 %a1, [%pa+4]; ld.global.b32 %a2, [%pa+8]; ld.global.b32 %a3, [%pa+12];
ld.global.b32 %a4, [%pa+16];
ld.param.u32 %n, [en]; setp.ne.u32 %p, %n, 0;
{loads}
fence.proxy.async;
bar.sync 0;
wgmma.fence.sync.aligned;
{opcode}.sync.aligned.m64n{columns}k{k}.{d}.{a}.{b}{kinds} {{{values}}}, {of_a}, %db{metadata}, %p{scales};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{stores}
ret;
}}
"""
    enabled = np.uint32(rng.integers(0, 4) > 0)
    given = (old.astype(np.uint32), registers, memory, np.uint64(da), np.uint64(db), enabled)
    return Case(name, text, "k", (128,), given)
