"""The slow path of a bounds check: out-of-line functions that search the allocations, and then call the host.

The quick check of an affine address includes inactive lanes, so each active lane is tested before the host is called.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir import preserving_calls
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.ir.lane_values import Pattern, vector_literal
from ptxvm.isa.special_registers import WARP

# The words of a question: the launch record, the site table, the warp (of scalar code the thread), `ctaid.x`, the site, the
# answer, the masks of up to 8 warps; then the address: a base and the scalars of its terms, or all lanes.
CTX, SITES, WARP_NUMBER, CTA, SITE, ANSWER, MASKS = range(7)
ADDRESS = 16
WORDS = ADDRESS + 256
ROOM = "%question"
# Stored on the slow path only: stores on the quick path would delay a kernel that waits for memory.
CALLER = [(CTX, "ptr", "%ctx"), (SITES, "ptr", "%sites"), (WARP_NUMBER, "i32", "%warp"), (CTA, "i32", "%ctaid.x")]
THREAD = [*CALLER[:2], (WARP_NUMBER, "i32", "%thread"), CALLER[3]]  # of scalar code

Word = tuple[int, str, str]  # the index of a word, its LLVM type and its operand


@dataclass(frozen=True)
class CheckKind:
    """The shape of a question, for which a function is specialised.

    `terms` are those of an affine address, None if the lanes are given.  `window` is the number of elements in a window,
    whose addresses are offsets of 32 bits.  With `asks_host` the host is called at once, else after a search of the known
    allocations.
    """

    width: int
    terms: tuple[tuple[Pattern, int | None], ...] | None
    window: int | None
    asks_host: bool
    tests_lanes: bool  # each active lane, before it asks
    full: bool  # all lanes are active
    size: int
    span: int
    need: int


def begin() -> str:
    """The line that allocates the words in a function."""
    return f"  {ROOM} = alloca [{WORDS} x i64], align 64"


def ask(code: Code, shape: CheckKind, search: str, words: Sequence[Word]) -> str:
    """Ask whether an access is allowed; `words` are its site, the masks unless all lanes are active, and the address."""
    caller = THREAD if shape.width == 1 else CALLER
    refused = preserving_calls.ask(code, _function(code.unit, shape, search), ROOM, [*caller, *words])
    return code.emit(f"icmp eq i64 {refused}, 0", pure=False)


def kind(shape: CheckKind) -> str:
    """A digest of a shape, for the names of functions."""
    return Digest().add(repr(shape)).text[:16]


def _function(unit: Unit, shape: CheckKind, search: str) -> str:
    """Define the function for a shape; returns its name."""
    name = f"ptxvm.slow_path.{kind(shape)}"
    if name not in unit.helpers:
        unit.helper(name, f"define internal i64 @{name}(ptr %q) cold #2 {{\n{_body(unit, shape, search)}\n}}")
    return name


def _body(unit: Unit, shape: CheckKind, search: str) -> str:
    code, width = Code(unit), shape.width
    lanes = f"<{width} x i64>"
    addresses = _addresses(code, shape)
    if width == 1:  # the same in all lanes; one of them is asked about
        lanes, addresses = f"<{WARP} x i64>", code.splat("i64", code.emit(f"extractelement <1 x i64> {addresses}, i64 0"), WARP)
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
        answers = code.emit(f"or i32 {answers}, {_asked(code, shape, search, n)}")
    code.run(f"store i64 {code.emit(f'zext i32 {answers} to i64')}, ptr {_place(code, ANSWER)}, align 8")
    code.jump(end)
    code.block(end)
    code.run(f"ret i64 {_word(code, ANSWER)}")
    return "\n".join(code.lines)


def _place(code: Code, word: int) -> str:
    return code.emit(f"getelementptr i64, ptr %q, i64 {word}")


def _word(code: Code, word: int, llvm: str = "i64") -> str:
    return code.emit(f"load {llvm}, ptr {_place(code, word)}, align 8", pure=False)


def _addresses(code: Code, shape: CheckKind) -> str:
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


def _inside(code: Code, shape: CheckKind, addresses: str) -> str:
    """Is each active lane aligned and in bounds?"""
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


def _mask(code: Code, shape: CheckKind, n: int) -> str:
    if shape.width == 1:
        thread = _word(code, WARP_NUMBER, "i32")
        return code.emit(f"shl i32 1, {code.emit(f'and i32 {thread}, {WARP - 1}')}")
    return "-1" if shape.full else _word(code, MASKS + n, "i32")


def _asked(code: Code, shape: CheckKind, search: str, n: int) -> str:
    ctx = _word(code, CTX, "ptr")
    own = code.emit(f"getelementptr i64, ptr %room, i64 {n * WARP}")
    site, mask = code.emit(f"trunc i64 {_word(code, SITE)} to i32"), _mask(code, shape, n)
    warp = code.emit(f"add i32 {_word(code, WARP_NUMBER, 'i32')}, {n}")
    if shape.width == 1:
        warp = code.emit(f"lshr i32 {_word(code, WARP_NUMBER, 'i32')}, {WARP.bit_length() - 1}")
    if shape.asks_host:
        check = code.emit(f"getelementptr i8, ptr {ctx}, i64 {offset('check')}")
        function = code.emit(f"load ptr, ptr {check}, align 8", pure=False)
        return code.emit(f"call i32 {function}(i32 {site}, ptr {own}, i32 {mask}, i32 {warp})", pure=False)
    arguments = f"ptr {ctx}, ptr {_word(code, SITES, 'ptr')}, i32 {site}, ptr {own}, i32 {mask}, i32 {warp}"
    facts = f"i64 {shape.size}, i64 {shape.span}, i64 {shape.need}"
    return code.emit(f"call i32 @{search}({arguments}, {facts})", pure=False)
