"""Atomics of one thread each on its own word: what the units for them do with subnormals and NaN."""

from __future__ import annotations

from collections.abc import Iterator

from . import Case, numbers, random

THREADS = 1024
OPERATIONS = [
    ("add", "f32"), ("add", "f64"), ("add.noftz", "f16"), ("add.noftz", "f16x2"), ("add.noftz", "bf16"),
    ("add.noftz", "bf16x2"), ("inc", "u32"), ("dec", "u32"), ("min", "s32"), ("max", "u64"), ("add", "u64"), ("cas", "b16"),
    ("exch", "b64"), ("cas", "b32"),
]  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "b16": 16, "f64": 64, "u64": 64, "b64": 64}
REGISTERS = {"f32": "%f", "f64": "%e"}
ZEROS = {"f32": "0f00000000", "f64": "0d0000000000000000"}
VECTORS = [
    ("red.global.v4.f16x2.add.noftz", 4, "r"), ("red.global.v4.f32.add", 4, "f"), ("red.global.v2.f32.add", 2, "f"),
    ("red.global.v4.bf16x2.min.noftz", 4, "r"), ("red.global.v8.f16.max.noftz", 8, "h"),
    ("red.global.v8.bf16.add.noftz", 8, "h"), ("red.global.v2.f16x2.min.noftz", 2, "r"),
]  # fmt: skip
HEAD = """
.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data)
{
.reg .b64 %base, %d<5>; .reg .b32 %w, %s, %r<9>; .reg .b16 %h<9>; .reg .f32 %f<9>; .reg .f64 %e<5>;
.shared .align 8 .b8 sh[8192];
ld.param.u64 %base, [data]; mov.u32 %w, %tid.x;
"""


def atomics() -> Iterator[Case]:
    """Rows of 8 bytes a thread: what came back, the word in memory, the operands."""
    for space in ("global", "shared"):
        for operation, type in OPERATIONS:
            for kind in ("atom", "red"):
                if kind == "atom" or operation not in ("cas", "exch"):
                    yield on_words(kind, space, operation, type)
    for form, count, register in VECTORS:
        yield on_vectors(form, count, register)


def on_words(kind: str, space: str, operation: str, type: str) -> Case:
    """One operation on each thread's word."""
    name = f"{kind}.{space}.{operation}.{type}"
    data = numbers.mixed(random(name), 4 * THREADS).reshape(4, THREADS)
    bits = BITS.get(type, 32)
    r = REGISTERS.get(type) or {16: "%h", 32: "%r", 64: "%d"}[bits]
    target, third = f"{r}0, " if kind == "atom" else "", f", {r}3" if operation == "cas" else ""
    where, put, get = "[%base+8192]", "", ""
    if space == "shared":
        where = "[%s]"
        put = "mov.u32 %s, sh; mad.lo.u32 %s, %w, 8, %s; ld.global.b64 %d4, [%base+8192]; st.shared.b64 [%s], %d4;"
        get = "ld.shared.b64 %d4, [%s]; st.global.b64 [%base+8192], %d4;"
    text = f"""{HEAD}mad.wide.u32 %base, %w, 8, %base; {put}
mov.b{bits} {r}0, {ZEROS.get(type, "0")};
ld.global.b{bits} {r}2, [%base+16384]; ld.global.b{bits} {r}3, [%base+24576];
{kind}.{space}.{operation}.{type} {target}{where}, {r}2{third};
{get}
st.global.b{bits} [%base], {r}0;
ret;
}}
"""
    return Case(name, text, "k", (THREADS,), (data,))


def on_vectors(form: str, count: int, register: str) -> Case:
    """One reduction of a vector of 16 bytes in each thread."""
    data = numbers.mixed(random(form), 4 * 512).reshape(2, 1024)
    size = 2 if register == "h" else 4
    loads = " ".join(f"ld.global.b{8 * size} %{register}{k}, [%base+{8192 + size * k}];" for k in range(count))
    vector = ", ".join(f"%{register}{k}" for k in range(count))
    text = f"{HEAD}mad.wide.u32 %base, %w, 16, %base;\n{loads}\n{form} [%base], {{{vector}}};\nret;\n}}\n"
    return Case(form, text, "k", (512,), (data,))
