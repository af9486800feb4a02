"""The slow path of a bounds check: out-of-line functions that search the allocations, and then call the host.

The quick check of an affine address includes inactive lanes, so each active lane is tested before the host is called.
What tells the accesses of a kernel apart is in a table of facts, so that few functions serve all kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir import preserving_calls
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.ir.lane_values import Pattern
from ptxvm.isa.special_registers import WARP

# The words of a question: the launch record, the site table, the warp (of scalar code the thread), `ctaid.x`, the site, the
# answer, the masks of up to 8 warps, the facts; then the address: a base and the scalars of its terms, or all lanes.
CTX, SITES, WARP_NUMBER, CTA, SITE, ANSWER, MASKS = range(7)
FACTS, ADDRESS = 15, 16
WORDS = ADDRESS + 256
ROOM = "%question"
# Stored on the slow path only: stores on the quick path would delay a kernel that waits for memory.
CALLER = [(CTX, "ptr", "%ctx"), (SITES, "ptr", "%sites"), (WARP_NUMBER, "i32", "%warp"), (CTA, "i32", "%ctaid.x")]
THREAD = [*CALLER[:2], (WARP_NUMBER, "i32", "%thread"), CALLER[3]]  # of scalar code

# The words of a table of facts: the bound of a window, the bits of an address that are zero, how many they are, then what a
# search is told; behind them a row of all lanes for the constant terms of an address, and one for each other term.
BOUND, LOW_BITS, LOG, SIZE, SPAN, NEED = range(6)
ROWS = 8

Word = tuple[int, str, str]  # the index of a word, its LLVM type and its operand


@dataclass(frozen=True)
class CheckKind:
    """The shape of a question.

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

    @property
    def form(self) -> Form:
        """Its form."""
        moving = None if self.terms is None else sum(factor is None for _, factor in self.terms)
        fixed = any(factor is not None for _, factor in self.terms or ())
        return Form(self.width, moving, fixed, self.window is not None, self.asks_host, self.tests_lanes, self.full)

    def facts(self) -> tuple[int, ...]:
        """The table of what its form does not say."""
        words = [self.window or 0, self.size - 1, self.size.bit_length() - 1, self.size, self.span, self.need]
        words += [0] * (ROWS - len(words))
        constant = [[n * factor for n in pattern] for pattern, factor in self.terms or () if factor is not None]
        if constant:
            words += [sum(lane) for lane in zip(*constant, strict=True)]
        for pattern, factor in self.terms or ():
            words += pattern if factor is None else ()
        return tuple(words)


@dataclass(frozen=True)
class Form:
    """The form of questions that one function answers.

    `moving` is the number of terms with a scalar of their own, None if the lanes are given; `fixed` says whether there is a
    constant one.
    """

    width: int
    moving: int | None
    fixed: bool
    has_window: bool
    asks_host: bool
    tests_lanes: bool
    full: bool


def begin() -> str:
    """The line that allocates the words in a function."""
    return f"  {ROOM} = alloca [{WORDS} x i64], align 64"


def ask(code: Code, shape: CheckKind, search: str, words: Sequence[Word]) -> str:
    """Ask whether an access is allowed; `words` are its site, the masks unless all lanes are active, and the address."""
    caller = THREAD if shape.width == 1 else CALLER
    facts = FACTS, "ptr", f"@{code.unit.table('i64', shape.facts())}"
    function = _function(code.unit, shape.form, search)
    refused = preserving_calls.ask(code, function, ROOM, [*caller, facts, *words])
    return code.emit(f"icmp eq i64 {refused}, 0", pure=False)


def kind(shape: CheckKind) -> str:
    """A digest of a shape, for the names of functions."""
    return Digest().add(repr(shape)).text[:16]


def _function(unit: Unit, form: Form, search: str) -> str:
    """Define the function for a form; returns its name."""
    name = f"ptxvm.slow_path.{Digest().add(repr(form)).text[:16]}"
    if name not in unit.helpers:
        unit.helper(name, f"define internal i64 @{name}(ptr %q) cold #2 {{\n{_body(unit, form, search)}\n}}")
    return name


def _body(unit: Unit, form: Form, search: str) -> str:
    code, width = Code(unit, whole=True), form.width
    lanes = f"<{width} x i64>"
    addresses = _addresses(code, form)
    if width == 1:  # the same in all lanes; one of them is asked about
        lanes, addresses = f"<{WARP} x i64>", code.splat("i64", code.emit(f"extractelement <1 x i64> {addresses}, i64 0"), WARP)
    code.run(f"%room = alloca {lanes}, align 64")
    code.run(f"store {lanes} {addresses}, ptr %room, align 64")
    ask, end = code.label(), code.label()
    here = code.emit(f"getelementptr i8, ptr {_word(code, CTX, 'ptr')}, i64 {offset('ctaid.x')}")
    code.run(f"store i32 {_word(code, CTA, 'i32')}, ptr {here}, align 8")
    code.run(f"store i64 0, ptr {_place(code, ANSWER)}, align 8")
    if form.tests_lanes:
        code.branch(_inside(code, form, addresses), end, ask)
    else:
        code.jump(ask)
    code.block(ask)
    answers = "0"
    for n in code.warps():
        answers = code.emit(f"or i32 {answers}, {_asked(code, form, search, n)}")
    code.run(f"store i64 {code.emit(f'zext i32 {answers} to i64')}, ptr {_place(code, ANSWER)}, align 8")
    code.jump(end)
    code.block(end)
    code.run(f"ret i64 {_word(code, ANSWER)}")
    return "\n".join(code.lines)


def _place(code: Code, word: int) -> str:
    return code.emit(f"getelementptr i64, ptr %q, i64 {word}")


def _word(code: Code, word: int, llvm: str = "i64") -> str:
    return code.emit(f"load {llvm}, ptr {_place(code, word)}, align 8", pure=False)


def _fact(code: Code, word: int, llvm: str = "i64") -> str:
    at = code.emit(f"getelementptr i64, ptr {_word(code, FACTS, 'ptr')}, i64 {word}")
    return code.emit(f"load {llvm}, ptr {at}, align 8", pure=False)


def _addresses(code: Code, form: Form) -> str:
    lanes = f"<{form.width} x i64>"
    if form.moving is None:
        return code.emit(f"load {lanes}, ptr {_place(code, ADDRESS)}, align 64", pure=False)
    total = code.splat("i64", _word(code, ADDRESS))
    for row in range(form.fixed + form.moving):
        term = _fact(code, ROWS + row * form.width, lanes)
        if (number := row - form.fixed) >= 0:
            term = code.emit(f"mul {lanes} {code.splat('i64', _word(code, ADDRESS + 1 + number))}, {term}")
        total = code.emit(f"add {lanes} {total}, {term}")
    return total


def _inside(code: Code, form: Form, addresses: str) -> str:
    """Is each active lane aligned and in bounds?"""
    width = form.width
    lanes = f"<{width} x i64>"
    if form.has_window:
        offsets, bound = code.emit(f"and {lanes} {addresses}, splat (i64 {0xFFFF_FFFF})"), _fact(code, BOUND)
    else:
        record = code.emit(f"getelementptr [4 x i64], ptr {_word(code, SITES, 'ptr')}, i64 {_word(code, SITE)}")
        low = code.emit(f"load i64, ptr {record}, align 8")
        offsets = code.emit(f"sub {lanes} {addresses}, {code.splat('i64', low)}")
        last = code.emit(f"getelementptr i64, ptr {record}, i64 2")
        bound = code.emit(f"load i64, ptr {last}, align 8")
    low_bits = code.emit(f"and {lanes} {offsets}, {code.splat('i64', _fact(code, LOW_BITS))}")
    crooked = code.emit(f"icmp ne {lanes} {low_bits}, zeroinitializer")
    elements = code.emit(f"lshr {lanes} {offsets}, {code.splat('i64', _fact(code, LOG))}")
    outside = code.emit(f"icmp uge {lanes} {elements}, {code.splat('i64', bound)}")
    wrong = code.emit(f"or <{width} x i1> {crooked}, {outside}")
    total = "0"
    for n in code.warps():
        total = code.emit(f"or i32 {total}, {code.emit(f'and i32 {code.warp_bits(wrong, n)}, {_mask(code, form, n)}')}")
    return code.emit(f"icmp eq i32 {total}, 0")


def _mask(code: Code, form: Form, n: int) -> str:
    if form.width == 1:
        thread = _word(code, WARP_NUMBER, "i32")
        return code.emit(f"shl i32 1, {code.emit(f'and i32 {thread}, {WARP - 1}')}")
    return "-1" if form.full else _word(code, MASKS + n, "i32")


def _asked(code: Code, form: Form, search: str, n: int) -> str:
    ctx = _word(code, CTX, "ptr")
    own = code.emit(f"getelementptr i64, ptr %room, i64 {n * WARP}")
    site, mask = code.emit(f"trunc i64 {_word(code, SITE)} to i32"), _mask(code, form, n)
    warp = code.emit(f"add i32 {_word(code, WARP_NUMBER, 'i32')}, {n}")
    if form.width == 1:
        warp = code.emit(f"lshr i32 {_word(code, WARP_NUMBER, 'i32')}, {WARP.bit_length() - 1}")
    if form.asks_host:
        check = code.emit(f"getelementptr i8, ptr {ctx}, i64 {offset('check')}")
        function = code.emit(f"load ptr, ptr {check}, align 8", pure=False)
        return code.emit(f"call i32 {function}(i32 {site}, ptr {own}, i32 {mask}, i32 {warp})", pure=False)
    arguments = f"ptr {ctx}, ptr {_word(code, SITES, 'ptr')}, i32 {site}, ptr {own}, i32 {mask}, i32 {warp}"
    facts = ", ".join(f"i64 {_fact(code, word)}" for word in (SIZE, SPAN, NEED))
    return code.emit(f"call i32 @{search}({arguments}, {facts})", pure=False)
