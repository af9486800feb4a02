"""Products of floats of eight bits and less: halves (f16) hold them, and another function multiplies those (PTX 9.7.14).

A register holds four neighbours along K in each lane; the lower and the upper two go to two registers.  So the 16 columns of A
that a row of registers holds come in another order, and the rows of B in the same one: their sum, which is exact, stays.
A core that converts multiplies the lower halves first, then the upper ones, and adds C to the result (`tensor_core`).
"""

from __future__ import annotations

from dataclasses import replace

from ptxvm.algebra.types import Type, f16, f32
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.values import small_floats
from ptxvm.engine.jit.values.mma_writer import WORDS
from ptxvm.isa.fragments import Product, mma_fragment
from ptxvm.isa.special_registers import WARP

COLUMNS = 8  # of a product of halves
DISTANCE = 16  # registers of a half of a product, and more
ZERO = f"{WORDS} zeroinitializer"
NAN_F16, NAN_F32 = "0xH7FFF", f"0x{0x7FFF_FFFF_E000_0000:016X}"


def is_small(product: Product) -> bool:
    """Is it a product of floats of eight bits or less, which stand in a byte each?"""
    return all(each.type.name in small_floats.WIDENED and not each.halved for each in (product.a, product.b))


def tile(product: Product) -> Product:
    """The product of eight of the columns, of halves where the floats are small."""
    shape, small = f"m16n{COLUMNS}k{product.a.shape[1]}", is_small(product)
    a, b, c, d = (
        mma_fragment(name, f16 if small and name in "ab" else each.type, shape)
        for name, each in (("a", product.a), ("b", product.b), ("c", product.c), ("d", product.d))
    )
    return replace(product, a=a, b=b, c=c, d=d)


def function(name: str, called: str, product: Product) -> str:
    """The text of the function of a product of `mma`, which calls that of its tile of halves."""
    halves = tile(product)
    a, b, d = (each.registers for each in (halves.a, halves.b, halves.d))
    lines: list[str] = []
    for n in range(product.a.registers):  # upper or lower rows, in turn
        low = STEP * (4 * (n // 2) + n % 2)
        lines += small_floats.register_widened(
            f"a.{n}", product.a.type.name, ("%room", STEP * n), ("%work", low, low + 2 * STEP)
        )
    for n in range(product.b.registers):
        low, source = STEP * (a + 2 * n), STEP * (product.a.registers + n)
        lines += small_floats.register_widened(f"b.{n}", product.b.type.name, ("%room", source), ("%work", low, low + STEP))
    first = product.a.registers + product.b.registers
    lines += [line for n in range(d) for line in _copied(f"c.{n}", ("%room", first + n), ("%work", a + b + n))]
    lines += small_floats.least_exponents(product.a.type, product.b.type, "%work", STEP * (a + b + d), STEP)
    results = [line for n in range(d) for line in _copied(f"d.{n}", ("%work", n), ("%room", n))]
    return "\n".join([
        f"define internal i32 @{name}(ptr %room) noinline #0 {{",
        "entry:",
        f"  %work = alloca [{STEP * (a + b + d + 3)} x i8], align 64",
        *lines,
        f"  %ok = call i32 @{called}(ptr %work)",
        "  %refused = icmp eq i32 %ok, 0",
        "  br i1 %refused, label %leave, label %good",
        "leave:",
        "  ret i32 0",
        "good:",
        *results,
        "  ret i32 1",
        "}",
    ])  # fmt: skip


def half_of_registers(product: Product) -> Product:
    """The product of one half of each register, as halves."""
    shape = f"m16n{COLUMNS}k{product.a.shape[1] // 2}"
    a, b = (mma_fragment(name, f16, shape) for name in "ab")
    c, d = (mma_fragment(name, product.d.type, shape) for name in "cd")
    return replace(product, a=a, b=b, c=c, d=d)


def converted_function(name: str, called: str, product: Product) -> str:
    """The text of the function of a product by a core that converts: `called` multiplies half of each register."""
    a, b, d = (each.registers for each in (product.a, product.b, product.d))
    added = a + b  # the first register of C
    lines: list[str] = []
    for n in range(added):
        kind = product.a.type if n < a else product.b.type
        lines += small_floats.register_widened(
            f"x.{n}", kind.name, ("%room", STEP * n), ("%work", STEP * n, STEP * (n + DISTANCE))
        )
    for n in range(d):
        lines += [
            f"  %zero.{n} = getelementptr i8, ptr %work, i64 {STEP * (added + n)}",
            f"  store {ZERO}, ptr %zero.{n}, align 64",
        ]
    lines += _call("lower", called, "%work")
    lines += [line for n in range(d) for line in _copied(f"t.{n}", ("%work", n), ("%work", DISTANCE + added + n))]
    lines += [f"  %upper.work = getelementptr i8, ptr %work, i64 {STEP * DISTANCE}", *_call("upper", called, "%upper.work")]
    lines += [line for n in range(d) for line in _sum(f"d.{n}", product.d.type, ("%upper.work", n), ("%room", added + n), n)]
    return "\n".join([
        f"define internal i32 @{name}(ptr %room) noinline #0 {{",
        "entry:",
        f"  %work = alloca [{STEP * 2 * DISTANCE} x i8], align 64",
        *lines,
        "  ret i32 1",
        "leave:",
        "  ret i32 0",
        "}",
    ])  # fmt: skip


def _call(key: str, called: str, work: str) -> list[str]:
    """Multiply, or leave where the function refuses."""
    return [
        f"  %{key}.ok = call i32 @{called}(ptr {work})",
        f"  %{key}.refused = icmp eq i32 %{key}.ok, 0",
        f"  br i1 %{key}.refused, label %leave, label %{key}.done",
        f"{key}.done:",
    ]


def _sum(key: str, type: Type, source: tuple[str, int], added: tuple[str, int], target: int) -> list[str]:
    """Add two registers by the format's own addition, whose NaN has one pattern."""
    count, name, nan = (WARP, "float", NAN_F32) if type is f32 else (2 * WARP, "half", NAN_F16)
    vector = f"<{count} x {name}>"
    lines = []
    for part, (base, number) in (("left", source), ("right", added)):
        lines += [
            f"  %{key}.{part}.at = getelementptr i8, ptr {base}, i64 {STEP * number}",
            f"  %{key}.{part} = load {vector}, ptr %{key}.{part}.at, align 64",
        ]
    return [
        *lines,
        f"  %{key}.sum = fadd {vector} %{key}.left, %{key}.right",
        f"  %{key}.nan = fcmp uno {vector} %{key}.sum, %{key}.sum",
        f"  %{key} = select <{count} x i1> %{key}.nan, {vector} splat ({name} {nan}), {vector} %{key}.sum",
        f"  %{key}.to = getelementptr i8, ptr %room, i64 {STEP * target}",
        f"  store {vector} %{key}, ptr %{key}.to, align 64",
    ]


def _copied(key: str, source: tuple[str, int], target: tuple[str, int]) -> list[str]:
    """Copy a register, given by a pointer and its number."""
    return [
        f"  %from.{key} = getelementptr i8, ptr {source[0]}, i64 {STEP * source[1]}",
        f"  %word.{key} = load {WORDS}, ptr %from.{key}, align 64",
        f"  %to.{key} = getelementptr i8, ptr {target[0]}, i64 {STEP * target[1]}",
        f"  store {WORDS} %word.{key}, ptr %to.{key}, align 64",
    ]
