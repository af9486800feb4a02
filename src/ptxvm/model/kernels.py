r"""Kernels as litmus tests: lines that begin with `//:` say how a kernel of the file is launched, and what is asked.

    //: litmus message-passing
    //: memory data: u32 = 0, flag: u32 = 0
    //: launch mp<<<2, 1>>>(data, flag)
    //: exists (P1:%r1 == 1 /\ P1:%r2 == 0)

`memory` declares what is passed as pointers; the `.global` and `.shared` variables of the module are known by their names.
`<<<grid, block, shared>>>` is a launch as CUDA writes it; other arguments are numbers.  Thread `Pn` is the n-th of
the grid.  A file may have several such tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.flow import targets
from ptxvm.analysis.program import Function, Program
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.machine.backing import address_of
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.single_thread import Stage, ThreadAccess
from ptxvm.model.conditions import Condition, NotALitmusTest, condition
from ptxvm.model.ending import Ending
from ptxvm.model.explore import Explorer, LocationValues
from ptxvm.model.kernel_states import ends
from ptxvm.model.litmus_program import Elements, Thread
from ptxvm.model.litmus_syntax import read_question
from ptxvm.model.litmus_test import Test
from ptxvm.model.paths import Path

LINE = re.compile(r"^\s*//:\s*(litmus|memory|launch|filter|~\s*exists|not\s+exists|exists|forall)\b(.*)$", re.MULTILINE)
LAUNCH = re.compile(r"(\w+)\s*<<<(.*)>>>\s*\((.*)\)")
DECLARED = re.compile(r"(\w+)\s*:\s*\.?(\w+)\s*(?:\[(\d+)\])?\s*(?:=\s*(-?\w+))?")
QUESTION = ("filter", "exists", "~exists", "notexists", "forall")

Bytes = npt.NDArray[np.uint8]
Explore = Callable[[Function, "TestLaunch", Callable[[Stage], None]], None]
"""Sets up the stage of a launch and calls a function with it."""


@dataclass
class TestLaunch:
    """The launch of a kernel; `args` are arrays and numbers, as a launch takes them."""

    kernel: Function
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    args: list[Bytes | int] = field(default_factory=list)

    @property
    def shape(self) -> LaunchShape:
        """The shape of the launch."""
        return LaunchShape.of(self.grid, self.block)


@dataclass
class NamedVariable:
    """A variable that a question may name: its start, its initial bytes, and how it is shown."""

    name: str
    start: int
    memory: Bytes
    """The memory that holds it."""
    elements: Elements
    cta: int | None = None
    """Of shared memory: the CTA; `start` is then an offset in the shared memory."""
    initial: bytes = b""

    def __post_init__(self) -> None:
        self.initial = self.memory.tobytes()

    @property
    def end(self) -> int:
        """The byte after its last one."""
        return self.start + len(self.initial)


@dataclass(frozen=True)
class KernelTest(Test):
    """A litmus test that is a kernel."""

    launch: TestLaunch = field(kw_only=True, compare=False)
    named_variables: list[NamedVariable] = field(kw_only=True, compare=False)

    __test__ = False


def read_kernels(program: Program, image: Image, explore: Explore) -> list[KernelTest]:
    """The litmus tests of a module; NotALitmusTest if there is none, or if one is incomplete."""
    blocks: list[dict[str, str]] = []
    for word, rest in LINE.findall(program.source.text):
        if word == "litmus" and not rest.strip():
            raise NotALitmusTest("a test has a name: `//: litmus NAME`")
        if word == "litmus":
            blocks.append({"litmus": rest.strip()})
        elif not blocks:
            raise NotALitmusTest(f"`//: {word}` stands before `//: litmus NAME`")
        else:
            blocks[-1]["".join(word.split())] = rest.strip()
    if not blocks:
        raise NotALitmusTest(
            "a kernel is a litmus test by lines such as `//: litmus NAME`, `//: launch k<<<2, 1>>>(x)`, `//: exists …`"
        )
    return [_Reader(program, image, block).test(explore) for block in blocks]


class _Reader:
    """Reads one test from its lines."""

    def __init__(self, program: Program, image: Image, lines: Mapping[str, str]) -> None:
        self.program, self.image, self.lines, self.name = program, image, lines, lines["litmus"]
        if "launch" not in lines:
            raise NotALitmusTest(f"`{self.name}` has no line `//: launch KERNEL<<<grid, block>>>(arguments)`")
        if program.address_size != 64:
            raise Unsupported("a litmus kernel of .address_size 32")
        self.memory = dict(self.declared())
        self.launch = self.launched()

    def test(self, explore: Explore) -> KernelTest:
        """Build the test."""
        quantifier, asked, filtered = read_question(
            "\n".join(f"{word} {rest}" for word, rest in self.lines.items() if word in QUESTION)
        )
        question, only = condition(asked), condition(filtered) if filtered else None
        threads, named = self.threads(), list(self.nameable())
        keep = self.registers(threads, named, [question, *([only] if only else [])])
        first = {variable.name: int.from_bytes(variable.initial, "little") for variable in named}

        def ways(jumps_back: int) -> Iterator[tuple[Path, ...]]:
            found: list[tuple[Path, ...]] = []

            def perform(stage: Stage) -> None:
                found.extend(Explorer(stage, threads, Locator(named), LocationValues(first), keep).run(jumps_back))

            explore(self.launch.kernel, self.launch, perform)
            return iter(found)

        def ending() -> Ending:
            found: list[Ending] = []

            def perform(stage: Stage) -> None:
                found.append(ends(stage, threads, Locator(named), LocationValues(first).initial))

            explore(self.launch.kernel, self.launch, perform)
            return found[0]

        return KernelTest(
            self.name, threads, first, {}, quantifier, question, only,
            sizes={variable.name: len(variable.initial) for variable in named},
            elements={variable.name: variable.elements for variable in named},
            ways=ways,
            cta_threads=self.launch.shape.threads,
            launch=self.launch,
            named_variables=named,
            ending=ending,
            loops=self.loops(),
        )  # fmt: skip

    def loops(self) -> bool:
        """Can a thread jump back or call itself, or does it take values from other threads?"""
        called = [self.launch.kernel]
        for function in called:
            for n, bound in enumerate(function.instructions):
                callee = bound.callee()
                exchanges = "waits" in bound.i.of.effects and bool(bound.i.destinations())
                if bound.calls and (callee is None or callee in called):
                    return True
                if exchanges or any(at <= n for at in targets(bound)):
                    return True
                called += [callee] if callee is not None else []
        return False

    # ── the launch ──────────────────────────────────────────────────────────────────────

    def declared(self) -> Iterator[tuple[str, tuple[Bytes, Elements]]]:
        """The variables that `//: memory` declares."""
        for text in split(self.lines.get("memory", "")):
            match = DECLARED.fullmatch(text)
            type = Type.named.get(match[2]) if match else None
            if match is None or type is None:
                raise NotALitmusTest(f"`{text}` declares no memory in `{self.name}`; write `x: u32 = 0` or `x: u32[4]`")
            elements = Elements(int(match[3] or 1), type.bytes, type.is_signed)
            value = number(match[4] or "0") & (1 << type.bits) - 1
            first = value.to_bytes(type.bytes, "little") * elements.count
            yield match[1], (aligned(first), elements)

    def launched(self) -> TestLaunch:
        """The launch that `//: launch` describes."""
        match = LAUNCH.fullmatch(self.lines["launch"])
        sizes = split(match[2]) if match else []
        if match is None or not 2 <= len(sizes) <= 3:
            raise NotALitmusTest(f"`{self.lines['launch']}` is no launch; write `kernel<<<grid, block>>>(arguments)`")
        kernel = self.program.functions.get(match[1])
        if kernel is None or not kernel.entry:
            raise NotALitmusTest(f"`{self.name}` launches `{match[1]}`, which is no kernel of the module")
        args = [self.argument(text) for text in split(match[3])]
        if len(args) != len(kernel.signature.parameters):
            takes = len(kernel.signature.parameters)
            raise NotALitmusTest(f"`{self.lines['launch']}` gives {len(args)} arguments, and `{match[1]}` takes {takes}")
        try:
            LaunchShape.of(extent(sizes[0]), extent(sizes[1]))
        except ValueError as wrong:
            raise NotALitmusTest(f"`{self.lines['launch']}` cannot be launched: {wrong}") from wrong
        return TestLaunch(kernel, extent(sizes[0]), extent(sizes[1]), number(sizes[2]) if sizes[2:] else 0, args)

    def argument(self, text: str) -> Bytes | int:
        """A pointer to declared memory, or a number."""
        if text in self.memory:
            return self.memory[text][0]
        return number(text)

    def threads(self) -> tuple[Thread, ...]:
        """All threads of the grid; the CTAs of a grid are on one device, each in its own cluster."""
        shape = self.launch.shape
        numbers = range(shape.ctas * shape.threads)
        return tuple(Thread(f"P{n}", (0, n // shape.threads, n // shape.threads), (), {}, {}) for n in numbers)

    # ── memory ──────────────────────────────────────────────────────────────────────────

    def nameable(self) -> Iterator[NamedVariable]:
        """Every variable that a question may name."""
        for name, (array, elements) in self.memory.items():
            yield NamedVariable(name, address_of(array), array, elements)
        for variable, allocation in self.image.allocations.items():
            if variable.space is Space.GLOBAL and not variable.opaque and allocation.size:
                elements = self.elements(variable.type, allocation.size)
                yield NamedVariable(variable.name, allocation.start, allocation.bytes, elements)
        for cta in range(self.launch.shape.ctas):
            yield from self.shared(cta)

    def shared(self, cta: int) -> Iterator[NamedVariable]:
        """The shared memory of a CTA: its variables, and what the launch adds."""
        suffix = f"@{cta}" if self.launch.shape.ctas > 1 else ""
        for variable, offset in self.image.shared.offsets.items():
            if variable.size and variable.function in ("", self.launch.kernel.name):
                elements = self.elements(variable.type, variable.size)
                yield NamedVariable(variable.name + suffix, offset, np.zeros(variable.size, np.uint8), elements, cta)
        if self.launch.shared:
            elements = Elements(self.launch.shared // 4, 4)
            yield NamedVariable(
                f"shared{suffix}",
                self.image.shared.dynamic[self.launch.kernel.name],
                np.zeros(elements.count * 4, np.uint8),
                elements,
                cta,
            )

    @staticmethod
    def elements(type: Type, size: int) -> Elements:
        """How a variable of this type and size is shown."""
        return Elements(max(size // type.bytes, 1), type.bytes, type.is_signed)

    def registers(
        self, threads: Sequence[Thread], named: Sequence[NamedVariable], asked: Sequence[Condition]
    ) -> dict[str, list[str]]:
        """The registers that the questions name, by thread."""
        known = {register.name for register in self.launch.kernel.registers}
        shown = {name for variable in named for name in variable.elements.named(variable.name, 0)}
        keep: dict[str, list[str]] = {}
        for name in sorted({name for one in asked for name in one.names}):
            thread, _, register = name.partition(":")
            if register and thread in {each.name for each in threads} and register in known:
                keep.setdefault(thread, []).append(register)
            elif register or name not in shown:
                there = ", ".join(sorted(shown)) or "no memory"
                raise NotALitmusTest(f"`{self.name}` asks for `{name}`; there is {there}, and registers such as P0:%r1")
        return keep


class Locator:
    """Finds the variable of an access."""

    def __init__(self, named: Sequence[NamedVariable]) -> None:
        self.variables = named

    def __call__(self, touch: ThreadAccess, thread: Thread) -> tuple[str, int] | None:
        """The name of the variable and the byte in it; None for memory that no other thread writes."""
        allocation = touch.allocation
        if allocation.space is Space.LOCAL or not allocation.writable:
            return None
        shared = allocation.space is Space.SHARED
        at = touch.offset if shared else allocation.origin + touch.offset
        cta = thread.cta[2] if shared else None
        for variable in self.variables:
            if variable.cta == cta and variable.start <= at < variable.end:
                return variable.name, at - variable.start
        raise Unsupported(f"an access to {allocation} in a litmus kernel, which names no such memory")


def split(text: str) -> list[str]:
    """Split a text at the commas outside of parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def extent(text: str) -> tuple[int, ...]:
    """The extent that `2` or `(2, 1, 1)` denotes."""
    return tuple(number(part) for part in text.strip("()").split(","))


def number(text: str) -> int:
    """Read an integer."""
    try:
        return int(text.strip(), 0)
    except ValueError:
        raise NotALitmusTest(f"`{text.strip()}` is neither a number nor memory that `//: memory` declares") from None


def aligned(first: bytes) -> Bytes:
    """A byte array with these contents; its address is a multiple of 16."""
    room = np.zeros(len(first) + 16, np.uint8)
    start = -address_of(room) % 16
    array = room[start : start + len(first)]
    array[:] = np.frombuffer(first, np.uint8)
    return array
