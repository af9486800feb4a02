"""The syntax tree of a PTX module.

The tree knows no instruction: a statement is a head (`ld.global.u32`) and a list of
operands.  Every node carries the half-open span `start:end` of its text, in characters
of the source.  Nodes compare by content, not by place, so a tree that was printed and
parsed again equals the first one.

Sources: PTX 4 (syntax), 5 (state spaces, types and variables), 7 (ABI), 11 (directives).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import field

from ptxvm.dataclass import dataclass


@dataclass(slots=True, kw_only=True)
class Node:
    """A piece of the source; `start` and `end` do not take part in comparisons."""

    start: int = field(default=0, compare=False, repr=False)
    end: int = field(default=0, compare=False, repr=False)


# ── operands and constant expressions (PTX 4.5, 6.4) ────────────────────────────────────


@dataclass(slots=True)
class Name(Node):
    """An identifier: a register, variable, label, function, special register, or the sink `_`.

    `component` is what follows a dot: `x` in `%tid.x`, `b0` in `%r1.b0`, `h1` in `%r1.h1`.
    """

    text: str
    component: str | None = None


@dataclass(slots=True)
class Integer(Node):
    """An integer literal: `value` is not truncated; `text` keeps the spelling (base, `U`)."""

    value: int
    text: str = field(default="", compare=False)
    unsigned: bool = False


@dataclass(slots=True)
class Float(Node):
    """A floating-point literal by its bits: `0f3F800000` has width 32, all others 64."""

    bits: int
    width: int
    text: str = field(default="", compare=False)


@dataclass(slots=True)
class String(Node):
    """A quoted string, without its quotes."""

    text: str


@dataclass(slots=True)
class Unary(Node):
    """`-x`, `+x`, `~x` or `!x`; `!%p` and `-%r` as operands are this too."""

    op: str
    operand: Operand


@dataclass(slots=True, repr=False, eq=False)
class Binary(Node):
    """A constant expression with two sides; `gv+4` is this too.

    A sum may have any number of terms, so a walk over its left sides is a loop: see `chain`.
    """

    op: str
    left: Operand
    right: Operand

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Binary):
            return NotImplemented
        (first, chained), (other_first, other_chained) = chain(self), chain(other)
        steps, other_steps = ([(each.op, each.right) for each in one] for one in (chained, other_chained))
        return first == other_first and steps == other_steps

    __hash__ = None  # type: ignore[assignment]  # as of every node: it can be changed

    def __repr__(self) -> str:
        first, chained = chain(self)
        return f"Binary({first!r}{''.join(f' {each.op} {each.right!r}' for each in chained)})"


def chain(node: Binary) -> tuple[Operand, list[Binary]]:
    """The first operand of operators that associate to the left, and the operators in the order of their evaluation."""
    operators: list[Binary] = []
    first: Operand = node
    while isinstance(first, Binary):
        operators.append(first)
        first = first.left
    return first, operators[::-1]


@dataclass(slots=True)
class Conditional(Node):
    """`condition ? yes : no`."""

    condition: Operand
    yes: Operand
    no: Operand


@dataclass(slots=True)
class Cast(Node):
    """`(.s64) x` or `(.u64) x`."""

    type: str
    operand: Operand


@dataclass(slots=True)
class Call(Node):
    """`generic(x)` in an initialiser, or `0xFF00(x)`, the mask form: `function` is then the mask's Integer."""

    function: Name | Integer
    argument: Operand


@dataclass(slots=True)
class Index(Node):
    """`name[index]`: the address of an element."""

    name: Name
    index: Operand


@dataclass(slots=True)
class Address(Node):
    """`[a]`, `[a+4]`, or with several items as texture and tensor operands have: `[tex, {x, y}]`.

    `unified` tells of the attribute in `ld.global.b32 d, [a].unified` (PTX 9.7.9.8).
    """

    items: list[Operand]
    unified: bool = False


@dataclass(slots=True)
class Vector(Node):
    """`{a, b}` as an operand; nested lists in initialisers too."""

    items: Sequence[Operand]


@dataclass(slots=True)
class Group(Node):
    """`(a, b)`: the arguments or results of a call."""

    items: list[Operand]


@dataclass(slots=True)
class Pair(Node):
    """`d|p`: two destinations."""

    first: Operand
    second: Operand


Operand = Name | Integer | Float | String | Unary | Binary | Conditional | Cast | Call | Index | Address | Vector | Group | Pair


# ── statements ──────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Guard(Node):
    """`@p` or `@!p`."""

    name: Name
    negated: bool = False


@dataclass(slots=True)
class Instruction(Node):
    """`@p opcode.mod.mod operand, operand;`

    `words` are the modifiers without their dots; `head_end` ends the span of the head.
    """

    opcode: str
    words: tuple[str, ...]
    operands: list[Operand]
    guard: Guard | None = None
    head_start: int = field(default=0, compare=False, repr=False)
    head_end: int = field(default=0, compare=False, repr=False)

    @property
    def head(self) -> str:
        """The opcode with its modifiers, as written: `ld.global.u32`."""
        return ".".join((self.opcode, *self.words))


@dataclass(slots=True)
class Label(Node):
    """`NAME:`"""

    name: str


@dataclass(slots=True)
class Declarator(Node):
    """One declared name.

    `count` is the n of `%r<n>` (None without).  `dimensions` are those of an array, None
    for an unsized one `[]`.  `initial` is the initialiser.
    """

    name: str
    count: Operand | None = None
    dimensions: list[Operand | None] = field(default_factory=list)
    initial: Operand | None = None


class Linkage(enum.StrEnum):
    """How the name of a variable or function is known to other modules, by its word (PTX 11.6)."""

    EXTERN = "extern"
    VISIBLE = "visible"
    WEAK = "weak"
    COMMON = "common"


@dataclass(slots=True)
class Variable(Node):
    """A declaration: `.visible .global .align 8 .v4 .f32 a, b[4] = {…};`

    `space` is `reg`, `global`, `const`, `shared`, `local`, `param`, `tex`, `sreg` or with a
    bank number or sub-space as written (`const[3]`, `shared::cluster`), and empty in `.b64;`.  `vector` is 2,
    4, 8 or None.  For kernel parameters `pointer` tells of `.ptr`, with its state space
    and alignment.
    """

    space: str
    type: str
    declarators: list[Declarator]
    linkage: Linkage | None = None
    alignment: Operand | None = None
    vector: int | None = None
    pointer: Pointer | None = None
    attributes: list[Attribute] = field(default_factory=list)


@dataclass(slots=True)
class Pointer(Node):
    """`.ptr .global .align 16` of a kernel parameter (PTX 5.1.6.2); `space` may be an opaque type: `texref`."""

    space: str | None = None
    alignment: Operand | None = None


@dataclass(slots=True)
class Attribute(Node):
    """One item of `.attribute(.managed, .unified(u, v))`."""

    name: str
    arguments: list[Operand] = field(default_factory=list)


@dataclass(slots=True)
class Directive(Node):
    """Any other directive: its name without the dot, and its arguments in order.

    A word that starts with a dot inside the arguments is a Name with the dot in its text.
    Examples: version, target, address_size, pragma, file, loc, maxntid, reqntid, minnctapersm,
    maxnreg, noreturn, alias, callprototype (see Prototype), reqnctapercluster.
    """

    name: str
    arguments: list[Operand] = field(default_factory=list)


@dataclass(slots=True)
class Location(Node):
    """`.loc file line column[, function_name label[+offset], inlined_at file line column]`."""

    file: int
    line: int
    column: int
    function: Operand | None = None
    inlined_at: tuple[int, int, int] | None = None


@dataclass(slots=True)
class Section(Node):
    """`.section name { … }` or the older `@@dwarf` lines: its lines are kept as text."""

    name: str
    lines: list[str]


@dataclass(slots=True)
class CodeBlock(Node):
    """`.code_block { .ir_name: "…" .sourceFileName: n .source_begin … .source_end }`: a text that PTX was made from."""

    language: String
    file: Integer
    text: str


@dataclass(slots=True)
class IntermediateSources(Node):
    """`.nv_intermediate_source_section { … }`: what compilers made of the source on the way to PTX."""

    blocks: list[CodeBlock]


@dataclass(slots=True)
class Prototype(Node):
    """`label: .callprototype (ret) _ (params) .noreturn;`"""

    label: str
    results: list[Variable]
    parameters: list[Variable]
    directives: list[Directive] = field(default_factory=list)


@dataclass(slots=True)
class Targets(Node):
    """`label: .branchtargets a, b;` or `label: .calltargets f, g;` (`kind` without the dot).

    The shorthand `L<3>` of a list stands here as the names `L0`, `L1` and `L2`.
    """

    label: str
    kind: str
    names: list[Name]


@dataclass(slots=True)
class Block(Node):
    """`{ … }`: a scope."""

    statements: list[Statement]


@dataclass(slots=True)
class Unread(Node):
    """The place of a body whose statements are not read yet (`ptxvm.syntax.outline`); one that `is_open` has no `}`."""

    is_open: bool = False

    @property
    def inner_end(self) -> int:
        """Where its statements end: before the `}`, if it has one."""
        return self.end if self.is_open else self.end - 1


@dataclass(slots=True)
class Function(Node):
    """`.entry` or `.func`.  `body` is None for a declaration (a prototype of a function); `parse` leaves none unread."""

    kind: str
    name: str
    results: list[Variable]
    parameters: list[Variable]
    directives: list[Directive] = field(default_factory=list)
    body: Block | Unread | None = None
    linkage: Linkage | None = None
    attributes: list[Attribute] = field(default_factory=list)
    name_start: int = field(default=0, compare=False, repr=False)
    name_end: int = field(default=0, compare=False, repr=False)


@dataclass(slots=True)
class Alike(Node):
    """A statement of a module that is not read yet (`ptxvm.syntax.alike`): it is like `model` but for its names.

    `name` is the one that it declares; `body_start` the place of the body of a function, -1 without.  The parameters of a
    kernel can be like those of `others` instead, in another order.  `parse` leaves none.
    """

    name: str
    model: Variable | Function
    body_start: int = -1
    others: tuple[Function, ...] = ()


Statement = (
    Instruction
    | Label
    | Variable
    | Directive
    | Location
    | Section
    | IntermediateSources
    | Prototype
    | Targets
    | Block
    | Function
    | Alike
)


@dataclass(slots=True)
class Module(Node):
    """A whole source: everything in order, `.version` and `.target` among the directives."""

    statements: list[Statement]
