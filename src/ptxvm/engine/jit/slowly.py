"""An access whose quick check failed: the question is asked out of line, with the address in as few words as it has.

The bounds of a linear address count lanes that are not active too, so each lane is looked at before anybody is asked.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ptxvm.engine.jit.code import Code, Unit
from ptxvm.engine.jit.raw import WARP, Pattern, vector_literal
from ptxvm.engine.jit.record import offset

# The words of a question: the launch's record, the records of places, what the functions take that answer, what the lanes
# are compared with, the answer, the masks of up to 8 warps; then the address: a base and scalars, or the lanes.
CTX, SITES, SITE, WARP_NUMBER, SIZE, SPAN, NEED, LOW, BOUND, ANSWER, MASKS = range(11)
ADDRESS = 24
WORDS = ADDRESS + 256


@dataclass(frozen=True)
class Shape:
    """How a question's address and its lanes are to be understood.

    `patterns` are those of a linear address, None where the lanes are given.  `window`: addresses are offsets of 32 bits.
    `asks` Python at once; otherwise what searches the memory of the launch comes first.
    """

    width: int
    patterns: tuple[Pattern, ...] | None
    window: bool
    asks: bool
    looks: bool  # at each lane first


def function(unit: Unit, shape: Shape, look: str) -> str:
    """The function that answers questions of a shape; its name."""
    name = f"ptxvm.slowly.{hashlib.sha256(repr(shape).encode()).hexdigest()[:16]}"
    if name not in unit.helpers:
        unit.helper(name, f"define internal void @{name}(ptr %q) noinline cold #0 {{\n{_body(unit, shape, look)}\n}}")
    return name


def _body(unit: Unit, shape: Shape, look: str) -> str:
    code, width = Code(unit), shape.width
    lanes = f"<{width} x i64>"
    addresses = _addresses(code, shape)
    code.run(f"%room = alloca {lanes}, align 64")
    code.run(f"store {lanes} {addresses}, ptr %room, align 64")
    ask, end = code.label(), code.label()
    code.run(f"store i64 0, ptr {_place(code, ANSWER)}, align 8")
    if shape.looks:
        code.branch(_inside(code, shape, addresses), end, ask)
    else:
        code.jump(ask)
    code.block(ask)
    answers = "0"
    for n in code.warps():
        answers = code.emit(f"or i32 {answers}, {_asked(code, shape, look, n)}")
    code.run(f"store i64 {code.emit(f'zext i32 {answers} to i64')}, ptr {_place(code, ANSWER)}, align 8")
    code.jump(end)
    code.block(end)
    code.run("ret void")
    return "\n".join(code.lines)


def _place(code: Code, word: int) -> str:
    return code.emit(f"getelementptr i64, ptr %q, i64 {word}")


def _word(code: Code, word: int, llvm: str = "i64") -> str:
    return code.emit(f"load {llvm}, ptr {_place(code, word)}, align 8", pure=False)


def _addresses(code: Code, shape: Shape) -> str:
    width = shape.width
    if shape.patterns is None:
        return code.emit(f"load <{width} x i64>, ptr {_place(code, ADDRESS)}, align 64", pure=False)
    total = code.splat("i64", _word(code, ADDRESS))
    for n, pattern in enumerate(shape.patterns):
        u = code.splat("i64", _word(code, ADDRESS + 1 + n))
        scaled = code.emit(f"mul <{width} x i64> {u}, {vector_literal('i64', pattern)}")
        total = code.emit(f"add <{width} x i64> {total}, {scaled}")
    return total


def _inside(code: Code, shape: Shape, addresses: str) -> str:
    """Is every active lane aligned, and where it may be?"""
    width = shape.width
    lanes = f"<{width} x i64>"
    if shape.window:
        addresses = code.emit(f"and {lanes} {addresses}, splat (i64 {0xFFFF_FFFF})")
    offsets = code.emit(f"sub {lanes} {addresses}, {code.splat('i64', _word(code, LOW))}")
    size = _word(code, SIZE)
    low = code.emit(f"and {lanes} {offsets}, {code.splat('i64', code.emit(f'sub i64 {size}, 1'))}")
    crooked = code.emit(f"icmp ne {lanes} {low}, zeroinitializer")
    log = code.intrinsic("i64", "llvm.cttz.i64", ("i64", size), ("i1", "true"))
    elements = code.emit(f"lshr {lanes} {offsets}, {code.splat('i64', log)}")
    outside = code.emit(f"icmp uge {lanes} {elements}, {code.splat('i64', _word(code, BOUND))}")
    wrong = code.emit(f"or <{width} x i1> {crooked}, {outside}")
    total = "0"
    for n in code.warps():
        mask = code.emit(f"trunc i64 {_word(code, MASKS + n)} to i32")
        total = code.emit(f"or i32 {total}, {code.emit(f'and i32 {code.warp_bits(wrong, n)}, {mask}')}")
    return code.emit(f"icmp eq i32 {total}, 0")


def _asked(code: Code, shape: Shape, look: str, n: int) -> str:
    ctx = _word(code, CTX, "ptr")
    own = code.emit(f"getelementptr i64, ptr %room, i64 {n * WARP}")
    site, warp, mask = (code.emit(f"trunc i64 {_word(code, w)} to i32") for w in (SITE, WARP_NUMBER, MASKS + n))
    warp = code.emit(f"add i32 {warp}, {n}")
    if shape.asks:
        check = code.emit(f"getelementptr i8, ptr {ctx}, i64 {offset('check')}")
        function = code.emit(f"load ptr, ptr {check}, align 8", pure=False)
        return code.emit(f"call i32 {function}(i32 {site}, ptr {own}, i32 {mask}, i32 {warp})", pure=False)
    size, span, need = (_word(code, w) for w in (SIZE, SPAN, NEED))
    sites = _word(code, SITES, "ptr")
    given = f"ptr {ctx}, ptr {sites}, i32 {site}, ptr {own}, i32 {mask}, i32 {warp}, i64 {size}, i64 {span}, i64 {need}"
    return code.emit(f"call i32 @{look}({given})", pure=False)
