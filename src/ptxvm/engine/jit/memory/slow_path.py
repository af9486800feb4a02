"""An access whose quick check failed: the question is asked out of line, with the address in as few words as it has.

The bounds of an affine address count lanes that are not active too, so each active lane is tested before the host is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir import preserving_calls
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.ir.lane_values import Pattern, vector_literal
from ptxvm.isa.special_registers import WARP

# The words of a question: the launch's record, the records of places, the warp, where its CTA is in its row, the place,
# the answer, the masks of up to 8 warps; then the address: a base and the scalars that are not constant, or the lanes.
CTX, SITES, WARP_NUMBER, CTA, SITE, ANSWER, MASKS = range(7)
ADDRESS = 16
WORDS = ADDRESS + 256
ROOM = "%question"
# Written only when the host is asked: stores before that would delay a kernel that waits for memory.
CALLER = [(CTX, "ptr", "%ctx"), (SITES, "ptr", "%sites"), (WARP_NUMBER, "i32", "%warp"), (CTA, "i32", "%ctaid.x")]

Word = tuple[int, str, str]  # where it is, its LLVM type, and what it is


@dataclass(frozen=True)
class Shape:
    """How a question's address and its lanes are to be understood.

    `terms` are those of an affine address, None where the lanes are given.  A `window` has so many elements, and addresses
    in it are offsets of 32 bits.  `asks` Python at once; otherwise what searches the memory of the launch comes first.
    """

    width: int
    terms: tuple[tuple[Pattern, int | None], ...] | None
    window: int | None
    asks_host: bool
    tests_lanes: bool  # each active lane, before it asks
    full: bool  # all lanes count
    size: int
    span: int
    need: int


def begin() -> str:
    """What a function that may ask begins with."""
    return f"  {ROOM} = alloca [{WORDS} x i64], align 64"


def ask(code: Code, shape: Shape, look: str, words: Sequence[Word]) -> str:
    """Ask about a place, by its number, the lanes where not all count, and the address: is the access allowed?"""
    refused = preserving_calls.ask(code, _function(code.unit, shape, look), ROOM, [*CALLER, *words])
    return code.emit(f"icmp eq i64 {refused}, 0", pure=False)


def kind(shape: Shape) -> str:
    """What tells the names of functions for different shapes apart."""
    return Digest().add(repr(shape)).text[:16]


def _function(unit: Unit, shape: Shape, look: str) -> str:
    """The function that answers questions of a shape; its name."""
    name = f"ptxvm.slow_path.{kind(shape)}"
    if name not in unit.helpers:
        unit.helper(name, f"define internal i64 @{name}(ptr %q) noinline cold #0 {{\n{_body(unit, shape, look)}\n}}")
    return name


def _body(unit: Unit, shape: Shape, look: str) -> str:
    code, width = Code(unit), shape.width
    lanes = f"<{width} x i64>"
    addresses = _addresses(code, shape)
    code.run(f"%room = alloca {lanes}, align 64")
    code.run(f"store {lanes} {addresses}, ptr %room, align 64")
    ask, end = code.label(), code.label()
    here = code.emit(f"getelementptr i8, ptr {_word(code, CTX, 'ptr')}, i64 {offset('ctaid.x')}")
    code.run(f"store i32 {_word(code, CTA, 'i32')}, ptr {here}, align 8")
    code.run(f"store i64 0, ptr {_place(code, ANSWER)}, align 8")
    if shape.tests_lanes:
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
    code.run(f"ret i64 {_word(code, ANSWER)}")
    return "\n".join(code.lines)


def _place(code: Code, word: int) -> str:
    return code.emit(f"getelementptr i64, ptr %q, i64 {word}")


def _word(code: Code, word: int, llvm: str = "i64") -> str:
    return code.emit(f"load {llvm}, ptr {_place(code, word)}, align 8", pure=False)


def _addresses(code: Code, shape: Shape) -> str:
    width = shape.width
    if shape.terms is None:
        return code.emit(f"load <{width} x i64>, ptr {_place(code, ADDRESS)}, align 64", pure=False)
    total = code.splat("i64", _word(code, ADDRESS))
    word = ADDRESS
    for pattern, factor in shape.terms:
        scaled = vector_literal("i64", tuple(n * (1 if factor is None else factor) for n in pattern))
        if factor is None:
            word += 1
            scaled = code.emit(f"mul <{width} x i64> {code.splat('i64', _word(code, word))}, {scaled}")
        total = code.emit(f"add <{width} x i64> {total}, {scaled}")
    return total


def _inside(code: Code, shape: Shape, addresses: str) -> str:
    """Is every active lane aligned, and where it may be?"""
    width = shape.width
    lanes = f"<{width} x i64>"
    if shape.window is not None:
        offsets, bound = code.emit(f"and {lanes} {addresses}, splat (i64 {0xFFFF_FFFF})"), f"splat (i64 {shape.window})"
    else:
        record = code.emit(f"getelementptr [4 x i64], ptr {_word(code, SITES, 'ptr')}, i64 {_word(code, SITE)}")
        low = code.emit(f"load i64, ptr {record}, align 8")
        offsets = code.emit(f"sub {lanes} {addresses}, {code.splat('i64', low)}")
        last = code.emit(f"getelementptr i64, ptr {record}, i64 2")
        bound = code.splat("i64", code.emit(f"load i64, ptr {last}, align 8"))
    low_bits = code.emit(f"and {lanes} {offsets}, splat (i64 {shape.size - 1})")
    crooked = code.emit(f"icmp ne {lanes} {low_bits}, zeroinitializer")
    elements = code.emit(f"lshr {lanes} {offsets}, splat (i64 {shape.size.bit_length() - 1})")
    outside = code.emit(f"icmp uge {lanes} {elements}, {bound}")
    wrong = code.emit(f"or <{width} x i1> {crooked}, {outside}")
    total = "0"
    for n in code.warps():
        total = code.emit(f"or i32 {total}, {code.emit(f'and i32 {code.warp_bits(wrong, n)}, {_mask(code, shape, n)}')}")
    return code.emit(f"icmp eq i32 {total}, 0")


def _mask(code: Code, shape: Shape, n: int) -> str:
    return "-1" if shape.full else _word(code, MASKS + n, "i32")


def _asked(code: Code, shape: Shape, look: str, n: int) -> str:
    ctx = _word(code, CTX, "ptr")
    own = code.emit(f"getelementptr i64, ptr %room, i64 {n * WARP}")
    site, mask = code.emit(f"trunc i64 {_word(code, SITE)} to i32"), _mask(code, shape, n)
    warp = code.emit(f"add i32 {_word(code, WARP_NUMBER, 'i32')}, {n}")
    if shape.asks_host:
        check = code.emit(f"getelementptr i8, ptr {ctx}, i64 {offset('check')}")
        function = code.emit(f"load ptr, ptr {check}, align 8", pure=False)
        return code.emit(f"call i32 {function}(i32 {site}, ptr {own}, i32 {mask}, i32 {warp})", pure=False)
    given = f"ptr {ctx}, ptr {_word(code, SITES, 'ptr')}, i32 {site}, ptr {own}, i32 {mask}, i32 {warp}"
    facts = f"i64 {shape.size}, i64 {shape.span}, i64 {shape.need}"
    return code.emit(f"call i32 @{look}({given}, {facts})", pure=False)
