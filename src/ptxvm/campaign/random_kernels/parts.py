"""Statements of random kernels, and the instructions that are functions of registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import ne

from ptxvm.campaign.random_kernels import strategies as st
from ptxvm.campaign.random_kernels.variants import Variant, variants_of, weighted
from ptxvm.dataclass import dataclass

Strategy = st.Strategy
Shape = tuple[int, ...]

REGISTERS = {"r": ("b32", 8), "d": ("b64", 5), "f": ("f32", 4), "g": ("f64", 3), "h": ("b16", 4), "p": ("pred", 4)}
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
    turns: int = 1  # how often its blocks run, about

    @property
    def work(self) -> int:
        """The instructions that a lane runs in it, about."""
        return self.lines.count("\n") + 1 + self.turns * sum(each.work for block in self.blocks for each in block)

    def render(self, out: list[str], numbers: Iterable[int]) -> None:
        """Write it down."""
        number = str(next(iter(numbers)))
        for line in map(str.strip, self.lines.splitlines()):
            if line.startswith("{"):
                for each in self.blocks[int(line[1:-1])]:
                    each.render(out, numbers)
            elif line:
                out.append("    " + line.replace("@n", number))


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
def operand(draw: st.Draw, case: Variant, name: str, given: Source | None = None) -> str:
    """What stands for an operand of an instruction: a register of the kernel, or one that is `given` for its letter."""
    if case.constant(name):
        return str(draw(st.integers(0, 255)))
    letter = draw(st.sampled_from(case.letters(name)))
    if given is not None:
        return given(letter)
    if letter in "rf" and name in case.sources and case.takes_constants(name):
        return str(draw(value(letter)))
    return str(draw(register(letter)))


# ── instructions without effects ────────────────────────────────────────────────────────

Source = Callable[[str], str]
"""Gives a register for a letter."""


@st.composite
def pure(draw: st.Draw, letters: frozenset[str] = frozenset(REGISTERS)) -> Statement:
    """One instruction of the catalog, perhaps under a guard."""
    return Statement((draw(GUARD) if "p" in letters else "") + draw(instruction(letters=letters)))


@st.composite
def instruction(
    draw: st.Draw, source: Source | None = None, result: Source | None = None, letters: frozenset[str] = frozenset(REGISTERS)
) -> str:
    """An instruction of the catalog that is a function of registers: of some letters, or what `source` and `result` give."""
    chosen = draw(st.sampled_from(weighted(letters, carry="p" in letters)))
    case = draw(st.sampled_from(variants_of(chosen, letters)))
    texts = []
    for each in case.form.operands:
        if each.optional:
            break
        text = draw(operand(case, each.name, source if each.name in case.sources else result))
        if text.isdigit() and not case.allows({each.name: int(text)}):
            text = "0" if case.constant(each.name) else f"%{case.letters(each.name)[0]}0"
        if each.second and (not each.second_optional or draw(st.booleans())):
            other = draw(operand(case, each.second, result).filter(partial(ne, text)))
            text = f"{text}|{other}"
        if each.negatable == "!" and draw(st.booleans()):
            text = f"!{text}"
        texts.append(text)
    return f"{case.mnemonic} {', '.join(texts)};"


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
def filled(draw: st.Draw, templates: Sequence[str], guard: Strategy[str] = GUARD) -> Statement:
    """A line with registers for its letters; those of a letter with a digit differ from each other."""
    template = draw(st.sampled_from(list(templates)))
    held = {letter: Drawn(draw, register(letter)) for letter in REGISTERS}
    others = {f"{letter}{n}": f"%{letter}{n}" for letter in REGISTERS for n in range(2)}
    return Statement(draw(guard) + template.format(**held, **others))


class Drawn:
    """Another value each time that it is formatted."""

    def __init__(self, draw: st.Draw, strategy: Strategy[str]) -> None:
        self.draw, self.strategy = draw, strategy

    def __format__(self, spec: str) -> str:
        return str(self.draw(self.strategy))
