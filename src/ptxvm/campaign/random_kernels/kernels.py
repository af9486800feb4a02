"""Random kernels as strategies of hypothesis: what fails becomes small, and is printed as PTX.

A kernel has arithmetic of every form in the catalog that is a function of registers, loads, stores and atomics of all
types through all windows, at addresses that wrap on their way, shuffles, votes and products of matrices of warps and of
parts of warps that know who they are, branches, loops that are left from within, graphs that are not reducible, switches,
calls (by name, through pointers, of themselves), barriers and locks.  What it leaves does not depend on the order in which
threads run: each writes its own memory, or updates a word by one operation whose order does not show; others' memory is
read behind a barrier.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from hypothesis import strategies as st

from ptxvm.campaign.random_kernels.control import block
from ptxvm.campaign.random_kernels.memory import OWN, size_of
from ptxvm.campaign.random_kernels.parts import ALL, REGISTERS, Block, R, Shape, Statement, filled, pure, written
from ptxvm.campaign.random_kernels.warps import ARRIVAL, BARRIERS, LOCK, NOBODY, exchange

SHAPES: list[Shape] = [
    (32,),
    (64,),
    (48,),
    (16, 4),
    (5, 3, 2),
    (128,),
    (1,),
    (8, 8),
    (32, 4),
    (64, 3),
    (33,),
    (7, 5, 3),
    (16, 8, 8),
    (1024,),
    (31, 33),
]
GRIDS: list[Shape] = [(1,), (2,), (3,), (2, 1, 2), (1, 3), (1, 2, 3)]
LARGE = 512  # threads of a CTA from which on one is enough
SHORT = 80  # lines of a body that may stand four times: to compile a thousand takes half a minute


@dataclass(repr=False)
class RandomKernel:
    """A kernel, the shape of its CTAs, and the seed of what it reads; `locks` where lanes spin."""

    body: Block
    functions: list[Block]
    shape: Shape
    grid: Shape
    seed: int
    locks: bool = field(default=False)

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return prod(self.shape)

    @property
    def ctas(self) -> int:
        """CTAs of the grid."""
        return prod(self.grid)

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory of a CTA."""
        return OWN * -(-self.threads // 32) * 32

    @property
    def text(self) -> str:
        """The module."""
        functions = [FUNCTION.format(number=n, body=written(each)) for n, each in enumerate(self.functions)] + [OTHERS]
        registers = "\n".join(f"    .reg .{type} %{letter}<{count}>;" for letter, (type, count) in REGISTERS.items())
        return TEMPLATE.format(
            functions="\n".join(functions), registers=registers, fill=FILL, body=written(self.body), save=save(),
            whole=-(-self.threads // 32) * 32,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"\n// <<<{self.grid}, {self.shape}, {self.shared}>>> on data of seed {self.seed}\n{self.text}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ANN401, ARG002, FBT001 - IPython's protocol
        printer.text(repr(self))


def without(lines: Block, word: str) -> Block:
    """Statements that do not have a word, and do not stand around it."""
    kept = [each for each in lines if word not in each.lines]
    return [Statement(each.lines, [without(inner, word) for inner in each.blocks]) for each in kept]


@st.composite
def kernels(draw: st.DrawFn) -> RandomKernel:
    """A random kernel, and how it is launched."""
    shape, calls = draw(st.sampled_from(SHAPES)), draw(st.booleans())
    locks = prod(shape) < LARGE and draw(st.sampled_from([False, False, False, True]))
    whole = block(2, ALL, calls, shape)
    pieces: list[Block] = []
    for _ in range(draw(st.integers(1, 5))):
        pieces.append(draw(whole))
        barrier = st.one_of(filled(BARRIERS, NOBODY), exchange(shape), st.just(ARRIVAL) if calls else exchange(shape))
        pieces.append([draw(barrier)] if draw(st.booleans()) else [])
    body = [each for piece in pieces for each in piece]
    if prod(shape) < LARGE and len(written(body).splitlines()) <= SHORT:
        body *= draw(st.sampled_from([1, 1, 1, 1, 4]))
    if locks:
        body.append(Statement(LOCK.format(draw(R))))
    if "bra " in written(body):  # it is open who is together with whom after lanes have parted
        body = without(body, "activemask")
    body.append(Statement("\n".join(draw(st.lists(st.sampled_from(FORGET), max_size=6, unique=True)))))
    small = st.lists(pure(frozenset("r")), min_size=1, max_size=4)
    functions = [[*draw(small), Statement(RECURSION.format(draw(st.integers(0, 1))))] for _ in range(2)]
    grid = draw(st.sampled_from(GRIDS)) if prod(shape) < LARGE else (1,)
    return RandomKernel(body, functions, shape, grid, draw(st.integers(0, 2**32 - 1)), locks)


# What ends some registers, so that they are dead where lanes have met again.
FORGET = [
    *[f"mov.b32 %r{n}, 0;" for n in range(REGISTERS["r"][1])],
    *[f"mov.b64 %d{n}, 0;" for n in range(REGISTERS["d"][1])],
    *[f"setp.ne.u32 %p{n}, 0, 0;" for n in range(REGISTERS["p"][1])],
]

# ── the module ──────────────────────────────────────────────────────────────────────────

RECURSION = """
    and.b32 %n, %x, 7;
    setp.gt.u32 %q, %n, 1;
    shr.u32 %n, %n, 1;
    mov.u32 %result, %r1;
    st.local.b32 [kept+4], %r3;
    @%q call (%result), f{}, (%n, %r0);
    ld.local.b32 %r2, [kept+4];
    xor.b32 %result, %result, %r2;"""
FUNCTION = """
.func (.reg .b32 %result) f{number}(.reg .b32 %x, .reg .b32 %y)
{{
    .reg .b32 %r<8>, %n;
    .reg .pred %q;
    .local .align 4 .b8 kept[8];
    mov.u32 %r0, %x; mov.u32 %r1, %y; mov.u32 %r2, 3; mov.u32 %r3, %x;
    mov.u32 %r4, 77; mov.u32 %r5, %y; mov.u32 %r6, 0; mov.u32 %r7, 9;
{body}
    ret;
}}
"""
OTHERS = """
.func (.param .b32 result) f2(.param .align 8 .b8 given[16])
{
    .reg .b32 %r<3>;
    .reg .b64 %d;
    ld.param.v2.b32 {%r0, %r1}, [given];
    ld.param.b64 %d, [given+8];
    cvt.u32.u64 %r2, %d;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    st.param.b32 [result], %r0;
    ret;
}
.func (.reg .b32 %result) f3(.reg .b32 %x, .reg .b32 %mask)
{
    .reg .b32 %r<2>;
    .reg .pred %p;
    shfl.sync.bfly.b32 %r0, %x, 3, 0x1f, %mask;
    setp.lt.u32 %p, %r0, %x;
    @%p bra LESS;
    vote.sync.ballot.b32 %r1, 0, %mask;
    bra MET;
LESS:
    vote.sync.ballot.b32 %r1, 1, %mask;
MET:
    add.u32 %result, %r0, %r1;
    ret;
}
"""
STRIDE = OWN + 16  # bytes of a thread's memory: its own, and a double
SIZE = 256  # bytes of a thread's results
FILL = "\n".join(
    [f"    ld.global.u32 %r{n}, [%mine+{4 * n}];" for n in range(8)]
    + [f"    ld.global.b64 %d{n}, [%mine+{8 * n}];" for n in range(5)]
    + [f"    ld.global.f32 %f{n}, [%mine+{4 * n + 8}];" for n in range(4)]
    + [f"    ld.global.f64 %g{n}, [%mine+{8 * n + 8}];" for n in range(3)]
    + [f"    ld.global.b16 %h{n}, [%mine+{2 * n}];" for n in range(4)]
    + [f"    setp.lt.s32 %p{n}, %r{n}, %r{n + 1};" for n in range(4)]
    + [f"    st.shared.b32 [%own+{4 * n}], %r{n};\n    st.local.b32 [%stack+{4 * n}], %r{n};" for n in range(8)]
    + [f"    st.shared.b32 [%own+{4 * n}], 0;\n    st.local.b32 [%stack+{4 * n}], 0;" for n in range(8, 16)]
)
DOUBLES_AT = slice(96, 120)  # among the results, where the registers %g are


def save() -> str:
    """Store all registers, the local memory, and the words that all have updated."""
    lines, at = [], 0
    for letter in "rdfhgp":
        type, count = REGISTERS[letter]
        for n in range(count):
            if type == "pred":
                lines += [f"    selp.u32 %t0, 1, 0, %p{n};", f"    st.global.u8 [%result+{at}], %t0;"]
                at += 1
                continue
            size = size_of(type)
            at = -(-at // size) * size
            lines.append(f"    st.global.{type} [%result+{at}], %{letter}{n};")
            at += size
    for n in range(8):
        lines += [f"    ld.local.b64 %d0, [%stack+{8 * n}];", f"    st.global.b64 [%result+{128 + 8 * n}], %d0;"]
    lines += [
        "    ld.shared.b64 %d0, [%own];", "    st.global.b64 [%result+192], %d0;", "    ld.shared.b64 %d0, [%own+56];",
        "    st.global.b64 [%result+200], %d0;", "    bar.sync 0;", "    rem.u32 %t0, %thread, 17;",
        "    mad.lo.u32 %t0, %t0, 8, %counts;", "    ld.shared.b64 %d0, [%t0];", "    st.global.b64 [%result+208], %d0;",
    ]  # fmt: skip
    return "\n".join(lines)


TEMPLATE = """.version 9.0
.target sm_100a
.address_size 64
.const .align 16 .b32 table[32] = {{ 1, 2, 3, 4, 5, 0x80000000, 0x7f800000, 0xffffffff, 0x3f800000, 9, 10, 11, 12, 13, 14 }};
.extern .shared .align 16 .b8 buffer[];
.func (.reg .b32 %result) f0(.reg .b32 %x, .reg .b32 %y);
.func (.reg .b32 %result) f1(.reg .b32 %x, .reg .b32 %y);
.global .align 8 .u64 pointers[2] = {{ f0, f1 }};
{functions}
.visible .entry random(.param .u64 in, .param .u64 work, .param .u64 words, .param .u64 out)
{{
{registers}
    .reg .b32 %c<4>, %b<4>, %m<3>;
    .reg .pred %q<2>;
    .reg .b32 %t0, %t2, %own, %buffer, %counts, %thread, %whole, %n<6>;
    .reg .b64 %t1, %in, %words, %anywords, %any, %anystack, %either, %mine, %result, %stack;
    .shared .align 16 .b8 counts[136];
    .local .align 16 .b8 stack[64];
    ld.param.u64 %in, [in];
    ld.param.u64 %mine, [work];
    ld.param.u64 %words, [words];
    ld.param.u64 %result, [out];
    mov.u32 %n0, %tid.x;
    mov.u32 %n1, %tid.y;
    mov.u32 %n2, %tid.z;
    mov.u32 %n3, %ntid.x;
    mov.u32 %n4, %ntid.y;
    mad.lo.u32 %thread, %n2, %n4, %n1;
    mad.lo.u32 %thread, %thread, %n3, %n0;
    mov.u32 %whole, {whole};
    mov.u32 %buffer, buffer;
    mov.u32 %counts, counts;
    mov.u64 %stack, stack;
    mad.lo.u32 %own, %thread, 64, %buffer;
    cvt.u64.u32 %any, %own;
    cvta.shared.u64 %any, %any;
    cvt.u64.u32 %anywords, %counts;
    cvta.shared.u64 %anywords, %anywords;
    cvta.local.u64 %anystack, %stack;
    mul.lo.u32 %n4, %n4, %n3;
    mov.u32 %n3, %ntid.z;
    mul.lo.u32 %n4, %n4, %n3;
    mov.u32 %n5, %ctaid.z;
    mov.u32 %n3, %nctaid.y;
    mov.u32 %n2, %ctaid.y;
    mad.lo.u32 %n5, %n5, %n3, %n2;
    mov.u32 %n3, %nctaid.x;
    mov.u32 %n2, %ctaid.x;
    mad.lo.u32 %n5, %n5, %n3, %n2;
    mad.lo.u32 %n5, %n5, %n4, %thread;
    mad.wide.u32 %mine, %n5, 80, %mine;
    mad.wide.u32 %result, %n5, 256, %result;
    and.b32 %n2, %thread, 5;
    setp.eq.u32 %q0, %n2, 4;
    selp.b64 %either, %any, %mine, %q0;
{fill}
{body}
{save}
    ret;
}}
"""
