"""Data dependencies: the reads on which the registers of a thread depend, also through calls (PTX 8.10.4)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.analysis.flow import registers_in
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Register
from ptxvm.machine.single_thread import Holder, ThreadAccess
from ptxvm.model.values import Key
from ptxvm.syntax import tree

Keys = frozenset[Key]
NONE: Keys = frozenset()
ANY_DEPTH = -1
"""The depth of a register of the module, which all functions share."""


class Dependencies:
    """The reads on which each register and each byte of the thread's own memory depends, at the current instruction."""

    def __init__(self) -> None:
        self.of: dict[tuple[int, int], Keys] = {}
        self.control: Keys = NONE
        self.code: Sequence[Bound] = ()
        self.at = self.depth = 0
        self.now: Bound | None = None
        self.found: list[Keys] = []
        self.own: dict[int, Keys] = {}

    def enter(self, code: Sequence[Bound], depth: int) -> None:
        """Begin a run of instructions, in a function at this call depth."""
        self._finish()
        for bound in self.code[self.at :]:
            self._pass(bound)
        self.code, self.at, self.depth = code, 0, depth

    def comes_to(self, bound: Bound) -> bool:
        """Move to this instruction; false if it already runs."""
        if bound is self.now:
            return False
        self._finish()
        while self.at < len(self.code) and self.code[self.at] is not bound:
            self._pass(self.code[self.at])
            self.at += 1
        self.at += 1
        self.now, self.found = bound, []
        return True

    def read(self, key: Key) -> None:
        """Record a read of the instruction."""
        self.found.append(frozenset({key}))

    def read_own(self, touch: ThreadAccess) -> None:
        """Record a read of the thread's own memory."""
        self.found += [self._of_bytes(touch.offset + n * touch.size, touch.size) for n in range(touch.count)]

    def wrote_own(self, touch: ThreadAccess) -> None:
        """Record a write to the thread's own memory."""
        for n in range(touch.count):
            self._hold(touch.offset + n * touch.size, touch.size, self.of_element("b", n, touch.count))

    def pass_value(self, source: Holder | None, target: Holder) -> None:
        """A call passes an argument or a result: the target takes over the dependencies of the source; a constant has none."""
        self.enter((), self.depth)
        keys = NONE
        if source is not None:
            keys = self._at(source.register, source.depth) if source.register else self._of_bytes(source.offset, source.size)
        if target.register:
            self.of[_slot(target.register, target.depth)] = keys
        else:
            self._hold(target.offset, target.size, keys)

    def _of_bytes(self, offset: int, size: int) -> Keys:
        return NONE.union(*(self.own.get(at, NONE) for at in range(offset, offset + size)))

    def _hold(self, offset: int, size: int, keys: Keys) -> None:
        self.own.update(dict.fromkeys(range(offset, offset + size), keys))

    def _at(self, register: Register, depth: int) -> Keys:
        return self.of.get(_slot(register, depth), NONE)

    def of_operands(self, *names: str) -> Keys:
        """The reads on which the named operands of the instruction depend."""
        if self.now is None:
            return NONE
        nodes = [self.now.operands[name] for name in names if name in self.now.operands]
        return NONE.union(*(self._of(node) for node in nodes))

    def of_element(self, name: str, n: int, count: int) -> Keys:
        """The reads on which one element of a vector operand depends."""
        node = self.now.operands.get(name) if self.now else None
        if isinstance(node, tree.Vector) and len(node.items) == count:
            return self._of(node.items[n])
        return self.of_operands(name)

    def of_guard(self, bound: Bound) -> Keys:
        """The reads on which the guard of an instruction depends."""
        guard = bound.guard()
        return NONE if guard is None else self._at(guard[0], self.depth)

    def of_sources(self) -> Keys:
        """The reads on which any source operand of the instruction depends."""
        return NONE if self.now is None else self._of_sources(self.now)

    def _of_sources(self, bound: Bound) -> Keys:
        destinations = set(bound.i.destinations())
        return NONE.union(*(self._of(node) for name, node in bound.operands.items() if name not in destinations))

    def _of(self, node: tree.Operand) -> Keys:
        if self.now is None:
            return NONE
        return NONE.union(*(self._at(register, self.depth) for register in registers_in(node, self.now)))

    def _finish(self) -> None:
        """The destinations of the instruction depend on what it has read."""
        if self.now is not None:
            found, self.found = self.found, []
            self._assign(self.now, found)
        self.now = None

    def _pass(self, bound: Bound) -> None:
        """Step over an instruction that does not access memory, or whose guard was false."""
        self.now = bound
        sources = self._of_sources(bound)
        if bound.calls:  # `hand_on` passes arguments and results; a function pointer selects the callee
            self.control |= self.of_operands("fptr") | self.of_guard(bound)
            self.now = None
            return
        if "flow" in bound.i.of.effects:
            self.control |= sources | self.of_guard(bound)
        self._assign(bound, [sources])
        self.now = None

    def _assign(self, bound: Bound, found: list[Keys]) -> None:
        guard = bound.guard()
        for name in bound.i.destinations():
            node = bound.operands.get(name)
            if node is None or isinstance(node, tree.Address):
                continue
            registers = list(registers_in(node, bound))
            each = found if len(found) == len(registers) else [NONE.union(*found)] * len(registers)
            for register, keys in zip(registers, each, strict=True):
                partly = guard is not None or register.count > 1
                before = self._at(register, self.depth) | self.of_guard(bound) if partly else NONE
                self.of[_slot(register, self.depth)] = keys | before


def _slot(register: Register, depth: int) -> tuple[int, int]:
    """The key of a register: its call depth and its index."""
    return (ANY_DEPTH if register.of_module else depth), register.index
