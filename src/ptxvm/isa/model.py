"""The model of an instruction: what `@instruction` declares and everything else reads.

    @instruction(
        '''
        add.type       d, a, b;
        add{.sat}.s32  d, a, b;
        .type = { .u16, .u32, .u64, .s16, .s32, .s64 };
        ''', section="9.7.1.1", needs={"": "PTX 1.0"})
    def add(i, a, b):
        '''Add two values; with .sat, limit the result to the range of the type.'''

A meaning meets two stages: modifiers (`i.sat`, `i.type`) are plain Python, known when the PTX is read;
operands are `Value`s, known when the kernel runs.  Its parameters after `i` are the operands that it
reads, by the names of the syntax lines, then the ports of the machine that it uses.  What the
syntax names and the meaning does not read are destinations: the meaning returns them in order.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property, lru_cache, wraps
from typing import Any, NoReturn, Required, TypeAlias, TypedDict, Unpack

from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import DiagnosticCode, Severity, register_lookup
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.effects import Verb
from ptxvm.isa.exactness import DEFINED, Exactness
from ptxvm.isa.notation import Form, Operand, opcodes, parse_forms
from ptxvm.isa.targets import Need, Target, Version, parse_need

KEEPS_SUBNORMALS = 20  # the first target with subnormal f32 values
PORTS = frozenset({"cc", "mem", "warp", "cta", "cluster", "flow", "tasks", "tex", "tmem", "clock"})


Check: TypeAlias = Callable[["Decoded"], "str | Problem | None"]
"""A rule: what is wrong with a decoded instruction, in ptxas's words or as a `Problem`; None where nothing is."""

Condition: TypeAlias = Callable[["Decoded"], bool]
"""A question about a decoded instruction."""

Meaning: TypeAlias = Callable[..., Any]
"""What an instruction does: a function of the decoded instruction, its operands and ports; it gives the results."""


def in_words(condition: Condition) -> str:
    """The name of a condition as words: `fp8 on sm_89`."""
    return re.sub(r"(?<!sm)_", " ", condition.__name__)


@dataclass(frozen=True)
class Problem:
    """What a rule found wrong.

    `message` is in our words; `operand` names the operand it is about, or `number` counts to it where it has no name yet,
    `word` is the modifier; `help` a way out, or makes one of the text of the operand; `ptxas` what ptxas prints, where
    that differs, and `consequence` what it prints besides.  An instruction with a problem that is no error is legal and
    doubtful.
    """

    code: str
    message: str
    operand: str = ""
    word: str = ""
    help: str | Callable[[str], str] = ""
    ptxas: str = ""
    consequence: str = ""
    number: int | None = None
    severity: Severity = Severity.ERROR


@dataclass(frozen=True)
class Rule:
    """A legality rule; its docstring is the sentence of the reference page and of `explain CODE`."""

    code: str
    check: Check

    @property
    def sentence(self) -> str:
        """What the rule says."""
        return inspect.cleandoc(self.check.__doc__ or self.check.__name__.replace("_", " "))


@dataclass(frozen=True)
class OperandType:
    """What may stand for an operand: the name of a type or of a slot that holds one, and some marks.

    `2*type` is the type of twice the size, and `atype|btype` that of two slots which is signed, if one is.

    Marks (see `isa.operand_types`): `wide` a register may be wider, `bits` any class of register of the size, `imm` a constant
    only, `reg` no constant, `split` the elements of a vector share the type, `packed` they hold one value together (a rule
    says how), `coordinates` they are a point: the first one may be an integer beside floats, and where one is bits all may be,
    `plain` one register or constant only (no vector, no special register without the mark `special`, no variable without an
    offset, no `_` without the mark `sink`), `numeric` no variable at all, `word` no integer constant, `update` the instruction
    reads the operand and then replaces it, `untyped` a `.b` register only, `scalar` no packed one, `strict` integers hold no
    floats within braces either, `registers` not all within braces are constants, `numbers` floating-point constants alone
    within braces have any size, `loose` a register of any type and size,
    `element` an address may be `a[2]`, `mask` its bits are lanes (which no check asks), `enables` it is a predicate that says
    whether an operand with `update` is read, `passed` its value reaches a result, as it is or in a product of matrices, and
    nothing else looks at it, `label`, `function`, `table`, `any`.

    `judged_as` has types that ptxas judges as others: with `bf16=u16`, an operand of `.bf16` may be what `.u16` may be.
    """

    type: str
    marks: frozenset[str] = frozenset()
    judged_as: tuple[tuple[str, str], ...] = ()


@dataclass(eq=False)
class Instruction:
    """Everything known about one PTX instruction.

    `syntax` has its syntax lines, which are read when its forms are first asked for; `fixed` and `ignored` are those of
    `parse_forms`.
    One that `executes` has a meaning; any other is checked only, and a kernel with it is not run.
    """

    name: str
    family: str
    section: str
    syntax: str
    fixed: int | str
    types: Mapping[str, OperandType]
    needs: Mapping[str, str]
    meaning: Meaning
    ends: bool = False
    rearranges: bool = False
    exact: tuple[Exactness, ...] = ()
    executes: bool = True
    ignored: str = ""
    moves: Verb | None = None  # of one that does nothing but load or store: READ or WRITE
    rules: list[Rule] = field(default_factory=list)
    conditional_needs: list[tuple[Condition, str]] = field(default_factory=list)

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """Its forms."""
        return tuple(parse_forms(self.syntax, self.fixed, self.ignored))

    @property
    def summary(self) -> str:
        """What it does, in words."""
        return inspect.cleandoc(self.meaning.__doc__ or "")

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """What the meaning asks for: operands, then ports."""
        return tuple(inspect.signature(self.meaning).parameters)[1:]

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The operands that it reads."""
        return tuple(p for p in self.parameters if p not in PORTS)

    @cached_property
    def updates(self) -> frozenset[str]:
        """The operands that it reads and then replaces: they are among its results, too."""
        return frozenset(name for name, type in self.types.items() if "update" in type.marks)

    @cached_property
    def passed(self) -> frozenset[str]:
        """The operands whose values reach its results, and nothing else."""
        return frozenset(name for name, type in self.types.items() if "passed" in type.marks)

    @cached_property
    def enabling(self) -> str | None:
        """The operand, a predicate, that says whether it reads the operands that it replaces; None where it always does."""
        return next((name for name, type in self.types.items() if "enables" in type.marks), None)

    @cached_property
    def effects(self) -> frozenset[str]:
        """The ports that it uses, and `waits` where a warp can wait at it."""
        waits = {"waits"} if inspect.isgeneratorfunction(self.meaning) else set()
        return frozenset(PORTS & set(self.parameters)) | waits

    @cached_property
    def modifiers(self) -> frozenset[str]:
        """The names of all slots of all forms, those of operands too."""
        return frozenset(s.name for f in self.forms for s in (*f.slots, *f.marks))

    @cached_property
    def flags(self) -> frozenset[str]:
        """The names of slots that stand for themselves in all forms: `.sat`."""
        return self.modifiers - {s.name for f in self.forms for s in (*f.slots, *f.marks) if not s.literal}

    @cached_property
    def required(self) -> list[tuple[tuple[tuple[str, str], ...], Need]]:
        """What modifiers need: each as written and without its dot; none for what the whole instruction needs."""
        return [(tuple((w, w.lstrip(".")) for w in words.split()), parse_need(need)) for words, need in self.needs.items()]

    @cached_property
    def exactness(self) -> tuple[Exactness, ...]:
        """How far its results are exact; nothing is said of what computes nothing."""
        computes = self.sources and not self.effects - {"cc"} and self.executes
        return self.exact or ((DEFINED,) if computes else ())

    def rule(self, code: str) -> Callable[[Check], Check]:
        """Attach a legality rule: it gets the decoded instruction and returns what is wrong, or None."""

        def add(check: Check) -> Check:
            self.rules.append(Rule(code, check))
            return check

        return add

    def needs_when(self, requirement: str) -> Callable[[Callable[..., bool]], Callable[..., bool]]:
        """For a requirement that no single modifier decides."""

        def add(condition: Callable[..., bool]) -> Callable[..., bool]:
            self.conditional_needs.append((condition, requirement))
            return condition

        return add

    def variants(self) -> Iterator[Decoded]:
        """Every combination of modifiers that the syntax allows, legal or not."""
        found: dict[tuple[Operand, ...], set[str]] = {}  # the mnemonics of forms with the same operands
        for form in self.forms:
            seen = found.setdefault(form.operands, set())
            options = [(*((None,) if s.optional else ()), *s.order) for s in form.slots]
            for words in itertools.product(*options):
                d = Decoded(self, form, {s.name: w for s, w in zip(form.slots, words, strict=True) if w})
                if d.mnemonic not in seen:
                    seen.add(d.mnemonic)
                    yield d


class Forms(Mapping[str, Sequence[tuple[Instruction, Form]]]):
    """The forms of each opcode, with their instructions; those of an opcode are read when they are first asked for."""

    def __init__(self) -> None:
        self._declared: dict[str, list[Instruction]] = {}
        self._read: dict[str, list[tuple[Instruction, Form]]] = {}

    def add(self, instruction: Instruction) -> None:
        """Enter an instruction under the opcodes of its syntax lines."""
        for opcode in opcodes(instruction.syntax):
            self._declared.setdefault(opcode, []).append(instruction)
            self._read.pop(opcode, None)

    def __getitem__(self, opcode: str) -> Sequence[tuple[Instruction, Form]]:
        found = self._read.get(opcode)
        if found is None:
            declared = self._declared[opcode]
            found = self._read[opcode] = [(of, form) for of in declared for form in of.forms if form.opcode == opcode]
        return found

    def __contains__(self, opcode: object) -> bool:
        return opcode in self._declared

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)


class Registry:
    """All declared instructions."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.by_opcode = Forms()

    def add(self, instruction: Instruction) -> None:
        """Enter one."""
        self.instructions.append(instruction)
        self.by_opcode.add(instruction)


ISA = Registry()


@cache
def rule_page(code: str) -> DiagnosticCode | None:
    """The page of a code that instructions declare with rules: their sentences; None where there is no such rule."""
    found = dict.fromkeys(rule.sentence for each in ISA.instructions for rule in each.rules if rule.code == code)
    if not found:
        return None
    title, *rest = found
    return DiagnosticCode(code, title.partition("\n")[0], "\n".join([title, *rest] if not rest or "\n" in title else rest))


register_lookup(rule_page)


class Declaration(TypedDict, total=False):
    """What `instruction` takes beside the syntax."""

    section: Required[str]
    needs: Required[Mapping[str, str]]
    types: str
    fixed: int | str
    ends: bool
    rearranges: bool
    exact: Exactness | tuple[Exactness, ...]


def instruction(
    syntax: str,
    *,
    section: str,
    needs: Mapping[str, str],
    types: str = "*: type",
    fixed: int | str = 0,
    ends: bool = False,
    rearranges: bool = False,
    exact: Exactness | tuple[Exactness, ...] = (),
    executes: bool = True,
) -> Callable[[Meaning], Instruction]:
    """Declare an instruction; the decorated function is its meaning.

    `needs` maps modifiers ("" for any form) to `"PTX 6.0, sm_70"`; `types` maps operands (`*` for the rest) to a type
    or slot and marks; `fixed` counts the leading modifiers that belong to the opcode, or names them; `ends` says that
    control never goes on; `rearranges` that bits of its operands stand in other places of its result; `exact` how far its
    results are the bits that hardware gives (`isa.exactness`); `executes` is false where the function is no meaning (see
    `checked`).
    """

    def declare(meaning: Meaning) -> Instruction:
        declared = Instruction(
            name=meaning.__name__.rstrip("_"),
            family=meaning.__module__.rpartition(".")[2],
            section=section,
            syntax=syntax,
            fixed=fixed,
            types=parse_types(types),
            needs=needs,
            meaning=meaning,
            ends=ends,
            rearranges=rearranges,
            exact=(exact,) if isinstance(exact, Exactness) else exact,
            executes=executes,
        )
        ISA.add(declared)
        return declared

    return declare


def alu(syntax: str, **declaration: Unpack[Declaration]) -> Callable[[Meaning], Instruction]:
    """Declare an arithmetic instruction: each operand is one register or constant (the mark `plain`)."""
    types = declaration.get("types", "*: type")
    declaration["types"] = ", ".join(f"{part} plain" for part in types.split(","))
    return instruction(syntax, **declaration)


def checked(syntax: str, **declaration: Unpack[Declaration]) -> Callable[[Meaning], Instruction]:
    """Declare an instruction that is checked and not executed: syntax, types, needs and rules, without a meaning.

    The decorated function has the docstring, and as parameters the operands that the instruction reads.  Its place is
    taken by one that raises `Unsupported`.
    """

    def declare(described: Meaning) -> Instruction:
        @wraps(described)
        def meaning(i: Decoded, *_: object) -> NoReturn:
            raise Unsupported(f"'{i.opcode}'")

        return instruction(syntax, executes=False, **declaration)(meaning)

    return declare


@cache
def parse_types(text: str) -> Mapping[str, OperandType]:
    """`*: type, a: u64 reg, tgt: label` as a table; what has no type has a mark alone."""
    parts = (part.partition(":") for part in text.split(","))
    return {operand: operand_type(spec) for names, _, spec in parts for operand in names.split()}


@cache
def operand_type(text: str) -> OperandType:
    """`u64 reg`, or a mark alone."""
    words = text.split()
    marks = frozenset(word for word in words if "=" not in word)
    judged_as = tuple((type, other) for type, equal, other in (word.partition("=") for word in words) if equal)
    return OperandType(words[0], marks, judged_as)


@dataclass(eq=False)
class Decoded:
    """One instruction with its modifiers chosen, before its operands.

    `i.sat` is True or False for a flag, a Type for a type, a word for a choice, and None for an optional choice left
    out or a slot that only other forms have; a name that no form has is an AttributeError.
    `shapes` maps operands to what stands there, while rules run; `version`, `target` and its
    `options` are the module's, for the rules that differ by them.
    """

    of: Instruction
    form: Form
    bound: Mapping[str, str]
    shapes: Mapping[str, Any] = field(default_factory=dict)  # of `Shape`: that module stands above this
    version: Version = (99, 0)
    target: Target = Target(999)
    options: tuple[str, ...] = ()  # of .target: `texmode_independent`
    constants: Mapping[str, int | float | None] = field(default_factory=dict)  # of which a rule asks for the value

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a flag, a Type, a word, or None, as the syntax line has it
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._modifier(name)
        self.__dict__[name] = value
        return value

    def _modifier(self, name: str) -> bool | str | Type | None:
        of = self.__dict__["of"]
        if name not in of.modifiers:
            raise AttributeError(f"{of.name} has no modifier .{name}")
        slot = self.form.by_name.get(name)
        if slot is None:
            return False if name in of.flags else None
        if slot.literal:
            return name in self.bound
        word = self.bound.get(name)
        return Type.named.get(word, word) if word and slot not in self.form.marks else word  # `.b1` may be a selector

    @property
    def flushes(self) -> bool:
        """Are subnormal f32 values zeros: by `.ftz`, or because sm_1x has no others (PTX 9.7.3)?"""
        return "ftz" in self.bound or self.target.number < KEEPS_SUBNORMALS

    @cached_property
    def mnemonic(self) -> str:
        """The head in the manual's order of modifiers."""
        return ".".join([self.form.opcode, *(self.bound[s.name] for s in self.form.slots if s.name in self.bound)])

    @property
    def opcode(self) -> str:
        """The opcode with the words that belong to it: `mul.wide`."""
        form = self.form
        return ".".join([form.opcode, *(self.bound[s.name] for s in form.slots[: form.fixed] if s.name in self.bound)])

    def operand_type(self, operand: str) -> OperandType:
        """What the declaration says of an operand."""
        types = self.of.types
        return types.get(operand) or types.get("*") or OperandType("type")

    @cached_property
    def _types(self) -> dict[str, Type | None]:
        return {}

    def type_of(self, operand: str) -> Type | None:
        """The type of an operand, or None for one that has none (a label)."""
        if operand not in self._types:
            spec = self.operand_type(operand).type
            self._types[operand] = Type.named[spec] if spec in Type.named else self._slot_type(spec)
        return self._types[operand]

    def _slot_type(self, spec: str) -> Type | None:
        found = [type for type in map(self._type_of_slot, spec.split("|")) if type is not None]
        return next((type for type in found if type.is_signed), found[0] if found else None)

    def _type_of_slot(self, spec: str) -> Type | None:
        slot = spec.removeprefix("2*")
        value = getattr(self, slot, None) if slot in self.of.modifiers else None
        if not isinstance(value, Type):
            return None
        return Type.named[f"{value.kind}{2 * value.bits}"] if spec != slot else value

    def shape(self, operand: str) -> Any:  # noqa: ANN401 - a `Shape` where a rule needs one; that module stands above this
        """What stands for an operand (an `isa.operand_types.Shape`), or None where it was left out."""
        return self.shapes.get(operand)

    def value(self, operand: str) -> int | None:
        """The operand's value, where it is an integer constant that some rule asks for."""
        if operand in self.constants:
            known = self.constants[operand]
            return None if isinstance(known, float) else known
        shape = self.shapes.get(operand)
        return shape.value if shape is not None else None

    def real(self, operand: str) -> float | None:
        """The operand's value, where it is a floating-point constant that some rule asks for."""
        known = self.constants.get(operand)
        return known if isinstance(known, float) else None

    def problems(self) -> list[Problem]:
        """Every rule that the instruction, so written, breaks."""
        found = []
        for rule in self.of.rules:
            said = rule.check(self)
            if said:
                found.append(said if isinstance(said, Problem) else Problem(rule.code, said))
        return found

    def requirements(self) -> list[tuple[str, Need]]:
        """Each feature that this uses, by name, with what it needs."""
        present = {*self.bound.values(), *self.bound}
        found = []
        for words, wanted in self.of.required:
            hit = [written for written, word in words if word in present]
            if hit or not words:
                found.append((hit[0] if hit else self.opcode, wanted))
        for condition, need in self.of.conditional_needs:
            if condition(self):
                found.append((in_words(condition), parse_need(need)))
        return found

    def destinations(self) -> tuple[str, ...]:
        """The operands that the meaning returns, in order."""
        return self._destinations

    @cached_property
    def _destinations(self) -> tuple[str, ...]:
        of = self.of
        return tuple(n for o in self.form.operands for n in o.names if n not in of.sources or n in of.updates)


@lru_cache(maxsize=20_000)
def candidates(opcode: str, words: Sequence[str]) -> tuple[Decoded, ...]:
    """The forms that these modifiers fit, each with its modifiers bound."""
    found, distinct = [], frozenset(words)
    for of, form in ISA.by_opcode.get(opcode, ()):
        if distinct <= form.words and (match := form.match(words)).fits:
            found.append(Decoded(of, form, match.bound))
    return tuple(found)
