"""The reference page of an instruction: everything that its declaration says, in the order in which people ask."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cached_property

from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.matrix import variants_of_matrices
from ptxvm.isa.model import ISA, Instruction, OperandType, in_words
from ptxvm.isa.notation import ModifierSlot

EFFECTS = {
    "cc": "reads or writes the carry flag CC.CF",
    "mem": "accesses memory",
    "warp": "takes part in what the lanes of a warp do together",
    "cta": "takes part in what the threads of a CTA do together",
    "cluster": "takes part in what the CTAs of a cluster do together",
    "flow": "acts on control flow: jumps, ends, stops or signals",
    "tasks": "starts or awaits asynchronous work",
    "tmem": "works on tensor memory",
    "tex": "reads textures or surfaces",
    "clock": "depends on time",
    "waits": "may wait for other threads",
}

MARKS = {
    "imm": "a constant",
    "reg": "a register",
    "untyped": "a register of bits",
    "wide": "or a wider register",
    "label": "a label",
    "function": "a function",
    "table": "a list of targets",
    "prototype": "a prototype",
}


@dataclass(frozen=True)
class Page:
    """One declaration, to be read by people."""

    of: Instruction

    @cached_property
    def title(self) -> str:
        """The opcode with the words that belong to it: `mul.wide`, `ld.global.nc`."""
        first, *others = self.of.forms
        fixed = [w for w in map(_only_word, first.slots) if w and all(w in map(_only_word, f.slots) for f in others)]
        return ".".join([first.opcode, *fixed])

    @property
    def section(self) -> str:
        """Where the manual has it."""
        return f"PTX ISA {self.of.section}"

    @property
    def summary(self) -> str:
        """What it does, all that the declaration says."""
        return self.of.summary

    @property
    def headline(self) -> str:
        """What it does, in a line."""
        return self.summary.partition("\n")[0]

    @cached_property
    def syntax(self) -> list[str]:
        """The syntax lines, and the choices of their slots: of shapes those that the types here have."""
        lines = [f"{form.text};" for form in self.of.forms]
        choices = {s.name: s.order for f in self.of.forms for s in f.slots if f".{s.name}" in f.text and not s.literal}
        if "mnk" in choices:  # the slot has the shapes of all types, so that a wrong one is told from an unknown word
            known = {i.mnk for i in variants_of_matrices(self.of)}
            choices["mnk"] = tuple(shape for shape in choices["mnk"] if shape in known)
        width = max((len(name) for name in choices), default=0)
        return lines + [f".{name:<{width}} = {{ .{', .'.join(order)} }};" for name, order in choices.items() if order]

    @cached_property
    def operands(self) -> list[tuple[str, str]]:
        """Each operand, with its type in words."""
        names = dict.fromkeys(n for f in self.of.forms for o in f.operands for n in o.names)
        addresses = {n for f in self.of.forms for o in f.operands if o.address for n in o.names}
        results = {n for n in names if n not in self.of.sources}
        return [(n, self._operand(n, address=n in addresses, result=n in results)) for n in names]

    def _operand(self, name: str, *, address: bool, result: bool) -> str:
        spec = self.of.types.get(name) or self.of.types.get("*") or OperandType("type")
        updated = name in self.of.updates
        parts = ["source and result" if updated else "result" if result else "address" if address else "source"]
        marks = [MARKS[m] for m in sorted(spec.marks) if m in MARKS]
        slot = spec.type.removeprefix("2*")
        if "|" in slot:
            parts.append(f"signed where {' or '.join(self._type(name, each) for each in slot.split('|'))} is")
        elif not address and (slot in Type.named or slot in self.of.modifiers):
            held = Type.named.get(slot) if "untyped" in spec.marks else None
            named = self._type(name, slot) if held is None else f".{held.as_bits.name}"
            parts.append(("" if slot == spec.type else "twice the size of ") + named)
        return ", ".join(p for p in [*parts, *marks] if p)

    def _type(self, operand: str, slot: str) -> str:
        """The type of an operand: `.type`, where the syntax lines have that word, and otherwise what stands for it there."""
        if slot in Type.named or any(f".{slot}" in form.text for form in self.of.forms):
            return f".{slot}"
        forms = [f for f in self.of.forms if any(operand in o.names for o in f.operands)]
        return " or ".join(dict.fromkeys(f".{word}" for f in forms for s in f.slots if s.name == slot for word in s.order))

    @cached_property
    def needs(self) -> list[tuple[str, str]]:
        """What it needs, and what single modifiers and other conditions need: `(".ftz", "PTX 1.4")`."""
        named = [(in_words(c), need) for c, need in self.of.conditional_needs if c.__name__.isidentifier()]
        return [*((words, need) for words, need in self._needed() if words or need != "PTX 1.0"), *named] or [("", "PTX 1.0")]

    def _needed(self) -> Iterator[tuple[str, str]]:
        """What modifiers need, of those that the instruction has: tables of needs are shared."""
        own = self.of.modifiers | {c for f in self.of.forms for s in (*f.slots, *f.marks) for c in s.choices}
        for words, need in self.of.needs.items():
            kept = [word for word in words.split() if word.lstrip(".") in own]
            if kept or not words:
                yield " ".join(kept), need

    @cached_property
    def rules(self) -> list[tuple[str, str]]:
        """The rules that the syntax does not tell: code and sentence."""
        return sorted({(rule.code, rule.sentence) for rule in self.of.rules})

    @cached_property
    def effects(self) -> list[str]:
        """What it does beside writing its results, in words."""
        if not self.of.executes:
            return ["is checked and not executed: a kernel that has it is not run"]
        return [EFFECTS[effect] for effect in sorted(self.of.effects)]


def _only_word(slot: ModifierSlot) -> str:
    """The word that always stands there, unless it is a type; otherwise empty."""
    if slot.optional or len(slot.choices) != 1 or slot.is_type:
        return ""
    (word,) = slot.choices
    return word


def pages() -> dict[str, list[Page]]:
    """All instructions by family, under the title of the chapter: `Logic and shifts (PTX 9.7.8)`."""
    load_catalog()
    found: dict[str, list[Page]] = {}
    for instruction in ISA.instructions:
        found.setdefault(chapter_of(instruction), []).append(Page(instruction))
    return dict(sorted(found.items(), key=lambda family: _numbers(family[1][0].of.section)))


def chapter_of(instruction: Instruction) -> str:
    """The first sentence of the family's module."""
    described = sys.modules[instruction.meaning.__module__].__doc__ or instruction.family
    return described.strip().partition("\n")[0].partition(").")[0].removesuffix(".") + (")" if ")." in described else "")


def _numbers(section: str) -> tuple[int, ...]:
    return tuple(int(n) for n in section.split(".") if n.isdigit())


def find(name: str) -> list[Page]:
    """The pages of an opcode (`mul`), or of one with words that belong to it (`mul.wide`); what is executed comes first."""
    load_catalog()
    name = name.strip().rstrip(";")
    opcode = name.partition(".")[0]
    declared = dict.fromkeys(instruction for instruction, _ in ISA.by_opcode.get(opcode, ()))
    of_opcode = sorted(map(Page, declared), key=lambda page: (_numbers(page.of.section), not page.of.executes))
    if name == opcode:
        return of_opcode
    return [page for page in of_opcode if page.title == name] or _fitting(name, of_opcode)


def _fitting(name: str, pages: list[Page]) -> list[Page]:
    """The pages that have a form with these modifiers, or else with more than these."""
    words = name.split(".")[1:]
    complete = [p for p in pages if any(form.match(words).fits for form in p.of.forms)]
    return complete or [p for p in pages if any(not form.match(words).extra for form in p.of.forms)]


def opcodes() -> Iterator[str]:
    """Every declared opcode."""
    load_catalog()
    yield from ISA.by_opcode
