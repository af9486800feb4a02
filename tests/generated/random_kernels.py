"""Random kernels as strategies of hypothesis: what fails becomes small, and is printed as PTX.

A kernel has arithmetic of every form in the catalog that is a function of registers, loads, stores and atomics of all
types, shuffles, votes and products of matrices, branches, loops, switches, calls (by name, through pointers, of themselves),
barriers and locks.  What it leaves does not depend on the order in which threads run: each writes its own memory, or updates
a word by one operation whose order does not show; others' memory is read behind a barrier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any

from hypothesis import strategies as st
from pure_variants import Case, cases, instructions

Strategy = st.SearchStrategy
Shape = tuple[int, ...]

REGISTERS = {"r": ("b32", 8), "d": ("b64", 5), "f": ("f32", 4), "g": ("f64", 3), "h": ("b16", 4), "p": ("pred", 4)}
SHAPES: list[Shape] = [(32,), (64,), (48,), (16, 4), (5, 3, 2), (128,), (1,), (8, 8), (33,)]
ALL = "0xffffffff"
INTEGERS = [0, 1, 2, 5, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
FLOATS = ["0f3F800000", "0f00000000", "0f80000000", "0f00000001", "0f7F7FFFFF", "0fFF800000", "0f7FC00001"]

# ── trees ───────────────────────────────────────────────────────────────────────────────

Block = list["Statement"]


@dataclass
class Statement:
    """Some lines, in which `@n` is a number of their own; `{0}`, `{1}` … stand for the lines of blocks."""

    lines: str
    blocks: Sequence[Block] = ()

    def render(self, out: list[str], numbers: Iterable[int]) -> None:
        """Write it down."""
        number = str(next(iter(numbers)))
        for line in self.lines.splitlines():
            if line.startswith("{"):
                for each in self.blocks[int(line[1:-1])]:
                    each.render(out, numbers)
            elif line.strip():
                out.append("    " + line.strip().replace("@n", number))


@dataclass(repr=False)
class RandomKernel:
    """A kernel, the shape of its CTAs, and the seed of what it reads; `locks` where lanes spin."""

    body: Block
    functions: list[Block]
    shape: Shape
    grid: int
    seed: int
    locks: bool = field(default=False)

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return prod(self.shape)

    @property
    def text(self) -> str:
        """The module."""
        functions = [FUNCTION.format(number=n, body=written(each)) for n, each in enumerate(self.functions)]
        registers = "\n".join(f"    .reg .{type} %{letter}<{count}>;" for letter, (type, count) in REGISTERS.items())
        return TEMPLATE.format(
            functions="\n".join(functions), registers=registers, fill=FILL, body=written(self.body), save=save(),
            whole=-(-self.threads // 32) * 32,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"\n// <<<{self.grid}, {self.shape}>>> on data of seed {self.seed}\n{self.text}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


def written(block: Block) -> str:
    """The lines of a block."""
    out: list[str] = []
    numbers = iter(range(1_000_000))
    for each in block:
        each.render(out, numbers)
    return "\n".join(out)


# ── operands ────────────────────────────────────────────────────────────────────────────


def register(letter: str, count: int = 0) -> Strategy[str]:
    """One of the registers with a letter."""
    return st.integers(0, (count or REGISTERS[letter][1]) - 1).map(lambda n: f"%{letter}{n}")


R, D, F, G, H, P = (register(letter) for letter in REGISTERS)
GUARD = st.one_of(st.just(""), st.just(""), st.just(""), st.builds("@{}{} ".format, st.sampled_from(["", "!"]), P))


def value(letter: str) -> Strategy[str]:
    """A register to read, or a constant now and then."""
    if letter == "r":
        return st.one_of(R, R, R, st.sampled_from(INTEGERS).map(str))
    if letter == "f":
        return st.one_of(F, F, F, F, st.sampled_from(FLOATS))
    return register(letter)


@st.composite
def operand(draw: Any, case: Case, name: str, *, reads: bool) -> str:
    """What stands for an operand of an instruction."""
    if case.constant(name):
        return str(draw(st.integers(0, 255)))
    letter = draw(st.sampled_from(case.letters(name)))
    if letter == "r" and reads and case.takes_constants(name):
        return draw(value("r"))
    if letter == "f" and reads and case.takes_constants(name):
        return draw(value("f"))
    return draw(register(letter))


# ── instructions without effects ────────────────────────────────────────────────────────


@st.composite
def pure(draw: Any, letters: frozenset[str] = frozenset(REGISTERS)) -> Statement:
    """One instruction of the catalog, perhaps under a guard."""
    chosen = draw(st.sampled_from(instructions(letters, carry="p" in letters)))
    case = draw(st.sampled_from(cases(chosen, letters)))
    texts = []
    for each in case.form.operands:
        if each.optional:
            break
        text = draw(operand(case, each.name, reads=each.name in case.sources))
        if text.isdigit() and not case.allows({each.name: int(text)}):
            text = "0" if case.constant(each.name) else f"%{case.letters(each.name)[0]}0"
        if each.second and (not each.second_optional or draw(st.booleans())):
            other = draw(operand(case, each.second, reads=False).filter(lambda found, first=text: found != first))
            text = f"{text}|{other}"
        if each.negatable == "!" and draw(st.booleans()):
            text = f"!{text}"
        texts.append(text)
    guard = draw(GUARD) if "p" in letters else ""
    return Statement(f"{guard}{case.mnemonic} {', '.join(texts)};")


MOVES = [
    "mov.b32 {r}, {r};", "mov.b64 {d}, {d};", "mov.b32 {f}, {r};", "mov.b32 {r}, {f};", "mov.b64 {g}, {d};",
    "mov.b32 {r}, {{{h}, {h}}};", "mov.b64 {d}, {{{r}, {r}}};", "mov.b64 {d}, {{{h}, {h}, {h}, {h}}};",
    "mov.b32 {{{h0}, {h1}}}, {r};", "mov.b64 {{{r0}, {r1}}}, {d};", "mov.b64 {{_, {r}}}, {d};",
    "mov.b16 {h}, {h};", "mov.pred {p}, {p};", "mov.u32 {r}, %laneid;", "mov.u32 {r}, %lanemask_lt;",
    "mov.u32 {r}, %tid.x;", "mov.u32 {r}, %ctaid.x;", "mov.u16 {h}, %ntid.x;", "cvt.u64.u32 {d}, %nctaid.x;",
    "mov.u32 {r}, %lanemask_ge;", "isspacep.shared {p}, %any;", "isspacep.global {p}, %mine;",
]  # fmt: skip
"""Moves, which are no functions of whole registers."""


@st.composite
def filled(draw: Any, templates: Sequence[str], guard: Strategy[str] = GUARD) -> Statement:
    """A line with registers for its letters; those of a letter with a digit differ from each other."""
    template = draw(st.sampled_from(list(templates)))
    held = {letter: Drawn(draw, register(letter)) for letter in REGISTERS}
    others = {f"{letter}{n}": f"%{letter}{n}" for letter in REGISTERS for n in range(2)}
    return Statement(draw(guard) + template.format(**held, **others))


class Drawn:
    """Another value each time that it is formatted."""

    def __init__(self, draw: Any, strategy: Strategy[str]) -> None:
        self.draw, self.strategy = draw, strategy

    def __format__(self, spec: str) -> str:
        return str(self.draw(self.strategy))


# ── memory ──────────────────────────────────────────────────────────────────────────────

OWN = 64  # bytes that a thread has in each space
BASES = {"global": "%mine", "shared": "%own", "local": "%stack", "": "%any"}
CELLS = {
    "u8": "hr", "s8": "hr", "b8": "hr", "u16": "h", "s16": "hr", "b16": "h", "u32": "r", "s32": "rd", "b32": "r", "f32": "f",
    "u64": "d", "s64": "d", "b64": "d",
}  # fmt: skip


def size_of(type: str) -> int:
    """Bytes of a type."""
    return int(type.lstrip("bfsu").removesuffix("x2")) // 8 * (2 if type.endswith("x2") else 1)


@st.composite
def place(draw: Any, base: str, size: int) -> tuple[str, str]:
    """An address in the thread's own memory, a constant or what a register says; and the lines that compute it."""
    if draw(st.booleans()):
        return "", f"{base}+{size * draw(st.integers(0, OWN // size - 1))}"
    index = draw(R)
    if base in ("%own", "%mine32"):
        return f"and.b32 %t0, {index}, {OWN - size};\nadd.u32 %t0, %t0, {base};\n", "%t0"
    return f"and.b32 %t0, {index}, {OWN - size};\ncvt.u64.u32 %t1, %t0;\nadd.u64 %t1, %t1, {base};\n", "%t1"


@st.composite
def access(draw: Any) -> Statement:
    """A load or a store of the thread's own memory, or a load of what nobody writes."""
    type, base = draw(st.sampled_from(list(CELLS))), draw(st.sampled_from([*BASES, "in", "const"]))
    size = size_of(type)
    count = draw(st.sampled_from([n for n in (1, 1, 2, 4) if n * size <= 16]))
    letter = draw(st.sampled_from(CELLS[type]))
    stores = base in BASES and letter != "d" * (size < 8) and draw(st.booleans())
    vector = f".v{count}" if count > 1 else ""
    numbers = draw(st.permutations(range(REGISTERS[letter][1])))[:count]
    registers = ", ".join(f"%{letter}{n}" for n in numbers)
    registers = f"{{{registers}}}" if count > 1 else registers
    if base in ("in", "const"):
        return Statement(draw(elsewhere(base, f"{vector}.{type}", size * count, registers)))
    lines, where = draw(place(BASES[base], size * count))
    word = draw(st.sampled_from(["", "", ".volatile"])) if count == 1 and base != "local" else ""
    space = f".{base}" if base else ""
    guard = draw(GUARD)
    if stores:
        return Statement(f"{lines}{guard}st{word}{space}{vector}.{type} [{where}], {registers};")
    return Statement(f"{lines}{guard}ld{word}{space}{vector}.{type} {registers}, [{where}];")


@st.composite
def elsewhere(draw: Any, base: str, what: str, size: int, registers: str) -> str:
    """A load from the input at a random place, or from constant memory."""
    index = draw(R)
    if base == "const":
        start = f"and.b32 %t0, {index}, {128 - size};\nmov.u64 %t1, table;\nmad.wide.u32 %t1, %t0, 1, %t1;"
        return f"{start}\nld.const{what} {registers}, [%t1];"
    word = draw(st.sampled_from(["", ".nc", ".cg", ".ca"]))
    return (
        f"and.b32 %t0, {index}, {256 - size};\ncvt.u64.u32 %t1, %t0;\nadd.u64 %t1, %t1, %in;\n"
        f"{draw(GUARD)}ld.global{word if what.count('.') == 1 or word != '.nc' else ''}{what} {registers}, [%t1];"
    )


OWN_ATOMICS = {
    "add": "u32 s32 u64 f32 f16x2 bf16x2", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64", "and": "b32 b64",
    "or": "b32 b64", "xor": "b32 b64", "exch": "b32 b64", "inc": "u32", "dec": "u32", "cas": "b32 b64 b16",
}  # fmt: skip
SHARED_ATOMICS = {"add": "u32 u64", "min": "s32 u64", "max": "u32 s64", "and": "b32", "or": "b64", "xor": "b32"}
WORDS = [(op, type) for op, types in SHARED_ATOMICS.items() for type in types.split()]


@st.composite
def atomic(draw: Any) -> Statement:
    """An atomic on the thread's own memory, whose old value counts, or on a word that all threads update alike."""
    space = draw(st.sampled_from(["global", "shared", ""]))
    if draw(st.booleans()):
        which = draw(st.integers(0, len(WORDS) - 1))
        op, type = WORDS[which]
        base = {"global": "%words", "shared": "%counts", "": "%anywords"}[space]
        given = draw(register({4: "r", 8: "d"}[size_of(type)]))
        word = draw(st.sampled_from(["", ".relaxed.cta", ".relaxed.gpu"]))
        return Statement(f"{draw(GUARD)}red{word}{'.' * bool(space)}{space}.{op}.{type} [{base}+{8 * which}], {given};")
    op = draw(st.sampled_from(list(OWN_ATOMICS)))
    type = draw(st.sampled_from(OWN_ATOMICS[op].split()))
    letter = "f" if type == "f32" else {2: "h", 4: "r", 8: "d"}[size_of(type)]
    lines, where = draw(place(BASES[space], size_of(type)))
    rounding = ".noftz" if type.endswith("x2") else ""
    given = ", ".join(draw(register(letter)) for _ in range(1 + (op == "cas")))
    target = draw(register(letter))
    return Statement(f"{lines}{draw(GUARD)}atom{'.' * bool(space)}{space}.{op}{rounding}.{type} {target}, [{where}], {given};")


DOUBLES = [
    "ld.global.f64 {g}, [%mine+64];", "st.global.f64 [%mine+64], {g};", "atom.global.add.f64 {g}, [%mine+64], {g};",
    "red.global.add.f64 [%mine+64], {g};",
]  # fmt: skip
"""Doubles in memory have a place of their own: which payload a NaN has that arithmetic on two NaNs gives is open."""

COPIES = [
    "cp.async.ca.shared.global [%own+{at}], [%mine+{at}], 4;\ncp.async.wait_all;",
    "cp.async.ca.shared.global [%own+16], [%mine+32], 16, {r};\ncp.async.commit_group;\ncp.async.wait_group 0;",
    "cp.async.cg.shared.global [%own], [%in], 16;\ncp.async.wait_all;",
]
SPACES = [
    "isspacep.shared {p}, %any;",
    "isspacep.global {p}, %any;",
    "cvta.to.shared.u64 {d}, %any;\nsub.u64 {d0}, {d0}, {d0};",
]


@st.composite
def copy(draw: Any) -> Statement:
    """An asynchronous copy within the thread's own memory."""
    template = draw(st.sampled_from(COPIES))
    size = f"min.u32 %t0, {draw(R)}, 16;\n" if "{r}" in template else ""
    return Statement(size + template.replace("{at}", str(4 * draw(st.integers(0, 15)))).replace("{r}", "%t0"))


# ── what lanes do together ──────────────────────────────────────────────────────────────

COLLECTIVES = [
    "shfl.sync.bfly.b32 {r}, {r}, {r}, 0x1f, ALL;", "shfl.sync.idx.b32 {r}|{p}, {r}, {r}, 0x1f, ALL;",
    "shfl.sync.up.b32 {r}|{p}, {r}, 3, 0, ALL;", "shfl.sync.down.b32 {r}, {r}, {r}, 0x181f, ALL;",
    "shfl.sync.bfly.b32 {f}, {f}, 16, 0x1f, ALL;", "vote.sync.ballot.b32 {r}, {p}, ALL;", "vote.sync.any.pred {p}, {p}, ALL;",
    "vote.sync.all.pred {p}, !{p}, ALL;", "vote.sync.uni.pred {p}, {p}, ALL;", "match.any.sync.b32 {r}, {r}, ALL;",
    "match.any.sync.b64 {r}, {d}, ALL;", "match.all.sync.b32 {r}|{p}, {r}, ALL;", "match.all.sync.b64 {r}|{p}, {d}, ALL;",
    "redux.sync.add.u32 {r}, {r}, ALL;", "redux.sync.min.s32 {r}, {r}, ALL;", "redux.sync.max.u32 {r}, {r}, ALL;",
    "redux.sync.and.b32 {r}, {r}, ALL;", "redux.sync.or.b32 {r}, {r}, ALL;", "redux.sync.xor.b32 {r}, {r}, ALL;",
    "redux.sync.max.abs.NaN.f32 {f}, {f}, ALL;", "redux.sync.min.f32 {f}, {f}, ALL;", "elect.sync {r}|{p}, ALL;",
    "bar.warp.sync ALL;", "activemask.b32 {r};",
    """mov.b64 {{%t0, %t2}}, {d};
    shfl.sync.bfly.b32 %t0, %t0, 5, 0x1f, ALL;
    shfl.sync.bfly.b32 %t2, %t2, 5, 0x1f, ALL;
    mov.b64 {d}, {{%t0, %t2}};""",
]  # fmt: skip
MATRICES = [
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f0,%f1,%f2,%f3}}, {{{r},{r},{r},{r}}}, {{{r},{r}}}, FOUR;",
    "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {{%f3,%f2,%f1,%f0}}, {{{r},{r}}}, {{{r}}}, FOUR;",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {{%r4,%r5}}, {{{r},{r},{r},{r}}}, {{{r},{r}}}, {{{r},{r}}};",
    "mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.u8.s32 {{%r0,%r1,%r2,%r3}}, {{{r},{r}}}, {{{r}}}, WORDS;",
    "movmatrix.sync.aligned.m8n8.trans.b16 {r}, {r};",
]
SHORT = {"ALL": ALL, "FOUR": "{{{f},{f},{f},{f}}}", "WORDS": "{{{r},{r},{r},{r}}}"}
BARRIERS = [
    "bar.sync 0;", "barrier.sync 1;", "bar.red.and.pred {p}, 2, {p};",
    "bar.red.or.pred {p}, 2, !{p};", "bar.red.popc.u32 {r}, 4, {p};", "bar.sync 5, %whole;",
]  # fmt: skip
NOBODY = st.just("")


def collective(shape: Shape) -> Strategy[Statement]:
    """Something that whole warps do."""
    lines = COLLECTIVES + (MATRICES if prod(shape) % 32 == 0 else [])
    for word, meaning in SHORT.items():
        lines = [each.replace(word, meaning) for each in lines]
    return filled(lines, NOBODY)


@st.composite
def exchange(draw: Any, shape: Shape) -> Statement:
    """Threads read what others have written, between barriers."""
    index, given, target = draw(R), draw(st.one_of(R, F)), draw(st.one_of(R, F))
    last = 1 << (prod(shape).bit_length() - 1)
    return Statement(f"""
        bar.sync 0;
        st.shared.b32 [%own+4], {given};
        bar.sync 0;
        and.b32 %t0, {index}, {last - 1};
        mad.lo.u32 %t0, %t0, {OWN}, %buffer;
        ld.shared.b32 {target}, [%t0+4];
        bar.sync 0;""")


@st.composite
def meeting(draw: Any) -> Statement:
    """Lanes of both sides of a branch meet in a shuffle; or warps at a barrier where some only arrive."""
    if draw(st.booleans()):
        met = [f"shfl.sync.bfly.b32 {draw(R)}, {draw(R)}, {n}, 0x1f, {ALL};" for n in (1, 16)]
        lines = f"@{draw(P)} bra ELSE@n;\n{{0}}\n{met[0]}\nbra END@n;\nELSE@n:\n{{1}}\n{met[1]}\nEND@n:"
        return Statement(lines, [[draw(pure())], [draw(pure())]])
    return Statement("""
        and.b32 %t0, %thread, 32;
        setp.ne.u32 %q1, %t0, 0;
        @%q1 bra ELSE@n;
        bar.sync 3, %whole;
        bra END@n;
        ELSE@n:
        bar.arrive 3, %whole;
        END@n:
        bar.sync 0;""")


LOCK = """
    LOCK@n:
    atom.shared.cas.b32 %t0, [%counts+132], 0, 1;
    setp.ne.u32 %q1, %t0, 0;
    @%q1 bra LOCK@n;
    ld.volatile.shared.u32 %t0, [%counts+128];
    add.u32 %t0, %t0, {};
    st.volatile.shared.u32 [%counts+128], %t0;
    membar.cta;
    atom.shared.exch.b32 %t0, [%counts+132], 0;"""

# ── control ─────────────────────────────────────────────────────────────────────────────


@st.composite
def call(draw: Any) -> Statement:
    """A call, direct or through a pointer that may differ from lane to lane."""
    arguments, guard = f"({draw(R)}, {draw(R)})", draw(st.one_of(st.just(""), P.map("@{} ".format)))
    if draw(st.booleans()):
        return Statement(f"{guard}call ({draw(R)}), f{draw(st.integers(0, 1))}, {arguments};")
    return Statement(
        f"mov.u64 %t1, f0;\n@{draw(P)} mov.u64 %t1, f1;\nlist@n: .calltargets f0, f1;\n"
        f"{guard}call ({draw(R)}), %t1, {arguments}, list@n;"
    )


@st.composite
def branch(draw: Any, inner: Strategy[Block]) -> Statement:
    """An if, with or without an else, of lanes that part."""
    condition = f"@{draw(st.sampled_from(['', '!']))}{draw(P)}"
    if draw(st.booleans()):
        return Statement(f"{condition} bra END@n;\n{{0}}\nEND@n:", [draw(inner)])
    return Statement(f"{condition} bra ELSE@n;\n{{0}}\nbra END@n;\nELSE@n:\n{{1}}\nEND@n:", [draw(inner), draw(inner)])


@st.composite
def switch(draw: Any, inner: Strategy[Block]) -> Statement:
    """Three cases and what falls from one to the next."""
    blocks = [draw(inner) for _ in range(3)]
    leaves = [draw(st.sampled_from(["", "bra END@n;"])) for _ in range(2)]
    return Statement(
        f"rem.u32 %t0, {draw(R)}, 4;\ntable@n: .branchtargets A@n, B@n, C@n, END@n;\nbrx.idx %t0, table@n;\n"
        f"A@n:\n{{0}}\n{leaves[0]}\nB@n:\n{{1}}\n{leaves[1]}\nC@n:\n{{2}}\nEND@n:",
        blocks,
    )


@st.composite
def loop(draw: Any, level: int, alike: Strategy[Block], apart: Strategy[Block]) -> Statement:
    """A loop that all lanes leave at once (`alike`), or every lane when it likes (`apart`); none counts another's turns."""
    count, uniform = f"%c{level}", draw(st.booleans())
    start = f"mov.u32 {count}, {draw(st.integers(1, 4))};" if uniform else f"and.b32 {count}, {draw(R)}, 3;"
    lines = f"{start}\nLOOP@n:\n{{0}}\nsub.u32 {count}, {count}, 1;\nsetp.gt.s32 %q0, {count}, 0;\n@%q0 bra LOOP@n;"
    return Statement(lines, [draw(alike if uniform else apart)])


@cache
def block(depth: int, together: bool, calls: bool, shape: Shape) -> Strategy[Block]:
    """Some statements; `together` where all lanes of the warp are sure to be here."""
    simple = [pure(), pure(), pure(), pure(), filled(MOVES), access(), access(), atomic(), filled(DOUBLES), copy()]
    choices = [st.one_of(simple)] * 3
    if together:
        choices.append(collective(shape))
    if calls:
        choices.append(call())
    if calls and together:
        choices.append(meeting())
    if depth:
        apart = block(depth - 1, together=False, calls=calls, shape=shape)
        alike = block(depth - 1, together=together, calls=calls, shape=shape)
        choices += [branch(apart), loop(depth, alike, apart), switch(apart)]
    return st.lists(st.one_of(choices), max_size=10)


@st.composite
def kernels(draw: Any) -> RandomKernel:
    """A random kernel, and how it is launched."""
    shape, calls = draw(st.sampled_from(SHAPES)), draw(st.booleans())
    locks = draw(st.sampled_from([False, False, False, True]))
    whole = block(2, together=True, calls=calls, shape=shape)
    pieces: list[Block] = []
    for _ in range(draw(st.integers(1, 5))):
        pieces.append(draw(whole))
        pieces.append([draw(st.one_of(filled(BARRIERS, NOBODY), exchange(shape)))] if draw(st.booleans()) else [])
    if locks:
        pieces.append([Statement(LOCK.format(draw(R)))])
    body = [each for piece in pieces for each in piece]
    if locks:  # where lanes spin it is open who is together with whom
        body = [each for each in body if "activemask" not in each.lines]
    small = st.lists(pure(frozenset("r")), min_size=1, max_size=4)
    functions = [[*draw(small), Statement(RECURSION.format(draw(st.integers(0, n))))] for n in range(2)]
    return RandomKernel(body, functions, shape, draw(st.integers(1, 3)), draw(st.integers(0, 2**32 - 1)), locks)


# ── the module ──────────────────────────────────────────────────────────────────────────

RECURSION = """
    and.b32 %n, %x, 7;
    setp.gt.u32 %q, %n, 1;
    shr.u32 %n, %n, 1;
    mov.u32 %result, %r1;
    @%q call (%result), f{}, (%n, %r0);
    xor.b32 %result, %result, %r3;"""
FUNCTION = """
.func (.reg .b32 %result) f{number}(.reg .b32 %x, .reg .b32 %y)
{{
    .reg .b32 %r<8>, %n;
    .reg .pred %q;
    mov.u32 %r0, %x; mov.u32 %r1, %y; mov.u32 %r2, 3; mov.u32 %r3, %x;
    mov.u32 %r4, 77; mov.u32 %r5, %y; mov.u32 %r6, 0; mov.u32 %r7, 9;
{body}
    ret;
}}
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
{functions}
.visible .entry random(.param .u64 in, .param .u64 work, .param .u64 words, .param .u64 out)
{{
{registers}
    .reg .b32 %c<4>;
    .reg .pred %q<2>;
    .reg .b32 %t0, %t2, %own, %buffer, %counts, %thread, %whole, %n<6>;
    .reg .b64 %t1, %in, %words, %anywords, %any, %mine, %result, %stack;
    .shared .align 16 .b8 buffer[8192];
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
    mov.u32 %n5, %ctaid.x;
    mul.lo.u32 %n4, %n4, %n3;
    mov.u32 %n3, %ntid.z;
    mul.lo.u32 %n4, %n4, %n3;
    mad.lo.u32 %n5, %n5, %n4, %thread;
    mad.wide.u32 %mine, %n5, 80, %mine;
    mad.wide.u32 %result, %n5, 256, %result;
{fill}
{body}
{save}
    ret;
}}
"""
