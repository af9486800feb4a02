"""Rows of counters as values of compiled code: of requests whose lanes' addresses do not matter, or whose banks are known."""

from __future__ import annotations

from ptxvm.engine.jit.abi.counter_rows import LANES, REQUESTS, ROW
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.isa.special_registers import WARP
from ptxvm.profile.warp_accesses import BANKS, Ints

BYTES, BITS, COUNTS = f"<{WARP} x i8>", f"<{WARP} x i1>", f"<{ROW} x i64>"
FEW = 4  # lanes of a bank that are added up one after the other


def row(code: Code, counts: dict[int, str]) -> str:
    """A row of counters, of i64 values by their words."""
    made = "zeroinitializer"
    for word, count in counts.items():
        made = code.emit(f"insertelement {COUNTS} {made}, i64 {count}, i64 {word}")
    return made


def add_row(code: Code, pointer: str, counts: str) -> None:
    """Add a row to one in memory."""
    before = code.emit(f"load {COUNTS}, ptr {pointer}, align 8", pure=False)
    code.run(f"store {COUNTS} {code.emit(f'add {COUNTS} {before}, {counts}', pure=False)}, ptr {pointer}, align 8")


def plain_row(unit: Unit) -> str:
    """The row of a request of which only its lanes count: `f(mask)`, of which some lane is active."""

    def write(code: Code) -> str:
        lanes = code.intrinsic("i32", "llvm.ctpop.i32", ("i32", "%mask"))
        return row(code, {REQUESTS: "1", LANES: code.emit(f"zext i32 {lanes} to i64")})

    return unit.piece("ptxvm.row.plain", COUNTS, "i32 %mask", write)


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
