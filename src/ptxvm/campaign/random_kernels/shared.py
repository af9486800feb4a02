"""Cooperation in shared memory: cells of any type, histograms, tickets that atomics give out, and copies in bulk.

All have barriers before and behind them.  They use `tile`, which has 16 bytes for each thread and 16 more.
"""

from __future__ import annotations

from math import prod

from ptxvm.campaign.random_kernels import strategies as st
from ptxvm.campaign.random_kernels.memory import CELLS, INPUT, letters_of, misplaced, size_of
from ptxvm.campaign.random_kernels.parts import GUARD, REGISTERS, D, P, R, Shape, Statement
from ptxvm.named_tuple import NamedTuple

MORE = 16  # bytes of the tile behind those of the threads
CELL = 16  # bytes of a thread
WHOLE = {4: "b32 {r0};", 8: "v2.b32 {{{r0}, {r1}}};", 16: "v4.b32 {{{r0}, {r1}, {r0}, {r1}}};"}
"""What fills a cell."""
OTHERS = [
    "mov.u32 %xi@n, %thread;", "sub.u32 %xi@n, {last}, %thread;", "shr.u32 %xi@n, %thread, {few};", "mov.u32 %xi@n, 0;",
    "add.u32 %xi@n, %thread, {few};\nrem.u32 %xi@n, %xi@n, {threads};",
    "xor.b32 %xi@n, %thread, {near};\nrem.u32 %xi@n, %xi@n, {threads};", "rem.u32 %xi@n, {r}, {threads};",
    "mul.lo.u32 %xi@n, %thread, {few};\nrem.u32 %xi@n, %xi@n, {threads};", "mov.u32 %xi@n, %n0;", "mov.u32 %xi@n, %n1;",
    "mad.lo.u32 %xi@n, %n0, {few}, %n1;\nrem.u32 %xi@n, %xi@n, {threads};", "and.b32 %xi@n, %thread, {low};",
    "min.u32 %xi@n, %thread, {r};",
]  # fmt: skip
"""The thread whose cell is read."""


@st.composite
def part(draw: st.Draw, unit: int, where: str, *, store: bool, stray: bool) -> list[str]:
    """A load or a store of a part of a cell, by an address in shared memory or a generic one."""
    type = draw(st.sampled_from([each for each in CELLS if size_of(each) <= unit]))
    size, letter = size_of(type), draw(st.sampled_from(letters_of(type, store=store)))
    count = draw(st.sampled_from([n for n in (1, 1, 2, 4) if n * size <= unit and n <= REGISTERS[letter][1]]))
    at = size * count * draw(st.integers(0, unit // (size * count) - 1))
    names = [f"%{letter}{n}" for n in draw(st.samples(range(REGISTERS[letter][1]), count))]
    group = f"{{{', '.join(names)}}}" if count > 1 else names[0]
    vector = f"{f'.v{count}' * (count > 1)}.{type}"
    lines = [f"mov.b32 %t0, {where};", draw(misplaced("%t0", size * count))] if stray else []
    place, space = "%t0" if stray else where, ".shared"
    if draw(st.integers(0, 3)) == 0:
        lines.append(f"cvt.u64.u32 %t1, {place};\ncvta.shared.u64 %t1, %t1;")
        place, space = "%t1", ""
    access = f"st{space}{vector} [{place}+{at}], {group};" if store else f"ld{space}{vector} {group}, [{place}+{at}];"
    return [*lines, f"{draw(GUARD)}{access}"]


@st.composite
def cells(draw: st.Draw, shape: Shape, *, stray: bool) -> Statement:
    """Each thread fills a cell, by stores of several sizes, and reads those of others."""
    unit, threads = draw(st.sampled_from(sorted(WHOLE))), prod(shape)
    registers = draw(st.samples(range(REGISTERS["r"][1]), 2))
    fill = WHOLE[unit].format(r0=f"%r{registers[0]}", r1=f"%r{registers[1]}")
    type, _, group = fill.partition(" ")
    lines = ["bar.sync 0;\nmov.u32 %xt@n, tile;", f"mad.lo.u32 %xo@n, %thread, {unit}, %xt@n;"]
    lines.append(f"st.shared.{type} [%xo@n], {group}")
    for _ in range(draw(st.integers(0, 3))):
        lines += draw(part(unit, "%xo@n", store=True, stray=False))
    lines.append("bar.sync 0;")
    turns = draw(st.sampled_from(["", "", "3", "%few"]))
    reads = list[str]()
    for _ in range(draw(st.integers(1, 3))):
        few, near, low = (
            draw(st.integers(1, 5)),
            draw(st.sampled_from([1, 2, 3, 16, 31, 32])),
            draw(st.sampled_from([0, 1, 3, 7, 31])),
        )
        index = draw(st.sampled_from(OTHERS)).format(last=threads - 1, threads=threads, few=few, near=near, low=low, r=draw(R))
        reads += [index, f"min.u32 %xi@n, %xi@n, {threads - 1};", f"mad.lo.u32 %xp@n, %xi@n, {unit}, %xt@n;"]
        for _ in range(draw(st.integers(1, 2))):
            reads += draw(part(unit, "%xp@n", store=False, stray=stray))
    if turns:
        reads = [f"mov.u32 %xk@n, {turns};", "LOOP@n:", *reads, "sub.u32 %xk@n, %xk@n, 1;"]
        reads.append("setp.gt.s32 %za@n, %xk@n, 0;\n@%za@n bra LOOP@n;")
    return Statement("\n".join([*lines, *reads, "bar.sync 0;"]))


COMMUTE = {
    "add": "u32 u64", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64", "and": "b32 b64", "or": "b32 b64", "xor": "b32 b64",
    "inc": "u32", "dec": "u32",
}  # fmt: skip
"""Atomic operations whose order does not show, if all have one operand where they count."""


class Counting(NamedTuple):
    """An atomic operation on `bins` words of a size, its operand, and registers for a word and for an old value."""

    operation: str
    size: int
    bins: int
    value: str
    target: str
    old: str


def counting(draw: st.Draw, shape: Shape) -> Counting:
    """An operation by which all threads update words, in any order."""
    operation = draw(st.sampled_from(list(COMMUTE)))
    type = draw(st.sampled_from(COMMUTE[operation].split()))
    letter, size = ("d", 8) if type.endswith("64") else ("r", 4)
    bins = 1 << draw(st.integers(0, prod(shape).bit_length() - 1))
    value = str(draw(st.integers(0, 40))) if operation in ("inc", "dec") else draw(D if letter == "d" else R)
    target, old = draw(D if letter == "d" else R), "%yv@n" if letter == "d" else "%xv@n"
    return Counting(f"{operation}.{type}", size, bins, value, target, old)


@st.composite
def histogram(draw: st.Draw, shape: Shape) -> Statement:
    """All threads update words that the data choose, and read one each."""
    operation, size, bins, value, target, old = counting(draw, shape)
    update = draw(st.sampled_from([
        f"red.shared.{operation} [%xp@n], {value};", f"atom.shared.{operation} {old}, [%xp@n], {value};",
        f"atom.relaxed.cta.shared.{operation} {old}, [%xp@n], {value};",
    ]))  # fmt: skip
    turns = draw(st.sampled_from([1, 1, 2, 5]))
    index = draw(st.sampled_from([draw(R), draw(R), "%thread", "%n0"]))
    return Statement(
        f"""bar.sync 0;
        mov.u32 %xt@n, tile;
        mad.lo.u32 %xo@n, %thread, {size}, %xt@n;
        st.shared.b{8 * size} [%xo@n], {target};
        bar.sync 0;
        mov.u32 %xk@n, {turns};
        LOOP@n:
        mad.lo.u32 %xi@n, %xk@n, 5, {index};
        and.b32 %xi@n, %xi@n, {bins - 1};
        mad.lo.u32 %xp@n, %xi@n, {size}, %xt@n;
        {draw(GUARD)}{update}
        sub.u32 %xk@n, %xk@n, 1;
        setp.gt.s32 %za@n, %xk@n, 0;
        @%za@n bra LOOP@n;
        bar.sync 0;
        ld.shared.b{8 * size} {target}, [%xo@n];
        bar.sync 0;"""
    )


@st.composite
def tickets(draw: st.Draw, shape: Shape) -> Statement:
    """Some threads draw numbers by an atomic operation, and store to the places of these; what all have stored is combined."""
    threads, guard = prod(shape), draw(st.one_of(st.just(""), st.builds("@{} ".format, P), st.builds("@!{} ".format, P)))
    count, total = CELL * threads, CELL * threads + 4
    atomic = draw(st.sampled_from(["add.u32 %xa@n, [%xt@n+{}], 1", f"inc.u32 %xa@n, [%xt@n+{{}}], {threads}"])).format(count)
    operation, target = draw(st.sampled_from(["add.u32", "xor.b32", "max.u32", "min.s32"])), draw(R)
    return Statement(
        f"""bar.sync 0;
        mov.u32 %xt@n, tile;
        mad.lo.u32 %xo@n, %thread, 4, %xt@n;
        st.shared.u32 [%xo@n], 7;
        setp.eq.u32 %za@n, %thread, 0;
        @%za@n st.shared.v2.b32 [%xt@n+{count}], {{0, 1}};
        bar.sync 0;
        {guard}atom.shared.{atomic};
        {guard}mad.lo.u32 %xp@n, %xa@n, 4, %xt@n;
        {guard}st.shared.u32 [%xp@n], {draw(R)};
        bar.sync 0;
        ld.shared.u32 %xv@n, [%xo@n];
        red.shared.{operation} [%xt@n+{total}], %xv@n;
        bar.sync 0;
        ld.shared.u32 {target}, [%xt@n+{total}];
        bar.sync 0;"""
    )


@st.composite
def bulk_copy(draw: st.Draw, shape: Shape) -> Statement:
    """One thread copies a piece of the input to shared memory, and all wait for it at an mbarrier."""
    threads = prod(shape)
    size = 16 * draw(st.integers(1, min(threads, 16)))
    first, arrivals = 16 * draw(st.integers(0, (INPUT - size) // 16)), draw(st.sampled_from([1, threads]))
    others = "@!%za@n mbarrier.arrive.shared::cta.b64 _, [%xb@n];" if arrivals > 1 else ""
    return Statement(
        f"""bar.sync 0;
        mov.u32 %xt@n, tile;
        add.u32 %xb@n, %counts, {BARRIER};
        setp.eq.u32 %za@n, %thread, 0;
        @%za@n mbarrier.init.shared::cta.b64 [%xb@n], {arrivals};
        @%za@n fence.mbarrier_init.release.cluster;
        fence.proxy.async.shared::cta;
        bar.sync 0;
        @%za@n mbarrier.arrive.expect_tx.shared::cta.b64 _, [%xb@n], {size};
        add.s64 %ya@n, %in, {first};
        @%za@n {COPY} [%xt@n], [%ya@n], {size}, [%xb@n];
        {others}
        WAIT@n:
        mbarrier.try_wait.parity.shared::cta.b64 %zb@n, [%xb@n], 0;
        @!%zb@n bra WAIT@n;
        and.b32 %xi@n, {draw(R)}, 15;
        min.u32 %xi@n, %xi@n, {size // 4 - 1};
        mad.lo.u32 %xi@n, %xi@n, 4, %xt@n;
        ld.shared.u32 {draw(R)}, [%xi@n];
        bar.sync 0;
        @%za@n mbarrier.inval.shared::cta.b64 [%xb@n];
        bar.sync 0;"""
    )


BARRIER = 136  # where the words that all threads update have a place for one
COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"

__all__ = ["BARRIER", "CELL", "MORE", "bulk_copy", "cells", "counting", "histogram", "tickets"]
