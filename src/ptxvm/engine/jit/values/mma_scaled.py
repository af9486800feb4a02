"""Products of small floats whose rows and columns have one scale each: the numbers times their scales are numbers of bf16.

A scale is a power of two (`ue8m0`), so bf16 holds the numbers, unless they are too small or large: then this function leaves
the product to the host.  What lies in a register stands in two, in another order along K, as in `mma_small`.
"""

from __future__ import annotations

from dataclasses import replace

from ptxvm.algebra.types import Type, bf16, ue8m0
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.values import mma_small, small_floats
from ptxvm.engine.jit.values.mma_writer import WORDS, leave
from ptxvm.isa.fragments import Product, Scaling, mma_fragment
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.tensor_core import FORMATS
from ptxvm.machine.warp_matrix import where

PAIRS, FLOATS = f"<{2 * WARP} x i16>", f"<{2 * WARP} x float>"
MOST = 254  # of a scale that is a number
EXPONENT = 0x7F80  # the bits of bf16
HALF_UNIT = 1 << 22  # the bits of an f32 for the scale 0, 2**-127, which is subnormal


def is_scaled(product: Product) -> bool:
    """Has each row of A, and each column of B, one scale that is a power of two?"""
    scaling = product.scaling
    one = scaling is not None and scaling.a.shape[1] == 1 and scaling.a.type is scaling.b.type is ue8m0
    return one and mma_small.is_small(product)


def tile(product: Product) -> Product:
    """The product of numbers of bf16."""
    shape = f"m16n8k{product.a.shape[1]}"
    return replace(product, a=mma_fragment("a", bf16, shape), b=mma_fragment("b", bf16, shape), scaling=None)


def function(unit: Unit, name: str, called: str, product: Product, scaling: Scaling) -> str:
    """The text of the function, which calls that of the product of bf16."""
    code, wide = Code(unit), tile(product)
    a, b, d = (each.registers for each in (wide.a, wide.b, wide.d))
    stored = product.a.registers, product.b.registers
    added, behind = sum(stored), sum(stored) + product.c.registers
    scales = [
        *(_scale(code, scaling, behind, [(lane // 4 + down, 0) for lane in range(WARP)], of_a=True) for down in (0, 8)),
        _scale(code, scaling, behind + 1, [(0, lane // 4) for lane in range(WARP)], of_a=False),
    ]
    lost: list[str] = []
    for n in range(stored[0]):  # upper or lower rows, in turn
        low = 4 * (n // 2) + n % 2
        lost += _widened(code, product.a.type, scales[n % 2], n, (low, low + 2))
    for n in range(stored[1]):
        lost += _widened(code, product.b.type, scales[2], stored[0] + n, (a + 2 * n, a + 2 * n + 1))
    for n in range(d):
        _keep(code, a + b + n, WORDS, code.emit(f"load {WORDS}, ptr {code.offset('%room', STEP * (added + n))}, align 64"))
    for n, (scale, type) in enumerate(zip(scales, (product.a.type, product.a.type, product.b.type), strict=True)):
        _keep(code, a + b + d + n, PAIRS, _least(code, scale, type))
    some = lost[0]
    for each in lost[1:]:
        some = code.emit(f"or <{2 * WARP} x i1> {some}, {each}")
    leave(code, code.emit(f"icmp ne i{2 * WARP} {code.emit(f'bitcast <{2 * WARP} x i1> {some} to i{2 * WARP}')}, 0"))
    done = code.emit(f"call i32 @{called}(ptr %work)", pure=False)
    leave(code, code.emit(f"icmp eq i32 {done}, 0"))
    for n in range(d):
        made = code.emit(f"load {WORDS}, ptr {code.offset('%work', STEP * n)}, align 64", pure=False)
        code.run(f"store {WORDS} {made}, ptr {code.offset('%room', STEP * n)}, align 64")
    lines = "\n".join([f"  %work = alloca [{STEP * (a + b + d + 3)} x i8], align 64", *code.lines])
    return f"define internal i32 @{name}(ptr %room) noinline #0 {{\nentry:\n{lines}\n  ret i32 1\n}}"


def _keep(code: Code, number: int, vector: str, value: str) -> None:
    code.run(f"store {vector} {value}, ptr {code.offset('%work', STEP * number)}, align 64")


def _scale(code: Code, scaling: Scaling, register: int, places: list[tuple[int, int]], *, of_a: bool) -> str:
    """The scale of the row or the column of each lane, as a number."""
    fragment = scaling.a if of_a else scaling.b
    held = [divmod(int(where(fragment)[0][place]), fragment.packed * fragment.registers) for place in places]
    word = code.emit(f"load {WORDS}, ptr {code.offset('%room', STEP * register)}, align 64")
    brought = code.shuffle("i32", WARP, word, "poison", [lane for lane, _ in held])
    return code.emit(f"and {WORDS} {brought}, splat (i32 255)")


def _least(code: Code, scale: str, type: Type) -> str:
    """The least exponents of the numbers of a register, of bf16: those of the type and the scale."""
    sum_ = code.emit(f"add {WORDS} {scale}, splat (i32 {FORMATS[type.name][1]})")
    above = code.intrinsic(WORDS, f"llvm.smax.v{WARP}i32", (WORDS, sum_), (WORDS, "zeroinitializer"))
    within = code.intrinsic(WORDS, f"llvm.smin.v{WARP}i32", (WORDS, above), (WORDS, f"splat (i32 {MOST})"))
    return code.emit(f"bitcast {WORDS} {code.emit(f'mul {WORDS} {within}, splat (i32 65537)')} to {PAIRS}")


def _widened(code: Code, type: Type, scale: str, source: int, targets: tuple[int, int]) -> list[str]:
    """Convert a register to two; gives for each the numbers that bf16 does not hold: they would be subnormal, or infinite."""
    key, place, count = f"x.{source}", STEP * source, 2 * WARP
    places = STEP * targets[0], STEP * targets[1]
    code.lines += small_floats.register_widened(key, type.name, ("%room", place), ("%work", *places))
    shifted = code.emit(f"shl {WORDS} {scale}, splat (i32 23)")
    none, least = code.emit(f"icmp eq {WORDS} {scale}, zeroinitializer"), f"splat (i32 {HALF_UNIT})"
    bits = code.emit(f"select <{WARP} x i1> {none}, {WORDS} {least}, {WORDS} {shifted}")
    nan = code.emit(f"icmp ugt {WORDS} {scale}, splat (i32 {MOST})")
    bits = code.emit(f"select <{WARP} x i1> {nan}, {WORDS} splat (i32 {0x7FC0_0000}), {WORDS} {bits}")
    each = code.shuffle("i32", WARP, bits, "poison", [n // 2 for n in range(count)])
    factor = code.emit(f"bitcast <{count} x i32> {each} to {FLOATS}")
    lost = []
    for half, target in zip(("low", "high"), targets, strict=True):
        number = code.emit(
            f"fpext <{count} x half> {code.emit(f'bitcast {PAIRS} %wide.{key}.{half} to <{count} x half>')} to {FLOATS}"
        )
        scaled = code.emit(f"bitcast {FLOATS} {code.emit(f'fmul {FLOATS} {number}, {factor}')} to <{count} x i32>")
        made = code.emit(f"trunc <{count} x i32> {code.emit(f'lshr <{count} x i32> {scaled}, splat (i32 16)')} to {PAIRS}")
        _keep(code, target, PAIRS, made)
        exponent, flags = code.emit(f"and {PAIRS} {made}, splat (i16 {EXPONENT})"), f"<{count} x i1>"
        low = code.emit(f"icmp eq {PAIRS} {exponent}, zeroinitializer")
        some = code.emit(f"fcmp une {FLOATS} {number}, zeroinitializer")
        high = code.emit(f"icmp eq {PAIRS} {exponent}, splat (i16 {EXPONENT})")
        size = code.intrinsic(FLOATS, f"llvm.fabs.v{count}f32", (FLOATS, number))
        finite = code.emit(f"fcmp olt {FLOATS} {size}, splat (float 0x7FF0000000000000)")
        lost.append(
            code.emit(f"or {flags} {code.emit(f'and {flags} {low}, {some}')}, {code.emit(f'and {flags} {high}, {finite}')}")
        )
    return lost
