"""Registers wider than the type of ld, st and cvt (PTX 6.4, 9.4.1, tables 24 and 25), and vector registers as operands.

What is expected is integer arithmetic: a source is cut to its low bits; a result is filled by the sign where the type is
a signed integer, else by zeros.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ptxvm

HEADER = ".version 6.5\n.target sm_75\n.address_size 64\n"
TYPES = [*(f"{kind}{bits}" for kind in "bsu" for bits in (8, 16, 32, 64)), "f32", "f64"]
REGISTERS = [*TYPES, "f16"]
PATTERN = 0x9BCD_EF81_8234_F6F8
FILLED = 0x0123_4567_89AB_CDEF
BOTH = pytest.mark.parametrize("engine", ["interp", "jit"])


def size(type: str) -> int:
    """Its bits."""
    return int(type[1:])


def allowed(type: str, register: str) -> bool:
    """The tables: no register is narrower; floats go into floats and bits of some size, integers into no wider float."""
    if size(register) < size(type):
        return False
    if "b" in (type[0], register[0]):
        return True
    return register == type if "f" in (type[0], register[0]) else True


def widened(value: int, type: str, register: str) -> int:
    """The low bits of a value of the type, as a register of another type holds them."""
    low = value & (1 << size(type)) - 1
    if type[0] == "s" and low >> size(type) - 1:
        low -= 1 << size(type)
    return low & (1 << size(register)) - 1


PAIRS = [(type, register) for type, register in itertools.product(TYPES, REGISTERS) if allowed(type, register)]


def outcome(declared: str, body: str, engine: str, count: int) -> list[int]:
    """The 64-bit words that a kernel leaves behind the pattern that it is given."""
    source = (
        f"{HEADER}.visible .entry k(.param .u64 p) {{ .reg .u64 %a; .reg .b64 %z; {declared} "
        f"ld.param.u64 %a, [p]; {body} ret; }}"
    )
    words = np.array([PATTERN, FILLED, *[0] * count], np.uint64)
    ptxvm.load(source).kernel().launch(grid=1, block=1, args=[words], engine=engine)
    return [int(word) for word in words[2:]]


@BOTH
@pytest.mark.parametrize("space", ["global", "shared", "param"])
def test_a_load_fills_a_wider_register(engine: str, space: str) -> None:
    declared, body = [f".{'shared' if space == 'shared' else 'local'} .align 8 .b64 room;"], []
    address = {"global": "%a", "shared": "room", "param": "p2"}[space]
    body = ["ld.global.b64 %z, [%a];", "st.shared.b64 [room], %z;" if space == "shared" else ""]
    for n, (type, register) in enumerate(PAIRS):
        declared.append(f".reg .{register} %r{n};")
        body += [f"ld.{space}.{type} %r{n}, [{address}];", f"st.global.b{size(register)} [%a+{16 + 8 * n}], %r{n};"]
    expected = [widened(PATTERN, type, register) for type, register in PAIRS]
    if space == "param":
        found = with_parameter(declared, body, engine)
    else:
        found = outcome(" ".join(declared), " ".join(body), engine, len(PAIRS))
    assert found == expected


def with_parameter(declared: list[str], body: list[str], engine: str) -> list[int]:
    """The words that a kernel leaves which has the pattern as a second parameter."""
    source = (
        f"{HEADER}.visible .entry k(.param .u64 p, .param .b64 p2) {{ .reg .u64 %a; .reg .b64 %z; {' '.join(declared)} "
        f"ld.param.u64 %a, [p]; {' '.join(body)} ret; }}"
    )
    words = np.zeros(2 + len(PAIRS), np.uint64)
    ptxvm.load(source).kernel().launch(grid=1, block=1, args=[words, np.uint64(PATTERN)], engine=engine)
    return [int(word) for word in words[2:]]


@BOTH
def test_a_store_cuts_a_wider_register(engine: str) -> None:
    declared, body = [], []
    for n, (type, register) in enumerate(PAIRS):
        declared.append(f".reg .{register} %r{n};")
        body += [f"ld.global.b{size(register)} %r{n}, [%a];", f"st.global.{type} [%a+{16 + 8 * n}], %r{n};"]
    expected = [PATTERN & (1 << size(type)) - 1 for type, _ in PAIRS]
    assert outcome(" ".join(declared), " ".join(body), engine, len(PAIRS)) == expected


@BOTH
@pytest.mark.parametrize("type", TYPES)
def test_a_vector_load_and_store_do_as_the_scalar_ones(engine: str, type: str) -> None:
    register = "b64"
    declared = ".reg .v2 .b64 %v; .reg .b64 %x, %y;"
    body = f"ld.global.v2.{type} %v, [%a]; ld.global.v2.{type} {{%x, %y}}, [%a]; st.global.v2.b64 [%a+16], %v;"
    body += f" st.global.v2.b64 [%a+32], {{%x, %y}}; st.global.v2.{type} [%a+48], %v;"
    whole = PATTERN | FILLED << 64
    parts = [widened(whole >> n * size(type), type, register) for n in range(2)]
    stored = whole & (1 << 2 * size(type)) - 1
    assert outcome(declared, body, engine, 6) == [*parts, *parts, stored & (1 << 64) - 1, stored >> 64]


INTEGERS = [t for t in TYPES if t[0] in "su"]
CONVERSIONS = [
    (to, source, into) for to in INTEGERS for source in INTEGERS for into in REGISTERS if into[0] != "f" and allowed(to, into)
]


@BOTH
def test_an_integer_conversion_reads_the_low_bits_and_fills_the_register(engine: str) -> None:
    declared, body = [], ["ld.global.b64 %z, [%a];"]
    for n, (to, source, into) in enumerate(CONVERSIONS):
        declared.append(f".reg .{into} %r{n};")
        body += [f"cvt.{to}.{source} %r{n}, %z;", f"st.global.b{size(into)} [%a+{16 + 8 * n}], %r{n};"]
    expected = [widened(widened(PATTERN, source, "b64"), to, into) for to, source, into in CONVERSIONS]
    assert outcome(" ".join(declared), " ".join(body), engine, len(CONVERSIONS)) == expected


@BOTH
@pytest.mark.parametrize(("to", "bits"), [("f16", 0xC500), ("f32", 0xC0A00000)])
def test_a_float_conversion_fills_bits_with_zeros(engine: str, to: str, bits: int) -> None:
    declared = ".reg .b64 %d, %s; .reg .s32 %i;"
    body = f"mov.s32 %i, -5; cvt.rn.{to}.s32 %d, %i; st.global.b64 [%a+16], %d;"
    back = f"mov.b64 %s, {0xABCD_0000_0000_0000 | bits}; cvt.rzi.s64.{to} %d, %s; st.global.b64 [%a+24], %d;"
    assert outcome(declared, body + back, engine, 2) == [bits, (1 << 64) - 5]


@BOTH
@pytest.mark.parametrize(
    ("whole", "part", "count"), [(32, "b16", 2), (32, "f16", 2), (32, "b8", 4), (64, "b32", 2), (64, "f32", 2), (64, "u16", 4)]
)
def test_mov_unpacks_into_a_vector_register_and_packs_one(engine: str, whole: int, part: str, count: int) -> None:
    each = whole // count
    declared = f".reg .b{whole} %w, %back; .reg .v{count} .{part} %v; .reg .pred %no;"
    body = f"ld.global.b{whole} %w, [%a]; mov.b{whole} %v, %w; mov.b{whole} %back, %v; st.global.b{whole} [%a+16], %back;"
    body += f" mov.b64 %z, 1; setp.eq.u64 %no, %z, 0; @%no mov.b{whole} %v, 0;"
    body += "".join(f" st.global.b{each} [%a+{24 + 8 * n}], %v.{'xyzw'[n]};" for n in range(count))
    mask = (1 << each) - 1
    parts = [PATTERN >> n * each & mask for n in range(count)]
    assert outcome(declared, body, engine, count + 1) == [PATTERN & (1 << whole) - 1, *parts]


# ptxas 13.5: "Vector operand is not allowed" or "Arguments mismatch".
SCALAR = [
    "add.u32 %w, %v, %w", "add.u32 %v, %w, %w", "mad.lo.u32 %w, %w, %w, %v", "selp.b32 %v, %w, %w, %p",
    "setp.eq.u32 %p, %v, %w",
    "shl.b32 %w, %w, %v", "cvt.u16.u32 %w, %v", "cvta.local.u64 %d, %q", "popc.b32 %w, %v", "prmt.b32 %w, %w, %v, 0",
    "shfl.sync.idx.b32 %w, %v, 0, 31, -1", "st.global.u32 [%d], %v", "ld.global.u32 %v, [%d]", "mov.u32 %w, %v",
    "mov.b32 %v, %w", "mov.b64 %q, %d", "mov.v2.b32 %v, %q", "st.global.v2.b32 [%d], {%v, %v}",
    "vote.sync.ballot.b32 %v, %p, -1",
]  # fmt: skip


@pytest.mark.parametrize("instruction", SCALAR)
def test_a_vector_register_is_no_scalar_operand(instruction: str) -> None:
    declared = ".reg .b32 %w; .reg .b64 %d; .reg .v2 .b32 %v; .reg .v2 .b64 %q; .reg .pred %p;"
    found = ptxvm.check(f"{HEADER}.entry k() {{ {declared} {instruction}; ret; }}")
    assert any(d.severity.value == "error" for d in found)
