"""What compilers write: loops over arrays by an index or a pointer, grid-stride loops, tiles and reductions in shared memory.

Registers `%xa@n`, `%ya@n`, `%za@n` (of 32 bits, of 64 bits, predicates) are a statement's own.
"""

from __future__ import annotations

from math import prod

from ptxvm.campaign.random_kernels import strategies as st
from ptxvm.campaign.random_kernels.memory import INPUT
from ptxvm.campaign.random_kernels.parts import Block, D, F, P, R, Shape, Statement, Strategy

# ── loops over arrays ───────────────────────────────────────────────────────────────────

FEW, MANY = (0, 1, 2, 3, 5, 8), (0, 1, 17, 32, 100, 224)
"""What the parameters `n` and `m` of a kernel are: `m` of elements, more than one of which a step may pass over."""
ALIKE = [
    ("0", "1", "%few"),
    ("1", "2", "%few"),
    ("0", "1", "3"),
    ("0", "32", "%many"),
    ("0", "%n4", "%many"),
    ("4", "16", "100"),
]
APART = [
    ("%thread", "%n4", "%many"), ("%n5", "%total", "%many"), ("%n5", "%total", "%many"), ("%n0", "%n3", "%many"),
    ("%n0", "32", "200"), ("%n0", "32", "%many"), ("%n1", "%n4", "%many"), ("%thread", "64", "{index}"),
]  # fmt: skip
"""Where a loop begins, its step and what it ends before: of all threads alike, or of each its own."""
MANY_TURNS = 16  # elements of a step, so that there are few
LIMIT = INPUT // 4 - 8  # elements, with the eight that are loaded beside one
TEST = ["setp.ge.u32 %za@n, %xa@n, %xb@n;\n@%za@n bra END@n;", "setp.lt.u32 %za@n, %xa@n, %xb@n;\n@!%za@n bra END@n;"]
SIGNED = ["setp.ge.s32 %za@n, %xa@n, %xb@n;\n@%za@n bra END@n;", "setp.lt.s32 %za@n, %xa@n, %xb@n;\n@!%za@n bra END@n;"]
WAYS = [
    "mul.wide.u32 %ya@n, %xa@n, 4;\nadd.s64 %ya@n, %in, %ya@n;",
    "mad.wide.s32 %ya@n, %xa@n, 4, %in;",
    "cvt.s64.s32 %ya@n, %xa@n;\nshl.b64 %ya@n, %ya@n, 2;\nadd.s64 %ya@n, %in, %ya@n;",
    "cvt.u64.u32 %ya@n, %xa@n;\nmad.lo.s64 %ya@n, %ya@n, 4, %in;",
    "shl.b32 %t0, %xa@n, 2;\ncvt.u64.u32 %ya@n, %t0;\nadd.s64 %ya@n, %ya@n, %in;",
]
"""The address of an element."""


@st.composite
def counted(draw: st.Draw, shape: Shape, alike: Strategy[Block], apart: Strategy[Block]) -> Statement:
    """A loop by an index, from a beginning in steps to an end, over elements of the input; perhaps left from within."""
    together = draw(st.booleans())
    begin, step, end = draw(st.sampled_from([each for each in (ALIKE if together else APART) if large(each[1], shape)]))
    leaves = "" if together or draw(st.booleans()) else f"{draw(LEAVES)}"
    lines = [f"mov.u32 %xa@n, {begin};", ending(end.format(index=draw(R)))]
    body = [draw(st.sampled_from(WAYS)), *draw(uses()), "{0}", leaves, f"add.s32 %xa@n, %xa@n, {step};"]
    test, rotated = draw(st.sampled_from(TEST + SIGNED)), draw(st.booleans())
    if rotated:  # as compilers do: the test stands before the loop, and again at its end
        compare, jump = test.splitlines()
        again = jump.replace("@!%", "@%", 1) if "@!" in jump else jump.replace("@%", "@!%", 1)
        lines += [test, "LOOP@n:", *body, compare, again.replace("END", "LOOP"), "END@n:"]
    else:
        lines += ["LOOP@n:", test, *body, "bra LOOP@n;", "END@n:"]
    return Statement("\n".join(lines), [draw(alike if together else apart)], turns=14)


def large(step: str, shape: Shape) -> bool:
    """Does a loop with that step end soon?"""
    return {"%n3": shape[0], "%n4": prod(shape), "%total": prod(shape)}.get(step, MANY_TURNS) >= MANY_TURNS


LEAVES = st.builds("@{}{} bra END@n;".format, st.sampled_from(["", "!"]), P)


def ending(end: str) -> str:
    """The end of a loop, within the input whatever it is."""
    return f"mov.u32 %xb@n, {end};\nmin.u32 %xb@n, %xb@n, {LIMIT};"


@st.composite
def uses(draw: st.Draw) -> list[str]:
    """What a loop does with an element, at `%ya@n`, and with its index, in `%xa@n`."""
    lines = [draw(ELEMENT) for _ in range(draw(st.integers(0, 3)))]
    return [line for each in lines for line in each.splitlines()]


def with_registers(template: str) -> Strategy[str]:
    """A template with registers for its letters."""
    return st.builds(lambda r, s, d, f, p, at: template.format(r=r, s=s, d=d, f=f, p=p, at=at), R, R, D, F, P, AT)


AT = st.integers(0, 7).map(lambda n: 4 * n)
ELEMENTS = [
    "ld.global.u32 %t0, [%ya@n+{at}];\nadd.s32 {r}, {r}, %t0;",
    "ld.global.nc.u32 %t0, [%ya@n+{at}];\nmad.lo.s32 {r}, %t0, {s}, {r};",
    "ld.global.nc.f32 %va@n, [%ya@n+{at}];\nfma.rn.f32 {f}, %va@n, {f}, {f};",
    "ld.global.f32 %va@n, [%ya@n];\nmax.f32 {f}, {f}, %va@n;",
    "@{p} ld.global.u32 {r}, [%ya@n+{at}];",
    "ld.global.u8 {r}, [%ya@n+{at}];",
    "ld.global.s16 {r}, [%ya@n+{at}];",
    "mov.u32 {r}, %xa@n;",
    "setp.lt.u32 %zb@n, %thread, %xa@n;\n@%zb@n add.s32 {r}, {r}, {s};",
    "add.s32 {r}, {r}, %xa@n;",
    "cvt.u64.u32 {d}, %xa@n;",
    "cvt.rn.f32.s32 {f}, %xa@n;",
    "and.b32 %t0, %xa@n, 15;\nmad.lo.u32 %t0, %t0, 4, %own;\nst.shared.u32 [%t0], {r};",
    "and.b32 %t0, %xa@n, 15;\nmad.lo.u32 %t0, %t0, 4, %own;\nld.shared.f32 {f}, [%t0];",
    "and.b32 %t0, %xa@n, 15;\nmul.wide.u32 %yb@n, %t0, 4;\nadd.s64 %yb@n, %yb@n, %stack;\nst.local.u32 [%yb@n], {r};",
    "and.b32 %t0, %xa@n, 15;\nmul.wide.u32 %yb@n, %t0, 4;\nadd.s64 %yb@n, %yb@n, %stack;\nld.local.u32 {r}, [%yb@n];",
    "and.b32 %t0, %xa@n, 15;\nmul.wide.u32 %yb@n, %t0, 4;\nadd.s64 %yb@n, %yb@n, %mine;\nst.global.f32 [%yb@n], {f};",
    "and.b32 %t0, %xa@n, 31;\nmov.u64 %t1, table;\nmad.wide.u32 %yb@n, %t0, 4, %t1;\nld.const.u32 {r}, [%yb@n];",
    "setp.gt.s32 %zb@n, {r}, {s};\n@%zb@n mov.u32 {r}, %xa@n;",
    "setp.gt.f32 {p}, {f}, {f};\nselp.b32 {r}, {r}, %xa@n, {p};",
]
ELEMENT = st.one_of(*map(with_registers, ELEMENTS))


@st.composite
def walk(draw: st.Draw, inner: Strategy[Block]) -> Statement:
    """A loop by a pointer that steps on, with loads side by side as of an unrolled loop; it ends by the pointer or a count."""
    first, step = draw(st.sampled_from(["%thread", "%n0", "%n1", "0", "%n5"])), draw(st.sampled_from([1, 4, 4, 8, 32]))
    last, turns = draw(st.sampled_from(["%few", "%many", "64", draw(R)])), draw(st.integers(1, 4))
    loads = [draw(LOADED).replace("AT", str(4 * n)) for n in range(draw(st.integers(1, 4)))]
    place = f"mov.u32 %xa@n, {first};\nmin.u32 %xa@n, %xa@n, 96;\nmad.wide.u32 %ya@n, %xa@n, 4, %in;"
    if draw(st.booleans()):
        start = f"{place}\nmov.u32 %xc@n, {turns};"
        end = "add.s32 %xc@n, %xc@n, -1;\nsetp.ne.s32 %za@n, %xc@n, 0;"
    else:
        step = max(step, 8)
        start = f"{place}\n{ending(last)}\nmad.wide.u32 %yc@n, %xb@n, 4, %in;"
        end = "setp.lt.u64 %za@n, %ya@n, %yc@n;"
    lines = [start, "LOOP@n:", *loads, "{0}", f"add.s64 %ya@n, %ya@n, {4 * step};", end, "@%za@n bra LOOP@n;"]
    return Statement("\n".join(lines), [draw(inner)], turns=8)


LOADS = [
    "ld.global.u32 %t0, [%ya@n+AT];\nadd.s32 {r}, {r}, %t0;",
    "ld.global.nc.f32 %va@n, [%ya@n+AT];\nfma.rn.f32 {f}, %va@n, {f}, {f};",
    "ld.global.nc.u32 {r}, [%ya@n+AT];",
    "ld.global.f32 {f}, [%ya@n+AT];",
    "@{p} ld.global.u32 {r}, [%ya@n+AT];",
    "ld.global.s8 {r}, [%ya@n+AT];",
    "ld.global.b32 %t0, [%ya@n+AT];\nxor.b32 {r}, {s}, %t0;",
]
LOADED = st.one_of(*map(with_registers, LOADS))

# ── shared memory ───────────────────────────────────────────────────────────────────────

COMBINE = ["add.u32", "xor.b32", "max.s32", "min.u32", "add.f32"]


@st.composite
def tile(draw: st.Draw, shape: Shape) -> Statement:
    """All threads fill a tile, and each reads some of it: its row, its column, one for all, or any."""
    threads, width = prod(shape), draw(st.sampled_from([4, 8, 16, 17, 32, 33]))
    cell = draw(st.sampled_from(["%xk@n", "%xk@n, %thread", "%thread, %xk@n", "%n0, %xk@n", "%n1, %xk@n", "%xk@n, %n0", "ANY"]))
    row, _, column = cell.partition(", ")
    if cell == "ANY":
        index = f"xor.b32 %xi@n, %xk@n, {draw(R)};"
    elif column:
        index = f"mad.lo.u32 %xi@n, {row}, {width}, {column};"
    else:
        index = f"mov.u32 %xi@n, {row};"
    operation, target = draw(st.sampled_from(COMBINE)), draw(R)
    type = "f32" if operation.endswith("f32") else "b32"
    if type == "f32":
        target = draw(F)
    value = "%va@n" if type == "f32" else "%t0"
    turns = draw(st.sampled_from(["%few", "4", "8"]))
    return Statement(
        f"""bar.sync 0;
        mov.u32 %xt@n, tile;
        mad.lo.u32 %xo@n, %thread, 4, %xt@n;
        st.shared.{type} [%xo@n], {target};
        bar.sync 0;
        mov.u32 %xk@n, 0;
        setp.ge.u32 %za@n, %xk@n, {turns};
        @%za@n bra END@n;
        LOOP@n:
        {index}
        rem.u32 %xi@n, %xi@n, {threads};
        mad.lo.u32 %xi@n, %xi@n, 4, %xt@n;
        ld.shared.{type} {value}, [%xi@n];
        {operation} {target}, {target}, {value};
        add.u32 %xk@n, %xk@n, 1;
        setp.lt.u32 %za@n, %xk@n, {turns};
        @%za@n bra LOOP@n;
        END@n:"""
    )


@st.composite
def reduction(draw: st.Draw, shape: Shape) -> Statement:
    """A tree in shared memory, with a barrier for each level; or in a warp, by shuffles in a loop."""
    operation = draw(st.sampled_from(COMBINE))
    target, type = (draw(F), "f32") if operation.endswith("f32") else (draw(R), "b32")
    one, other = ("%va@n", "%vc@n") if type == "f32" else ("%xv@n", "%xw@n")
    if draw(st.booleans()):
        return Statement(
            f"""mov.u32 %xs@n, 16;
            LOOP@n:
            shfl.sync.{draw(st.sampled_from(["down", "bfly"]))}.b32 {one}, {target}, %xs@n, 0x1f, 0xffffffff;
            {operation} {target}, {target}, {one};
            shr.u32 %xs@n, %xs@n, 1;
            setp.ne.u32 %za@n, %xs@n, 0;
            @%za@n bra LOOP@n;"""
        )
    half = 1 << (prod(shape).bit_length() - 1) >> 1
    add = f"""ld.shared.{type} {one}, [%xo@n];
        mad.lo.u32 %xp@n, %xs@n, 4, %xo@n;
        ld.shared.{type} {other}, [%xp@n];
        {operation} {one}, {one}, {other};
        st.shared.{type} [%xo@n], {one};"""
    if draw(st.booleans()):
        add = "\n".join(f"@%za@n {line.strip()}" for line in add.splitlines())
    else:
        add = f"@!%za@n bra NOT@n;\n{add}\nNOT@n:"
    return Statement(
        f"""bar.sync 0;
        mov.u32 %xt@n, tile;
        mad.lo.u32 %xo@n, %thread, 4, %xt@n;
        st.shared.{type} [%xo@n], {target};
        mov.u32 %xs@n, {half};
        LOOP@n:
        bar.sync 0;
        setp.lt.u32 %za@n, %thread, %xs@n;
        {add}
        shr.u32 %xs@n, %xs@n, 1;
        setp.ne.u32 %zb@n, %xs@n, 0;
        @%zb@n bra LOOP@n;
        bar.sync 0;
        ld.shared.{type} {target}, [%xt@n];"""
    )


__all__ = ["FEW", "MANY", "counted", "reduction", "tile", "walk"]
