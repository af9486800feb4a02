"""Lookups in constant tables: in vector registers if entries are few and close to each other, else from memory."""

from __future__ import annotations

from functools import cache

from ptxvm.algebra.types import Type, u32
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, from_lanes, scalar_type, vector_literal
from ptxvm.engine.jit.values.vector_algebra import VectorAlgebra

MOST = 128  # entries that are looked up in registers: eight of them
HALF = "<16 x i32>"


def lookup(alg: VectorAlgebra, type: Type, table: tuple[int, ...], index: Raw) -> Raw:
    """An entry of a table of integers."""
    if (known := alg.known(u32, index)) is not None:
        return from_lanes(type, tuple(table[n] for n in known))
    if isinstance(index, Affine) and not index.terms:
        return _one(alg, type, table, index)
    affine = near(table, type.bits)
    if affine is None or not cpu.has("avx512f"):
        return _gathered(alg, type, table, index)
    base, shift, words = affine
    found: Raw = Varying(_in_registers(alg, words, alg.vector(u32, index)))
    found = alg.cast("resize", u32, type.as_unsigned, found, "rn")
    found = alg.integer("shl", type.as_unsigned, found, Affine(shift))
    return alg.integer("add", type.as_unsigned, found, Affine(base))


@cache
def near(table: tuple[int, ...], bits: int) -> tuple[int, int, tuple[int, ...]] | None:
    """The table as `base + (word << shift)` with words of 32 bits, if it can be."""
    if len(table) > MOST or bits not in (32, 64):
        return None
    modulus = 1 << bits
    base = min((n % modulus for n in table), key=lambda n: n - modulus if n >> (bits - 1) else n)
    distances = [(n - base) % modulus for n in table]
    together = 0
    for n in distances:
        together |= n
    shift = (together & -together).bit_length() - 1 if together else 0
    if together >> shift >= 1 << 32:
        return None
    words = [n >> shift for n in distances]
    return base, shift, tuple(words + [0] * (-len(words) % 32))


def _one(alg: VectorAlgebra, type: Type, table: tuple[int, ...], index: Affine) -> Raw:
    llvm, code = scalar_type(type), alg.code
    _, _, (at,) = alg.operands(u32, index)
    where = code.emit(f"getelementptr {llvm}, ptr @{code.unit.table(llvm, table)}, i32 {at}")
    return Affine(code.emit(f"load {llvm}, ptr {where}, align {type.bytes}"))


def _gathered(alg: VectorAlgebra, type: Type, table: tuple[int, ...], index: Raw) -> Raw:
    llvm, code, vector = scalar_type(type), alg.code, alg.vector_type(type)
    name = code.unit.table(llvm, table)
    pointers = code.emit(f"getelementptr {llvm}, ptr @{name}, <{alg.width} x i32> {alg.vector(u32, index)}")
    gather = f"llvm.masked.gather.v{alg.width}{llvm}.v{alg.width}p0"
    code.unit.declarations[gather] = (
        f"declare {vector} @{gather}(<{alg.width} x ptr>, i32 immarg, <{alg.width} x i1>, {vector})"
    )
    arguments = [(f"<{alg.width} x ptr>", pointers), ("i32", str(type.bytes))]
    arguments += [(f"<{alg.width} x i1>", "splat (i1 true)"), (vector, "zeroinitializer")]
    return Varying(code.call(vector, gather, *arguments))


def _in_registers(alg: VectorAlgebra, words: tuple[int, ...], index: str) -> str:
    """Each instruction looks up 16 lanes in 32 words; the high bits of the index choose among several."""
    code, name = alg.code, "llvm.x86.avx512.vpermi2var.d.512"
    code.unit.declare(name, HALF, HALF, HALF, HALF)
    halves = []
    for chosen in code.pieces("i32", index, 16):
        found = []
        for start in range(0, len(words), 32):
            low, high = (vector_literal("i32", words[n : n + 16]) for n in (start, start + 16))
            found.append(code.call(HALF, name, (HALF, low), (HALF, chosen), (HALF, high)))
        bit = 32
        while len(found) > 1:
            marked = code.emit(f"and {HALF} {chosen}, splat (i32 {bit})")
            upper = code.emit(f"icmp ne {HALF} {marked}, zeroinitializer")
            pairs = zip(found[::2], [*found[1::2], found[-1]], strict=False)
            found = [code.emit(f"select <16 x i1> {upper}, {HALF} {b}, {HALF} {a}") for a, b in pairs]
            bit *= 2
        halves.append(found[0])
    return code.joined("i32", halves, 16)
