"""Translation of litmus tests to kernels: each thread becomes a branch, each variable one of `.global` memory.

Every CTA of the test is a CTA of the grid, and the grid runs on one device.  This removes no outcome that the machine may show:
on one device more accesses are in each other's scope.  At its end, a thread can store its registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.dataclass import dataclass
from ptxvm.isa.special_registers import WARP
from ptxvm.model.conditions import REGISTER, Condition
from ptxvm.model.litmus_program import (
    Atomic,
    Barrier,
    Branch,
    Compute,
    Fence,
    LitmusInstruction,
    Load,
    Location,
    MemoryInstruction,
    Operand,
    ProxyFence,
    Store,
    Thread,
)
from ptxvm.model.litmus_test import Test
from ptxvm.model.names import register_names, variables_of
from ptxvm.model.values import COMPARISONS

WORD = 4
"""The size in bytes of a variable without a given size; all its accesses are whole, so the size does not matter."""
COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
COMPUTE = {"exch": "mov.b32", "mul": "mul.lo.s32", "and": "and.b32", "or": "or.b32", "xor": "xor.b32"}
TYPES = {"add": "u", "inc": "u", "dec": "u", "min": "s", "max": "s", "and": "b", "or": "b", "xor": "b", "exch": "b", "cas": "b"}
QUESTIONS = {"exists": "exists", "not_exists": "~exists", "forall": "forall"}
RESULTS = "results"


class Untranslatable(Exception):  # noqa: N818 - the name says what is in the way
    """The test cannot be expressed as a kernel."""


@dataclass(frozen=True)
class Translated:
    """The kernel of a test, and how its memory gives the final state of the test."""

    test: Test
    text: str
    results: tuple[str, ...]
    """The registers, in the order in which `results` holds them."""
    is_faithful: bool
    """Does the kernel have all outcomes of the test, and not only some?

    It does if all threads are on one device, no two addresses are merged, and barriers behave as in
    the test, for late threads too.
    """

    def state(self, memory: Mapping[str, bytes]) -> dict[str, int]:
        """The final state of the test, from the memory after the launch."""
        found = {}
        for name in variables_of(self.test):
            found[name] = int.from_bytes(memory[name], "little", signed=name not in self.test.sizes)
        for alias in self.test.aliases:
            found[alias] = found[self.test.physical(alias)]
        held = memory.get(RESULTS, b"")
        for n, register in enumerate(self.results):
            found[register] = int.from_bytes(held[WORD * n : WORD * n + WORD], "little", signed=True)
        return found


def as_kernel(test: Test, *, packed: bool = False, stores: bool = True) -> Translated:
    """Translate a test; `packed` puts the threads of a CTA in one warp, `stores` lets threads store their registers."""
    return _Translation(test, packed=packed, stores=stores).translated()


class _Translation:
    """Builds the text of the kernel."""

    def __init__(self, test: Test, *, packed: bool, stores: bool) -> None:
        self.test, self.stores = test, stores
        self.ctas = list(dict.fromkeys(thread.cta for thread in test.threads))
        self.of_cta = {cta: [thread for thread in test.threads if thread.cta == cta] for cta in self.ctas}
        self.step = 1 if packed else WARP
        self.block = max(map(len, self.of_cta.values())) * self.step
        self.results = tuple(dict.fromkeys(name for thread in test.threads for name in registers_of(thread)))
        clusters = {thread.cta[:2] for thread in test.threads}
        if len(clusters) < len(self.ctas) and any(
            getattr(one, "scope", None) is Scope.CLUSTER for each in test.threads for one in each.code
        ):
            raise Untranslatable("a cluster of several CTAs")
        self.barriers: dict[tuple[str, Operand], int] = {}
        self.is_faithful = not test.aliases and len({thread.cta[0] for thread in test.threads}) == 1
        self.cuts = 0
        if packed and any(isinstance(one, Barrier) for thread in test.threads for one in thread.code):
            self.step, self.block = WARP, self.block * WARP  # the counts of barriers are in warps
        self.packed = self.step == 1

    def translated(self) -> Translated:
        """The whole module."""
        body = [line for thread in self.test.threads for line in self.thread(thread)]
        lines = [
            f"//: litmus {self.test.name or 'test'}",
            f"//: launch test<<<{len(self.ctas)}, {self.block}>>>()",
            *([f"//: filter {self.question(self.test.filter)}"] if self.test.filter else []),
            f"//: {QUESTIONS[self.test.quantifier]} {self.question(self.test.condition)}",
            ".version 8.6\n.target sm_90\n.address_size 64",
            *self.variables(),
            ".visible .entry test()\n{",
            "    .reg .pred %p;\n    .reg .b32 %cta, %threads, %thread;",
            *(f"    .reg .b32 {register(name)};" for name in self.results),
            "    mov.u32 %cta, %ctaid.x;\n    mov.u32 %threads, %ntid.x;\n    mov.u32 %thread, %tid.x;",
            "    mad.lo.u32 %thread, %cta, %threads, %thread;",
            *(self.goes_to(thread) for thread in self.test.threads),
            "    exit;",
            *body,
            "}",
        ]
        return Translated(self.test, "\n".join(lines) + "\n", self.results, self.is_faithful)

    def number(self, thread: Thread) -> int:
        """The number of a thread in the grid."""
        return self.ctas.index(thread.cta) * self.block + self.of_cta[thread.cta].index(thread) * self.step

    def question(self, asked: Condition) -> str:
        """The condition, with the thread numbers and registers of the kernel."""
        numbers = {thread.name: self.number(thread) for thread in self.test.threads}

        def renamed(match: re.Match[str]) -> str:
            name = f"P{match[1]}"
            return f"P{numbers[name]}:{register(f'{name}:{match[2]}')}" if name in numbers else match[0]

        return " ".join(REGISTER.sub(renamed, str(asked)).split())

    def variables(self) -> Iterator[str]:
        """The declarations of the variables."""
        for name in variables_of(self.test):
            first, size = self.test.variables.get(name, 0), self.size(Location(name))
            if size not in (1, 2, 4, 8):
                raise Untranslatable(f"a variable of {size} bytes")
            kind = "u" if name in self.test.sizes else "s"
            yield f".visible .global .align 8 .{kind}{8 * size} {name} = {first};"
        if self.stores and self.results:
            yield f".visible .global .align 8 .s32 {RESULTS}[{len(self.results)}];"

    def goes_to(self, thread: Thread) -> str:
        """The branch to the code of a thread."""
        return f"    setp.eq.u32 %p, %thread, {self.number(thread)};\n    @%p bra {thread.name};"

    def thread(self, thread: Thread) -> Iterator[str]:
        """The code of a thread."""
        yield f"{thread.name}:"
        for name in registers_of(thread):
            yield f"    mov.b32 {register(name)}, {thread.registers.get(name.partition(':')[2], 0)};"
        at: dict[int, list[str]] = {}
        for label, index in thread.labels.items():
            at.setdefault(index, []).append(label)
        for n, one in enumerate(thread.code):
            yield from (f"{label_of(thread, label)}:" for label in at.get(n, ()))
            yield from (f"    {line};" for line in self.instruction(thread, one))
            yield self.cut()
        yield from (f"{label_of(thread, label)}:" for label in at.get(len(thread.code), ()))
        if self.stores:
            for name in registers_of(thread):
                yield f"    st.global.b32 [{RESULTS}+{WORD * self.results.index(name)}], {register(name)};"
        yield "    exit;"

    def cut(self) -> str:
        """A point at which the machine may let another thread run."""
        self.cuts += 1
        return f"    bra CUT_{self.cuts};\nCUT_{self.cuts}:"

    def instruction(self, thread: Thread, one: LitmusInstruction) -> Iterator[str]:
        """One instruction of the test."""
        match one:
            case Load(registers, locations):
                into = vector([register(f"{thread.name}:{name}") for name in registers])
                yield f"ld{ordered(one)}.global{self.typed(locations)} {into}, [{self.address(locations[0])}]"
            case Store(locations, values):
                operands = vector([operand(thread, value) for value in values])
                yield f"st{ordered(one)}.global{self.typed(locations)} [{self.address(locations[0])}], {operands}"
            case Atomic():
                yield from self.atomic(thread, one)
            case Fence(order, scope):
                yield f"fence.{order}.{scope}"
            case ProxyFence(proxy=Proxy.ALIAS):
                yield "fence.proxy.alias"
            case Compute(name, into, left, right):
                yield self.compute(thread, name, into, left, right)
            case Branch(comparison, left, right, label):
                if isinstance(left, int) and isinstance(right, int):
                    yield f"bra {label_of(thread, label)}" if COMPARISONS[comparison](left, right) else "mov.b32 %cta, 0"
                else:
                    yield f"setp.{COMPARE[comparison]}.s32 %p, {operand(thread, left)}, {operand(thread, right)}"
                    yield f"@%p bra {label_of(thread, label)}"
            case Barrier():
                yield self.barrier(thread, one)
            case _:
                raise Untranslatable(f"`{one.text}`")

    def compute(self, thread: Thread, name: str, into: str, left: Operand, right: Operand) -> str:
        """An arithmetic instruction."""
        target = register(f"{thread.name}:{into}")
        if name == "exch":
            return f"mov.b32 {target}, {operand(thread, right)}"
        if name in ("inc", "dec"):
            raise Untranslatable(f"`{name}` on registers")
        return f"{COMPUTE.get(name, f'{name}.s32')} {target}, {operand(thread, left)}, {operand(thread, right)}"

    def atomic(self, thread: Thread, one: Atomic) -> Iterator[str]:
        """An `atom` or `red` instruction."""
        size, operation, values = self.size(one.location), one.operation, list(one.operands)
        if operation not in TYPES or size != WORD:
            raise Untranslatable(f"`{one.text}`")
        if one.register is None and (operation in ("exch", "cas") or one.order.acquires):
            raise Untranslatable(f"`{one.text}`: `red` has no such form")
        head = f"{ordered(one)}.global.{operation}.{TYPES[operation]}{8 * size}"
        label_of, operands = f"[{self.address(one.location)}]", ", ".join(operand(thread, value) for value in values)
        if one.register is None:
            yield f"red{head} {label_of}, {operands}"
        else:
            yield f"atom{head} {register(f'{thread.name}:{one.register}')}, {label_of}, {operands}"

    def barrier(self, thread: Thread, one: Barrier) -> str:
        """A barrier of the threads of the CTA that name it, each a warp; a barrier of a test that has opened stays open."""
        if one.scope is not Scope.CTA or isinstance(one.identity, str) or isinstance(one.count, str):
            raise Untranslatable(f"`{one.text}`")
        named = {other.name for other in self.of_cta[thread.cta] for each in other.code
                 if isinstance(each, Barrier) and (each.name, each.identity) == (one.name, one.identity)}  # fmt: skip
        self.is_faithful &= one.count is None
        number = self.barriers.setdefault((one.name, one.identity), len(self.barriers))
        count = WARP * (len(named) if one.count is None else one.count)
        if number >= 16 or not count:
            raise Untranslatable(f"`{one.text}`")
        if not one.waits:
            return f"barrier.arrive {number}, {count}"
        if not one.arrives:
            raise Untranslatable(f"`{one.text}`")
        return f"barrier.sync {number}, {count}"

    # ── operands ────────────────────────────────────────────────────────────────────────

    def size(self, location: Location) -> int:
        """The size of an access in bytes."""
        return location.size or self.test.sizes.get(self.test.physical(location.variable), WORD)

    def typed(self, locations: tuple[Location, ...]) -> str:
        """The type of an access, `.v2` for vectors."""
        size = self.size(locations[0])
        if size > WORD:
            raise Untranslatable(f"an access of {size} bytes")
        return (f".v{len(locations)}" if len(locations) > 1 else "") + f".b{8 * size}"

    def address(self, location: Location) -> str:
        """The address of an access."""
        if any(alias.proxy is not Proxy.GENERIC for name, alias in self.test.aliases.items() if name == location.variable):
            raise Untranslatable(f"`{location.variable}` in another proxy")
        return f"{self.test.physical(location.variable)}+{location.offset}"


def registers_of(thread: Thread) -> list[str]:
    """All registers of a thread, as `P0:r0`; those of a final state first."""
    used = [each for one in thread.code if isinstance(one, Branch | Compute) for each in (one.left, one.right)]
    used += [each for one in thread.code if isinstance(one, Store) for each in one.values]
    used += [each for one in thread.code if isinstance(one, Atomic) for each in one.operands]
    named = [*thread.registers, *(each for each in used if isinstance(each, str))]
    return list(dict.fromkeys([*register_names(thread), *(f"{thread.name}:{each}" for each in named)]))


def ordered(one: MemoryInstruction) -> str:
    """The modifiers for order and scope."""
    if one.proxy is not Proxy.GENERIC:
        raise Untranslatable(f"`{one.text}`: another proxy")
    if one.order is Order.SC or (one.order.strong and not one.scope):
        raise Untranslatable(f"`{one.text}`")
    if one.order is Order.WEAK:
        return "" if isinstance(one, Atomic) else ".weak"
    return f".{one.order}.{one.scope}"


def register(name: str) -> str:
    """The register of the kernel for `P0:r0`."""
    return "%" + name.replace(":", "_").replace("%", "").replace("#", "")


def operand(thread: Thread, value: Operand) -> str:
    """A number or a register."""
    return str(value) if isinstance(value, int) else register(f"{thread.name}:{value}")


def vector(parts: list[str]) -> str:
    """`{a, b}`."""
    return parts[0] if len(parts) == 1 else "{" + ", ".join(parts) + "}"


def label_of(thread: Thread, label: str) -> str:
    """The kernel's label for a label of a thread."""
    return re.sub(r"\W", "_", f"{thread.name}_{label}")
