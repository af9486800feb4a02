"""What the active lanes of a warp ask of memory, as functions of compiled code: the counterpart of `profile.warp_accesses`.

Lanes that are not active take the address of one that is, so that they add nothing.  Different elements, sectors and lines of
ordered addresses are counted where neighbours differ; other addresses are sorted first, by a network.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.engine.jit.abi.counter_rows import ADDRESSES, IDEAL, LANES, LINES, REQUESTS, ROW, STEPS, UNITS
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.isa.special_registers import WARP
from ptxvm.profile.warp_accesses import BANKS, LINE, SECTOR, WORD, Ints

WORDS, BYTES, BITS, COUNTS = f"<{WARP} x i32>", f"<{WARP} x i8>", f"<{WARP} x i1>", f"<{ROW} x i64>"
FEW = 4  # lanes of a bank that are added up one after the other
COUNT = 16  # bits of a count beside others
BANK_AT = 26  # the bit from which on a number of 31 bits has its bank
ARGUMENTS = ((WORDS, "%places"), ("i32", "%mask"))
BEFORE = (0, *range(WARP - 1))  # each lane's neighbour below


def row(code: Code, counts: dict[int, str]) -> str:
    """A row of counters, of i64 values by their words."""
    made = "zeroinitializer"
    for word, count in counts.items():
        made = code.emit(f"insertelement {COUNTS} {made}, i64 {count}, i64 {word}")
    return made


def global_row(unit: Unit, log: int, *, atomic: bool) -> str:
    """The row of an access of `1 << log` bytes to global memory: `f(places, mask)`, of which some lane is active."""
    return _row(unit, f"global.{log}", lambda code: _global_units(code, log), log, atomic=atomic)


def shared_row(unit: Unit, log: int, *, atomic: bool) -> str:
    """The same for shared memory, of offsets from bank 0."""
    if atomic and 1 << log == WORD:  # banks and rivals in one
        return _row(unit, f"shared.{log}", lambda _: {IDEAL: "1"}, log, atomic=True)
    return _row(unit, f"shared.{log}", lambda code: _shared_units(code, log), log, atomic=atomic)


def plain_row(unit: Unit) -> str:
    """The same where only requests and bytes count."""
    return _row(unit, "plain", lambda _: {}, 0, atomic=False)


def _row(unit: Unit, name: str, units: Callable[[Code], dict[int, str]], log: int, *, atomic: bool) -> str:
    def write(code: Code) -> str:
        found = {REQUESTS: "1", LANES: _wide(code, _count(code, "%mask"))}
        found |= units(code)
        if atomic:
            rivals = code.call("i64", _contention(unit, log, banks=not found.get(UNITS)), *ARGUMENTS, pure=False)
            parts = (code.emit(f"lshr i64 {rivals}, {n * COUNT}") for n in range(3))
            found |= {
                word: code.emit(f"and i64 {part}, {(1 << COUNT) - 1}")
                for word, part in zip((ADDRESSES, STEPS, UNITS), parts, strict=True) if word not in found
            }  # fmt: skip
        return row(code, found)

    return unit.piece(f"ptxvm.row.{name}{'.atomic' if atomic else ''}", COUNTS, f"{WORDS} %places, i32 %mask", write)


# ── sectors and lines ───────────────────────────────────────────────────────────────────


def _global_units(code: Code, log: int) -> dict[int, str]:
    """An aligned access of up to 32 bytes is in one sector."""
    elements = _ordered(code, _filled(code, code.emit(f"lshr {WORDS} %places, splat (i32 {log})"), "%mask"))
    differ = code.emit(f"xor {WORDS} {elements}, {code.shuffle('i32', WARP, elements, 'poison', BEFORE)}")

    def changes(size: int) -> str:
        """Of how many pieces of a size, in bytes, are the elements?"""
        apart = code.emit(f"icmp uge {WORDS} {differ}, splat (i32 {size >> log})")
        bits = code.emit(f"bitcast {BITS} {apart} to i32")
        return code.emit(f"add i32 {_count(code, bits)}, 1")

    held = code.emit(f"shl i32 {changes(1 << log)}, {log}")
    ideal = code.emit(f"udiv i32 {code.emit(f'add i32 {held}, {SECTOR - 1}')}, {SECTOR}")
    counts = {UNITS: changes(SECTOR), IDEAL: ideal, LINES: changes(LINE)}
    return {word: _wide(code, count) for word, count in counts.items()}


def _ordered(code: Code, elements: str) -> str:
    """The same numbers in order; most are already."""
    before = code.shuffle("i32", WARP, elements, "poison", BEFORE)
    falls = code.emit(f"bitcast {BITS} {code.emit(f'icmp ult {WORDS} {elements}, {before}')} to i32")
    rises = code.emit(f"icmp eq i32 {falls}, 0")
    return _unless(code, rises, WORDS, elements, lambda: code.call(WORDS, _sort(code.unit), (WORDS, elements), pure=False))


def _sort(unit: Unit) -> str:
    """Sort the numbers of 32 lanes, by Batcher's bitonic network."""
    code = Code(unit, whole=True)
    name, value = "ptxvm.sort_lanes", "%a"
    size = 2
    while size <= WARP:
        step = size // 2
        while step:
            other = code.shuffle("i32", WARP, value, "poison", [n ^ step for n in range(WARP)])
            pair = (WORDS, value), (WORDS, other)
            least, most = (code.intrinsic(WORDS, f"llvm.{end}.v{WARP}i32", *pair) for end in ("umin", "umax"))
            takes_least = [(not n & size) == (not n & step) for n in range(WARP)]
            value = code.shuffle("i32", WARP, least, most, [n if low else n + WARP for n, low in enumerate(takes_least)])
            step //= 2
        size *= 2
    return _outside(unit, name, WORDS, f"{WORDS} %a", code, value)


# ── banks ───────────────────────────────────────────────────────────────────────────────


def _shared_units(code: Code, log: int) -> dict[int, str]:
    """A pass serves as many lanes as there are groups of banks for elements of the size."""
    size = max(1 << log, WORD)
    lanes = BANKS * WORD // size
    elements = code.emit(f"lshr {WORDS} %places, splat (i32 {size.bit_length() - 1})")
    total, passes = "0", "0"
    for first in range(0, WARP, lanes):
        mask = code.emit(f"and i32 %mask, {((1 << lanes) - 1) << first}") if lanes < WARP else "%mask"
        taken = code.call("i32", _pass(code.unit, lanes), (WORDS, elements), ("i32", mask), pure=False)
        some = code.emit(f"icmp ne i32 {mask}, 0")
        total = code.emit(f"add i32 {total}, {code.emit(f'select i1 {some}, i32 {taken}, i32 0')}")
        passes = code.emit(f"add i32 {passes}, {code.emit(f'zext i1 {some} to i32')}")
    return {UNITS: _wide(code, total), IDEAL: _wide(code, passes)}


def _pass(unit: Unit, groups: int) -> str:
    """The wavefronts of one pass over so many groups of banks: one where the active lanes ask different groups."""

    def write(code: Code) -> str:
        group = code.emit(f"and {WORDS} %elements, splat (i32 {groups - 1})")
        own = code.emit(f"shl {WORDS} splat (i32 1), {group}")
        asked = code.emit(f"select {BITS} {code.lanes('%mask')}, {WORDS} {own}, {WORDS} zeroinitializer")
        all_asked = code.intrinsic("i32", f"llvm.vector.reduce.or.v{WARP}i32", (WORDS, asked))
        apart = code.emit(f"icmp eq i32 {_count(code, all_asked)}, {_count(code, '%mask')}")
        arguments = (WORDS, "%elements"), ("i32", "%mask")
        return _unless(code, apart, "i32", "1", lambda: code.call("i32", _conflicts(unit, groups), *arguments, pure=False))

    return unit.piece(f"ptxvm.pass.{groups}", "i32", f"{WORDS} %elements, i32 %mask", write)


def _conflicts(unit: Unit, groups: int) -> str:
    """The most different elements that one of so many groups of banks is asked for."""
    code, log = Code(unit, whole=True), groups.bit_length() - 1
    filled = _filled(code, "%elements", "%mask")
    least, most = (code.intrinsic("i32", f"llvm.vector.reduce.{end}.v{WARP}i32", (WORDS, filled)) for end in ("umin", "umax"))
    near = code.emit(f"icmp ult i32 {code.emit(f'sub i32 {most}, {least}')}, {groups}")
    answer = _unless(code, near, "i32", "1", lambda: _most_of_a_bank(code, filled, log))
    return _outside(unit, f"ptxvm.conflicts.{groups}", "i32", f"{WORDS} %elements, i32 %mask", code, answer)


def _most_of_a_bank(code: Code, elements: str, log: int) -> str:
    """Sort the elements by bank, and add up the different ones of each."""
    turned = code.intrinsic(WORDS, f"llvm.fshr.v{WARP}i32", (WORDS, elements), (WORDS, elements), (WORDS, f"splat (i32 {log})"))
    keys = code.call(WORDS, _sort(code.unit), (WORDS, turned), pure=False)
    differ = code.emit(f"xor {WORDS} {keys}, {code.shuffle('i32', WARP, keys, 'poison', BEFORE)}")
    other = code.emit(f"icmp ne {WORDS} {differ}, zeroinitializer")
    new = code.emit(f"or {BITS} {other}, <{', '.join(f'i1 {str(not n).lower()}' for n in range(WARP))}>")
    bank = code.emit(f"bitcast {BITS} {code.emit(f'icmp ult {WORDS} {differ}, splat (i32 {1 << WARP - log})')} to i32")
    return _largest_sum(code, new, code.emit(f"and i32 {bank}, -2"))


def _largest_sum(code: Code, new: str, same: str) -> str:
    """The most lanes of a bank that ask for what no lane below asks for; `same` are those with the bank of their neighbour."""
    counts, step = code.emit(f"zext {BITS} {new} to {BYTES}"), 1
    while step < WARP:  # of lanes `step` apart: do all from one to the other ask for one bank?
        below = code.shuffle("i8", WARP, counts, "zeroinitializer", [n - step if n >= step else WARP for n in range(WARP)])
        added = code.emit(f"select {BITS} {code.lanes(same)}, {BYTES} {below}, {BYTES} zeroinitializer")
        counts = code.emit(f"add {BYTES} {counts}, {added}")
        same = code.emit(f"and i32 {same}, {code.emit(f'shl i32 {same}, {step}')}")
        step *= 2
    return code.emit(f"zext i8 {code.intrinsic('i8', f'llvm.vector.reduce.umax.v{WARP}i8', (BYTES, counts))} to i32")


def _unless(code: Code, known: str, llvm: str, value: str, write: Callable[[], str]) -> str:
    """A value where it is known, else another."""
    here, other, done, onward = (code.label() for _ in range(4))
    code.jump(here)
    code.block(here)
    code.branch(known, onward, other)
    code.block(other)
    found = write()
    code.jump(done)
    code.block(done)
    code.jump(onward)
    code.block(onward)
    return code.emit(f"phi {llvm} [ {value}, %{here} ], [ {found}, %{done} ]", pure=False)


LanesOfBanks = tuple[tuple[int | None, ...], ...]
"""The lanes that ask for each bank: for the first of each, the second of each and so on, by bank; None for none."""


def lanes_of_banks(words: Ints) -> LanesOfBanks | None:
    """The lanes of each bank, of a warp's words; None where lanes share a word, or more than a few a bank."""
    by_bank: list[list[int]] = [[] for _ in range(BANKS)]
    for lane, word in enumerate(words.tolist()):
        by_bank[word % BANKS].append(lane)
    most = max(map(len, by_bank))
    if len({*words.tolist()}) < WARP or most > FEW:
        return None
    return tuple(tuple(lanes[n] if n < len(lanes) else None for lanes in by_bank) for n in range(most))


def most_of_banks(code: Code, mask: str, banks: LanesOfBanks) -> str:
    """The most active lanes that one bank has, as i64."""
    if len(banks) == 1:
        return code.emit(f"zext i1 {code.emit(f'icmp ne i32 {mask}, 0')} to i64")
    active = code.emit(f"zext {BITS} {code.lanes(mask)} to {BYTES}")
    total = "zeroinitializer"
    for lanes in banks:
        here = code.shuffle("i8", WARP, active, "zeroinitializer", [WARP if lane is None else lane for lane in lanes])
        total = code.emit(f"add {BYTES} {total}, {here}")
    return code.emit(f"zext i8 {code.intrinsic('i8', f'llvm.vector.reduce.umax.v{WARP}i8', (BYTES, total))} to i64")


# ── contention ──────────────────────────────────────────────────────────────────────────


def _contention(unit: Unit, log: int, *, banks: bool) -> str:
    """The addresses of the active lanes, how many of them want the most wanted one, and with `banks` the wavefronts.

    These are 16 bits each, from bit 0 on.  An address is a multiple of 2 bytes at least, and one of shared memory has fewer
    than 32 bits, so numbers with the highest bit are free for lanes that are not active.
    """
    code = Code(unit, whole=True)
    elements = code.emit(f"lshr {WORDS} %places, splat (i32 {log})")
    if banks:  # to sort them by bank
        top = code.emit(f"shl {WORDS} {code.emit(f'and {WORDS} {elements}, splat (i32 {BANKS - 1})')}, splat (i32 {BANK_AT})")
        elements = code.emit(f"or {WORDS} {code.emit(f'lshr {WORDS} {elements}, splat (i32 {BANKS.bit_length() - 1})')}, {top}")
    apart = "<" + ", ".join(f"i32 {1 << WARP - 1 | n}" for n in range(WARP)) + ">"
    told = code.emit(f"select {BITS} {code.lanes('%mask')}, {WORDS} {elements}, {WORDS} {apart}")
    ordered = code.call(WORDS, _sort(unit), (WORDS, told), pure=False)
    differ = code.emit(f"xor {WORDS} {ordered}, {code.shuffle('i32', WARP, ordered, 'poison', BEFORE)}")
    again = code.emit(f"bitcast {BITS} {code.emit(f'icmp eq {WORDS} {differ}, zeroinitializer')} to i32")
    repeated = code.emit(f"and i32 {again}, -2")
    count = code.emit(f"sub i32 {_count(code, '%mask')}, {_count(code, repeated)}")
    run = _longest_run(code, repeated)
    passes = _passes_of_banks(code, differ, repeated) if banks else "0"
    high = code.emit(f"shl i64 {_wide(code, passes)}, {2 * COUNT}")
    both = code.emit(f"or i64 {code.emit(f'shl i64 {_wide(code, run)}, {COUNT}')}, {_wide(code, count)}")
    name = f"ptxvm.contention.{log}{'.banks' if banks else ''}"
    return _outside(unit, name, "i64", f"{WORDS} %places, i32 %mask", code, code.emit(f"or i64 {both}, {high}"))


def _passes_of_banks(code: Code, differ: str, repeated: str) -> str:
    """The wavefronts of active lanes in the order of their banks, which come before the lanes that are not active."""
    idle = code.emit(f"sub i32 {WARP}, {_count(code, '%mask')}")
    active = code.emit(f"lshr i32 -1, {idle}")
    first = code.emit(f"and i32 {code.emit(f'xor i32 {repeated}, -1')}, {active}")
    bank = code.emit(f"bitcast {BITS} {code.emit(f'icmp ult {WORDS} {differ}, splat (i32 {1 << BANK_AT})')} to i32")
    same = code.emit(f"and i32 {code.emit(f'and i32 {bank}, -2')}, {active}")
    return _largest_sum(code, code.lanes(first), same)


def _longest_run(code: Code, repeated: str) -> str:
    """One more than the longest run of bits."""
    head, longer, end = code.label(), code.label(), code.label()
    left, run, rest, more = (code.name() for _ in range(4))
    begin = code.label()
    code.jump(begin)
    code.block(begin)
    code.jump(head)
    code.block(head)
    for name, first, onward in ((left, repeated, rest), (run, "1", more)):
        code.run(f"{name} = phi i32 [ {first}, %{begin} ], [ {onward}, %{longer} ]")
    code.branch(code.emit(f"icmp eq i32 {left}, 0"), end, longer)
    code.block(longer)  # runs of equal neighbours become one shorter
    code.run(f"{rest} = and i32 {left}, {code.emit(f'shl i32 {left}, 1')}")
    code.run(f"{more} = add i32 {run}, 1")
    code.jump(head)
    code.block(end)
    return run


# ── lanes ───────────────────────────────────────────────────────────────────────────────


def _filled(code: Code, values: str, mask: str) -> str:
    """Values of which those of inactive lanes are that of an active one."""
    return code.emit(
        f"select {BITS} {code.lanes(mask)}, {WORDS} {values}, {WORDS} {code.splat('i32', _first(code, values, mask), WARP)}"
    )


def _first(code: Code, values: str, mask: str) -> str:
    """The value of the first lane of a mask."""
    lane = code.intrinsic("i32", "llvm.cttz.i32", ("i32", mask), ("i1", "false"))
    return code.emit(f"extractelement {WORDS} {values}, i32 {code.emit(f'and i32 {lane}, {WARP - 1}')}")


def _count(code: Code, mask: str) -> str:
    return code.intrinsic("i32", "llvm.ctpop.i32", ("i32", mask))


def _wide(code: Code, count: str) -> str:
    return code.emit(f"zext i32 {count} to i64")


def _outside(unit: Unit, name: str, result: str, parameters: str, code: Code, answer: str) -> str:
    """Define a function that is not written in the place of its calls."""
    if name not in unit.helpers:
        lines = "\n".join([*code.lines, f"  ret {result} {answer}"])
        unit.helper(name, f"define internal {result} @{name}({parameters}) noinline #0 {{\nentry:\n{lines}\n}}")
    return name
